"""The API side of one gang: its objects, the Job controller, scheduler and kubelets, users and accidents.

Everything happens when it is told to, in whatever order. Each change becomes an event that the operator hears
of later, kind by kind in order, so that what it knows is always somewhat old.
"""

from __future__ import annotations

import collections
import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

from cases import raw
from lstqueue.api import names, times
from lstqueue.embedded import patches
from lstqueue.jobs import views

Object = raw.Object
Events = collections.deque[tuple[str, Object]]
SLOTS = 2
"""Pods that fit on a node."""


class Conflict(Exception):  # noqa: N818
    """Somebody else wrote first, or the object is gone."""


@dataclass
class _Counts:
    """What the Job controller remembers of a Job. `dropped`: pods that it has deleted itself."""

    seen: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    failed: int = 0


class Api:
    """The objects of one gang. `events` wait to be heard, by kind."""

    def __init__(self, job: Object, nodes: list[str]) -> None:
        self.now = raw.NOW
        self.job = job
        self.jobs: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.fit = dict.fromkeys(nodes, True)
        self.dead: set[str] = set()
        self.ever_dead: set[str] = set()
        self.events: dict[str, collections.deque[tuple[str, Object]]] = collections.defaultdict(
            collections.deque
        )
        self._counts: dict[str, _Counts] = collections.defaultdict(_Counts)
        self._names = itertools.count()
        self._tell("ledger", "ADDED", job)

    def _tell(self, kind: str, event: str, item: Object) -> Object:
        self.events[kind].append((event, copy.deepcopy(item)))
        return copy.deepcopy(item)

    # Writes of the operator, each conditional

    def write_status(self, body: Object) -> Object:
        _expect(self.job, body)
        self.job = raw.touched(self.job, status=patches.merge(self.job["status"], body["status"]))
        return self._tell("ledger", "MODIFIED", self.job)

    def edit(self, **spec: Any) -> Object:
        """Edit the spec, as its user or anybody may."""
        self.job = raw.touched(self.job, spec={**self.job["spec"], **spec})
        self.job["metadata"]["generation"] += 1
        return self._tell("ledger", "MODIFIED", self.job)

    def kill_node(self, node: str) -> None:
        """Have a node fall silent: nothing on it starts, ends or leaves."""
        self.dead.add(node)
        self.ever_dead.add(node)

    def revive(self, node: str) -> None:
        """Have it back."""
        self.dead.discard(node)

    def create_job(self, body: Object) -> Object:
        name = body["metadata"]["name"]
        if name not in self.jobs:
            made = raw.touched(body, status={})
            made["metadata"]["uid"] = f"uid-{name}-{next(self._names)}"
            self.jobs[name] = made
            self._tell("job", "ADDED", made)
        return copy.deepcopy(self.jobs[name])

    def patch_job(self, name: str, body: Object) -> Object:
        if name not in self.jobs:
            raise Conflict(name)
        _expect(self.jobs[name], body)
        return self._put_job(name, spec={**self.jobs[name]["spec"], **body["spec"]})

    def delete_job(self, name: str, uid: str) -> None:
        if name in self.jobs and self.jobs[name]["metadata"]["uid"] == uid:
            self._tell("job", "DELETED", raw.touched(self.jobs.pop(name)))
            for pod in self.owned(uid):
                self.delete_pod(pod["metadata"]["uid"])

    def patch_pod(self, uid: str, body: Object) -> Object:
        if uid not in self.pods:
            raise Conflict(uid)
        _expect(self.pods[uid], body)
        return self._put_pod(patches.merge(self.pods[uid], body))

    def _put_job(self, name: str, **changes: Any) -> Object:
        self.jobs[name] = raw.touched(self.jobs[name], **changes)
        return self._tell("job", "MODIFIED", self.jobs[name])

    def _put_pod(self, pod: Object) -> Object:
        self.pods[pod["metadata"]["uid"]] = raw.touched(pod)
        return self._tell("pod", "MODIFIED", self.pods[pod["metadata"]["uid"]])

    # Looking

    def owned(self, uid: str) -> list[Object]:
        return [pod for pod in self.pods.values() if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def holding(self) -> list[Object]:
        return [pod for pod in self.pods.values() if pod["spec"].get("nodeName") and not _over(pod)]

    # The Job controller

    def sync(self, name: str) -> None:
        """Have the controller look at a Job."""
        job = self.jobs[name]
        uid, spec, status = job["metadata"]["uid"], job["spec"], dict(job["status"])
        counts, own = self._counts[uid], self.owned(uid)
        if _is(status, "Complete") or _is(status, "Failed"):
            return
        for pod in own:
            self._count(counts, pod)
        active = [pod for pod in own if not _over(pod) and not _leaving(pod)]
        status["completedIndexes"] = views.ranges(tuple(sorted(counts.done)))
        if counts.failed:
            status |= raw.ended("FailureTarget", "BackoffLimitExceeded")
            for pod in active:
                self.delete_pod(pod["metadata"]["uid"])
            if all(_over(pod) for pod in self.owned(uid)):
                status |= raw.ended("Failed", "BackoffLimitExceeded")
        elif len(counts.done) == spec["completions"]:
            status |= raw.ended("Complete", completionTime=times.format(self.now))
        elif spec["suspend"]:
            for pod in active:
                counts.dropped.add(pod["metadata"]["uid"])
                self.delete_pod(pod["metadata"]["uid"])
        else:
            self._create_pods(job, counts.done | {views.pod(pod).index for pod in active})
        if status != job["status"]:
            self._put_job(name, status=status)

    def _count(self, counts: _Counts, pod: Object) -> None:
        """Count a pod once: when it has ended, or when somebody else has deleted it."""
        uid = pod["metadata"]["uid"]
        if uid in counts.seen | counts.dropped:
            return
        if pod["status"]["phase"] == "Succeeded":
            counts.done.add(views.pod(pod).index)
        elif _over(pod) or _leaving(pod):
            counts.failed += 1
        else:
            return
        counts.seen.add(uid)

    def _create_pods(self, job: Object, taken: set[int]) -> None:
        for index in sorted(set(range(job["spec"]["completions"])) - taken):
            made = raw.pod(job, index, suffix=f"{next(self._names):05}")
            self.pods[made["metadata"]["uid"]] = made
            self._tell("pod", "ADDED", made)

    # Scheduler, kubelets, users, accidents

    def delete_pod(self, uid: str) -> None:
        """Ask a pod to leave; one that is not bound, or over, is gone at once."""
        pod = self.pods[uid]
        if pod["spec"].get("nodeName") and not _over(pod):
            if not _leaving(pod):
                self._put_pod(raw.leaving(pod))
        else:
            self.remove_pod(uid)

    def remove_pod(self, uid: str) -> None:
        """Have a pod be gone; its Job's controller sees to it that it was counted."""
        pod = self.pods[uid]
        owner = pod["metadata"]["ownerReferences"][0]["uid"]
        self._count(self._counts[owner], raw.leaving(pod))
        del self.pods[uid]
        self._tell("pod", "DELETED", raw.touched(pod))

    def run_pod(self, uid: str, how: str) -> None:
        """Move a pod one step: bind, start, ready, succeed, fail, refuse, evict; or let it leave."""
        pod = copy.deepcopy(self.pods[uid])
        bound, phase = pod["spec"].get("nodeName"), pod["status"]["phase"]
        if bound in self.dead or (how == "bind" and not bound and _gone_to(pod) in self.dead):
            return
        if how == "bind" and not bound and not pod["spec"].get("schedulingGates"):
            node = _pin(pod)
            used = [other for other in self.holding() if other["spec"]["nodeName"] == node]
            if len(used) < SLOTS:
                pod["spec"]["nodeName"] = node
        elif how in ("start", "ready") and bound and not _over(pod) and not _leaving(pod):
            pod["status"] = {"phase": "Running"}
            if how == "ready":
                pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        elif how in ("succeed", "fail") and bound and phase == "Running":
            pod["status"] = {"phase": "Succeeded" if how == "succeed" else "Failed"}
        elif how == "refuse" and bound and phase == "Pending":
            pod["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        elif how == "evict" and bound and not _over(pod) and not _leaving(pod):
            pod = raw.evicted(pod)
        elif how == "leave" and bound and _leaving(pod):
            self.remove_pod(uid)
            return
        if pod != self.pods[uid]:
            self._put_pod(pod)


def _expect(known: Object, body: Object) -> None:
    if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
        raise Conflict(known["metadata"]["name"])


def _is(status: Object, kind: str) -> bool:
    return any(item["type"] == kind for item in status.get("conditions", ()))


def _over(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _gone_to(pod: Object) -> str:
    return "" if pod["spec"].get("schedulingGates") else _pin(pod)


def _pin(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (node,) = term["matchFields"][0]["values"]
    assert names.LABEL_ATTEMPT in pod["metadata"]["labels"]
    return str(node)
