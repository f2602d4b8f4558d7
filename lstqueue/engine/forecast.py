"""The forecast: play today's order forward, without preemption, and note when each waiting job starts.

A list simulation for one quantile of run times: jobs that run end as their estimate says, at every end the
waiting are tried in today's order with the same whole-gang fit the pass uses, and whoever fits starts. Strict
fifo queues stay strict. Jobs without an estimate never end, so what waits for their room has no start. Pods
of jobs that are ending are taken to be gone at once; nodes that are not ready stay so; foreign pods stay.

Bounded: at most `Config.forecast_depth` waiting jobs take part, so there are at most (jobs that hold room +
depth) events, each one recount of the nodes it touches and one comparison over the lanes. Once everybody
asked about has started the rest is not played.

*Ghosts* answer "which deadline would hold": a ghost takes no room, stands behind everybody of the deadline
band of its tier, and notes the first moment at which its gang would have fit there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstqueue.engine import gangs, room

NEVER = 1 << 62
_LACKING = 1 << 50


@dataclass(frozen=True, slots=True)
class Entrant:
    """A waiting job in the simulation, in the order of the sequence it comes in.

    `ready` is when its back-off ends, `durations` launch cost and run time in ms by quantile, None when not
    known; `asked` says that the simulation must go on until it starts. `ghost` is the index of the ghost to
    ask for a better deadline if this one ends after its own `deadline`; -1: none.
    """

    gang: gangs.Gang
    lane: str | int
    ready: int
    durations: tuple[int, int, int] | None
    asked: bool
    ghost: int = -1
    deadline: int = 0


@dataclass(frozen=True, slots=True)
class Ghost:
    """A hypothetical job behind the first `behind` entrants; dropped when all who refer to it end in time."""

    gang: gangs.Gang
    behind: int


@dataclass(slots=True)
class Starts:
    """When entrants and ghosts start, by their index; who is missing does not start."""

    entrants: dict[int, int] = field(default_factory=dict)
    ghosts: dict[int, int] = field(default_factory=dict)


def simulate(
    free: room.Room,
    ends: Iterable[tuple[int, Sequence[room.Release]]],
    entrants: Sequence[Entrant],
    ghosts: Sequence[Ghost],
    now: int,
    which: int,
) -> Starts:
    """Play one quantile forward from `now`.

    Args:
        free: What is free after the pass; it is used up, so give a copy.
        ends: (time in ms, what becomes free) of everything that holds room and is known to end.
        entrants: Those who wait, first to last.
        ghosts: Hypothetical jobs.
        now: ms since the epoch.
        which: The quantile of the entrants' run times, 0 to 2.
    """
    play = _Play(free, ends, entrants, ghosts, now, which)
    play.run(now)
    return play.starts


class _Play:
    """The state of one simulation: events by time, lanes with their heads, the room.

    A *place* orders everybody: 2i + 1 for entrant i, 2k for a ghost behind k entrants. Each lane is a heap of
    places; columns over the lanes hold what their heads need, so that one comparison finds all that may fit.
    """

    def __init__(
        self,
        free: room.Room,
        ends: Iterable[tuple[int, Sequence[room.Release]]],
        entrants: Sequence[Entrant],
        ghosts: Sequence[Ghost],
        now: int,
        which: int,
    ) -> None:
        self.starts = Starts()
        self._which = which
        self._free, self._entrants, self._ghosts = free, entrants, ghosts
        self._missing = sum(entrant.asked for entrant in entrants) + len(ghosts)
        self._wanted = [0] * len(ghosts)
        for entrant in entrants:
            if ghosts and entrant.ghost >= 0:
                self._wanted[entrant.ghost] += 1
        self._events: list[tuple[int, int, Sequence[room.Release], int]] = []
        for time, releases in ends:
            self._events.append((time, len(self._events), releases, -1))
        self._lanes: list[list[tuple[int, int]]] = []
        self._lane_of: dict[object, int] = {}
        queues: list[str] = []
        for i, entrant in enumerate(entrants):
            self._enrol(entrant.lane, entrant.gang, queues)
            if entrant.ready > now:
                self._events.append((entrant.ready, len(self._events), (), i))
            else:
                self._join(i)
        for i, ghost in enumerate(ghosts):
            lane = self._enrol(("ghost", i), ghost.gang, queues)
            heapq.heappush(self._lanes[lane], (2 * ghost.behind, i))
        self._sequence = len(self._events)
        heapq.heapify(self._events)
        gangs_here = [entrant.gang for entrant in entrants] + [ghost.gang for ghost in ghosts]
        width = max((len(gang.members[0].options) for gang in gangs_here), default=1)
        size = (len(self._lanes), max(width, 1))
        self._places = np.full(size[0], NEVER, dtype=np.int64)
        self._rows = np.zeros(size, dtype=np.intp)
        self._needs = np.full(size, _LACKING, dtype=np.int64)
        # Lanes whose head lacks quota: nothing to try before their queue gets some back.
        self._starved = np.zeros(size[0], dtype=np.bool_)
        self._of_queue = {queue: np.array([name == queue for name in queues]) for queue in set(queues)}
        for lane in range(size[0]):
            self._show_head(lane)

    def run(self, now: int) -> None:
        """Go from event to event until nobody asked about is missing or nothing more happens."""
        time = now
        events = self._events
        while True:
            while events and events[0][0] <= time:
                _, _, releases, joining = heapq.heappop(events)
                for release in releases:
                    self._release(release)
                if joining >= 0:
                    self._join(joining)
                    self._show_head(self._lane_of[self._entrants[joining].lane])
            self._scan(time)
            if self._missing == 0 or not events:
                return
            time = events[0][0]

    def _scan(self, time: int) -> None:
        """Start, in order, everybody who fits now. Room only shrinks here, so who failed stays failed."""
        failed = self._starved.copy()
        while True:
            options = self._free.ledger.total[self._rows] >= self._needs
            enough = np.logical_or.reduce(options, axis=1) & ~failed
            candidates = enough.nonzero()[0]
            if not len(candidates):
                return
            lane = int(candidates[self._places[candidates].argmin()])
            place, index = self._lanes[lane][0]
            gang = self._entrants[index].gang if place % 2 else self._ghosts[index].gang
            if self._start(index, time) if place % 2 else self._haunt(index, time):
                heapq.heappop(self._lanes[lane])
                self._show_head(lane)
                continue
            failed[lane] = True
            self._starved[lane] = not self._free.quota_fits(gang)

    def _start(self, index: int, time: int) -> bool:
        entrant = self._entrants[index]
        taken = self._free.place(entrant.gang)
        if taken is None:
            return False
        self.starts.entrants[index] = time
        self._missing -= entrant.asked
        if entrant.durations is not None:
            end = time + entrant.durations[self._which]
            if self._ghosts and entrant.ghost >= 0 and end <= entrant.deadline:
                self._drop(entrant.ghost)
            self._sequence += 1
            releases = room.release_after(entrant.gang.queue, taken, self._free)
            heapq.heappush(self._events, (end, self._sequence, releases, -1))
        return True

    def _drop(self, ghost: int) -> None:
        """One less who needs a ghost's answer; without any it disappears."""
        self._wanted[ghost] -= 1
        lane = self._lane_of["ghost", ghost]
        if self._wanted[ghost] == 0 and self._lanes[lane]:
            self._lanes[lane].clear()
            self._show_head(lane)
            self._missing -= 1

    def _haunt(self, index: int, time: int) -> bool:
        if not self._free.could_place(self._ghosts[index].gang):
            return False
        self.starts.ghosts[index] = time
        self._missing -= 1
        return True

    def _release(self, release: room.Release) -> None:
        self._free.release(release)
        if release.charges and (lanes := self._of_queue.get(release.queue)) is not None:
            self._starved &= ~lanes

    def _enrol(self, lane: object, gang: gangs.Gang, queues: list[str]) -> int:
        index = self._lane_of.setdefault(lane, len(self._lanes))
        if index == len(self._lanes):
            self._lanes.append([])
            queues.append(gang.queue)
        return index

    def _join(self, index: int) -> None:
        heapq.heappush(self._lanes[self._lane_of[self._entrants[index].lane]], (2 * index + 1, index))

    def _show_head(self, lane: int) -> None:
        """Put the place and the needs of a lane's head where `_scan` compares them with what is free."""
        self._starved[lane] = False
        self._needs[lane] = _LACKING
        self._places[lane] = NEVER
        if not self._lanes[lane]:
            return
        place, index = self._lanes[lane][0]
        self._places[lane] = place
        gang = self._entrants[index].gang if place % 2 else self._ghosts[index].gang
        for column, option in enumerate(gang.members[0].options):
            self._rows[lane, column] = option.row
            self._needs[lane, column] = gang.members[0].count
