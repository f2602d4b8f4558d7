"""The controller of batch/v1 Jobs: creates, counts, suspends and ends their pods.

Each look at a Job works from the stored Job and its pods alone; what is counted already is remembered by pod
UID, as the real controller does with a finalizer on each pod (which is not modelled). Pod failure policies,
success policies, per-index limits, `activeDeadlineSeconds` and TTLs are not modelled either.

As in the real one, changes of pods are looked at in batches of a second, pods are created a few at a time,
pods deleted by the controller itself are not failures, and those that anybody else deletes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lstqueue.embedded import eventlog, metadata
from lstqueue.embedded.controllers import jobpods, pods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

POD_BATCH = 1.0
"""Seconds during which changes of a Job's pods are collected."""

_CREATE_BATCH = 50
_CREATE_PAUSE = 0.1
_NAMES_TRIED = 8
_REFUSED_PAUSE = 10.0
_FAILURE_BACKOFF = 10.0
_LONGEST_BACKOFF = 600.0
_MANAGER = "kubernetes.io/job-controller"

_Key = tuple[str, str]
_Condition = dict[str, str]

_COMPLETE = {"reason": "CompletionsReached", "message": "Reached expected number of succeeded pods"}
_EXCEEDED = {
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}


@dataclass(slots=True)
class _Job:
    """What the controller remembers of one Job. `dropped`: pods that it has deleted itself."""

    pods: dict[str, port.Object] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    lost: int = 0
    created: int = 0
    failed_at: float = 0.0


@dataclass(slots=True)
class _Look:
    """One look at a Job: its pods by what they do now, and the status in the making."""

    job: port.Object
    known: _Job
    status: dict[str, Any]
    conditions: list[_Condition]
    active: list[port.Object]
    terminating: list[port.Object]
    completed: set[int]

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.job["spec"]
        return spec

    @property
    def indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")

    def condition(self, kind: str) -> str:
        """Return the status of a condition, empty when absent."""
        return next((item["status"] for item in self.conditions if item["type"] == kind), "")


