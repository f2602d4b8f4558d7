"""Watches: each is a position in a kind's log, woken by writes and by a few timers.

There is no queue per watcher. When woken, a watch reads the log from its position, so that many writes
between two turns of the loop become one batch, and a watcher that sleeps through the whole log gets 410.
A watch with a selector tells of objects that enter or leave the selection as ADDED and DELETED.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from lstqueue.embedded import eventlog, failures, pages, store
from lstqueue.embedded.eventlog import Event, Stored
from lstqueue.kube import port

BOOKMARK = "BOOKMARK"
Change = tuple[str, Stored]
"""(ADDED, MODIFIED, DELETED or BOOKMARK; object)."""

DEFAULT_TIMEOUT_S = 1800.0
"""How long a watch lives when nobody says; a real server takes 30 to 60 minutes."""


class CutError(Exception):
    """The watch was cut by a fault: no bookmark, no orderly end."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a watch asks for. An empty `resource_version`, or "0", means: first what is there."""

    resource: port.Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    bookmarks: bool = False
    timeout_s: int = 0


class Watch:
    """One open watch. Iterate over `batches` once, then `close` it."""

    def __init__(
        self,
        source: store.Store,
        query: Query,
        *,
        bookmark_s: float,
        watch_s: float,
        forget: Callable[[Watch], None],
    ) -> None:
        self.resource = query.resource
        self._store = source
        self._log = source.log(query.resource)
        self._namespace = query.namespace if query.resource.namespaced else None
        self._selected = source.selector(query.resource, query.labels, query.fields)
        self._query = query
        self._bookmark_s = bookmark_s
        self._lives_s = query.timeout_s or watch_s
        self._forget = forget
        self._wake = asyncio.Event()
        self._due = False
        self._over = False
        self._failure: Exception | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._first: list[Change] = []
        self._position = pages.revision_of(query.resource_version)
        if not self._position:
            self._position = source.revision
            rows = source.list(
                query.resource, namespace=query.namespace, labels=query.labels, fields=query.fields
            )
            self._first = [(eventlog.ADDED, row) for row in rows]

    def wake(self) -> None:
        """Something was written to this kind."""
        self._wake.set()

    def fail(self, error: Exception) -> None:
        """End the watch with an error at its next turn."""
        self._failure = error
        self._wake.set()

    def finish(self) -> None:
        """End the watch in order, as its timeout does."""
        self._over = True
        self._wake.set()

    def close(self) -> None:
        """Stop timers and let go."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._forget(self)

    async def batches(self) -> AsyncGenerator[list[Change], None]:
        """Yield what happened, in order, until the watch is over.

        Raises:
            port.GoneError: the position is no longer in the log.
            CutError: a fault cut the watch.
        """
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(self._lives_s, self.finish))
        self._schedule_bookmark(loop)
        if self._first:
            yield self._first
            self._first = []
        while True:
            self._wake.clear()
            if self._failure is not None:
                raise self._failure
            batch = self._read()
            if self._due or (self._over and self._query.bookmarks):
                self._due = False
                batch.append((BOOKMARK, self._bookmark()))
            if batch:
                yield batch
            if self._over:
                return
            await self._wake.wait()

    def _read(self) -> list[Change]:
        events = self._log.since(self._position)
        # The log holds every write to this kind, so the position is that of the whole store.
        self._position = max(self._position, self._store.revision)
        changes = (self._change(event) for event in events)
        return [change for change in changes if change is not None]

    def _change(self, event: Event) -> Change | None:
        if self._namespace and event.object["metadata"].get("namespace") != self._namespace:
            return None
        if self._selected is None:
            return event.type, event.object
        before = event.old is not None and self._selected(event.old)
        if event.type == eventlog.DELETED:
            return (eventlog.DELETED, event.object) if before else None
        after = self._selected(event.object)
        if after:
            return (eventlog.MODIFIED if before else eventlog.ADDED), event.object
        if before and event.old is not None:
            meta = {**event.old["metadata"], "resourceVersion": str(event.rv)}
            return eventlog.DELETED, Stored({**event.old, "metadata": meta})
        return None

    def _bookmark(self) -> Stored:
        resource = self.resource
        return Stored(
            {
                "kind": resource.kind,
                "apiVersion": resource.api_version,
                "metadata": {"resourceVersion": str(self._position), "creationTimestamp": None},
            }
        )

    def _schedule_bookmark(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._query.bookmarks:
            return

        def ring() -> None:
            self._due = True
            self._wake.set()
            self._timers[1] = loop.call_later(self._bookmark_s, ring)

        self._timers.append(loop.call_later(self._bookmark_s, ring))


class Watches:
    """The open watches of one store.

    Args:
        source: the store.
        bookmark_s: seconds of loop time between bookmarks.
        watch_s: seconds of loop time that a watch lives when it does not say.
    """

    def __init__(
        self, source: store.Store, *, bookmark_s: float = 60.0, watch_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._store = source
        self._bookmark_s = bookmark_s
        self._watch_s = watch_s
        self._open: dict[port.Resource, list[Watch]] = {}
        source.subscribe(self._written)

    def open(self, query: Query) -> Watch:
        """Open a watch.

        Raises:
            port.ApiError: 400 for a malformed query, 404 for an unknown kind.
        """
        watch = Watch(
            self._store, query, bookmark_s=self._bookmark_s, watch_s=self._watch_s, forget=self._remove
        )
        self._open.setdefault(query.resource, []).append(watch)
        return watch

    def count(self, resource: port.Resource | None = None) -> int:
        """How many watches are open, of one kind or of all."""
        return len(self._chosen(resource))

    def cut(self, resource: port.Resource | None = None) -> int:
        """Break watches without an orderly end; returns how many."""
        return self._fail(resource, CutError("the watch was cut"))

    def expire(self, resource: port.Resource | None = None) -> int:
        """End watches with a 410 in the stream; returns how many."""
        return self._fail(resource, failures.gone("The resourceVersion for the provided watch is too old."))

    def finish(self) -> None:
        """End all watches in order."""
        for watch in self._chosen(None):
            watch.finish()

    def _fail(self, resource: port.Resource | None, error: Exception) -> int:
        chosen = self._chosen(resource)
        for watch in chosen:
            watch.fail(error)
        return len(chosen)

    def _chosen(self, resource: port.Resource | None) -> list[Watch]:
        if resource is not None:
            return list(self._open.get(resource, ()))
        found: list[Watch] = []
        for some in self._open.values():
            found.extend(some)
        return found

    def _remove(self, watch: Watch) -> None:
        some = self._open.get(watch.resource, [])
        if watch in some:
            some.remove(watch)

    def _written(self, event: Event) -> None:
        for watch in self._open.get(event.resource, ()):
            watch.wake()
