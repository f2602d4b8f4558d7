"""What becomes free when, in columns, so that the room at any time to come is made at once.

Who asks when something fits first asks about a dozen times; that costs what leaves once or twice, not a
dozen times. Nothing is decided here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lstqueue.engine import room

End = tuple[int, Sequence[room.Release]]
"""(when in ms since the epoch, what becomes free)."""


class Departures:
    """`times` are when each leaves, first to last."""

    def __init__(self, ends: Iterable[End]) -> None:
        ordered = sorted(ends, key=_when)
        self.times = [at for at, _ in ordered]
        self._charges = [[charge for part in parts for charge in part.charges] for _, parts in ordered]
        counts = (sum(len(part.nodes) for part in parts) for _, parts in ordered)
        self._starts = list(itertools.accumulate(counts, initial=0))
        parts = [part for _, several in ordered for part in several]
        if parts:
            self._nodes = np.concatenate([part.nodes for part in parts])
            self._amounts = np.concatenate([part.amounts for part in parts], axis=1)

    def leave(self, free: room.Room, first: int, last: int) -> None:
        """Free in a room what the departures from `first` up to `last`, without that one, leave."""
        for charges in self._charges[first:last]:
            for slot, amount in charges:
                free.quota.free[slot] += amount
        start, end = self._starts[first], self._starts[last]
        if start < end:
            free.ledger.give_all(self._nodes[start:end], self._amounts[:, start:end])

    def first(self, free: room.Room, fits: Callable[[room.Room], bool]) -> tuple[int, room.Room] | None:
        """After how many departures something fits first, and the room then; None: after none.

        Args:
            free: The room before anybody leaves; stays as it is.
            fits: Whether it fits; more room must not be worse for it.
        """
        low, high = 0, len(self.times)
        there, found = free.copy(), free.copy()
        self.leave(found, low, high)
        if not fits(found):
            return None
        while low < high:
            middle = (low + high) // 2
            tried = there.copy()
            self.leave(tried, low, middle)
            if fits(tried):
                high, found = middle, tried
            else:
                self.leave(tried, middle, middle + 1)
                low, there = middle + 1, tried
        return low, found


def _when(end: End) -> int:
    return end[0]
