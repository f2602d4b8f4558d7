"""Step 4 on an interconnect: whether a gang that fits now waits for a better domain instead.

A gang that prefers a level, and would be spread over several domains of it now, waits for one that holds it
when that is foreseen, its slack allows it and it is worth it: it would be done sooner, or only so in time. Of
a job of which nobody says how much it communicates, waiting is worth it as long as its user said it may wait.
Else it takes what there is (docs/engine.md, On an interconnect). Slurm's `--switches=count@time` has the same
cap, and looks at neither slack nor forecast.

Nothing is kept for who waits: those behind it go on.
"""

from __future__ import annotations

import bisect
from typing import NamedTuple

from lstqueue.engine import departures, gangs, kept, model, order, preempt, room, siting
from lstqueue.topology import slowdown


class Offer(NamedTuple):
    """When (ms since the epoch) a job would be done if it started `at` some time, and that time."""

    at: int
    done: int


class Relaxing:
    """Decides for the jobs of one pass."""

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._departures: departures.Departures | None = None

    def until(self, turn: order.Turn, free: room.Room) -> int | None:
        """Until when a job waits for a better domain, in ms since the epoch; None: it takes what there is."""
        near = self._known.world.near(turn.gang)
        if near is None or turn.strict or not self._known.config.relaxes or self._over(turn.job):
            return None
        if not free.could_place(turn.gang) or free.could_place(near):
            return None
        now = self._offer(turn, free.copy(), turn.gang, self._known.now)
        better = self._better(turn, free, near)
        if now is None or better is None or not self._worth(turn, now, better):
            return None
        return better.at

    def _over(self, job: model.Job) -> bool:
        """Whether a job may wait no more, or for no reason that anybody told."""
        asked = job.locality
        if asked.max_wait is None:
            return not asked.communication
        return self._known.now >= job.submit + asked.max_wait

    def _better(self, turn: order.Turn, free: room.Room, near: gangs.Gang) -> Offer | None:
        """When one domain holds the gang first, if nobody else starts; None: nobody can tell."""
        alone = self._known.world.alone(near)
        ends, there = self._ends(), free.alone(alone)
        there.charge_all([stake.rest for stake in self._known.going()])
        first = ends.first(there, lambda then: then.could_place(alone.gang))
        if first is None or not first[0]:
            return None
        return self._offer(turn, first[1], alone.gang, max(ends.times[first[0] - 1], self._known.now + 1))

    def _ends(self) -> departures.Departures:
        """What becomes free when, at the latest; who leaves already is gone within its grace."""
        if self._departures is None:
            known = self._known
            leaving = preempt.leaving(known)
            found = known.world.leavers.read(known.lasting, [job.uid for job in leaving])
            for job in leaving:
                at = known.now + job.grace
                found.insert(bisect.bisect_right(found.times, at), (at, [known.world.release(job)]))
            self._departures = found
        return self._departures

    def _offer(self, turn: order.Turn, then: room.Room, gang: gangs.Gang, at: int) -> Offer | None:
        """What comes of a start in a room that is used up."""
        taken, here, stage = then.place(gang), self._known.here(turn), self._known.world.stage
        if taken is None:
            return None
        placed = room.by_group(taken, self._known.nodes)
        groups = [placed[index] for index in range(len(here.job.groups))]
        runs = 0 if here.left is None else here.left.mid
        slower = siting.slowdown_of(stage, here.job, groups)
        return Offer(at, at + here.job.overhead + slowdown.stretched(runs, slower))

    def _worth(self, turn: order.Turn, now: Offer, better: Offer) -> bool:
        """Whether a job waits; has a pass look again when time alone could make it take what there is."""
        known, job = self._known, turn.job
        edges: list[int] = []
        if job.locality.max_wait is not None:
            edges.append(job.submit + job.locality.max_wait - better.at)
        late_now = False
        if self._known.here(turn).slack is not None and job.deadline is not None:
            late_now = now.done > job.deadline
            edges.append(job.deadline - known.config.pressing - better.done)
        if any(edge < 0 for edge in edges):
            return False
        sooner = not job.locality.communication or better.done <= now.done
        if not (sooner or late_now):
            return False
        # When those who leave will have left is a time that moves with the clock.
        for edge in edges:
            known.rouse(known.now + edge + 1)
        if job.locality.max_wait is not None:
            known.rouse(job.submit + job.locality.max_wait)
        return True
