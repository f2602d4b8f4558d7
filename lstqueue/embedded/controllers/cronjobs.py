"""The controller of CronJobs: makes a Job at each of their times, and keeps a few of those that ended.

A Job is named after its time, so that it is made once. When several times have passed unseen only the last
one counts, as in the real controller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from lstqueue.embedded import eventlog, metadata, schedules
from lstqueue.embedded.controllers import pods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"

_UTC = "Etc/UTC"
_RETRY = 10.0
_Key = tuple[str, str]


class CronJobController:
    """Watches CronJobs and their Jobs from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[_Key] = work.WorkQueue(self._sync, errors)
        self._children: dict[str, dict[str, port.Object]] = {}
        for job in store.list(port.JOBS):
            self._on_job(job, gone=False)
        for cron in store.list(port.CRON_JOBS):
            self._work.add(_key(cron))
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource == port.JOBS:
            self._on_job(event.object, gone=event.type == eventlog.DELETED)
        elif event.resource == port.CRON_JOBS:
            if event.type == eventlog.DELETED:
                self._children.pop(event.object["metadata"]["uid"], None)
                self._work.discard(_key(event.object))
            else:
                self._work.add(_key(event.object))

    def _on_job(self, job: port.Object, *, gone: bool) -> None:
        owner = pods.controller_of(job, "CronJob")
        if owner is None:
            return
        children = self._children.setdefault(owner["uid"], {})
        if gone:
            children.pop(job["metadata"]["uid"], None)
        else:
            children[job["metadata"]["uid"]] = job
        self._work.add((job["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: _Key) -> None:
        cron = self._store.find(port.CRON_JOBS, *key)
        if cron is None or pods.deleting(cron):
            return
        children = self._children.setdefault(cron["metadata"]["uid"], {})
        status = dict(cron.get("status") or {})
        _note_children(status, children)
        self._remove_old(cron["spec"], children)
        if not cron["spec"]["suspend"]:
            self._run(key, cron, status)
        before = cron.get("status") or {}
        if status != before:
            patch = {**dict.fromkeys(before.keys() - status.keys()), **status}
            self._store.patch(port.CRON_JOBS, *key, {"status": patch}, subresource="status")

    def _run(self, key: _Key, cron: port.Object, status: dict[str, Any]) -> None:
        now = self._store.now_ms()
        zone = cron["spec"].get("timeZone") or _UTC
        schedule = schedules.parse(cron["spec"]["schedule"])
        since = status.get("lastScheduleTime") or cron["metadata"]["creationTimestamp"]
        due, following = _last_due(schedule, zone, metadata.parse_timestamp(since), now)
        if following is not None:
            self._work.add(key, delay=max(0.0, (following - now) / 1000))
        limit = cron["spec"].get("startingDeadlineSeconds")
        if due is None or (limit is not None and due + limit * 1000 < now):
            return
        policy = cron["spec"]["concurrencyPolicy"]
        if policy == "Forbid" and status.get("active"):
            return
        if policy == "Replace":
            for reference in status.pop("active", []):
                self._delete(reference["namespace"], reference["name"], reference["uid"])
        self._make(key, cron, status, due, zone)

    def _make(self, key: _Key, cron: port.Object, status: dict[str, Any], due: int, zone: str) -> None:
        body = _job(cron, due, zone)
        job = self._store.find(port.JOBS, key[0], body["metadata"]["name"])
        if job is None:
            try:
                job = self._store.create(port.JOBS, key[0], body)
            except port.ApiError:
                self._work.add(key, delay=_RETRY)
                return
        owner = pods.controller_of(job, "CronJob")
        if owner is None or owner["uid"] != cron["metadata"]["uid"]:
            return
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job["metadata"]["name"],
            "namespace": key[0],
            "uid": job["metadata"]["uid"],
            "resourceVersion": job["metadata"]["resourceVersion"],
        }
        status["active"] = [*status.get("active", ()), reference]
        status["lastScheduleTime"] = metadata.timestamp(due)

    def _remove_old(self, spec: dict[str, Any], children: dict[str, port.Object]) -> None:
        for kind, key in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            ended = [job for job in children.values() if _is(job, kind) and not pods.deleting(job)]
            ended.sort(key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"]))
            for job in ended[: max(0, len(ended) - spec[key])]:
                meta = job["metadata"]
                self._delete(meta["namespace"], meta["name"], meta["uid"])

    def _delete(self, namespace: str, name: str, uid: str) -> None:
        found = self._store.find(port.JOBS, namespace, name)
        if found is not None and found["metadata"]["uid"] == uid:
            self._store.delete(port.JOBS, namespace, name, uid=uid, propagation="Background")


def _key(obj: port.Object) -> _Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _is(job: port.Object, kind: str) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(item["type"] == kind and item["status"] == "True" for item in conditions)


def _note_children(status: dict[str, Any], children: dict[str, port.Object]) -> None:
    """Take ended and vanished Jobs off the list of active ones, and note the last success."""
    running = {uid for uid, job in children.items() if not (_is(job, "Complete") or _is(job, "Failed"))}
    active = [item for item in status.pop("active", ()) if item["uid"] in running]
    if active:
        status["active"] = active
    ends = [job["status"]["completionTime"] for job in children.values() if _is(job, "Complete")]
    last = max([*ends, status.get("lastSuccessfulTime", "")])
    if last:
        status["lastSuccessfulTime"] = last


def _last_due(
    schedule: schedules.Schedule, zone: str, since_ms: int, now_ms: int
) -> tuple[int | None, int | None]:
    """Return the last time after `since_ms` that has come, and the first one that has not."""
    due, at = None, schedule.next(since_ms, zone)
    while at is not None and at <= now_ms:
        due, at = at, schedule.next(at, zone)
    return due, at


def _job(cron: port.Object, due_ms: int, zone: str) -> port.Object:
    meta, template = cron["metadata"], cron["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    at = datetime.fromtimestamp(due_ms / 1000, ZoneInfo(zone)).isoformat()
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "name": f"{meta['name']}-{due_ms // 60_000}",
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED: at.replace("+00:00", "Z")},
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
