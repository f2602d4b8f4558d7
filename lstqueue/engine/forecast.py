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

import functools
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstqueue.engine import gangs, room, windows
from lstqueue.engine.standing import NEVER
from lstqueue.topology.table import Ints

_LACKING = 1 << 50
_PESSIMISTIC = 2
"""By hi the pass judges who would meet a window, whatever quantile is played."""


@dataclass(slots=True)
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


class Stage:
    """What the rounds of one forecast have in common when they begin: the lanes, with who stands in them.

    A *place* orders everybody: 2i + 1 for entrant i, 2k for a ghost behind k entrants. Each lane is a heap of
    (place, index); those of ghosts come last, and `plain` is how many there are without them. Columns over
    the lanes hold what their heads need: `needs[option, lane]` pods of row `rows[option, lane]`.
    """

    def __init__(self, entrants: Sequence[Entrant], ghosts: Sequence[Ghost], now: int) -> None:
        self.entrants, self.ghosts, self.now = entrants, ghosts, now
        self.asked = sum([entrant.asked for entrant in entrants])
        self.wanted = [0] * len(ghosts)
        self.lanes: list[list[tuple[int, int]]] = []
        self.lane_of: dict[object, int] = {}
        self.queues: list[str] = []
        self.backing_off: list[int] = []
        width = 1
        for i, entrant in enumerate(entrants):
            if entrant.ghost >= 0 and ghosts:
                self.wanted[entrant.ghost] += 1
            lane = self._enrol(entrant.lane, entrant.gang)
            width = max(width, len(entrant.gang.members[0].options))
            if entrant.ready > now:
                self.backing_off.append(i)
            else:
                self.lanes[lane].append((2 * i + 1, i))  # they come in order, so this is a heap
        self.plain = len(self.lanes)
        for i, ghost in enumerate(ghosts):
            self.lanes[self._enrol(("ghost", i), ghost.gang)].append((2 * ghost.behind, i))
            width = max(width, len(ghost.gang.members[0].options))
        self.places = np.full(len(self.lanes), NEVER, dtype=np.int64)
        self.rows = np.zeros((width, len(self.lanes)), dtype=np.intp)
        self.needs = np.full((width, len(self.lanes)), _LACKING, dtype=np.int64)
        for number, lane_heap in enumerate(self.lanes):
            if lane_heap:
                place, index = lane_heap[0]
                gang = entrants[index].gang if place % 2 else ghosts[index].gang
                self.places[number] = place
                show(gang, self.rows, self.needs, number)

    def _enrol(self, lane: object, gang: gangs.Gang) -> int:
        index = self.lane_of.setdefault(lane, len(self.lanes))
        if index == len(self.lanes):
            self.lanes.append([])
            self.queues.append(gang.queue)
        return index


def show(gang: gangs.Gang, rows: Ints, needs: Ints, lane: int) -> None:
    """Put the needs of a lane's head where they are compared with what is free."""
    for number, option in enumerate(gang.members[0].options):
        rows[number, lane] = option.row
        needs[number, lane] = gang.members[0].count


def simulate(
    stage: Stage,
    free: room.Room,
    ends: Iterable[tuple[Sequence[int], Sequence[room.Release]]],
    which: int,
    *,
    haunted: bool,
    opening: windows.Windows = windows.NONE,
) -> Starts:
    """Play one quantile forward.

    Args:
        stage: Who waits.
        free: What is free after the pass; it is used up, so give a copy.
        ends: (times in ms by quantile, what becomes free) of everything that holds room and is known to end.
        which: The quantile of all run times, 0 to 2.
        haunted: Whether ghosts take part.
        opening: What windows leave later, of what is held now; it is used up as well.
    """
    play = _Play(stage, free, ends, which, haunted, opening)
    play.run(stage.now)
    return play.starts


