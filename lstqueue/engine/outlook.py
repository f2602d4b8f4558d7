"""Step 7, first half: when each waiting job is expected to start and end.

Three simulations (lo, mid, hi), or one when every estimate is exact. A job's outlook takes the earliest and
the latest of the three: with gangs a shorter run time elsewhere can start a job later.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from lstqueue.engine import estimate, forecast, model, order, room, stakes, standing, windows


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of one job; times in ms since the epoch.

    `start` and `finish` are (earliest, latest), None when no start (no end) can be foreseen; `expected` is
    the finish with expected run times. `feasible` is the earliest deadline that would be LIKELY.
    """

    start: tuple[int, int] | None = None
    finish: tuple[int, int] | None = None
    expected: int | None = None
    feasible: int | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What a forecast starts from: the room after the pass and who holds what in it.

    `line` are those who still wait and could fit, as many as may take part; `placed` those this pass admits,
    `starting` those it admits onto their claims. `claims` go on, `given_up` are over but charged in `free`.
    Whoever is `leaving` is taken to be gone at once, and whoever is `bound` by a reservation (uids) not to
    start before that does (ms since the epoch). `windows` know of everybody who owns room.
    """

    free: room.Room
    jobs: Collection[model.Job]
    release: Callable[[model.Job], room.Release]
    standings: standing.Standings
    line: Sequence[order.Turn]
    placed: Mapping[str, room.Placement]
    starting: Sequence[stakes.Stake]
    claims: Sequence[stakes.Stake]
    given_up: Sequence[stakes.Stake]
    leaving: frozenset[str]
    bound: Mapping[str, int]
    windows: windows.Windows
    now: int
    config: model.Config


def foresee(scene: Scene, asked: frozenset[str]) -> dict[str, Outlook]:
    """Forecast the jobs of the scene's line.

    Args:
        scene: Where things stand.
        asked: Jobs (uids) to answer for; the play stops when all of these are known.

    Returns:
        Outlooks by uid, for every asked job in line.
    """
    turns = scene.line
    wanted = [turn for turn in turns if turn.job.uid in asked]
    ghosts, ghost_of = _ghosts(turns, wanted)
    leaving = ends(scene)
    free = scene.free.copy(rough=True)
    for stake in scene.claims:
        free.charge(stake.rest)
    entrants = [_entrant(turn, scene, asked, ghost_of) for turn in turns]
    stage = forecast.Stage(entrants, ghosts, scene.now)
    rounds = [
        forecast.simulate(
            stage, free.copy(), leaving, which, haunted=which == _HI, opening=scene.windows.copy()
        )
        for which in _needed(scene)
    ]
    last = rounds[-1].ghosts
    seen: dict[str, Outlook] = {}
    for index, turn in enumerate(turns):
        uid = turn.job.uid
        if uid in asked:
            starts = [played.entrants.get(index) for played in rounds]
            seen[uid] = _outlook(scene, index, starts, last.get(ghost_of.get(uid, -1)))
    return seen


def calm(scene: Scene) -> room.Room:
    """The room once everybody has left whose end is known, and nobody has taken their places."""
    free = scene.free.copy()
    for stake in scene.claims:
        free.charge(stake.rest)
    for _, releases in ends(scene):
        free.release_all(releases)
    return free


_LO, _MID, _HI = 0, 1, 2


def _needed(scene: Scene) -> tuple[int, ...]:
    """Quantiles worth playing: with exact estimates all three are the same."""
    for here in scene.standings.bases():
        if here.finish is not None and here.finish.lo != here.finish.hi:
            return _LO, _MID, _HI
    return (_HI,)


End = tuple[estimate.Finish, list[room.Release]]
"""(when by quantile, what becomes free)."""


def ends(scene: Scene) -> list[End]:
    """What becomes free when, of all that holds room or is about to, where that is known."""
    at_once = estimate.Finish(scene.now, scene.now, scene.now)
    found = of_others(scene, (*scene.windows.active, *scene.windows.edges))
    for job in scene.jobs:
        if job.assigned and (job.state is model.State.ENDING or job.uid in scene.leaving):
            found.append((at_once, [scene.release(job)]))
        elif job.assigned and (finish := scene.standings[job.uid].finish) is not None:
            found.append((finish, [scene.release(job)]))
    return found + of_placed(scene)


def of_others(scene: Scene, edges: Sequence[windows.Edge]) -> list[End]:
    """The same of what holds room without running: `edges` of windows, and claims."""
    at_once = estimate.Finish(scene.now, scene.now, scene.now)
    found: list[End] = [*windows.releases(edges, len(scene.free.ledger.rows.resources))]
    found += [(at_once, [stake.charged]) for stake in scene.given_up]
    for stake in (*scene.starting, *scene.claims):
        if stake.here.finish is not None:
            found.append((stake.here.finish, [stake.whole]))
    return found


def of_placed(scene: Scene) -> list[End]:
    """The same of those whom this pass admits."""
    found: list[End] = []
    for uid, taken in scene.placed.items():
        here = scene.standings[uid]
        if here.finish is not None:
            found.append((here.finish, room.release_after(here.job.queue, taken, scene.free)))
    return found


def _entrant(
    turn: order.Turn, scene: Scene, asked: frozenset[str], ghost_of: Mapping[str, int]
) -> forecast.Entrant:
    job, left = turn.job, scene.standings[turn.job.uid].left
    durations = None
    if left is not None:
        durations = (job.overhead + left.lo, job.overhead + left.mid, job.overhead + left.hi)
    ready = max(job.not_before, scene.bound.get(job.uid, 0))
    ghost, deadline = ghost_of.get(job.uid, -1), job.deadline or 0
    return forecast.Entrant(turn.gang, turn.lane, ready, durations, job.uid in asked, ghost, deadline)


def _ghosts(
    turns: Sequence[order.Turn], wanted: Sequence[order.Turn]
) -> tuple[list[forecast.Ghost], dict[str, int]]:
    """One ghost per gang and tier of the jobs whose rank depends on their deadline."""
    ghosts: list[forecast.Ghost] = []
    index_of: dict[tuple[int, int], int] = {}
    ghost_of: dict[str, int] = {}
    for turn in wanted:
        job = turn.job
        if turn.strict or job.deadline is None or job.estimate is None:
            continue
        key = (id(turn.gang), job.importance)
        if key not in index_of:
            bound = (-job.importance, int(model.Band.DEADLINE))
            behind = bisect.bisect_right(turns, bound, key=_segment)
            index_of[key] = len(ghosts)
            ghosts.append(forecast.Ghost(turn.gang, behind))
        ghost_of[job.uid] = index_of[key]
    return ghosts, ghost_of


def _segment(turn: order.Turn) -> tuple[int, int]:
    return turn.rank[:2]


def _outlook(scene: Scene, index: int, starts: list[int | None], ghost: int | None) -> Outlook:
    last = scene.windows.horizon(scene.line[index].gang.queue)
    # After the last window that is known come others that are not.
    known = [start for start in starts if start is not None and (last is None or start < last)]
    job = scene.line[index].job
    run = scene.standings[job.uid].left
    slowest = None if run is None else job.overhead + run.hi
    if last is not None:
        ghost = None  # it runs for no time, so no window is in its way
    feasible = None if ghost is None or slowest is None else ghost + slowest
    if len(known) < len(starts):
        return Outlook(feasible=feasible)
    start = (min(known), max(known))
    if run is None or slowest is None:
        return Outlook(start=start)
    lo, mid, hi = known if len(known) == len(_ALL) else known * len(_ALL)
    ends = (lo + job.overhead + run.lo, mid + job.overhead + run.mid, hi + slowest)
    finish = (min(ends), max(ends))
    if job.deadline is not None and finish[1] <= job.deadline:
        feasible = finish[1]  # a tighter deadline does not worsen its rank
    elif feasible is None or order.keeps_place(scene.line, index, finish[1], scene.now, scene.config):
        feasible = finish[1]
    return Outlook(start, finish, ends[_MID], feasible)


_ALL = (_LO, _MID, _HI)
