"""Step 4 with starts kept for everybody, for comparisons: `Backfill.CONSERVATIVE` and `Backfill.SLACK`.

The *agenda* says what will be free from when on: those who run end by their expected run times, and each job
in line takes its place in it. Whoever's place begins now starts. With `CONSERVATIVE` that place is the
earliest, so nobody delays anybody before it (Mu'alem and Feitelson, TPDS 2001). With `SLACK` it is the last
that the job's slack allows, so others may pass as far as that goes (after Talby and Feitelson, IPPS 1999,
whose slack is a share of the mean wait; here a job with a deadline has what is left until that).

The agenda is made anew in every pass, as batch systems do, so early ends move places forward. Quota is
looked at for starts now alone.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lstqueue.engine import backfill, fit, gangs, kept, model, order, room, switches
from lstqueue.engine.standing import NEVER
from lstqueue.topology.table import Ints, Mask

TRIES = 16
"""Last starts that are tried for a job with slack, from its limit backwards."""


Place = tuple[int, room.Placement]
"""(start in ms since the epoch, where)."""


class Agenda:
    """What is free over time: `free[i]`, by resource and node, from `times[i]` until `times[i + 1]`."""

    def __init__(self, free: room.Room, departures: Iterable[tuple[int, Sequence[room.Release]]], now: int):
        self.times, self.free = [now], [free.ledger.free.copy()]
        for at, parts in sorted(departures, key=_time):
            if at > self.times[-1]:
                self.times.append(at)
                self.free.append(self.free[-1].copy())
            for part in parts:
                self.free[-1][:, part.nodes] += part.amounts
        self._scratch = room.Room(free.ledger.copy(), free.quota.copy(unused=True))

    def now(self, gang: gangs.Gang, runs: int) -> Place | None:
        """Where a gang fits for `runs` ms if it starts now."""
        place = self._place(gang, 0, bisect.bisect_left(self.times, self.times[0] + runs, 1))
        return None if place is None else (self.times[0], place)

    def earliest(self, gang: gangs.Gang, runs: int) -> Place | None:
        """Where a gang fits first for `runs` ms; None for never."""
        able = self._able(gang)
        start = 0
        while start < len(self.times):
            end = bisect.bisect_left(self.times, self.times[start] + runs, start + 1)
            lacking = (~able[start:end]).nonzero()[0]
            if len(lacking):
                start += int(lacking[-1]) + 1
                continue
            place = self._place(gang, start, end)
            if place is not None:
                return self.times[start], place
            start += 1
        return None

    def latest(self, gang: gangs.Gang, runs: int, low: int, high: int) -> Place | None:
        """Where it fits last with a start in (low, high]; None where none of those tried does."""
        able = self._able(gang)
        for at in self._ends(runs, low, high):
            start = bisect.bisect_right(self.times, at) - 1
            end = bisect.bisect_left(self.times, at + runs, start + 1)
            if able[start:end].all() and (place := self._place(gang, start, end)) is not None:
                return at, place
        return None

    def take(self, gang: gangs.Gang, place: Place, runs: int) -> None:
        """Give a gang its place for `runs` ms."""
        start, taken = place
        first, last = self._cut(start), self._cut(min(NEVER, start + runs))
        for part in room.release_after(gang.queue, taken, self._scratch):
            for here in self.free[first:last]:
                here[:, part.nodes] -= part.amounts

    def _cut(self, at: int) -> int:
        """The index of the segment that begins at a time, made where there is none."""
        index = bisect.bisect_left(self.times, at)
        if index == len(self.times) or self.times[index] != at:
            self.times.insert(index, at)
            self.free.insert(index, self.free[index - 1].copy())
        return index

    def _able(self, gang: gangs.Gang) -> Mask:
        """By segment, whether each group by itself would find its nodes; what lacks them is no start."""
        rows = self._scratch.ledger.rows
        free = np.stack(self.free)
        able: Mask = np.ones(len(self.times), dtype=bool)
        for member in gang.members:
            any_pool: Mask = np.zeros(len(self.times), dtype=bool)
            for option in member.options:
                asked = rows.amounts[:, option.row].nonzero()[0]
                fits = (free[:, asked] // rows.amounts[asked, option.row, None]).min(axis=1)
                counts = np.minimum(np.maximum(fits, 0), rows.limit[option.row])
                any_pool |= counts.sum(axis=1) >= member.count
            able &= any_pool
        return able

    def _place(self, gang: gangs.Gang, start: int, end: int) -> room.Placement | None:
        """Where a gang fits through all of some segments."""
        least: Ints = np.minimum.reduce(self.free[start:end])
        scratch = self._scratch
        scratch.ledger.settle(least)
        taken = scratch.place(gang)
        if taken is not None:
            scratch.undo(taken)
        return taken

    def _ends(self, runs: int, low: int, high: int) -> Iterator[int]:
        """Starts worth trying, last first: the limit, and those that end where less is free."""
        found = {high} | {at - runs for at in self.times if low < at - runs < high}
        yield from sorted(found, reverse=True)[:TRIES]


def walk(known: kept.Kept) -> fit.Fitted:
    """Admit whoever's place begins now, and keep the places of the others."""
    if known.config.switches.backfill is switches.Backfill.EASY:
        return backfill.walk(known)
    done = fit.Fitted()
    agenda = Agenda(known.free, backfill.ends(known, ()), known.now)
    first: dict[str, str] = {}  # by queue, whose place is kept before all others'
    left = known.config.switches.backfill_most
    for turn in known.line:
        uid, gang, runs = turn.job.uid, turn.gang, _runs(known, turn)
        if (code := fit.untried(turn, known.possible, known.now) or known.possible.code(gang)) is not None:
            done.codes[uid] = code
            continue
        fits = known.free.could_place(gang)
        done.tries += 1
        found = agenda.earliest(gang, runs) if left else agenda.now(gang, runs) if fits else None
        if found is not None and found[0] == known.now and fits:
            done.placed[uid] = found[1]
            known.free.charge_all(room.release_after(gang.queue, found[1], known.free))
            agenda.take(gang, found, runs)
            continue
        done.codes[uid] = _code(known, gang, passed=fits)
        if fits:
            done.heads[gang.queue] = first.get(gang.queue, uid)
        if found is not None:
            left -= 1
            first.setdefault(gang.queue, uid)
            place = _delayed(known, turn, agenda, found[0]) or found
            agenda.take(gang, place, runs)
            known.rouse(max(place[0], known.now + 1))
    return done


def _delayed(known: kept.Kept, turn: order.Turn, agenda: Agenda, start: int) -> Place | None:
    """The last place that a job's slack allows; None where it has none beyond `start`."""
    here, policy = known.here(turn), known.config.switches
    if policy.backfill is not switches.Backfill.SLACK:
        return None
    limit = here.job.submit + policy.backfill_slack if here.slack is None else known.now + here.slack
    return agenda.latest(turn.gang, _runs(known, turn), start, limit) if limit > start else None


def _runs(known: kept.Kept, turn: order.Turn) -> int:
    """How long a job is expected to hold its place, in ms."""
    left = known.here(turn).left
    return NEVER if left is None else max(1, turn.job.overhead + left.mid)


def _code(known: kept.Kept, gang: gangs.Gang, *, passed: bool) -> model.Code:
    if passed:
        return model.Code.HEAD_OF_LINE
    return model.Code.NO_ROOM if known.free.quota_fits(gang) else model.Code.QUOTA_EXCEEDED


def _time(end: tuple[int, Sequence[room.Release]]) -> int:
    return end[0]
