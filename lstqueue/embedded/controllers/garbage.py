"""Deletes what owners left behind.

Knows owners by UID, as the real collector does: an object goes when none of its owners exists any more. Also
ends deletions with propagation Foreground (the owner stays until its dependents are gone) and Orphan (the
dependents lose their reference first). The real collector needs some hundred milliseconds; so does this one.
"""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import deletion, eventlog, kinds
from lstqueue.embedded.controllers import pods, work
from lstqueue.embedded.store import Store
from lstqueue.kube import port

DELAY = 0.3
"""Seconds from the end of an owner to the deletion of its dependents."""

_Ref = tuple[port.Resource, str, str]


class GarbageCollector:
    """Watches all kinds from its creation on.

    Args:
        store: the cluster's objects.
        errors: takes exceptions of callbacks.
    """

    def __init__(self, store: Store, errors: list[Exception]) -> None:
        self._store = store
        self._work: work.WorkQueue[str] = work.WorkQueue(self._look, errors)
        self._where: dict[str, _Ref] = {}
        self._dependents: dict[str, set[str]] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        for kind in kinds.KINDS.values():
            for obj in store.list(kind.resource):
                self._learn(kind.resource, obj)
        self._unsubscribe = store.subscribe(self._on_event)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._work.close()

    def _on_event(self, event: eventlog.Event) -> None:
        if event.type == eventlog.DELETED:
            self._forget(event.object)
        else:
            self._learn(event.resource, event.object)

    def _learn(self, resource: port.Resource, obj: port.Object) -> None:
        meta = obj["metadata"]
        uid = meta["uid"]
        self._where[uid] = (resource, meta.get("namespace", ""), meta["name"])
        owners = tuple(owner["uid"] for owner in meta.get("ownerReferences") or ())
        if owners != self._owners.get(uid, ()):
            self._relink(uid, owners)
            self._work.add(uid, delay=DELAY)
        if pods.deleting(obj):
            self._work.add(uid, delay=DELAY)

    def _relink(self, uid: str, owners: tuple[str, ...]) -> None:
        for owner in self._owners.pop(uid, ()):
            dependents = self._dependents[owner]
            dependents.discard(uid)
            if not dependents:
                del self._dependents[owner]
        for owner in owners:
            self._dependents.setdefault(owner, set()).add(uid)
        if owners:
            self._owners[uid] = owners

    def _forget(self, obj: port.Object) -> None:
        uid = obj["metadata"]["uid"]
        owners = self._owners.get(uid, ())
        self._relink(uid, ())
        self._where.pop(uid, None)
        self._work.discard(uid)
        for dependent in self._dependents.get(uid, ()):
            self._work.add(dependent, delay=DELAY)
        for owner in owners:
            self._work.add(owner, delay=DELAY)

    def _look(self, uid: str) -> None:
        obj = self._find(uid)
        if obj is None:
            return
        if pods.deleting(obj):
            self._finish_deletion(uid, obj)
            return
        owners = self._owners.get(uid, ())
        if owners and not any(owner in self._where for owner in owners):
            self._delete(uid)

    def _find(self, uid: str) -> port.Object | None:
        where = self._where.get(uid)
        return None if where is None else self._store.find(*where)

    def _delete(self, uid: str, propagation: str = "Background") -> None:
        resource, namespace, name = self._where[uid]
        self._store.delete(resource, namespace, name, uid=uid, propagation=propagation)

    def _finish_deletion(self, uid: str, obj: port.Object) -> None:
        finalizers = obj["metadata"].get("finalizers") or ()
        if deletion.ORPHAN in finalizers:
            for dependent in sorted(self._dependents.get(uid, ())):
                self._orphan(dependent, uid)
            self._unhold(uid, deletion.ORPHAN)
        elif deletion.FOREGROUND in finalizers:
            left = sorted(self._dependents.get(uid, ()))
            for dependent in left:
                found = self._find(dependent)
                if found is not None and not pods.deleting(found):
                    self._delete(dependent, "Foreground")
            if not left:
                self._unhold(uid, deletion.FOREGROUND)

    def _orphan(self, uid: str, owner: str) -> None:
        def cut(obj: port.Object) -> None:
            references: list[dict[str, Any]] = obj["metadata"]["ownerReferences"]
            obj["metadata"]["ownerReferences"] = [item for item in references if item["uid"] != owner]

        self._store.update(*self._where[uid], cut)

    def _unhold(self, uid: str, finalizer: str) -> None:
        def cut(obj: port.Object) -> None:
            obj["metadata"]["finalizers"] = [
                item for item in obj["metadata"]["finalizers"] if item != finalizer
            ]

        self._store.update(*self._where[uid], cut)
