"""When which gang has to be looked at though nothing happens to it: one alarm each, the earliest."""

from __future__ import annotations

import heapq
from collections.abc import Collection

_STALE = 1000
"""Alarms beyond two a gang that may pile up before the stale ones are dropped."""


class Alarms:
    """Times (ms) by the UIDs of DeadlineJobs."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._set_for: dict[str, int] = {}

    @property
    def first(self) -> int | None:
        """When the next one goes off, or one that an earlier one has replaced; None for never."""
        return self._heap[0][0] if self._heap else None

    def wake(self, uid: str, at: int, known: Collection[str]) -> None:
        """Have a gang looked at no later than `at`; `known` are the gangs that there are."""
        set_for = self._set_for.get(uid)
        if set_for is None or at < set_for:
            self._set_for[uid] = at
            heapq.heappush(self._heap, (at, uid))
        if len(self._heap) > 2 * len(known) + _STALE:
            self._set_for = {uid: at for uid, at in self._set_for.items() if uid in known}
            self._heap = sorted((at, uid) for uid, at in self._set_for.items())

    def take(self, now: int) -> set[str]:
        """Return the gangs whose alarm goes off by `now`, and forget those alarms."""
        found = set()
        while self._heap and self._heap[0][0] <= now:
            at, uid = heapq.heappop(self._heap)
            if self._set_for.get(uid) == at:
                del self._set_for[uid]
                found.add(uid)
        return found
