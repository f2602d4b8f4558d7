"""The heartbeats of nodes: a Lease each in `kube-node-lease`, renewed while the node reports at all.

They are started on demand only. A hundred nodes renew ten times a second, which is more than all else that
happens in most simulated clusters; whoever does not look at Leases need not pay for them.
"""

from __future__ import annotations

from lstqueue.embedded import eventlog, metadata
from lstqueue.embedded.controllers import nodes, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

NAMESPACE = "kube-node-lease"
DURATION_S = 40
RENEW_S = 10.0


class NodeLeases:
    """Watches nodes from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[str] = work.WorkQueue(self._renew, errors)
        for node in store.list(port.NODES):
            self._work.add(node["metadata"]["name"])
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.resource != port.NODES:
            return
        name = event.object["metadata"]["name"]
        was_mute = event.old is not None and nodes.mute(event.old)
        if event.type == eventlog.ADDED or (was_mute and not nodes.mute(event.object)):
            self._work.add(name)

    def _renew(self, name: str) -> None:
        node = self._store.find(port.NODES, None, name)
        if node is None or nodes.mute(node):
            return
        self._work.add(name, delay=RENEW_S)
        at = metadata.timestamp(self._store.now_ms()).replace("Z", ".000000Z")
        if self._store.find(port.LEASES, NAMESPACE, name) is not None:
            self._store.patch(port.LEASES, NAMESPACE, name, {"spec": {"renewTime": at}})
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        spec = {"holderIdentity": name, "leaseDurationSeconds": DURATION_S, "renewTime": at}
        body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        self._store.create(port.LEASES, NAMESPACE, body)
