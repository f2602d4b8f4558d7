"""The kubelets of all nodes: pods start, run, end and leave as their `sim/*` annotations say.

`sim/start-after` (bound to Running and Ready), `sim/run-for` (to Succeeded), `sim/fail-after` with
`sim/exit-code` (to Failed) and `sim/terminate-after` (deletion to gone) are durations; absent ones are zero,
or never for the middle two. What a pod has saved of its run (`progress`) its successor need not do again.
Pods of a node that is down stand still: they neither start, end nor leave, and go on where they were when the
node comes back. A pod that does not fit what is left on its node is refused (`OutOf...`). A deleted pod that
had not ended fails before it goes. Restart policies, probes and grace periods are not modelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import errors as api_errors
from lstqueue.api import quantities
from lstqueue.embedded import eventlog
from lstqueue.embedded.controllers import evictions, nodes, pods, podstatus, progress, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

_TERMINATED = 143
_NO_ANNOTATION = "UnreadableAnnotation"

_Step = Callable[[str, "_Pod", port.Object], None]


@dataclass(slots=True)
class _Pod:
    """A bound pod and its next step: planned (`handle`, `due` in loop time), or `left` seconds away.

    `run` is for how many seconds it runs in all, None before it does or when nothing ends it.
    """

    namespace: str
    name: str
    node: str
    requests: pods.Amounts
    over: str = ""
    charged: bool = False
    running: bool = False
    leaving: bool = False
    step: _Step | None = None
    handle: asyncio.Handle | None = None
    due: float = 0.0
    left: float = 0.0
    run: float | None = None


@dataclass(slots=True)
class _Node:
    """A node, None for one that does not exist, and what its pods that have not ended use.

    `silent_since` is loop time.
    """

    object: port.Object | None = None
    silent_since: float | None = None
    used: pods.Amounts = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)

    @property
    def frozen(self) -> bool:
        return self.object is None or nodes.down(self.object)

    @property
    def lost(self) -> bool:
        """Whether nobody hears of it; a node that reports trouble goes on speaking for its pods."""
        return self.object is None or nodes.mute(self.object)

    def charge(self, pod: _Pod, times: int) -> None:
        for name, amount in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + times * amount

    def exceeded(self, pod: _Pod) -> str:
        """Return the first of the pod's resources of which more is used than there is, or nothing."""
        offered = pods.allocatable(self.object) if self.object is not None else self.used
        return next((name for name in sorted(pod.requests) if self.used[name] > offered.get(name, 0)), "")


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
        self._evictions = evictions.Evictions(store, errors)
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[str, _Pod] = {}
        self._progress = progress.Progress()
        self._addresses = 0
        for node in store.list(port.NODES):
            self._learn_node(node["metadata"]["name"], node)
        for pod in store.list(port.PODS):
            self._learn_pod(pod)
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._node_work.close()
        self._evictions.close()
        for pod in self._pods.values():
            _cancel(pod)

    def _on_event(self, event: eventlog.Event) -> None:
        gone = event.type == eventlog.DELETED
        if event.resource == port.PODS:
            if gone:
                self._forget(event.object)
            else:
                self._learn_pod(event.object)
        elif event.resource == port.NODES:
            self._learn_node(event.object["metadata"]["name"], None if gone else event.object)

    # Nodes

    def _learn_node(self, name: str, node: port.Object | None) -> None:
        here = self._nodes.setdefault(name, _Node())
        here.object = node
        if node is None or not nodes.silent(node):
            here.silent_since = None
        elif here.silent_since is None:
            here.silent_since = self._loop.time()
        self._node_work.add(name)

    def _look_at_node(self, name: str) -> None:
        here = self._nodes[name]
        unnoticed = self._unnoticed(here)
        if unnoticed:
            self._node_work.add(name, delay=unnoticed)
        elif here.object is not None:
            nodes.report(self._store, here.object)
        for uid in sorted(here.uids):
            pod, current = self._pods[uid], self._find(uid)
            if here.frozen:
                self._freeze(pod)
            else:
                self._thaw(uid, pod)
            if current is not None:
                self._mark_ready(pod, current, ready=not here.lost or unnoticed > 0)
                self._evictions.look(current, here.object)

    def _unnoticed(self, here: _Node) -> float:
        """Return for how many seconds nobody will notice that a node is silent."""
        if here.silent_since is None:
            return 0.0
        return max(0.0, here.silent_since + nodes.NOTICED_AFTER - self._loop.time())

    def _freeze(self, pod: _Pod) -> None:
        if pod.handle is not None:
            pod.left = max(0.0, pod.due - self._loop.time())
            _cancel(pod)

    def _thaw(self, uid: str, pod: _Pod) -> None:
        if pod.step is not None and pod.handle is None:
            self._plan(uid, pod, pod.left, pod.step)

    def _mark_ready(self, pod: _Pod, current: port.Object, *, ready: bool) -> None:
        if pod.running and not pods.finished(current) and pods.is_ready(current) is not ready:
            self._write(pod, podstatus.ready(current, self._store.now_ms(), ready=ready))

    # Pods

    def _learn_pod(self, current: port.Object) -> None:
        node = pods.node_of(current)
        if not node:
            return
        meta = current["metadata"]
        uid = meta["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            requests = pods.requests(current["spec"])
            pod = self._pods[uid] = _Pod(meta["namespace"], meta["name"], node, requests)
            self._accept(uid, pod, current)
        if pods.finished(current):
            self._end(pod)
        if pods.deleting(current) and not pod.leaving:
            self._save(pod, current)
            pod.leaving = True
            self._plan(uid, pod, _terminate_after(current), self._remove)
            if self._nodes[node].frozen:
                self._node_work.add(node)

    def _accept(self, uid: str, pod: _Pod, current: port.Object) -> None:
        here = self._nodes.setdefault(pod.node, _Node())
        here.uids.add(uid)
        if pods.finished(current):
            return
        here.charge(pod, 1)
        pod.charged = True
        pod.over = here.exceeded(pod)
        if pods.phase(current) == "Running":
            self._run(uid, pod, current)
        else:
            self._plan(uid, pod, 0.0, self._admit)
        if here.frozen or (here.object or {}).get("spec", {}).get("taints"):
            self._node_work.add(pod.node)

    def _end(self, pod: _Pod) -> None:
        if not pod.leaving:
            _cancel(pod)
            pod.step = None
        self._uncharge(pod)

    def _uncharge(self, pod: _Pod) -> None:
        if pod.charged:
            pod.charged = False
            self._nodes[pod.node].charge(pod, -1)

    def _save(self, pod: _Pod, current: port.Object) -> None:
        """Keep what is to be kept of a run that is cut short now."""
        if pod.run is not None and pod.step is not None and not pod.leaving:
            left = pod.due - self._loop.time() if pod.handle is not None else pod.left
            asked = not self._nodes[pod.node].frozen
            self._progress.ended(current, pod.run - max(0.0, left), asked=asked)

    def _forget(self, current: port.Object) -> None:
        uid = current["metadata"]["uid"]
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._save(pod, current)
            _cancel(pod)
            self._uncharge(pod)
            self._nodes[pod.node].uids.discard(uid)
            self._evictions.forget(uid)

    # Steps of a pod, each in a callback of its own

    def _admit(self, uid: str, pod: _Pod, current: port.Object) -> None:
        for name in pods.DURATIONS:
            try:
                pods.seconds(current, name)
            except api_errors.BadValueError as error:
                self._refuse(pod, current, _NO_ANNOTATION, f"annotation {name}: {error}")
                return
        if pod.over:
            self._refuse(pod, current, f"OutOf{pod.over}", self._excess(pod))
            return
        self._plan(uid, pod, pods.seconds(current, pods.START_AFTER) or 0.0, self._start)

    def _excess(self, pod: _Pod) -> str:
        here = self._nodes[pod.node]
        offered = pods.allocatable(here.object).get(pod.over, 0) if here.object is not None else 0
        wanted = pod.requests[pod.over]
        requested, used, capacity = (
            quantities.format(pod.over, amount) for amount in (wanted, here.used[pod.over] - wanted, offered)
        )
        return (
            f"Pod was rejected: Node didn't have enough resource: {pod.over}, "
            f"requested: {requested}, used: {used}, capacity: {capacity}"
        )

    def _refuse(self, pod: _Pod, current: port.Object, reason: str, message: str) -> None:
        self._write(pod, podstatus.refused(current, self._store.now_ms(), reason=reason, message=message))

    def _start(self, uid: str, pod: _Pod, current: port.Object) -> None:
        self._addresses += 1
        number = self._addresses
        pod_ip = f"10.{64 + (number >> 16) % 128}.{number >> 8 & 255}.{number & 255}"
        status = podstatus.running(current, self._store.now_ms(), pod_ip=pod_ip, host_ip="127.0.0.1")
        self._write(pod, status)
        self._run(uid, pod, current)

    def _run(self, uid: str, pod: _Pod, current: port.Object) -> None:
        pod.running = True
        succeed, fail = pods.seconds(current, pods.RUN_FOR), pods.seconds(current, pods.FAIL_AFTER)
        if succeed is not None:
            succeed = self._progress.left(current, succeed)
        if fail is not None and (succeed is None or fail <= succeed):
            pod.run = fail
            self._plan(uid, pod, fail, self._fail)
        elif succeed is not None:
            pod.run = succeed
            self._plan(uid, pod, succeed, self._succeed)

    def _succeed(self, _uid: str, pod: _Pod, current: port.Object) -> None:
        self._write(pod, podstatus.ended(current, self._store.now_ms(), exit_code=0))

    def _fail(self, _uid: str, pod: _Pod, current: port.Object) -> None:
        text = pods.annotation(current, pods.EXIT_CODE) or ""
        code = int(text) if text.isascii() and text.isdigit() and int(text) else 1
        self._progress.ended(current, pod.run or 0.0, asked=False)
        self._write(pod, podstatus.ended(current, self._store.now_ms(), exit_code=code))

    def _remove(self, uid: str, pod: _Pod, current: port.Object) -> None:
        if not pods.finished(current):
            # Its containers end first, and are seen to.
            self._write(pod, podstatus.ended(current, self._store.now_ms(), exit_code=_TERMINATED))
        self._store.delete(port.PODS, pod.namespace, pod.name, uid=uid, grace_seconds=0)

    def _plan(self, uid: str, pod: _Pod, delay: float, step: _Step) -> None:
        _cancel(pod)
        pod.step = step
        if self._nodes[pod.node].frozen:
            pod.left = delay
            return
        pod.due = self._loop.time() + delay
        if delay > 0:
            pod.handle = self._loop.call_at(pod.due, self._take_step, uid)
        else:
            # Never inside the event: whoever caused it comes first.
            pod.handle = self._loop.call_soon(self._take_step, uid)

    def _take_step(self, uid: str) -> None:
        pod, current = self._pods[uid], self._find(uid)
        pod.handle = None
        step = pod.step
        if current is None or step is None:
            return
        if self._nodes[pod.node].frozen:
            pod.left = 0.0
            return
        pod.step = None
        try:
            step(uid, pod, current)
        except Exception as error:
            self._errors.append(error)
            raise

    def _find(self, uid: str) -> port.Object | None:
        pod = self._pods.get(uid)
        if pod is None:
            return None
        found = self._store.find(port.PODS, pod.namespace, pod.name)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _write(self, pod: _Pod, status: dict[str, Any]) -> None:
        self._store.patch(port.PODS, pod.namespace, pod.name, {"status": status}, subresource="status")


def _cancel(pod: _Pod) -> None:
    if pod.handle is not None:
        pod.handle.cancel()
        pod.handle = None


def _terminate_after(current: port.Object) -> float:
    try:
        return pods.seconds(current, pods.TERMINATE_AFTER) or 0.0
    except api_errors.BadValueError:
        return 0.0  # such a pod was refused, and goes at once
