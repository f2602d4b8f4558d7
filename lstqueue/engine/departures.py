"""What becomes free when, in columns, so that the room at any time to come is made at once.

Who asks when something fits first asks about a dozen times; that costs what leaves once or twice, not a
dozen times. One more or one less costs a few slices (`insert`, `remove`), so that what hardly changes is kept
(`leavers`). Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lstqueue.engine import quota, room
from lstqueue.topology.table import Ints

SMALL = 1 << 44
"""Half a million amounts below this add up within 64 bits; larger ones are added as Python's integers."""

End = tuple[int, Sequence[room.Release]]
"""(when in ms since the epoch, what becomes free)."""


class Departures:
    """`times` are when each leaves, first to last.

    `_counts` says of how many columns of `_nodes` and `_amounts` each consists, `_charged` of how many of
    `_slots` and `_costs`. Copies share those arrays, which are never written to.
    """

    __slots__ = ("_amounts", "_charged", "_costs", "_counts", "_nodes", "_slots", "times")

    def __init__(self, ends: Iterable[End] = ()) -> None:
        ordered = sorted(ends, key=_when)
        self.times = [at for at, _ in ordered]
        parts = [part for _, several in ordered for part in several]
        self._counts = [sum([len(part.nodes) for part in several]) for _, several in ordered]
        self._charged = [sum([len(part.charges) for part in several]) for _, several in ordered]
        self._slots, self._costs = _charges(parts)
        self._nodes: Ints = np.zeros(0, dtype=np.int64)
        self._amounts: Ints | None = None  # how many resources there are is known once there is one
        if parts:
            self._nodes = np.concatenate([part.nodes for part in parts])
            self._amounts = np.concatenate([part.amounts for part in parts], axis=1)

    def copy(self) -> Departures:
        """An independent copy."""
        other = object.__new__(Departures)
        other.times, other._counts, other._charged = self.times[:], self._counts[:], self._charged[:]
        other._nodes, other._amounts = self._nodes, self._amounts
        other._slots, other._costs = self._slots, self._costs
        return other

    def insert(self, place: int, end: End) -> None:
        """Add one as number `place`, where its time belongs."""
        at, parts = end
        column, charge = sum(self._counts[:place]), sum(self._charged[:place])
        slots, costs = _charges(parts)
        self.times.insert(place, at)
        self._counts.insert(place, sum([len(part.nodes) for part in parts]))
        self._charged.insert(place, len(slots))
        self._slots = np.concatenate([self._slots[:charge], slots, self._slots[charge:]])
        self._costs = np.concatenate([self._costs[:charge], costs, self._costs[charge:]])
        nodes, amounts = [part.nodes for part in parts], [part.amounts for part in parts]
        self._nodes = np.concatenate([self._nodes[:column], *nodes, self._nodes[column:]])
        if (before := self._amounts) is not None:
            amounts = [before[:, :column], *amounts, before[:, column:]]
        if amounts:
            self._amounts = np.concatenate(amounts, axis=1)

    def remove(self, place: int) -> None:
        """Take out number `place`."""
        first, charge = sum(self._counts[:place]), sum(self._charged[:place])
        last, after = first + self._counts[place], charge + self._charged[place]
        del self.times[place], self._counts[place], self._charged[place]
        self._slots = np.concatenate([self._slots[:charge], self._slots[after:]])
        self._costs = np.concatenate([self._costs[:charge], self._costs[after:]])
        self._nodes = np.concatenate([self._nodes[:first], self._nodes[last:]])
        if (before := self._amounts) is not None:
            self._amounts = np.concatenate([before[:, :first], before[:, last:]], axis=1)

    def leave(self, free: room.Room, first: int, last: int) -> None:
        """Free in a room what the departures from `first` up to `last`, without that one, leave."""
        self.return_to(free.quota, first, last)
        start = sum(self._counts[:first])
        end = start + sum(self._counts[first:last])
        if start < end and self._amounts is not None:
            free.ledger.give_all(self._nodes[start:end], self._amounts[:, start:end])

    def return_to(self, free: quota.Quota, first: int, last: int) -> None:
        """Give back to quotas alone what the departures from `first` up to `last`, without that one, had."""
        charge = sum(self._charged[:first])
        several = slice(charge, charge + sum(self._charged[first:last]))
        quotas = free.free
        sums = np.zeros(len(quotas), dtype=self._costs.dtype)
        np.add.at(sums, self._slots[several], self._costs[several])
        for slot in sums.nonzero()[0].tolist():
            quotas[slot] += int(sums[slot])

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


def _charges(parts: Sequence[room.Release]) -> tuple[Ints, Ints]:
    """What several parts give back of quotas, as columns."""
    found = [charge for part in parts for charge in part.charges]
    small = all([-SMALL < amount < SMALL for _, amount in found])
    slots: Ints = np.array([slot for slot, _ in found], dtype=np.int64)
    return slots, np.array([amount for _, amount in found], dtype=np.int64 if small else np.object_)
