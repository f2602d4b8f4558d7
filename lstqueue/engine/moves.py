"""Step 5, for long gangs that find no victims: those in their way who only have to move.

Small jobs leave room on many nodes for other small ones, and on none for a gang that needs nodes whole. Who
waits until such a gang has finished is harmed (*no-harm*, `victims`). But one for whom room is left on other
nodes does not wait: it starts again there at once, and has lost what any suspension costs, so that much
slack is enough (`Herd.movers`). Since it does cost something, only gangs that run for long have others moved,
and all who move for one are small beside it.

Whether room is left elsewhere is asked of the room that is free now, not of what is kept or owed in it: who
finds that kept for somebody has its slack to wait, and then the right to have others suspended.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lstqueue.engine import (
    gangs,
    kept,
    model,
    order,
    regions,
    rights,
    room,
    searches,
    stakes,
    trials,
    victims,
    windows,
)
from lstqueue.engine.standing import NO_SLACK
from lstqueue.topology import capacity
from lstqueue.topology.table import Ints, Mask


def may(who: rights.Candidate, config: model.Config) -> bool:
    """Whether somebody may be moved for a job that may have others suspended."""
    able = config.moving and config.move_tries > 0
    return able and who.rank is None and who.band is model.Band.DEADLINE and who.mid >= config.move_least


def allowed(who: rights.Candidate, herd: victims.Herd, config: model.Config) -> Mask:
    """Which of a herd may be asked to move for a job, be they claimed already."""
    if not may(who, config):
        return herd.nobody
    mask: Mask = herd.movers & ~herd.taken & ~herd.displaced(who)
    return mask


def unsettled(known: kept.Kept, stake: stakes.Stake, moving: Sequence[model.Job]) -> model.Job | None:
    """Who of those that are only to move for a claim would find no place now; None when all would.

    Asked until the first of them is suspended: by then their room may be somebody else's.
    """
    left = known.free.copy()
    left.release_all([known.world.release(job) for job in stake.running])
    left.charge(stake.rest)
    return next((job for job in moving if _placed(known, left, job) is None), None)


def _placed(known: kept.Kept, left: room.Room, job: model.Job) -> list[room.Release] | None:
    """Charge a job that owns room in what will be left; None, and nothing charged, when it does not fit."""
    alone = known.world.alone(known.world.gang(job))
    until = windows.until(known.standings[job.uid])
    there = room.Room(capacity.Ledger(alone.rows, left.ledger.free), left.quota)
    if known.windows.concern(job.queue) and not known.windows.allow(alone.gang, there, until):
        return None
    taken = there.place(alone.gang)
    return None if taken is None else room.release_after(job.queue, taken, there)


def _is_cheap(known: kept.Kept, turn: order.Turn, herd: victims.Herd, movers: Mask, others: Mask) -> bool:
    """Whether room for the gang's largest pods could be made by moves of `Config.move_share` at most.

    Reckoned from below, node by node: what is missing there for one pod more once `others` have left has to
    be held by who moves. Where that is too much already no search helps, and on a full cluster it mostly is.
    """
    ledger, member = known.free.ledger, turn.gang.members[0]
    most = int(known.config.move_share * turn.gang.share) + np.count_nonzero(
        movers
    )  # shares are rounded down
    without = _freed(ledger, herd, others)
    empty = _freed(ledger, herd, movers | others)
    return any(
        _least_share(ledger, option.row, member.count, without, empty) <= most for option in member.options
    )


def _freed(ledger: capacity.Ledger, herd: victims.Herd, gone: Mask) -> Ints:
    """What is free, `[resource, node]`, once some of a herd have left."""
    flock, free = herd.flock, ledger.free.copy()
    held = gone[flock.owner]
    for row, more in zip(free, flock.amounts[:, held], strict=True):
        np.add.at(row, flock.columns[held], more)
    return free


def _least_share(ledger: capacity.Ledger, row: int, count: int, without: Ints, empty: Ints) -> int:
    """What those who move must hold at least, in ppm of all there is, for `count` pods of a row to fit.

    `capacity.MANY`, more than all, when these do not fit even then.
    """
    fit = functools.partial(_fit, ledger, row)
    now, then = fit(without), fit(empty)
    lacks = count - int(now.sum())
    if lacks <= 0:
        return 0
    if then.sum() < count:
        return capacity.MANY
    more = then > now
    most = 0
    for resource in ledger.rows.amounts[:, row].nonzero()[0].tolist():
        need = int(ledger.rows.amounts[resource, row])
        missing = np.sort(np.clip((now[more] + 1) * need - without[resource, more], 0, need))[:lacks]
        total = int(missing.sum()) + (lacks - len(missing)) * need
        most = max(most, total * gangs.PPM // max(int(ledger.rows.allocatable[resource].sum()), 1))
    return most


def _fit(ledger: capacity.Ledger, row: int, free: Ints) -> Ints:
    """How many pods of a row fit on each node where so much is free."""
    fits = ledger.limit[row]
    for resource in ledger.rows.amounts[:, row].nonzero()[0].tolist():
        fits = np.minimum(fits, free[resource] // ledger.rows.amounts[resource, row])
    most: Ints = np.maximum(fits, 0)
    return most


@dataclass(slots=True)
class Moves:
    """Finds victims of whom some only move. A gang for which that failed is not tried again in the pass.

    Nor are equal ones, which stand behind it in line: they may have others wait, but seldom more. `_homes` is
    the room that those who move by what was found last are to have, `_kept` what is charged of such until the
    step is over. `_most` and `_pieces` are of its beginning: room only becomes less in it.
    """

    known: kept.Kept
    search: searches.Search
    _failed: set[tuple[object, ...]] = field(default_factory=set)
    _placeable: dict[int, bool] = field(default_factory=dict)
    _homes: list[room.Release] = field(default_factory=list)
    _kept: list[room.Release] = field(default_factory=list)
    _most: dict[str, int] | None = None
    _pieces: Ints | None = None

    def find(
        self, turn: order.Turn, who: rights.Candidate, herd: victims.Herd, others: Mask
    ) -> searches.Found | None:
        """Return the victims and where the gang goes; None when that does not help either.

        `others` are the victims whom it may have wait; they need no other place.
        """
        known, config, flock = self.known, self.known.config, herd.flock
        if not may(who, config):
            return None
        key = id(turn.gang), tuple(known.windowed(turn).items())
        if key in self._failed:
            return None
        most = config.move_share * turn.gang.share
        could: Mask = (flock.slack > NO_SLACK) & flock.preemptible & (herd.share <= most)
        found = None
        if could.any():
            known.rouse((known.now // config.move_step + 1) * config.move_step)
            found = self._found(turn, who, herd, others, could)
        if found is None:
            self._failed.add(key)
        return found

    def keep(self) -> None:
        """Keep the room of those who move by what was found last, from whoever else claims in this pass."""
        self.known.free.charge_all(self._homes)
        self._kept += self._homes

    def let_go(self) -> None:
        """Keep it no longer: nothing is claimed any more."""
        self.known.free.release_all(self._kept)

    def _found(
        self, turn: order.Turn, who: rights.Candidate, herd: victims.Herd, others: Mask, could: Mask
    ) -> searches.Found | None:
        config = self.known.config
        if not self._is_enough(turn.job, herd, others):
            return None
        movers = allowed(who, herd, config) & could & ~herd.claimed & ~others
        movers[[i for i in movers.nonzero()[0].tolist() if not self._is_placeable(herd.here[i].job)]] = False
        if not movers.any() or not _is_cheap(self.known, turn, herd, movers, others):
            return None
        losses = functools.partial(herd.losses, who)
        near = self._near(turn, herd, movers | others)
        movers, others = movers & near, others & near
        for _ in range(config.move_tries):
            if not movers.any():
                return None
            found = self.search.run(turn, herd, movers | others, losses, "moves")
            if found is None:
                return None
            moving = sorted((i for i in found[0] if movers[i]), key=lambda i: (-int(herd.share[i]), i))
            if int(herd.share[moving].sum()) > config.move_share * turn.gang.share:
                stuck = moving[:1]
            else:
                stuck = self._stuck(turn, herd, found, moving)
            if not stuck:
                return found
            movers[stuck] = False
        return None

    def _is_enough(self, job: model.Job, herd: victims.Herd, others: Mask) -> bool:
        """Whether what is free in pieces, and what `others` hold, would be enough if it were in one place.

        To move frees nothing, so where it would not be no search helps; on a full cluster most end here.
        """
        ledger = self.known.free.ledger
        if self._pieces is None:
            self._pieces = np.maximum(ledger.free, 0).sum(axis=1)
        there = self._pieces.copy()
        for index in others.nonzero()[0].tolist():
            there += herd.releases[index].amounts.sum(axis=1)
        has = dict(zip(ledger.rows.resources, there.tolist(), strict=True))
        asked = Counter[str]()
        for group in job.groups:
            for name, amount in group.shape.requests:
                asked[name] += amount * group.count
        return all(has.get(name, amount) >= amount for name, amount in asked.items())

    def _near(self, turn: order.Turn, herd: victims.Herd, some: Mask) -> Mask:
        """Which of a herd hold something where a pod of the gang would fit once `some` have left.

        The others are of no use but for quota, and all that a search walks in vain.
        """
        if not some.any() or not self.known.free.quota_fits(turn.gang):
            return some
        left = trials.Trial(self.known, herd, turn.gang).without(some.nonzero()[0])
        fits: Mask = left.ledger.counts.max(axis=0, initial=0) > 0
        return regions.holding(herd, fits)

    def _is_placeable(self, job: model.Job) -> bool:
        """Whether each pod of a job asks for no more than is free on some node: else it cannot move.

        Where little is free that is hardly anybody, and spares most searches.
        """
        found = self._placeable.get(id(job.groups))
        if found is None:
            ledger = self.known.free.ledger
            if self._most is None:
                most = ledger.free.max(axis=1, initial=0).tolist()
                self._most = dict(zip(ledger.rows.resources, most, strict=True))
            asked = (one for group in job.groups for one in group.shape.requests)
            found = all(self._most.get(name, amount) >= amount for name, amount in asked)
            self._placeable[id(job.groups)] = found
        return found

    def _stuck(
        self, turn: order.Turn, herd: victims.Herd, found: searches.Found, moving: list[int]
    ) -> list[int]:
        """Which of `moving`, the largest first, find no place once the gang has started in its own.

        They have none where those who leave for claims under way could start again.
        """
        known = self.known
        left = trials.Trial(known, herd, turn.gang).after(*found)
        for stake in known.going():
            for job in stake.running:
                if known.standings[job.uid].band is model.Band.DEADLINE:
                    _placed(known, left, job)
        taken = {index: _placed(known, left, herd.here[index].job) for index in moving}
        stuck = [index for index, place in taken.items() if place is None]
        if not stuck:
            self._homes = [part for place in taken.values() for part in place or ()]
        return stuck
