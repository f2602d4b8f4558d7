"""How pods leave nodes in trouble: evicted by taints, or collected because nobody is left to end them.

Two controllers of a real cluster. The taint manager deletes pods that do not tolerate a NoExecute taint, at
once or when their `tolerationSeconds` are over; where no kubelet answers they stay in deletion. The pod
collector removes by force the pods of a node that no longer exists, and those in deletion on a node that is
not ready and was declared out of service. Nothing else ends them: not time, and not a new node.
"""

from __future__ import annotations

from typing import Any

from lstqueue.embedded.controllers import nodes, pods, podstatus, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

ORPHAN_AFTER = 60.0
"""Seconds from the end of a Node object to the removal of its pods: 40 of quarantine, and a period of 20."""
COLLECT_AFTER = 20.0
"""Seconds after which the collector looks at pods in deletion on a node that is out of service."""


class Evictions:
    """Is shown pods with their nodes whenever one of them has changed.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._evictions: work.WorkQueue[str] = work.WorkQueue(self._evict, errors)
        self._orphans: work.WorkQueue[str] = work.WorkQueue(self._remove_orphan, errors)
        self._leaving: work.WorkQueue[str] = work.WorkQueue(self._collect, errors)
        self._refs: dict[str, tuple[str, str]] = {}

    def close(self) -> None:
        """Stop."""
        for queue in self._queues:
            queue.close()

    @property
    def _queues(self) -> tuple[work.WorkQueue[str], ...]:
        return self._evictions, self._orphans, self._leaving

    def look(self, pod: port.Object, node: port.Object | None) -> None:
        """Plan what will happen to a pod on a node, None for one that does not exist."""
        uid = pod["metadata"]["uid"]
        self._refs[uid] = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if node is None:
            self._orphans.add(uid, delay=ORPHAN_AFTER)
            return
        self._orphans.discard(uid)
        stays = None
        if not pods.finished(pod) and not pods.deleting(pod):
            stays = nodes.stays(pod, node)
        if stays is None:
            self._evictions.discard(uid)
        else:
            self._evictions.add(uid, delay=stays)
        if pods.deleting(pod) and nodes.out_of_service(node):
            self._leaving.add(uid, delay=COLLECT_AFTER)
        else:
            self._leaving.discard(uid)

    def forget(self, uid: str) -> None:
        """Drop the plans for a pod that is gone."""
        self._refs.pop(uid, None)
        for queue in self._queues:
            queue.discard(uid)

    def _find(self, uid: str) -> port.Object | None:
        ref = self._refs.get(uid)
        found = self._store.find(port.PODS, *ref) if ref is not None else None
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _node(self, pod: port.Object) -> port.Object | None:
        return self._store.find(port.NODES, None, pods.node_of(pod))

    def _evict(self, uid: str) -> None:
        pod = self._find(uid)
        if pod is None or pods.finished(pod) or pods.deleting(pod):
            return
        self._write(pod, podstatus.disrupted(pod, self._store.now_ms(), podstatus.EVICTED))
        self._store.delete(port.PODS, *self._refs[uid], uid=uid)

    def _remove_orphan(self, uid: str) -> None:
        pod = self._find(uid)
        if pod is not None and self._node(pod) is None:
            self._remove(pod, podstatus.disrupted(pod, self._store.now_ms(), podstatus.ORPHANED))

    def _collect(self, uid: str) -> None:
        pod = self._find(uid)
        node = self._node(pod) if pod is not None else None
        if pod is not None and node is not None and nodes.out_of_service(node):
            self._remove(pod, {})

    def _remove(self, pod: port.Object, status: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if not pods.finished(pod):
            self._write(pod, {**status, "phase": "Failed"})
        where = meta["namespace"], meta["name"]
        self._store.delete(port.PODS, *where, uid=meta["uid"], grace_seconds=0)

    def _write(self, pod: port.Object, status: dict[str, Any]) -> None:
        meta = pod["metadata"]
        body = {"status": status}
        self._store.patch(port.PODS, meta["namespace"], meta["name"], body, subresource="status")
