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
from dataclasses import dataclass, field

import numpy as np

from lstqueue.engine import kept, model, order, regions, rights, room, searches, trials, victims, windows
from lstqueue.topology import capacity
from lstqueue.topology.table import Ints, Mask


def may(who: rights.Candidate, config: model.Config) -> bool:
    """Whether somebody may be moved for a job that may have others suspended."""
    ranks = who.rank is None and who.band is model.Band.DEADLINE
    return config.moving and ranks and who.mid >= config.move_least


def allowed(who: rights.Candidate, herd: victims.Herd, config: model.Config) -> Mask:
    """Which of a herd may be asked to move for a job, be they claimed already."""
    if not may(who, config):
        return herd.nobody
    mask: Mask = herd.movers & ~herd.taken & ~herd.displaced(who)
    return mask


@dataclass(slots=True)
class Moves:
    """Finds victims of whom some only move. A gang for which that failed is not tried again in the pass.

    Nor are equal ones, which stand behind it in line: they may have others wait, but seldom more.
    """

    known: kept.Kept
    search: searches.Search
    _failed: set[tuple[object, ...]] = field(default_factory=set)
    _placeable: dict[int, bool] = field(default_factory=dict)
    _most: Ints | None = None
    _pieces: Ints | None = None
    _tries: int = 0

    def find(
        self, turn: order.Turn, who: rights.Candidate, herd: victims.Herd, harmed: Mask
    ) -> searches.Found | None:
        """Return the victims and where the gang goes; None when that does not help either.

        `harmed` are the victims whom it may have wait; they need no other place.
        """
        config = self.known.config
        if not may(who, config):
            return None
        self.known.rouse((self.known.now // config.move_step + 1) * config.move_step)
        key = id(turn.gang), tuple(self._windows(turn).items())
        if key in self._failed:
            return None
        if not self._is_enough(turn.job, herd, harmed):
            self._failed.add(key)
            return None
        most = config.move_share * turn.gang.share
        movers = allowed(who, herd, config) & ~herd.claimed & ~harmed & (herd.share <= most)
        movers[[i for i in movers.nonzero()[0].tolist() if not self._is_placeable(herd, i)]] = False
        losses = functools.partial(herd.losses, who)
        near = self._near(turn, herd, movers | harmed)
        movers, harmed = movers & near, harmed & near
        while self._tries < config.move_tries and movers.any():
            self._tries += 1
            found = self.search.run(turn, herd, movers | harmed, losses, "moves")
            if found is None:
                break
            moving = sorted((i for i in found[0] if movers[i]), key=lambda i: (-int(herd.share[i]), i))
            if int(herd.share[moving].sum()) > most:
                stuck = moving[:1]
            else:
                stuck = self._stuck(turn, herd, found, moving)
            if not stuck:
                return found
            movers[stuck] = False
        self._failed.add(key)
        return None

    def _windows(self, turn: order.Turn) -> dict[int, int]:
        known = self.known
        return dict(known.windows.least(turn.gang.queue, known.until(turn)))

    def _is_enough(self, job: model.Job, herd: victims.Herd, harmed: Mask) -> bool:
        """Whether what is free in pieces, and what `harmed` hold, would be enough if it were in one place.

        To move frees nothing, so where it would not be no search helps; on a full cluster most end here.
        """
        ledger = self.known.free.ledger
        if self._pieces is None:
            self._pieces = np.maximum(ledger.free, 0).sum(axis=1)
        there = self._pieces.copy()
        for index in harmed.nonzero()[0].tolist():
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

    def _is_placeable(self, herd: victims.Herd, index: int) -> bool:
        """Whether one of a herd holds no more on any node than is free on some node: else it cannot move.

        Where little is free that is hardly anybody, and spares most searches.
        """
        held = herd.releases[index].amounts
        found = self._placeable.get(id(held))
        if found is None:
            if self._most is None:
                self._most = self.known.free.ledger.free.max(axis=1, initial=0)[:, None]
            found = self._placeable[id(held)] = bool((held <= self._most).all())
        return found

    def _stuck(
        self, turn: order.Turn, herd: victims.Herd, found: searches.Found, moving: list[int]
    ) -> list[int]:
        """Which of `moving`, the largest first, find no place once the gang has started in its own."""
        known, queue = self.known, turn.gang.queue
        left = trials.Trial(known, herd, turn.gang).after(*found)
        stuck: list[int] = []
        for index in moving:
            job = herd.here[index].job
            alone = known.world.alone(known.world.gang(job))
            until = windows.until(herd.here[index])
            there = room.Room(capacity.Ledger(alone.rows, left.ledger.free), left.quota)
            taken = None if known.windows.least(queue, until) else there.place(alone.gang)
            if taken is None:
                stuck.append(index)
        return stuck