class _Play:
    """The state of one simulation: events by time, lanes with their heads, the room."""

    def __init__(
        self,
        stage: Stage,
        free: room.Room,
        ends: Iterable[tuple[Sequence[int], Sequence[room.Release]]],
        which: int,
        haunted: bool,
        opening: windows.Windows,
    ) -> None:
        self.starts = Starts()
        self._which, self._haunted, self._free, self._opening = which, haunted, free, opening
        self._entrants, self._ghosts, self._lane_of = stage.entrants, stage.ghosts, stage.lane_of
        self._missing = stage.asked + (len(stage.ghosts) if haunted else 0)
        self._wanted = stage.wanted.copy()
        lanes = len(stage.lanes) if haunted else stage.plain
        self._lanes = [lane.copy() for lane in stage.lanes[:lanes]]
        self._events: list[tuple[int, int, Sequence[room.Release], int]] = [
            (times[which], number, releases, -1) for number, (times, releases) in enumerate(ends)
        ]
        for index in stage.backing_off:
            self._events.append((stage.entrants[index].ready, len(self._events), (), index))
        self._sequence = len(self._events)
        heapq.heapify(self._events)
        self._places = stage.places[:lanes].copy()
        self._rows, self._needs = stage.rows[:, :lanes].copy(), stage.needs[:, :lanes].copy()
        # Lanes whose head lacks quota: nothing to try before their queue, or its cohort, gets some back.
        self._starved = np.zeros(lanes, dtype=np.bool_)
        self._accounts = free.quota.accounts
        names = [self._accounts[queue] for queue in stage.queues[:lanes]]
        self._of_account = {one: np.array([name == one for name in names]) for one in set(names)}

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
        failed, total = self._starved.copy(), self._free.ledger.total
        started = True
        while started:
            started = False
            enough = total[self._rows[0]] >= self._needs[0]
            for row, needs in zip(self._rows[1:], self._needs[1:], strict=True):
                enough |= total[row] >= needs
            trying = (enough > failed).nonzero()[0]  # who has enough and has not failed
            if len(trying) > 1:
                trying = trying[self._places[trying].argsort()]
            for lane in trying.tolist():
                if started := self._try(lane, time):
                    break  # with less room than before
                failed[lane] = True

    def _head(self, lane: int) -> gangs.Gang:
        place, index = self._lanes[lane][0]
        return self._entrants[index].gang if place % 2 else self._ghosts[index].gang

    def _try(self, lane: int, time: int) -> bool:
        """Start the head of a lane if it fits."""
        place, index = self._lanes[lane][0]
        if not (self._start(index, time) if place % 2 else self._haunt(index, time)):
            self._starved[lane] = not self._free.quota_fits(self._head(lane))
            return False
        heapq.heappop(self._lanes[lane])
        self._show_head(lane)
        return True

    def _start(self, index: int, time: int) -> bool:
        entrant = self._entrants[index]
        taken = self._place(entrant, time)
        if taken is None:
            return False
        self.starts.entrants[index] = time
        self._missing -= entrant.asked
        if entrant.durations is not None:
            end = time + entrant.durations[self._which]
            if self._haunted and entrant.ghost >= 0 and end <= entrant.deadline:
                self._drop(entrant.ghost)
            self._sequence += 1
            releases = room.release_after(entrant.gang.queue, taken, self._free)
            heapq.heappush(self._events, (end, self._sequence, releases, -1))
        return True

    def _place(self, entrant: Entrant, time: int) -> room.Placement | None:
        gang, opening = entrant.gang, self._opening
        if not opening.concern(gang.queue):
            return self._free.place(gang)
        until = None if entrant.durations is None else time + entrant.durations[_PESSIMISTIC]
        opening.begin(time)
        if not opening.allow(gang, self._free, until):
            return None
        return opening.place(gang.queue, until, self._free, functools.partial(self._free.place, gang))

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
        lanes = self._of_account.get(self._accounts.get(release.queue, ""))
        if release.charges and lanes is not None:
            self._starved &= ~lanes

    def _join(self, index: int) -> None:
        heapq.heappush(self._lanes[self._lane_of[self._entrants[index].lane]], (2 * index + 1, index))

    def _show_head(self, lane: int) -> None:
        self._starved[lane] = False
        self._needs[:, lane] = _LACKING
        self._places[lane] = NEVER
        if self._lanes[lane]:
            self._places[lane] = self._lanes[lane][0][0]
            show(self._head(lane), self._rows, self._needs, lane)
