"""Who stands where, kept between passes: the standings of all who are not ending, in the order of uids.

Most standings outlast many passes, so a pass asks only about jobs that are new or another, and about those
whose time has come (`standing.Lasting.until`), and copies the rest. It decides nothing.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Mapping

from lstqueue.engine import model, standing

SPARE = 64
"""Alarms that may be left over besides four times as many as there are jobs."""


class Roster:
    """`waiting` are the uids of those that own no room, `placed` of those that do, both in order.

    `resting` are those of `placed` in band REST.
    `fresh` gathers whose standing was found out anew; whoever reads it takes out what they have seen to.
    """

    def __init__(self, config: model.Config) -> None:
        self.waiting: list[str] = []
        self.placed: list[str] = []
        self.resting: set[str] = set()
        self.fresh: set[str] = set()
        self._config = config
        self._now = -standing.NEVER
        self._lasting: dict[str, standing.Lasting] = {}
        self._sorted = True
        self._open: set[str] = set()
        self._ends = _Alarms()
        self._wakes = _Alarms()

    def change(self, uid: str) -> None:
        """Note that a job that is not ending is new or another."""
        self._open.add(uid)

    def drop(self, uid: str) -> None:
        """Take out a job that is gone or ending."""
        self._open.discard(uid)
        self.fresh.discard(uid)
        if (one := self._lasting.pop(uid, None)) is not None:
            self.resting.discard(uid)
            self._leave(uid, one)

    def refresh(self, jobs: Mapping[str, model.Job], now: int) -> list[str]:
        """Find out what is not known any more at `now` (ms since the epoch); return of whom that was."""
        if now < self._now:
            self._open.update(self._lasting)  # the clock went back
        self._now = now
        for one in self._ends.due(now):
            if self._lasting.get(one.here.job.uid) is one:
                self._open.add(one.here.job.uid)
        found = sorted(self._open)
        self._open.clear()
        for uid in found:
            self._put(uid, standing.lasting(jobs[uid], now, self._config))
        self.fresh.update(found)
        if not self._sorted:
            self._lasting = dict(sorted(self._lasting.items()))
            self._sorted = True
        self._ends.tidy(self._lasting)
        self._wakes.tidy(self._lasting)
        return found

    def find(self, uid: str) -> standing.Lasting | None:
        """The standing of one job with how long it lasts; None of one that ends, or is unknown."""
        return self._lasting.get(uid)

    def lasting(self) -> dict[str, standing.Lasting]:
        """Everybody's standing with how long it lasts; the caller's own."""
        return self._lasting.copy()

    def wake(self) -> int:
        """When time alone makes a difference to somebody's standing first, in ms since the epoch."""
        return self._wakes.first(self._lasting)

    def _put(self, uid: str, one: standing.Lasting) -> None:
        before = self._lasting.get(uid)
        if before is None and self._lasting and uid < next(reversed(self._lasting)):
            self._sorted = False
        self._lasting[uid] = one
        if before is None or before.placed is not one.placed:
            if before is not None:
                self._leave(uid, before)
            bisect.insort(self.placed if one.placed else self.waiting, uid)
        rests = one.placed and one.here.band is model.Band.REST
        (self.resting.add if rests else self.resting.discard)(uid)
        self._ends.set(one.until, one)
        self._wakes.set(one.wake, one)

    def _leave(self, uid: str, one: standing.Lasting) -> None:
        uids = self.placed if one.placed else self.waiting
        del uids[bisect.bisect_left(uids, uid)]


class _Alarms:
    """Times at which standings end or matter; those of standings that are no more are passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, standing.Lasting]] = []
        self._set = 0

    def set(self, time: int, one: standing.Lasting) -> None:
        """Add one."""
        if time < standing.NEVER:
            self._set += 1
            heapq.heappush(self._heap, (time, self._set, one))

    def due(self, now: int) -> list[standing.Lasting]:
        """Take out those whose time has come."""
        found: list[standing.Lasting] = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap)[2])
        return found

    def first(self, known: Mapping[str, standing.Lasting]) -> int:
        """The earliest time of a standing that is known still; NEVER for none."""
        heap = self._heap
        while heap and known.get(heap[0][2].here.job.uid) is not heap[0][2]:
            heapq.heappop(heap)
        return heap[0][0] if heap else standing.NEVER

    def tidy(self, known: Mapping[str, standing.Lasting]) -> None:
        """Drop what is passed over once it is most of all."""
        if len(self._heap) > 4 * len(known) + SPARE:
            self._heap = [alarm for alarm in self._heap if known.get(alarm[2].here.job.uid) is alarm[2]]
            heapq.heapify(self._heap)
