"""The controller of PyTorchJobs: makes, counts and deletes their pods as the training operator 1.8 does.

Each look works from the stored job and its pods alone. What a job has ended as is never looked at again: with
`cleanPodPolicy: None`, the default, pods that still run then go on running, even when the job is suspended.
A suspended one loses all its pods at once, ended ones too. A pod that runs and is being deleted counts as
failed, so that a job that is resumed over such pods fails for good where nothing is to be restarted. Nothing
is remembered of pods that are gone: they are made again. Elastic jobs and gang schedulers are not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lstqueue.embedded import eventlog, metadata
from lstqueue.embedded.controllers import pods, pytorchpods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

_RETRY = 1.0
_KIND = port.PYTORCH_JOBS.kind
_RETRYABLE = 128
"""Exit codes from which on the policy ExitCode restarts a pod."""

_Key = tuple[str, str]
_Status = dict[str, Any]
_Pods = dict[tuple[str, int], port.Object]


class _Counts(NamedTuple):
    active: int
    succeeded: int
    failed: int


class PyTorchJobController:
    """Watches PyTorchJobs, their pods and their Services from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[_Key] = work.WorkQueue(self._sync, errors)
        self._pods: dict[str, dict[str, port.Object]] = {}
        for pod in store.list(port.PODS):
            self._on_pod(pod, gone=False)
        for job in store.list(port.PYTORCH_JOBS):
            self._work.add(_key(job))
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        gone = event.type == eventlog.DELETED
        if event.resource == port.PYTORCH_JOBS:
            if gone:
                self._pods.pop(event.object["metadata"]["uid"], None)
            else:
                self._work.add(_key(event.object))
        elif event.resource == port.PODS:
            self._on_pod(event.object, gone=gone)

    def _on_pod(self, pod: port.Object, *, gone: bool) -> None:
        owner = pods.controller_of(pod, _KIND)
        if owner is None:
            return
        known = self._pods.setdefault(owner["uid"], {})
        if gone:
            known.pop(pod["metadata"]["uid"], None)
        else:
            known[pod["metadata"]["uid"]] = pod
        self._work.add((pod["metadata"]["namespace"], owner["name"]))

    # One look

    def _sync(self, key: _Key) -> None:
        job = self._store.find(port.PYTORCH_JOBS, *key)
        if job is None or pods.deleting(job):
            return
        status: _Status = dict(job.get("status") or {})
        status["conditions"] = [dict(item) for item in status.get("conditions") or ()]
        if not status["conditions"]:
            self._say(status, "Created", "True", "Created", f"{_KIND} {key[1]} is created.")
        present = self._pods.setdefault(job["metadata"]["uid"], {})
        policy = job["spec"].get("runPolicy") or {}
        if _is(status, "Succeeded") or _is(status, "Failed"):
            self._clean(job, list(present.values()), policy)
            if _is(status, "Succeeded"):
                _all_succeeded(status)
            if not self._expired(key, job, policy, status):
                self._publish(job, status)
        elif policy.get("suspend"):
            self._suspend(job, list(present.values()), status)
            self._publish(job, status)
        else:
            self._run(job, present, policy, status)
            self._publish(job, status)

    def _clean(self, job: port.Object, left: list[port.Object], policy: _Status) -> None:
        """Delete what is left of a job that has ended, as its policy says."""
        which = policy.get("cleanPodPolicy") or "None"
        if which == "All":
            self._delete(left)
        elif which == "Running":
            self._delete([pod for pod in left if not pods.finished(pod)])

    def _expired(self, key: _Key, job: port.Object, policy: _Status, status: _Status) -> bool:
        ttl, ended = policy.get("ttlSecondsAfterFinished"), status.get("completionTime")
        if ttl is None or policy.get("suspend") or not ended:
            return False
        left = metadata.parse_timestamp(ended) / 1000 + ttl - self._store.now_ms() / 1000
        if left > 0:
            self._work.add(key, delay=left)
            return False
        uid = job["metadata"]["uid"]
        self._store.delete(port.PYTORCH_JOBS, *key, uid=uid, propagation="Background")
        return True

    def _suspend(self, job: port.Object, left: list[port.Object], status: _Status) -> None:
        self._delete(left)
        counts = status.get("replicaStatuses") or {}
        status["replicaStatuses"] = {
            role: {field: value for field, value in item.items() if field != "active"}
            for role, item in counts.items()
        }
        words = f"{_KIND} {job['metadata']['name']} is suspended."
        if _is(status, "Running"):
            self._say(status, "Running", "False", "Suspended", words)
        self._say(status, "Suspended", "True", "Suspended", words)

    def _run(
        self, job: port.Object, present: dict[str, port.Object], policy: _Status, status: _Status
    ) -> None:
        now = metadata.timestamp(self._store.now_ms())
        if _is(status, "Suspended"):
            self._say(
                status, "Suspended", "False", "Resumed", f"{_KIND} {job['metadata']['name']} is resumed."
            )
            status["startTime"] = now
        found = {pytorchpods.place(pod): pod for pod in present.values()}
        why = self._exceeded(job, found, policy, status)
        if why:
            status.setdefault("completionTime", now)
            self._delete(list(present.values()))
            self._say(status, "Failed", "True", "Failed", f"Job {job['metadata']['name']} has failed: {why}")
            return
        counts = {}
        for role, spec in pytorchpods.replicas(job).items():
            counts[role] = self._reconcile(job, role, spec, found, status)
        status.setdefault("startTime", now)
        status["replicaStatuses"] = {
            role: {field: value for field, value in item._asdict().items() if value}
            for role, item in counts.items()
        }
        self._judge(job, counts, status, now)

    def _exceeded(self, job: port.Object, found: _Pods, policy: _Status, status: _Status) -> str:
        """Say which limit of the whole job is exceeded, "" for none. Restarts in place do not happen here."""
        failed = sum(pods.phase(pod) == "Failed" for pod in found.values())
        before = sum(item.get("failed", 0) for item in (status.get("replicaStatuses") or {}).values())
        active = sum(not pods.finished(pod) and not pods.deleting(pod) for pod in found.values())
        wanted = sum(pytorchpods.count(spec) for spec in pytorchpods.replicas(job).values())
        if policy.get("backoffLimit") == 0 and failed > before and active != wanted:
            return "it has reached the specified backoff limit"
        limit, began = policy.get("activeDeadlineSeconds"), status.get("startTime")
        if limit is None or not began:
            return ""
        left = metadata.parse_timestamp(began) / 1000 + limit - self._store.now_ms() / 1000
        if left > 0:
            self._work.add(_key(job), delay=left)
            return ""
        return "it was active longer than specified deadline"

    # Replicas

    def _reconcile(
        self, job: port.Object, role: str, spec: Mapping[str, Any], found: _Pods, status: _Status
    ) -> _Counts:
        """Make what is missing of a role, delete what is to be made anew, and count the others."""
        wanted, policy = pytorchpods.count(spec), pytorchpods.restarts(spec)
        phases = []
        for index in range(wanted):
            pod = found.get((role, index))
            if pod is None:
                self._create(job, role, index)
                continue
            phases.append(_counted_as(pod))
            if pods.phase(pod) == "Failed":
                self._restart(job, role, pod, policy, status)
        self._delete([pod for (name, index), pod in found.items() if name == role and index >= wanted])
        return _Counts(*(phases.count(name) for name in ("Active", "Succeeded", "Failed")))

    def _restart(self, job: port.Object, role: str, pod: port.Object, policy: str, status: _Status) -> None:
        name = job["metadata"]["name"]
        retryable = pytorchpods.exit_code(pod) >= _RETRYABLE
        if policy in ("OnFailure", "Always") or (policy == "ExitCode" and retryable):
            self._delete([pod])
            words = f"job {name} is restarting because {role} replica(s) failed."
            self._say(status, "Restarting", "True", "Restarting", words)
        elif policy == "ExitCode":
            words = f'job "{name}" is failing because "{role}" replica(s) failed.'
            self._say(status, "Failed", "True", "Failed", words)

    def _judge(self, job: port.Object, counts: dict[str, _Counts], status: _Status, now: str) -> None:
        """Say what the counts mean: the master decides, or where there is none all workers."""
        name, roles = job["metadata"]["name"], pytorchpods.replicas(job)
        for role, found in counts.items():
            wanted = pytorchpods.count(roles[role])
            if role == "Master" or "Master" not in counts:
                if found.succeeded == wanted:
                    status.setdefault("completionTime", now)
                    self._say(status, "Succeeded", "True", "Succeeded", f"{_KIND} {name} has completed.")
                    return
                if found.active:
                    self._say(status, "Running", "True", "Running", f"{_KIND} {name} is running.")
            if not found.failed or wanted <= found.succeeded + found.active:
                continue
            because = f"because {found.failed} {role} replica(s) failed."
            if pytorchpods.restarts(roles[role]) == "Never":
                status.setdefault("completionTime", now)
                self._say(status, "Failed", "True", "Failed", f"{_KIND} {name} is failed {because}")
            else:
                words = f"{_KIND} {name} is restarting {because}"
                self._say(status, "Restarting", "True", "Restarting", words)

    def _create(self, job: port.Object, role: str, index: int) -> None:
        namespace = job["metadata"]["namespace"]
        try:
            self._store.create(port.PODS, namespace, pytorchpods.build(job, role, index))
        except port.ApiError:
            # A quota, a policy, or a pod of the name that is still there: it may pass.
            self._work.add(_key(job), delay=_RETRY)
            return
        name = pytorchpods.name(job, role, index)
        if self._store.find(port.SERVICES, namespace, name) is None:
            self._store.create(port.SERVICES, namespace, pytorchpods.service(job, role, index))

    def _delete(self, doomed: list[port.Object]) -> None:
        for pod in doomed:
            meta = pod["metadata"]
            if pods.deleting(pod):
                continue
            self._store.delete(port.PODS, meta["namespace"], meta["name"], uid=meta["uid"])
            service = self._store.find(port.SERVICES, meta["namespace"], meta["name"])
            if service is not None and pods.controller_of(service, _KIND) is not None:
                self._store.delete(port.SERVICES, meta["namespace"], meta["name"])

    # Status

    def _say(self, status: _Status, kind: str, value: str, reason: str, message: str) -> None:
        """Set a condition as the training operator does: none changes any more once it has failed."""
        known = next((item for item in status["conditions"] if item["type"] == kind), None)
        reason = f"{_KIND}{reason}"
        if _is(status, "Failed") or (known and (known["status"], known["reason"]) == (value, reason)):
            return
        now = metadata.timestamp(self._store.now_ms())
        since = known["lastTransitionTime"] if known and known["status"] == value else now
        hides = {"Restarting": "Running", "Running": "Restarting"}.get(kind)
        kept = [item for item in status["conditions"] if item["type"] not in (kind, hides)]
        for item in kept:
            if kind in ("Failed", "Succeeded") and item["type"] == "Running":
                item["status"] = "False"
        said = {"type": kind, "status": value, "reason": reason, "message": message}
        times = {"lastTransitionTime": since, "lastUpdateTime": now}
        status["conditions"] = [*kept, {**said, **times}]

    def _publish(self, job: port.Object, status: _Status) -> None:
        before = job.get("status") or {}
        if status != before:
            patch = {**dict.fromkeys(before.keys() - status.keys()), **status}
            if status.get("replicaStatuses") != before.get("replicaStatuses"):
                patch["replicaStatuses"] = _replaced(before, status)
            self._store.patch(port.PYTORCH_JOBS, *_key(job), {"status": patch}, subresource="status")