class JobController:
    """Watches Jobs and their pods from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[_Key] = work.WorkQueue(self._sync, errors)
        self._jobs: dict[str, _Job] = {}
        self._writing = False
        for pod in store.list(port.PODS):
            self._learn_pod(pod)
        for job in store.list(port.JOBS):
            self._work.add(_key(job))
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource == port.JOBS:
            if event.type == eventlog.DELETED:
                self._jobs.pop(event.object["metadata"]["uid"], None)
            elif not self._writing:
                self._work.add(_key(event.object))
        elif event.resource == port.PODS:
            if event.type == eventlog.DELETED:
                self._lose_pod(event.object)
            else:
                self._learn_pod(event.object)

    def _learn_pod(self, pod: port.Object) -> None:
        owner = pods.controller_of(pod, "Job")
        if owner is not None:
            self._jobs.setdefault(owner["uid"], _Job()).pods[pod["metadata"]["uid"]] = pod
            self._look_soon(pod, owner["name"])

    def _lose_pod(self, pod: port.Object) -> None:
        owner = pods.controller_of(pod, "Job")
        known = self._jobs.get(owner["uid"]) if owner is not None else None
        if owner is None or known is None:
            return
        uid = pod["metadata"]["uid"]
        known.pods.pop(uid, None)
        if uid not in known.counted and uid not in known.dropped:
            known.lost += 1
        known.counted.discard(uid)
        known.dropped.discard(uid)
        self._look_soon(pod, owner["name"])

    def _look_soon(self, pod: port.Object, name: str) -> None:
        if not self._writing:
            self._work.add((pod["metadata"]["namespace"], name), delay=POD_BATCH)

    # One look

    def _sync(self, key: _Key) -> None:
        job = self._store.find(port.JOBS, *key)
        if job is None or pods.deleting(job) or job["spec"].get("managedBy", _MANAGER) != _MANAGER:
            return
        look = self._observe(job)
        if look.condition("Complete") == "True" or look.condition("Failed") == "True":
            return
        self._writing = True
        try:
            self._count(look)
            self._decide(look)
            self._publish(look)
        finally:
            self._writing = False

    def _observe(self, job: port.Object) -> _Look:
        known = self._jobs.setdefault(job["metadata"]["uid"], _Job())
        status = {**job.get("status", {})}
        look = _Look(
            job,
            known,
            status,
            list(status.get("conditions") or ()),
            active=[],
            terminating=[],
            completed=jobpods.parse_indexes(status.get("completedIndexes") or ""),
        )
        for pod in known.pods.values():
            if not pods.finished(pod):
                (look.terminating if pods.deleting(pod) else look.active).append(pod)
        return look

    def _count(self, look: _Look) -> None:
        """Count each pod once: when it has ended, or when somebody else has deleted it."""
        known = look.known
        succeeded = look.status.get("succeeded", 0)
        failures = known.lost
        known.lost = 0
        for uid, pod in known.pods.items():
            if uid in known.counted or uid in known.dropped:
                continue
            phase = pods.phase(pod)
            index = jobpods.index_of(pod)
            if phase == "Succeeded":
                if not look.indexed:
                    succeeded += 1
                elif index is not None and index < look.spec["completions"]:
                    look.completed.add(index)
            elif phase == "Failed" or pods.deleting(pod):
                failures += 1
            else:
                continue
            known.counted.add(uid)
        look.status["failed"] = look.status.get("failed", 0) + failures
        look.status["succeeded"] = len(look.completed) if look.indexed else succeeded
        if look.indexed and look.completed:
            look.status["completedIndexes"] = jobpods.format_indexes(look.completed)
        if failures:
            known.failed_at = self._store.now_ms() / 1000

    def _decide(self, look: _Look) -> None:
        spec, status = look.spec, look.status
        failing = look.condition("FailureTarget") == "True"
        if not failing and status["failed"] > spec["backoffLimit"]:
            self._set(look, "FailureTarget", "True", _EXCEEDED)
            failing = True
        if failing:
            self._end(look, "Failed", _EXCEEDED)
        elif look.condition("SuccessCriteriaMet") == "True" or self._enough(look):
            self._set(look, "SuccessCriteriaMet", "True", _COMPLETE)
            self._end(look, "Complete", _COMPLETE)
        elif spec["suspend"]:
            self._suspend(look)
        else:
            self._run(look)

    def _enough(self, look: _Look) -> bool:
        completions = look.spec.get("completions")
        if completions is not None:
            return bool(look.status["succeeded"] >= completions)
        return look.status["succeeded"] > 0 and not look.active

    def _end(self, look: _Look, condition: str, why: _Condition) -> None:
        """Terminal conditions come only when no pod is left that could still do something."""
        self._delete(look, list(look.active))
        if look.active or look.terminating:
            return
        self._set(look, condition, "True", why)
        if condition == "Complete":
            look.status["completionTime"] = metadata.timestamp(self._store.now_ms())

    def _suspend(self, look: _Look) -> None:
        self._delete(look, list(look.active))
        if look.condition("Suspended") != "True":
            why = {"reason": "JobSuspended", "message": "Job suspended"}
            self._set(look, "Suspended", "True", why)
        look.status.pop("startTime", None)

    def _run(self, look: _Look) -> None:
        if look.condition("Suspended") == "True":
            self._set(look, "Suspended", "False", {"reason": "JobResumed", "message": "Job resumed"})
        if "startTime" not in look.status:
            look.status["startTime"] = metadata.timestamp(self._store.now_ms())
        wanted = look.spec["parallelism"]
        completions = look.spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - look.status["succeeded"])
        elif look.status["succeeded"]:
            wanted = min(wanted, len(look.active))
        excess = len(look.active) - wanted
        if excess > 0:
            self._delete(look, sorted(look.active, key=_worth)[:excess])
            return
        if look.spec.get("podReplacementPolicy") == "Failed":
            excess += len(look.terminating)
        if excess < 0:
            self._create(look, -excess)

    def _create(self, look: _Look, missing: int) -> None:
        wait = self._backoff(look)
        if wait > 0:
            self._work.add(_key(look.job), delay=wait)
            return
        indexes = self._free_indexes(look) if look.indexed else [None] * missing
        for index in indexes[: min(missing, _CREATE_BATCH)]:
            try:
                look.active.append(self._create_one(look, index))
            except port.ApiError:
                # Quota, a policy, a missing class, a namespace that goes away: it may pass.
                self._work.add(_key(look.job), delay=_REFUSED_PAUSE)
                return
        if missing > _CREATE_BATCH:
            self._work.add(_key(look.job), delay=_CREATE_PAUSE)

    def _create_one(self, look: _Look, index: int | None) -> port.Object:
        for _ in range(_NAMES_TRIED):
            look.known.created += 1
            body = jobpods.build(look.job, index, look.known.created)
            # A pod of an earlier Job of this name may still be leaving.
            if self._store.find(port.PODS, body["metadata"]["namespace"], body["metadata"]["name"]) is None:
                break
        return self._store.create(port.PODS, body["metadata"]["namespace"], body)

    def _backoff(self, look: _Look) -> float:
        """Return seconds to wait before failed pods are replaced."""
        failed: int = look.status["failed"]
        if not failed or not look.known.failed_at:
            return 0.0
        pause = min(_FAILURE_BACKOFF * 2.0 ** min(failed - 1, 16), _LONGEST_BACKOFF)
        return look.known.failed_at + pause - self._store.now_ms() / 1000

    def _free_indexes(self, look: _Look) -> list[int | None]:
        taken = look.completed | {jobpods.index_of(pod) for pod in look.active}
        if look.spec.get("podReplacementPolicy") == "Failed":
            taken |= {jobpods.index_of(pod) for pod in look.terminating}
        return [index for index in range(look.spec["completions"]) if index not in taken]

    def _delete(self, look: _Look, doomed: Iterable[port.Object]) -> None:
        for pod in doomed:
            meta = pod["metadata"]
            look.known.dropped.add(meta["uid"])
            look.active.remove(pod)
            self._store.delete(port.PODS, meta["namespace"], meta["name"], uid=meta["uid"])
            left = look.known.pods.get(meta["uid"])
            if left is not None:
                look.terminating.append(left)

    def _set(self, look: _Look, kind: str, status: str, why: _Condition) -> None:
        now = self._store.now_ms()
        condition = {"type": kind, "status": status, **why}
        if look.condition(kind) == status:
            return
        look.conditions = pods.with_conditions({"status": {"conditions": look.conditions}}, now, condition)

    def _publish(self, look: _Look) -> None:
        status = look.status
        if look.conditions:
            status["conditions"] = look.conditions
        for name, count in (
            ("active", len(look.active)),
            ("ready", sum(pods.is_ready(pod) for pod in look.active)),
            ("terminating", len(look.terminating)),
            ("succeeded", status["succeeded"]),
            ("failed", status["failed"]),
        ):
            # As in the real encoding, zero counts are left out, except those that are pointers there.
            if count or name in ("ready", "terminating"):
                status[name] = count
            else:
                status.pop(name, None)
        before = look.job.get("status", {})
        if status != before:
            patch = {**dict.fromkeys(before.keys() - status.keys()), **status}
            self._store.patch(port.JOBS, *_key(look.job), {"status": patch}, subresource="status")


def _key(job: port.Object) -> _Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _worth(pod: port.Object) -> tuple[bool, bool, int]:
    """Order in which superfluous pods go: the least far first, then the highest index."""
    return pods.phase(pod) == "Running", pods.is_ready(pod), -(jobpods.index_of(pod) or 0)
