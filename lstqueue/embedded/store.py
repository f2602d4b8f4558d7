"""The objects of the embedded API server: one dictionary, one revision counter, one log per kind.

This is etcd and the generic registry in one, without HTTP: the controllers of the embedded cluster, the
in-process client and the HTTP server all write through it, so that everybody meets the same rules. It is
synchronous and single-threaded; a write is complete, logged and announced when the call returns.

The invariants: every write takes the next revision; a write that changes nothing takes none and is not
announced; an object once stored is never changed, only replaced.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Any

from lstqueue.embedded import (
    bodies,
    deletion,
    eventlog,
    failures,
    kinds,
    limits,
    metadata,
    namespaces,
    patches,
    quotas,
    seed,
    selectors,
)
from lstqueue.embedded import strategic as strategic_patch
from lstqueue.embedded.eventlog import Event, Stored
from lstqueue.kube import port

Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is empty."""
Rows = list[Stored]
Names = list[str]


class _Table:
    """The objects of one kind, with their keys in order."""

    __slots__ = ("keys", "log", "rows")

    def __init__(self, log_size: int) -> None:
        self.rows: dict[Key, Stored] = {}
        self.keys: list[Key] = []
        self.log = eventlog.Log(log_size)

    def within(self, namespace: str) -> list[Key]:
        return self.keys[
            bisect_left(self.keys, (namespace, "")) : bisect_left(self.keys, (namespace + "\0", ""))
        ]