def _counted_as(pod: port.Object) -> str:
    """Return what a pod counts as, "" for nothing: one that runs and is to go counts as failed."""
    phase = pods.phase(pod)
    if phase == "Running":
        return "Failed" if pods.deleting(pod) else "Active"
    return phase if phase in ("Succeeded", "Failed") else ""


def _all_succeeded(status: _Status) -> None:
    """What still runs when a job has succeeded counts as having succeeded, too."""
    counts = {}
    for role, item in (status.get("replicaStatuses") or {}).items():
        through = item.get("succeeded", 0) + item.get("active", 0)
        kept = {field: value for field, value in item.items() if field not in ("active", "succeeded")}
        counts[role] = {**kept, **({"succeeded": through} if through else {})}
    if counts:
        status["replicaStatuses"] = counts


def _replaced(before: _Status, after: _Status) -> _Status:
    """Return the merge patch from the counts before to those after, in which zeros are left out."""
    known, counts = before.get("replicaStatuses") or {}, after.get("replicaStatuses") or {}
    roles: _Status = dict.fromkeys(known.keys() - counts.keys())
    for role, item in counts.items():
        roles[role] = {**dict.fromkeys((known.get(role) or {}).keys() - item.keys()), **item}
    return roles


def _is(status: _Status, kind: str) -> bool:
    return any(item["type"] == kind and item["status"] == "True" for item in status["conditions"])


def _key(job: port.Object) -> _Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]
