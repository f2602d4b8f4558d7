"""Ends pods that do not say when: a newcomer's manifest has a command, and nothing here runs it.

Simulated pods run until they are deleted unless `sim/run-for` says how long. For pods of a DeadlineJob that
lack it, this takes the job's estimate, as if it were exact; that of a bag is for all of its pods, of which
each takes its share. Only `lstqueue demo --serve` does that; everywhere else the annotations are the whole
truth.
"""

from __future__ import annotations

from lstqueue.api import durations, errors, names
from lstqueue.embedded import eventlog, store
from lstqueue.embedded.controllers import pods
from lstqueue.kube import port

WITHOUT_ESTIMATE = durations.HOUR
"""How long pods run whose job states no estimate, in ms."""

_SAID = (pods.RUN_FOR, pods.FAIL_AFTER)


class RunTimes:
    """Annotates pods as they are created; `close` ends it."""

    def __init__(self, objects: store.Store) -> None:
        self._store = objects
        self.close = objects.subscribe(self._written)

    def _written(self, event: eventlog.Event) -> None:
        if event.resource is not port.PODS or event.type != eventlog.ADDED:
            return
        meta = event.object["metadata"]
        uid = (meta.get("labels") or {}).get(names.LABEL_JOB)
        if not uid or any(pods.annotation(event.object, name) for name in _SAID):
            return
        if self._store.find(port.PODS, meta["namespace"], meta["name"]) is None:
            return
        seconds = max(1, self._estimate(meta["namespace"], uid) // durations.SECOND)
        said = {pods.RUN_FOR: f"{seconds}s"}
        self._store.patch(port.PODS, meta["namespace"], meta["name"], {"metadata": {"annotations": said}})

    def _estimate(self, namespace: str, uid: str) -> int:
        for job in self._store.list(port.DEADLINE_JOBS, namespace=namespace):
            if job["metadata"]["uid"] == uid:
                try:
                    whole = durations.parse(job["spec"].get("estimatedDuration") or "")
                except errors.BadValueError:
                    return WITHOUT_ESTIMATE
                return self._share(namespace, job["spec"], whole)
        return WITHOUT_ESTIMATE

    def _share(self, namespace: str, spec: port.Object, whole: int) -> int:
        """What one pod takes of the run time of its job: in a bag, pods come one after the other."""
        ref = spec.get("jobRef")
        unit = self._store.find(port.JOBS, namespace, ref["name"]) if ref else None
        if unit is None:
            return whole
        at_once, all_ = unit["spec"].get("parallelism", 1), unit["spec"].get("completions") or 0
        return int(whole * at_once // all_) if 0 < at_once < all_ else whole