class Store:
    """Everything a cluster knows.

    Args:
        now: milliseconds since the epoch; the virtual clock in a simulated cluster.
        log_size: events kept per kind; a watch from before the oldest gets 410.
        random_seed: of uids and generated names, so that a run can be repeated exactly.
    """

    def __init__(self, *, now: Callable[[], int], log_size: int = 20_000, random_seed: int = 0) -> None:
        self.now_ms = now
        self._rng = random.Random(random_seed)  # noqa: S311 - names of a test double, not secrets
        self._revision = 1
        self._tables = {key: _Table(log_size) for key in kinds.KINDS}
        self._subscribers: list[Callable[[Event], None]] = []
        self._waiting: deque[Event] = deque()
        self._announcing = False
        for resource, namespace, body in seed.objects():
            self._insert(self.kind(resource), namespace, body)
        self.subscribe(namespaces.Lifecycle(self).written)
        self._quotas = quotas.Accounts(self)
        self.subscribe(self._quotas.written)

    # Reading

    @property
    def revision(self) -> int:
        """The resourceVersion of the last write."""
        return self._revision

    def kind(self, resource: port.Resource) -> kinds.Kind:
        """The kind of a resource.

        Raises:
            port.NotFoundError: this server does not have it.
        """
        kind = kinds.KINDS.get((resource.group, resource.plural))
        if kind is None or kind.resource.version != resource.version:
            raise failures.no_such_path()
        return kind

    def get(self, resource: port.Resource, namespace: str | None, name: str) -> Stored:
        """Return one object, to be treated as read-only.

        Raises:
            port.NotFoundError: it is not there.
        """
        found = self.find(resource, namespace, name)
        if found is None:
            raise failures.not_found(resource, name)
        return found

    def find(self, resource: port.Resource, namespace: str | None, name: str) -> Stored | None:
        """Return one object or None, to be treated as read-only."""
        key = (namespace or "" if resource.namespaced else "", name)
        return self._table(resource).rows.get(key)

    def list(
        self, resource: port.Resource, *, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Rows:
        """Return the objects of a kind in the order of (namespace, name), to be treated as read-only."""
        table = self._table(resource)
        keys = table.within(namespace) if namespace and resource.namespaced else table.keys
        chosen = self.selector(resource, labels, fields)
        rows = table.rows
        if chosen is None:
            return [rows[key] for key in keys]
        return [row for key in keys if chosen(row := rows[key])]

    def keys(self, resource: port.Resource, namespace: str) -> Names:
        """Return the names of a kind's objects in one namespace, in order."""
        return [name for _, name in self._table(resource).within(namespace)]

    def selector(self, resource: port.Resource, labels: str, fields: str) -> selectors.Predicate | None:
        """The predicate of a label and a field selector; None selects everything."""
        by_field = selectors.fields(fields, self.kind(resource).fields) if fields else None
        return selectors.both(selectors.labels(labels) if labels else None, by_field)

    def log(self, resource: port.Resource) -> eventlog.Log:
        """The recent events of a kind."""
        return self._table(resource).log

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back after every write, in order; returns the function that ends this.

        A callback may write. Its events reach every subscriber after the event that it is handling.
        """
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def compact(self) -> None:
        """Forget all events, so that watches and pages from before now get 410."""
        for table in self._tables.values():
            table.log.compact(self._revision)

    # Writing

    def create(
        self, resource: port.Resource, namespace: str | None, body: port.Object, *, dry_run: bool = False
    ) -> Stored:
        """Create an object.

        Raises:
            port.ApiError: 400, 403, 404 (the namespace), 409 (the name) or 422.
        """
        kind = self.kind(resource)
        new = bodies.received(kind, namespace, body)
        meta = new["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = metadata.generated_name(meta["generateName"], self._rng)
        bodies.check_namespace(kind, new, self)
        bodies.prepare_creation(kind, new, self, uid=metadata.new_uid(self._rng))
        if resource == port.PODS:
            limits.check(new, self)
        self._quotas.check(resource, new)
        if (meta.get("namespace", ""), meta["name"]) in self._table(resource).rows:
            raise failures.already_exists(resource, meta["name"])
        if dry_run:
            return Stored(new)
        return self._commit(eventlog.ADDED, kind, new, None)

    def replace(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        body: port.Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Stored:
        """Replace an object or, with `subresource="status"`, its status.

        Raises:
            port.ApiError: 400, 404, 409 (uid or resourceVersion) or 422.
        """
        kind = self.kind(resource)
        new = bodies.received(kind, namespace, body)
        sent = new["metadata"].get("name")
        if sent != name:
            raise failures.bad_request(
                f"the name of the object ({sent}) does not match the name on the URL ({name})"
            )
        if kind.upsert and not subresource and self.find(resource, namespace, name) is None:
            if wanted := new["metadata"].get("uid"):
                # Who names a UID means an object that was there.
                why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: "
                raise failures.conflict(resource, name, why)
            return self.create(resource, namespace, body, dry_run=dry_run)
        old = self.get(resource, namespace, name)
        bodies.check_preconditions(resource, old, uid=new["metadata"].get("uid") or "")
        if not kind.unconditional and not new["metadata"].get("resourceVersion"):
            needed = failures.bad("metadata.resourceVersion", "", "must be specified for an update")
            raise failures.invalid(resource, name, [needed])
        return self._update(kind, old, new, subresource=subresource, dry_run=dry_run)

    def patch(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        body: Any,
        *,
        subresource: str = "",
        dry_run: bool = False,
        strategic: bool = False,
    ) -> Stored:
        """Apply a merge patch (an object) or a JSON patch (a list) to an object or its status.

        An object may also be a `strategic` merge patch.

        Raises:
            port.ApiError: 400, 404, 409 (uid or resourceVersion in the patch) or 422.
        """
        kind = self.kind(resource)
        old = self.get(resource, namespace, name)
        new: Any
        if isinstance(body, list):
            new = patches.apply_json_patch(old, body)
        elif isinstance(body, dict):
            new = strategic_patch.apply(old, body) if strategic else patches.merge(old, body)
        else:
            raise failures.bad_request("a patch is a JSON object, or a list of JSON patch operations")
        bodies.check_identity(kind, new, old)
        return self._update(kind, old, new, subresource=subresource, dry_run=dry_run)

    def update(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        mutate: Callable[[port.Object], None],
        *,
        subresource: str = "",
    ) -> Stored:
        """Change a copy of an object in place and store it: a read and a write without a gap between them.

        Raises:
            port.ApiError: 404 or 422.
        """
        old = self.get(resource, namespace, name)
        new: port.Object = patches.copy_json(old)
        mutate(new)
        return self._update(self.kind(resource), old, new, subresource=subresource, dry_run=False)

    def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> Stored:
        """Bind a pod to a node, as the binding subresource does.

        Raises:
            port.ApiError: 404, or 409 when the pod is bound, gated, being deleted, or another of that name.
        """
        old = self.get(port.PODS, namespace, name)
        new = bodies.bound(old, node, uid=uid, now_ms=self.now_ms())
        return self._commit(eventlog.MODIFIED, self.kind(port.PODS), new, old)

    def delete(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> Stored:
        """Delete an object, or mark it when something holds it; returns its last state.

        Args:
            resource: the kind.
            namespace: its namespace.
            name: its name.
            uid: precondition, empty for none.
            resource_version: precondition, empty for none.
            grace_seconds: of a pod; None leaves it to the pod, 0 removes it at once.
            propagation: Background, Foreground, Orphan, or empty for the kind's own default.
            dry_run: decide and answer, change nothing.

        Raises:
            port.ApiError: 404, or 409 when a precondition does not hold.
        """
        kind = self.kind(resource)
        old = self.get(resource, namespace, name)
        bodies.check_preconditions(resource, old, uid=uid, resource_version=resource_version)
        if (
            not propagation
            and kind.orphans
            and deletion.FOREGROUND not in old["metadata"].get("finalizers", ())
        ):
            propagation = "Orphan"
        grace = kind.rules.grace(old, grace_seconds) if kind.rules.grace else None
        outcome = deletion.decide(
            old, now_ms=self.now_ms(), grace=grace, asked=grace_seconds, propagation=propagation
        )
        if dry_run:
            return old
        if outcome.marked is not None:
            old = self._commit(eventlog.MODIFIED, kind, outcome.marked, old)
        if outcome.remove:
            old = self._commit(eventlog.DELETED, kind, old, old)
        return old

    # Inside

    def _table(self, resource: port.Resource) -> _Table:
        table = self._tables.get((resource.group, resource.plural))
        if table is None:
            raise failures.no_such_path()
        return table

    def _insert(self, kind: kinds.Kind, namespace: str | None, body: port.Object) -> None:
        new = bodies.received(kind, namespace, body)
        bodies.prepare_creation(kind, new, self, uid=metadata.new_uid(self._rng))
        self._commit(eventlog.ADDED, kind, new, None)

    def _update(
        self, kind: kinds.Kind, old: Stored, new: port.Object, *, subresource: str, dry_run: bool
    ) -> Stored:
        new = bodies.prepare_update(kind, new, old, subresource=subresource)
        if new == old:
            return old
        if dry_run:
            return Stored(new)
        if deletion.finished(new):
            return self._commit(eventlog.DELETED, kind, new, old)
        return self._commit(eventlog.MODIFIED, kind, new, old)

    def _commit(self, event: str, kind: kinds.Kind, new: port.Object, old: Stored | None) -> Stored:
        self._revision += 1
        stored = Stored(new)
        stored["metadata"] = {**new["metadata"], "resourceVersion": str(self._revision)}
        table = self._table(kind.resource)
        key = (stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
        if event == eventlog.DELETED:
            del table.rows[key]
            del table.keys[bisect_left(table.keys, key)]
        else:
            table.rows[key] = stored
            if event == eventlog.ADDED:
                insort(table.keys, key)
        happened = Event(event, kind.resource, stored, old, self._revision)
        table.log.append(happened)
        self._announce(happened)
        return stored

    def _announce(self, event: Event) -> None:
        # Events of writes made by a subscriber wait, so that all subscribers see one and the same order.
        self._waiting.append(event)
        if self._announcing:
            return
        self._announcing = True
        try:
            while self._waiting:
                current = self._waiting.popleft()
                for callback in tuple(self._subscribers):
                    callback(current)
        finally:
            self._announcing = False
