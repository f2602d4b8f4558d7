"""The life of namespaces: deletion empties a namespace first, and it goes when the last object has gone.

A real cluster has a controller for this; here it is a subscriber of the store, so that a namespace behaves
the same whether or not controllers run. Objects held by finalizers or by a kubelet hold their namespace.
"""

from __future__ import annotations

from typing import Protocol

from lstqueue.embedded import eventlog, kinds
from lstqueue.kube import port


class _Store(Protocol):
    def find(self, resource: port.Resource, namespace: str | None, name: str) -> port.Object | None: ...

    def keys(self, resource: port.Resource, namespace: str) -> list[str]: ...

    def delete(
        self, resource: port.Resource, namespace: str | None, name: str, *, propagation: str = "Background"
    ) -> port.Object: ...

    def patch(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        body: port.Object,
        *,
        subresource: str = "",
    ) -> port.Object: ...


class Lifecycle:
    """Watches one store and empties its namespaces."""

    def __init__(self, source: _Store) -> None:
        self._store = source
        self._ending: set[str] = set()

    def written(self, event: eventlog.Event) -> None:
        """Take notice of a write."""
        if event.resource == port.NAMESPACES:
            name = event.object["metadata"]["name"]
            if event.type == eventlog.DELETED:
                self._ending.discard(name)
            elif "deletionTimestamp" in event.object["metadata"] and name not in self._ending:
                self._ending.add(name)
                self._empty(name)
                self._end_if_empty(name)
        elif self._ending and event.type == eventlog.DELETED:
            namespace = event.object["metadata"].get("namespace")
            if namespace in self._ending:
                self._end_if_empty(namespace)

    def _empty(self, namespace: str) -> None:
        for kind in kinds.KINDS.values():
            if kind.resource.namespaced:
                for name in self._store.keys(kind.resource, namespace):
                    # An earlier deletion may have taken this object along.
                    if self._store.find(kind.resource, namespace, name) is not None:
                        self._store.delete(kind.resource, namespace, name)

    def _end_if_empty(self, namespace: str) -> None:
        for kind in kinds.KINDS.values():
            if kind.resource.namespaced and self._store.keys(kind.resource, namespace):
                return
        self._ending.discard(namespace)
        if self._store.find(port.NAMESPACES, None, namespace) is not None:
            done = {"spec": {"finalizers": None}}
            self._store.patch(port.NAMESPACES, None, namespace, done, subresource="finalize")
