"""The kubelets of all nodes: pods start, run, end and leave as their `sim/*` annotations say.

`sim/start-after` (bound to Running and Ready), `sim/run-for` (to Succeeded), `sim/fail-after` with
`sim/exit-code` (to Failed) and `sim/terminate-after` (deletion to gone) are durations; absent ones are zero, or
never for the middle two. Pods of a node that is down stand still: they neither start, end nor leave, and go on
where they were when the node comes back. A pod that does not fit what is left on its node is refused
(`OutOf...`). Restart policies, probes and grace periods are not modelled.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from lstqueue.api import errors as api_errors
from lstqueue.embedded import eventlog
from lstqueue.embedded.controllers import nodes, pods, podstatus, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

ORPHAN_AFTER = 60.0
"""Seconds from the end of a Node object to the removal of its pods, as the pod collector needs."""


class _Stage(enum.Enum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    LEAVING = "leaving"


@dataclass(slots=True)
class _Pod:
    """A bound pod. `due` is the loop's time of its next step; while it stands still, `left` seconds remain."""

    namespace: str
    name: str
    node: str
    requests: pods.Amounts
    stage: _Stage = _Stage.STARTING
    due: float = 0.0
    left: float | None = None
    step: asyncio.Handle | None = None


@dataclass(slots=True)
class _Node:
    """A node as its kubelet sees it. `used` counts the pods it runs."""

    object: port.Object | None = None
    used: pods.Amounts = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)

    @property
    def frozen(self) -> bool:
        return self.object is None or nodes.down(self.object)


class Kubelets:
    """Watches nodes and pods from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._errors = errors
        self._loop = asyncio.get_running_loop()
        self._node_work: work.WorkQueue[str] = work.WorkQueue(self._look_at_node, errors)
        self._evictions: work.WorkQueue[str] = work.WorkQueue(self._evict, errors)
        self._orphans: work.WorkQueue[str] = work.WorkQueue(self._remove_orphan, errors)
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[str, _Pod] = {}
        for node in store.list(port.NODES):
            self._learn_node(node["metadata"]["name"], node)
        for pod in store.list(port.PODS):
            self._learn_pod(pod)
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        for queue in (self._node_work, self._evictions, self._orphans):
            queue.close()
        for pod in self._pods.values():
            self._cancel(pod)

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource == port.PODS:
            if event.type == eventlog.DELETED:
                self._forget(event.object["metadata"]["uid"])
            else:
                self._learn_pod(event.object)
        elif event.resource == port.NODES:
            name = event.object["metadata"]["name"]
            self._learn_node(name, None if event.type == eventlog.DELETED else event.object)

    # Nodes

    def _learn_node(self, name: str, node: port.Object | None) -> None:
        self._nodes.setdefault(name, _Node()).object = node
        self._node_work.add(name)

    def _look_at_node(self, name: str) -> None:
        here = self._nodes[name]
        if here.object is not None:
            nodes.report(self._store, here.object)
        for uid in sorted(here.uids):
            if here.frozen:
                self._freeze(self._pods[uid])
            else:
                self._thaw(uid, self._pods[uid])
            self._mark_ready(uid, here)
            self._plan_eviction(uid)

    def _freeze(self, pod: _Pod) -> None:
        if pod.step is not None:
            self._cancel(pod)
            pod.left = max(0.0, pod.due - self._loop.time())

    def _thaw(self, uid: str, pod: _Pod) -> None:
        if pod.left is not None:
            left, pod.left = pod.left, None
            self._after(uid, pod, left)

    def _mark_ready(self, uid: str, here: _Node) -> None:
        pod = self._pods[uid]
        current = self._find(uid)
        if current is None or pod.stage is not _Stage.RUNNING or pods.is_ready(current) is not here.frozen:
            return
        self._write(pod, podstatus.ready(current, self._store.now_ms(), ready=not here.frozen))

    def _plan_eviction(self, uid: str) -> None:
        pod, current = self._pods[uid], self._find(uid)
        here = self._nodes[pod.node]
        if here.object is None:
            self._orphans.add(uid, delay=ORPHAN_AFTER)
            return
        self._orphans.discard(uid)
        if current is None or pods.finished(current) or pods.deleting(current):
            self._evictions.discard(uid)
            return
        limit = nodes.stays(current, here.object)
        if limit is None:
            self._evictions.discard(uid)
        else:
            self._evictions.add(uid, delay=limit)

    def _evict(self, uid: str) -> None:
        pod, current = self._pods.get(uid), self._find(uid)
        if pod is None or current is None or pods.finished(current) or pods.deleting(current):
            return
        self._write(pod, podstatus.disrupted(current, self._store.now_ms(), podstatus.EVICTED))
        self._store.delete(port.PODS, pod.namespace, pod.name, uid=uid)

    def _remove_orphan(self, uid: str) -> None:
        pod, current = self._pods.get(uid), self._find(uid)
        if pod is None or current is None or self._nodes[pod.node].object is not None:
            return
        if not pods.finished(current):
            status = podstatus.disrupted(current, self._store.now_ms(), podstatus.ORPHANED)
            self._write(pod, {**status, "phase": "Failed"})
        self._store.delete(port.PODS, pod.namespace, pod.name, uid=uid, grace_seconds=0)

    # Pods

    def _learn_pod(self, current: port.Object) -> None:
        name = pods.node_of(current)
        if not name:
            return
        meta = current["metadata"]
        uid = meta["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            requests = pods.requests(current["spec"])
            pod = self._pods[uid] = _Pod(meta["namespace"], meta["name"], name, requests)
            self._accept(uid, pod, current)
        if pods.finished(current):
            self._end(uid, pod)
        if pods.deleting(current) and pod.stage is not _Stage.LEAVING:
            self._leave(uid, pod, current)

    def _accept(self, uid: str, pod: _Pod, current: port.Object) -> None:
        here = self._nodes.setdefault(pod.node, _Node())
        here.uids.add(uid)
        if pods.finished(current):
            pod.stage = _Stage.ENDED
            return
        _charge(here, pod, 1)
        if pods.phase(current) == "Running":
            pod.stage = _Stage.RUNNING
        # Never inside the event: whoever bound the pod comes first.
        self._after(uid, pod, 0.0, self._admit if pod.stage is _Stage.STARTING else self._start_running)
        if here.frozen or (here.object or {}).get("spec", {}).get("taints"):
            self._node_work.add(pod.node)

    def _end(self, uid: str, pod: _Pod) -> None:
        if pod.stage in (_Stage.STARTING, _Stage.RUNNING):
            self._cancel(pod)
            pod.stage = _Stage.ENDED
            self._uncharge(uid, pod)

    def _leave(self, uid: str, pod: _Pod, current: port.Object) -> None:
        self._cancel(pod)
        self._uncharge(uid, pod, keep=True)
        pod.stage = _Stage.LEAVING
        try:
            wait = pods.seconds(current, pods.TERMINATE_AFTER) or 0.0
        except api_errors.BadValueError:
            wait = 0.0
        self._after(uid, pod, wait)

    def _forget(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._cancel(pod)
        if pod.stage is not _Stage.ENDED:
            _charge(self._nodes[pod.node], pod, -1)
        self._nodes[pod.node].uids.discard(uid)
        self._evictions.discard(uid)
        self._orphans.discard(uid)
