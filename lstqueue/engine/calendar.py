"""The calendar: what of every node and quota is owed to somebody, from when to when.

Owed is what nobody can take back in time: the slots of promised jobs, and the room of running jobs that
cannot be suspended. Whoever else runs is not in it, since it leaves when a slot's time comes. So a slot that
fits into the calendar is room that its owner will have, whatever arrives later.

A step profile per node and resource, and per quota: time is cut into bins at the begins and ends of what is
owed, at most `BINS` of them. Of more the bins are wider, and what touches a bin is owed for all of it; so the
calendar may be thought fuller than it is, never emptier.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lstqueue.engine import gangs, quota, room
from lstqueue.topology import capacity
from lstqueue.topology.table import Ints, Mask

BINS = 256
"""Bins of time at most; a cluster of 2,000 nodes and 4 resources then takes 16 MiB."""


TRIES = 32
"""Begins that are tried at most for what nobody relies on."""
_NEVER = 1 << 60
"""What ends later than this never does, as far as anybody knows."""


class Entry(NamedTuple):
    """What is owed to a job (uid) in [begins, ends), both in ms since the epoch."""

    uid: str
    begins: int
    ends: int
    part: room.Release


class Calendar:
    """What is free beside all that is owed; negative where too much is.

    Args:
        offered: Per resource and node what there is for our jobs.
        nominal: The quota by slot.
        entries: What is owed.
        now: The begin of the first bin, in ms since the epoch.
    """

    def __init__(self, offered: Ints, nominal: Sequence[int], entries: Iterable[Entry], now: int) -> None:
        self.entries: dict[str, list[Entry]] = {}
        several = [entry for entry in entries if entry.ends > now]
        edges = sorted({edge for one in several for edge in (one.begins, one.ends) if edge > now})
        most = BINS // 2  # the rest is for what is added
        if len(edges) > most:
            edges = [edges[place * len(edges) // most] for place in range(most)]
        self._times = [now, *edges]
        spans = [self._bins(entry.begins, entry.ends) for entry in several]
        bins = np.array(spans, dtype=np.int64).reshape(-1, 2)
        self._free: Ints = offered[None, :, :] - self._owed_of_nodes(several, bins, offered.shape)
        self._quota: Ints = np.array([nominal], dtype=np.int64) - self._owed_of_quota(
            several, bins, len(nominal)
        )
        for entry in several:
            self.entries.setdefault(entry.uid, []).append(entry)

    def _owed_of_nodes(self, entries: Sequence[Entry], bins: Ints, shape: tuple[int, ...]) -> Ints:
        """What is owed in each bin of each resource and node; `bins` are the first and last + 1 of each."""
        owed: Ints = np.zeros((len(self._times) + 1, *shape), dtype=np.int64)
        parts = [entry.part for entry in entries]
        if not parts:
            return owed[:-1]
        widths = [len(part.nodes) for part in parts]
        nodes = np.concatenate([part.nodes for part in parts])
        firsts, lasts = np.repeat(bins[:, 0], widths), np.repeat(bins[:, 1], widths)
        for resource, amounts in enumerate(np.concatenate([part.amounts for part in parts], axis=1)):
            profile = owed[:, resource]
            np.add.at(profile, (firsts, nodes), amounts)
            np.subtract.at(profile, (lasts, nodes), amounts)
        return np.cumsum(owed, axis=0, out=owed)[:-1]

    def _owed_of_quota(self, entries: Sequence[Entry], bins: Ints, height: int) -> Ints:
        """What is owed in each bin of each slot of quota."""
        owed: Ints = np.zeros((len(self._times) + 1, height), dtype=np.int64)
        for entry, (first, last) in zip(entries, bins.tolist(), strict=True):
            for slot, amount in entry.part.charges:
                owed[first, slot] += amount
                owed[last, slot] -= amount
        return np.cumsum(owed, axis=0, out=owed)[:-1]

    def add(self, entry: Entry) -> None:
        """Owe something more."""
        if entry.ends > self._times[0]:
            self._cut(entry.begins)
            self._cut(entry.ends)
            self._note(entry)

    @contextlib.contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """Owe a job nothing for a while: it may have what is owed to itself."""
        own = self.remove(uid)
        try:
            yield
        finally:
            for entry in own:
                self.add(entry)

    def remove(self, uid: str) -> list[Entry]:
        """Owe a job nothing any more; return what it was."""
        gone = self.entries.pop(uid, [])
        for entry in gone:
            self._move(entry, 1)
        return gone

    def window(self, begins: int, ends: int) -> tuple[Ints, Ints]:
        """What is free throughout a time: (per resource and node, per slot of quota)."""
        first, last = self._bins(begins, ends)
        return self._free[first:last].min(axis=0), self._quota[first:last].min(axis=0)

    def holds(self, entry: Entry) -> bool:
        """Whether something more could be owed."""
        first, last = self._bins(entry.begins, entry.ends)
        part = entry.part
        there = self._free[first:last][:, :, part.nodes]
        if not bool(((there >= part.amounts) | (part.amounts == 0)).all()):
            return False
        return all(int(self._quota[first:last, slot].min()) >= amount for slot, amount in part.charges)

    def latest_here(self, part: room.Release, *, length: int, earliest: int, end: int) -> int | None:
        """The latest begin of a time of `length` that ends by `end` in which a place is free; None: never."""
        for begins in self._begins(length, earliest, end, self._enough(part)):
            if self.holds(Entry("", begins, begins + length, part)):
                return begins
        return None

    def latest(
        self, alone: gangs.Alone, quotas: quota.Quota, *, length: int, earliest: int, end: int
    ) -> tuple[int, room.Placement] | None:
        """The latest begin of a time of `length` that ends by `end` in which a gang fits, and where.

        Args:
            alone: The gang in rows of its own.
            quotas: Names the slots; what is free in it does not matter.
            length: How long it needs the room, in ms.
            earliest: No begin before this, in ms since the epoch.
            end: No end after this, in ms since the epoch.
        """
        for begins in self._begins(length, earliest, end, self._counts(alone)):
            if (taken := self._place(alone, quotas, begins, length)) is not None:
                return begins, taken
        return None

    def soonest(self, alone: gangs.Alone, quotas: quota.Quota, *, length: int, earliest: int) -> int | None:
        """The first begin from `earliest` on of a time of `length` in which a gang fits.

        Going on a place only gets free where something ends, and no more than `TRIES` of these are tried;
        None: it fits at none of them.
        """
        bad = np.concatenate([[0], np.cumsum(~self._counts(alone))])
        edges = self._times[bisect.bisect_right(self._times, earliest) :]
        tries = TRIES
        for begins in [earliest, *edges]:
            first, last = self._bins(begins, begins + length)
            if bad[first] != bad[last] or begins >= _NEVER:
                continue
            if self._place(alone, quotas, begins, length) is not None:
                return begins
            tries -= 1
            if not tries:
                break
        return None

    def _place(
        self, alone: gangs.Alone, quotas: quota.Quota, begins: int, length: int
    ) -> room.Placement | None:
        """Where a gang fits throughout a time; None: nowhere."""
        free, left = self.window(begins, begins + length)
        there = quotas.copy()
        there.free = left.tolist()
        return room.Room(capacity.Ledger(alone.rows, free), there).place(alone.gang)

    def _begins(self, length: int, earliest: int, end: int, fine: Mask) -> Iterator[int]:
        """The begins to try, the latest first: going back a place only gets free where something begins.

        `fine` says of each bin whether it could do at all.
        """
        bad = np.concatenate([[0], np.cumsum(~fine)])
        edges = self._times[bisect.bisect_left(self._times, earliest + length) :]
        for ends in [end, *[edge for edge in reversed(edges) if edge < end]]:
            begins = ends - length
            if begins < max(earliest, self._times[0]):
                return
            first, last = self._bins(begins, ends)
            if bad[first] == bad[last]:
                yield begins

    def _counts(self, alone: gangs.Alone) -> Mask:
        """In which bins the first group of a gang finds its nodes."""
        member, rows = alone.gang.members[0], alone.rows
        fine: Mask = np.zeros(len(self._times), dtype=np.bool_)
        for option in member.options:
            pods = np.broadcast_to(rows.limit[option.row], self._free[:, 0].shape)
            for resource, amount in enumerate(rows.amounts[:, option.row].tolist()):
                if amount:
                    pods = np.minimum(pods, self._free[:, resource] // amount)
            fine |= np.maximum(pods, 0).sum(axis=1) >= member.count
        return fine

    def _enough(self, part: room.Release) -> Mask:
        there = self._free[:, :, part.nodes]
        enough: Mask = ((there >= part.amounts) | (part.amounts == 0)).all(axis=(1, 2))
        return enough

    def _bins(self, begins: int, ends: int) -> tuple[int, int]:
        first = max(bisect.bisect_right(self._times, begins) - 1, 0)
        return first, max(bisect.bisect_left(self._times, ends), first + 1)

    def _note(self, entry: Entry) -> None:
        self.entries.setdefault(entry.uid, []).append(entry)
        self._move(entry, -1)

    def _move(self, entry: Entry, sign: int) -> None:
        first, last = self._bins(entry.begins, entry.ends)
        if len(entry.part.nodes):
            self._free[first:last, :, entry.part.nodes] += sign * entry.part.amounts
        for slot, amount in entry.part.charges:
            self._quota[first:last, slot] += sign * amount

    def _cut(self, time: int) -> None:
        """Begin a bin at a time, as long as there may be more."""
        place = bisect.bisect_left(self._times, time)
        known = place < len(self._times) and self._times[place] == time
        if known or time <= self._times[0] or len(self._times) >= BINS:
            return
        self._times.insert(place, time)
        self._free = np.insert(self._free, place, self._free[place - 1], axis=0)
        self._quota = np.insert(self._quota, place, self._quota[place - 1], axis=0)
