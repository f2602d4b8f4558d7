"""The controller of batch/v1 Jobs: creates, counts, suspends and ends their pods, and removes old Jobs.

Each look at a Job works from the stored Job and its pods alone (`jobview`); what its policies say is in
`jobpolicies`. As in the real one, changes of pods are looked at in batches of a second, pods are created a
few at a time, pods deleted by the controller itself are no failures, and those that anybody else deletes are.
Restarts in place (`restartPolicy: OnFailure`) do not happen here, so they are not counted either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lstqueue.embedded import eventlog, metadata
from lstqueue.embedded.controllers import jobpods, jobpolicies, jobview, pods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

POD_BATCH = 1.0
"""Seconds during which changes of a Job's pods are collected."""

_CREATE_BATCH = 50
_CREATE_PAUSE = 0.1
_NAMES_TRIED = 8
_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_MANAGER = "kubernetes.io/job-controller"

_Key = tuple[str, str]

SUCCESS = "SuccessCriteriaMet"
FAILURE = "FailureTarget"


class _Ending(NamedTuple):
    """Why a Job ends: the interim condition, and the reason and message of both conditions."""

    condition: str
    reason: str
    message: str


_COMPLETE = _Ending(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")
_EXCEEDED = _Ending(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_LATE = _Ending(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
_TOO_MANY_INDEXES = _Ending(
    FAILURE,
    "MaxFailedIndexesExceeded",
    "Job has exceeded the specified maximal number of failed indexes",
)
_SOME_INDEXES = _Ending(FAILURE, "FailedIndexes", "Job has failed indexes")


class JobController:
    """Watches Jobs and their pods from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[_Key] = work.WorkQueue(self._sync, errors)
        self._expiries: work.WorkQueue[_Key] = work.WorkQueue(self._expire, errors)
        self._jobs: dict[str, jobview.Known] = {}
        self._writing = False
        for pod in store.list(port.PODS):
            self._on_pod(pod, gone=False)
        for job in store.list(port.JOBS):
            self._work.add(_key(job))
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()
        self._expiries.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource == port.JOBS:
            if event.type == eventlog.DELETED:
                self._jobs.pop(event.object["metadata"]["uid"], None)
            elif not self._writing:
                self._work.add(_key(event.object))
        elif event.resource == port.PODS:
            self._on_pod(event.object, gone=event.type == eventlog.DELETED)

    def _on_pod(self, pod: port.Object, *, gone: bool) -> None:
        owner = pods.controller_of(pod, "Job")
        if owner is None:
            return
        if gone:
            known = self._jobs.get(owner["uid"])
            if known is None:
                return
            known.lose(pod)
        else:
            self._jobs.setdefault(owner["uid"], jobview.Known()).learn(pod)
        if not self._writing:
            self._work.add((pod["metadata"]["namespace"], owner["name"]), delay=POD_BATCH)

    # One look

    def _sync(self, key: _Key) -> None:
        job = self._store.find(port.JOBS, *key)
        if job is None or pods.deleting(job) or job["spec"].get("managedBy", _MANAGER) != _MANAGER:
            return
        if _finished_ms(job) is not None:
            self._expire(key)
            return
        known = self._jobs.setdefault(job["metadata"]["uid"], jobview.Known())
        self._writing = True
        try:
            look = jobview.observe(job, known)
            self._decide(look)
            self._publish(look)
        finally:
            self._writing = False
        if look.has("Complete") or look.has("Failed"):
            self._expire(key)

    def _expire(self, key: _Key) -> None:
        """Delete a Job that ended longer ago than its TTL, as the controller of TTLs does."""
        job = self._store.find(port.JOBS, *key)
        if job is None or pods.deleting(job):
            return
        ttl, finished = job["spec"].get("ttlSecondsAfterFinished"), _finished_ms(job)
        if ttl is None or finished is None:
            return
        left = finished / 1000 + ttl - self._store.now_ms() / 1000
        if left > 0:
            self._expiries.add(key, delay=left)
        else:
            uid = job["metadata"]["uid"]
            self._store.delete(port.JOBS, *key, uid=uid, propagation="Foreground")

    def _decide(self, look: jobview.Look) -> None:
        if not look.spec["suspend"]:
            look.status.setdefault("startTime", metadata.timestamp(self._store.now_ms()))
        ending = self._ending(look)
        if ending is None:
            if look.spec["suspend"]:
                self._delete(look, list(look.active))
            else:
                self._manage(look)
            ending = _COMPLETE if _reached(look) else None
        if ending is not None:
            self._end(look, ending)
        else:
            self._note_suspension(look)

    def _ending(self, look: jobview.Look) -> _Ending | None:
        """Return why the Job ends before its completions are reached, in the real controller's order."""
        for kind in (SUCCESS, FAILURE):
            if decided := look.condition(kind):
                return _Ending(kind, decided["reason"], decided["message"])
        if look.failed_job:
            return _Ending(FAILURE, "PodFailurePolicy", look.failed_job)
        if look.failures > look.spec["backoffLimit"]:
            return _EXCEEDED
        if self._late(look):
            return _LATE
        if look.per_index and (failed := len(look.failed_indexes)):
            most = look.spec.get("maxFailedIndexes")
            if most is not None and failed > most:
                return _TOO_MANY_INDEXES
            if failed + len(look.completed) >= look.spec["completions"]:
                return _SOME_INDEXES
        if look.indexed and (message := jobpolicies.enough(look.spec, look.completed)):
            return _Ending(SUCCESS, "SuccessPolicy", message)
        return None

    def _late(self, look: jobview.Look) -> bool:
        limit = look.spec.get("activeDeadlineSeconds")
        if limit is None or look.spec["suspend"]:
            return False
        began = metadata.parse_timestamp(look.status["startTime"])
        left = began / 1000 + limit - self._store.now_ms() / 1000
        if left > 0:
            self._work.add(_key(look.job), delay=left)
        return bool(left <= 0)

    def _end(self, look: jobview.Look, ending: _Ending) -> None:
        """Terminal conditions come only when no pod is left that could still do something."""
        left = jobview.uncounted(look)
        if ending.condition == FAILURE:
            # What is cut short with a Job that fails has failed too.
            for pod in left:
                jobview.count_failure(look, pod)
        else:
            look.known.dropped.update(pod["metadata"]["uid"] for pod in left)
        self._delete(look, list(look.active))
        self._set(look, ending.condition, "True", ending.reason, ending.message)
        if look.active or look.terminating:
            return
        complete = ending.condition == SUCCESS
        self._set(look, "Complete" if complete else "Failed", "True", ending.reason, ending.message)
        if complete:
            look.status["completionTime"] = metadata.timestamp(self._store.now_ms())

    def _note_suspension(self, look: jobview.Look) -> None:
        if look.spec["suspend"]:
            if not look.has("Suspended"):
                self._set(look, "Suspended", "True", "JobSuspended", "Job suspended")
                look.status.pop("startTime", None)
        elif look.has("Suspended"):
            self._set(look, "Suspended", "False", "JobResumed", "Job resumed")
            # The clock of activeDeadlineSeconds starts anew.
            look.status["startTime"] = metadata.timestamp(self._store.now_ms())

    # Pods

    def _manage(self, look: jobview.Look) -> None:
        wanted = look.spec["parallelism"]
        completions, succeeded = look.spec.get("completions"), look.status.get("succeeded", 0)
        if completions is not None:
            wanted = max(0, min(wanted, completions - succeeded))
        elif succeeded:
            wanted = len(look.active)
        doomed = _superfluous(look, len(look.active) - wanted)
        if doomed:
            self._delete(look, doomed)
            return
        missing = wanted - len(look.active)
        if jobpolicies.replaces_failed_only(look.spec):
            missing -= len(look.terminating)
        if missing > 0:
            self._create(look, missing)

    def _create(self, look: jobview.Look, missing: int) -> None:
        indexes, wait_ms = self._next(look, missing)
        if wait_ms > 0:
            self._work.add(_key(look.job), delay=wait_ms / 1000)
        for index in indexes[:_CREATE_BATCH]:
            try:
                look.active.append(self._create_one(look, index))
            except port.ApiError:
                # Quota, a policy, a missing class, a namespace that goes away: it may pass.
                pause = min(_FIRST_RETRY * 2.0 ** min(look.known.refused, 16), _LONGEST_RETRY)
                look.known.refused += 1
                self._work.add(_key(look.job), delay=pause)
                return
            look.known.refused = 0
        if len(indexes) > _CREATE_BATCH:
            self._work.add(_key(look.job), delay=_CREATE_PAUSE)

    def _next(self, look: jobview.Look, missing: int) -> tuple[list[int | None], int]:
        """Return the indexes to create pods for (None: pods without one), and ms after which there are more.

        The pause after a failure holds for the whole Job, or with a limit per index for that index.
        """
        now = self._store.now_ms()
        if look.per_index:
            pauses = {
                index: jobpolicies.pause_ms(sum(jobpods.failures_of(last)) + 1)
                + jobpolicies.ended_ms(last)
                - now
                for index, last in look.delayed.items()
            }
            chosen = _free_indexes(look)[:missing]
            ready: list[int | None] = [index for index in chosen if pauses.get(index, 0) <= 0]
            waiting = [pauses[index] for index in chosen if pauses.get(index, 0) > 0]
            return ready, 0 if ready else min(waiting, default=0)
        known = look.known
        wait = known.failed_ms + jobpolicies.pause_ms(known.failures) - now if known.failures else 0
        if wait > 0:
            return [], wait
        if look.indexed:
            return [*_free_indexes(look)[:missing]], 0
        return [None] * missing, 0

    def _create_one(self, look: jobview.Look, index: int | None) -> port.Object:
        failures = jobview.next_failures(look, index) if look.per_index and index is not None else None
        for _ in range(_NAMES_TRIED):
            look.known.created += 1
            body = jobpods.build(look.job, index, look.known.created, failures=failures)
            # A pod of an earlier Job of this name may still be leaving.
            if self._store.find(port.PODS, body["metadata"]["namespace"], body["metadata"]["name"]) is None:
                break
        return self._store.create(port.PODS, body["metadata"]["namespace"], body)

    def _delete(self, look: jobview.Look, doomed: Iterable[port.Object]) -> None:
        known = look.known
        for pod in doomed:
            meta = pod["metadata"]
            uid = meta["uid"]
            if uid not in known.counted:
                known.dropped.add(uid)
            look.active.remove(pod)
            self._store.delete(port.PODS, meta["namespace"], meta["name"], uid=uid)
            left = known.pods.get(uid)
            if left is not None:
                look.terminating.append(left)

    # Status

    def _set(self, look: jobview.Look, kind: str, status: str, reason: str, message: str) -> None:
        if look.has(kind) is (status == "True"):
            return
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        so_far = {"status": {"conditions": look.conditions}}
        look.conditions = pods.with_conditions(so_far, self._store.now_ms(), condition)

    def _publish(self, look: jobview.Look) -> None:
        status = look.status
        if look.conditions:
            status["conditions"] = look.conditions
        status["active"] = len(look.active)
        status["ready"] = sum(pods.is_ready(pod) for pod in look.active)
        status["terminating"] = len(look.terminating)
        for name in ("active", "succeeded", "failed", "completedIndexes"):
            # As in the real encoding, zero is left out, except where it is a pointer there.
            if not status.get(name):
                status.pop(name, None)
        before = look.job.get("status", {})
        if status != before:
            patch = {**dict.fromkeys(before.keys() - status.keys()), **status}
            self._store.patch(port.JOBS, *_key(look.job), {"status": patch}, subresource="status")


def _key(job: port.Object) -> _Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _finished_ms(job: port.Object) -> int | None:
    """Return when the Job got its terminal condition, None while it has none."""
    for item in job.get("status", {}).get("conditions") or ():
        if item["type"] in ("Complete", "Failed") and item["status"] == "True":
            return metadata.parse_timestamp(item["lastTransitionTime"])
    return None


def _reached(look: jobview.Look) -> bool:
    # A work queue is done with its first success, once nobody works any more: whoever was suspended included.
    if look.active:
        return False
    completions, succeeded = look.spec.get("completions"), look.status.get("succeeded", 0)
    return bool(succeeded > 0 if completions is None else succeeded >= completions)


def _free_indexes(look: jobview.Look) -> list[int]:
    taken = look.completed | look.failed_indexes | {jobpods.index_of(pod) for pod in look.active}
    if jobpolicies.replaces_failed_only(look.spec):
        taken |= {jobpods.index_of(pod) for pod in look.terminating}
    return [index for index in range(look.spec["completions"]) if index not in taken]


def _superfluous(look: jobview.Look, excess: int) -> list[port.Object]:
    """Return the pods to delete: those without a place among the indexes, then the least far ones."""
    ordered = sorted(look.active, key=_worth)
    doomed = []
    if look.indexed:
        seen: set[int | None] = set()
        for pod in reversed(ordered):
            index = jobpods.index_of(pod)
            if index is None or index >= look.spec["completions"] or index in seen:
                doomed.append(pod)
            seen.add(index)
    kept = [pod for pod in ordered if pod not in doomed]
    return doomed + kept[: max(0, excess - len(doomed))]


def _worth(pod: port.Object) -> tuple[bool, bool, bool, int]:
    """Order in which superfluous pods go: unbound, not running, not ready first, then the highest index."""
    return (
        bool(pods.node_of(pod)),
        pods.phase(pod) == "Running",
        pods.is_ready(pod),
        -(jobpods.index_of(pod) or 0),
    )
