"""Stored objects and the bounded log of what happened to them, one log per kind.

Objects in the store never change: a write makes a new one that shares what it did not touch. That allows an
object to be encoded once, whoever reads it, and lets a watch be a position in the log instead of a queue of
its own: a watcher that fell behind the log learns it (410) and lists again, as with a real server.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from lstqueue.embedded import failures
from lstqueue.kube import port

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Stored(dict[str, Any]):
    """An object as the store keeps it: read-only by convention, its JSON computed once."""

    __slots__ = ("_json",)
    _json: bytes

    def json(self) -> bytes:
        """The object as JSON."""
        try:
            return self._json
        except AttributeError:
            self._json = orjson.dumps(self)
            return self._json

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        # A copy is made to be changed: it must not carry the encoding of the original.
        copy: dict[str, Any] = orjson.loads(self.json())
        return copy

    def copy(self) -> dict[str, Any]:
        """A shallow copy, which is a plain dict."""
        return dict(self)


@dataclass(frozen=True, slots=True)
class Event:
    """One write: what became of an object, what it was before, and the resourceVersion of the write."""

    type: str
    resource: port.Resource
    object: Stored
    old: Stored | None
    rv: int


class Log:
    """The last `size` events of one kind."""

    __slots__ = ("_dropped", "_events")

    def __init__(self, size: int) -> None:
        self._events: deque[Event] = deque(maxlen=size)
        self._dropped = 0

    def append(self, event: Event) -> None:
        """Add the newest event; the oldest falls out when the log is full."""
        if len(self._events) == self._events.maxlen:
            self._dropped = self._events[0].rv
        self._events.append(event)

    def since(self, rv: int) -> list[Event]:
        """All events after `rv`, oldest first.

        Raises:
            port.GoneError: some of them are no longer kept.
        """
        if rv < self._dropped:
            raise failures.too_old(rv, self._dropped)
        found: list[Event] = []
        for event in reversed(self._events):
            if event.rv <= rv:
                break
            found.append(event)
        found.reverse()
        return found

    def compact(self, rv: int) -> None:
        """Forget everything up to `rv`, as a compaction of etcd does."""
        while self._events and self._events[0].rv <= rv:
            self._events.popleft()
        self._dropped = max(self._dropped, rv)
