"""Binds pods to nodes as kube-scheduler does, first come first served.

A pod that fits nowhere is told so in its PodScheduled condition and waits until something changes on a node
it could use. There is no scoring (the first fitting node by name wins, so that runs can be repeated), no
preemption and no priority.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lstqueue.embedded import eventlog
from lstqueue.embedded.controllers import fit, pods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

NAME = "default-scheduler"

_ALL = "all"
_SHAPE = ("nodeSelector", "affinity", "tolerations")


@dataclass(slots=True)
class _Waiting:
    """An unbound, ungated pod, by order of arrival. `only`: the nodes it is pinned to, None for any."""

    arrival: int
    uid: str
    namespace: str
    name: str
    spec: Mapping[str, Any]
    requests: pods.Amounts
    only: frozenset[str] | None
    shape: bytes


class Scheduler:
    """Watches nodes and pods from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[str] = work.WorkQueue(self._schedule, errors)
        self._nodes: dict[str, fit.NodeState] = {}
        self._charged: dict[str, tuple[str, pods.Amounts]] = {}
        self._names: list[str] = []
        self._arrivals = 0
        # Every waiting pod is either to be tried in the next pass or parked until a node changes.
        self._waiting: dict[str, _Waiting] = {}
        self._to_try: set[str] = set()
        self._parked_on: dict[str, set[str]] = {}
        for node in store.list(port.NODES):
            self._node(node["metadata"]["name"], node)
        for pod in store.list(port.PODS):
            self._pod(pod)
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource == port.PODS:
            if event.type == eventlog.DELETED:
                self._forget(event.object["metadata"]["uid"])
            else:
                self._pod(event.object)
        elif event.resource == port.NODES:
            name = event.object["metadata"]["name"]
            self._node(name, None if event.type == eventlog.DELETED else event.object)

    def _node(self, name: str, node: port.Object | None) -> None:
        state = self._state(name)
        before = (state.present, state.allocatable, state.labels, state.taints, state.unschedulable)
        if node is None:
            state.present = False
        else:
            state.learn(node)
        if before != (state.present, state.allocatable, state.labels, state.taints, state.unschedulable):
            self._retry(name)

    def _pod(self, pod: port.Object) -> None:
        uid = pod["metadata"]["uid"]
        node = pods.node_of(pod)
        if node and not pods.finished(pod):
            self._drop(uid)
            if uid not in self._charged:
                self._charge(uid, node, pods.requests(pod["spec"]))
        elif node or pods.finished(pod) or pods.deleting(pod):
            self._forget(uid)
        elif pod["spec"].get("schedulingGates") or pod["spec"].get("schedulerName", NAME) != NAME:
            self._drop(uid)
        elif uid not in self._waiting:
            self._enqueue(uid, pod)

    def _enqueue(self, uid: str, pod: port.Object) -> None:
        spec = pod["spec"]
        requests = pods.requests(spec)
        shape = orjson.dumps([requests, [spec.get(key) for key in _SHAPE]], option=orjson.OPT_SORT_KEYS)
        meta = pod["metadata"]
        only = fit.only_nodes(spec)
        self._arrivals += 1
        self._waiting[uid] = _Waiting(
            self._arrivals, uid, meta["namespace"], meta["name"], spec, requests, only, shape
        )
        self._to_try.add(uid)
        self._work.add(_ALL)

    def _state(self, name: str) -> fit.NodeState:
        state = self._nodes.get(name)
        if state is None:
            state = self._nodes[name] = fit.NodeState(name)
            bisect.insort(self._names, name)
        return state

    def _charge(self, uid: str, node: str, requests: pods.Amounts) -> None:
        self._charged[uid] = (node, requests)
        self._state(node).charge(requests, 1)

    def _forget(self, uid: str) -> None:
        self._drop(uid)
        charged = self._charged.pop(uid, None)
        if charged is not None:
            node, requests = charged
            self._nodes[node].charge(requests, -1)
            self._retry(node)

    def _drop(self, uid: str) -> None:
        waiting = self._waiting.pop(uid, None)
        if waiting is not None:
            self._unpark(waiting)

    def _park(self, waiting: _Waiting) -> None:
        for place in waiting.only or ("",):
            self._parked_on.setdefault(place, set()).add(waiting.uid)

    def _unpark(self, waiting: _Waiting) -> None:
        self._to_try.discard(waiting.uid)
        for place in waiting.only or ("",):
            self._parked_on.get(place, set()).discard(waiting.uid)

    def _retry(self, node: str) -> None:
        """Something changed on a node: look again at the pods that could use it."""
        uids = {*self._parked_on.get(node, ()), *self._parked_on.get("", ())}
        for uid in uids:
            self._unpark(self._waiting[uid])
        if uids:
            self._to_try |= uids
            self._work.add(_ALL)

    def _schedule(self, _: str) -> None:
        batch = sorted((self._waiting[uid] for uid in self._to_try), key=lambda item: item.arrival)
        self._to_try.clear()
        # Binding only takes room: nodes that a shape did not fit before, it does not fit later in the pass.
        passed: dict[bytes, int] = {}
        hopeless: dict[bytes, str] = {}
        for waiting in batch:
            message = hopeless.get(waiting.shape)
            if message is None:
                if self._bind(waiting, passed):
                    continue
                message = hopeless[waiting.shape] = self._explain(waiting)
            self._park(waiting)
            self._report(waiting, message)

    def _bind(self, waiting: _Waiting, passed: dict[bytes, int]) -> bool:
        candidates = self._candidates(waiting)
        for position in range(passed.get(waiting.shape, 0), len(candidates)):
            node = self._nodes.get(candidates[position])
            if node is None or not node.present or not node.has_room(waiting.requests):
                continue
            if not fit.obstacles(waiting.spec, waiting.requests, node):
                passed[waiting.shape] = position
                self._store.bind(waiting.namespace, waiting.name, node.name, uid=waiting.uid)
                return True
        return False

    def _candidates(self, waiting: _Waiting) -> list[str]:
        return self._names if waiting.only is None else sorted(waiting.only)

    def _explain(self, waiting: _Waiting) -> str:
        total = sum(node.present for node in self._nodes.values())
        if not total:
            return "no nodes available to schedule pods"
        reasons: Counter[str] = Counter()
        looked_at = 0
        for name in self._candidates(waiting):
            node = self._nodes.get(name)
            if node is not None and node.present:
                looked_at += 1
                reasons.update(fit.obstacles(waiting.spec, waiting.requests, node))
        if looked_at < total:
            reasons[fit.ELSEWHERE] = total - looked_at
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{total} nodes are available: {listed}."

    def _report(self, waiting: _Waiting, message: str) -> None:
        pod = self._store.find(port.PODS, waiting.namespace, waiting.name)
        if pod is None or pod["metadata"]["uid"] != waiting.uid:
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        conditions = pods.with_conditions(pod, self._store.now_ms(), condition)
        self._store.patch(
            port.PODS,
            waiting.namespace,
            waiting.name,
            {"status": {"conditions": conditions}},
            subresource="status",
        )
