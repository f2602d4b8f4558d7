"""Step 3, order: one total order of everybody who waits.

The key of `lst` is (D - (1-a)(o + mid)) / Q in absolute time, mid being the run time that remains: it does
not contain now, so jobs do not change places while time passes; only edits, a new estimate or a change of
band move them. a = 0 is pure least slack, a = 1 is earliest deadline first. `fifo` looks neither at deadlines
nor at lateness.

Queues have no rank among each other. Where two queues share nodes their jobs are merged by these same keys,
which are all times in ms; keys of queues with different orders are compared as they stand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lstqueue.engine import gangs, model, standing
from lstqueue.engine.gangs import PPM

Rank = tuple[int, int, int, int, int, int, str]
"""(-effective tier, band, key, D, -g, submit, uid); the lower goes first, no two are equal."""


@dataclass(slots=True)
class Turn:
    """One waiting job's place in the line.

    Of the jobs of one `lane` only the first may be tried: equal gangs of a queue share a lane, since what
    does not fit once does not fit twice; a strict fifo queue is one lane, since its head blocks the others.
    One that is `observed` is told where it stands, and never starts.
    """

    rank: Rank
    standing: standing.Standing
    gang: gangs.Gang
    lane: str | int
    order: model.Order
    observed: bool

    @property
    def strict(self) -> bool:
        """Whether it holds up everybody behind it in its queue."""
        return self.order is model.Order.FIFO


def policy(queue: model.Queue, config: model.Config) -> model.Order:
    """The order of a queue, unless the configuration sets one for all."""
    return queue.order if config.order is None else config.order


def rank(order: model.Order, here: standing.Standing, share: int, config: model.Config) -> Rank:
    """Place of a job in the order of its queue.

    Args:
        order: The queue's order.
        here: The job as refreshed.
        share: g, its gang's dominant share in ppm; of equals the wider goes first.
        config: For a and Q.
    """
    job = here.job
    if order is model.Order.FIFO:
        return -job.importance, model.Band.DEADLINE, job.submit, 0, 0, job.submit, job.uid
    deadline = standing.NEVER if job.deadline is None else job.deadline
    if here.band is model.Band.REST:
        shortest = standing.NEVER if here.left is None else here.left.mid
        return -tier(here), here.band, shortest, deadline, -share, job.submit, job.uid
    key = deadline
    if order is model.Order.LST and here.left is not None:
        weight = PPM - round(config.overhead_share * PPM)
        latest = deadline - weight * (job.overhead + here.left.mid) // PPM
        key = latest // config.quantum * config.quantum
    return -tier(here), here.band, key, deadline, -share, job.submit, job.uid


def tier(here: standing.Standing) -> int:
    """Effective tier: importance lifts nobody who is late or given up, so that costs what it gave."""
    importance = here.job.importance
    return importance if here.band is model.Band.DEADLINE else min(importance, 0)


def line_up(
    waiting: Iterable[standing.Standing],
    queues: Mapping[str, model.Queue],
    gangs_of: Mapping[str, gangs.Gang],
    config: model.Config,
    ranks: dict[str, tuple[model.Band, Rank]],
) -> list[Turn]:
    """Sort those who wait and may be tried, first to last.

    `ranks` are those found before, by uid and with the band they are for; time alone changes none.
    """
    orders = {name: policy(queue, config) for name, queue in queues.items()}
    turns: list[Turn] = []
    for here in waiting:
        job = here.job
        gang, order = gangs_of[job.uid], orders[job.queue]
        lane = job.queue if order is model.Order.FIFO else id(gang)
        known = ranks.get(job.uid)
        if known is None or known[0] is not here.band:
            known = ranks[job.uid] = here.band, rank(order, here, gang.share, config)
        turns.append(Turn(known[1], here, gang, lane, order, queues[job.queue].observed))
    turns.sort(key=_rank)
    return turns


def keeps_place(line: Sequence[Turn], index: int, deadline: int, now: int, config: model.Config) -> bool:
    """Whether `line[index]` would stay where it is if its deadline were `deadline` (ms since the epoch)."""
    turn = line[index]
    moved = dataclasses.replace(turn.standing.job, deadline=deadline, published=model.Published())
    here = standing.refresh(moved, now, config)
    new = rank(turn.order, here, turn.gang.share, config)
    before = index == 0 or line[index - 1].rank < new
    return before and (index + 1 == len(line) or new < line[index + 1].rank)


def barred(job: model.Job, queues: Mapping[str, model.Queue]) -> model.Code | None:
    """Why a waiting job may not even stand in line; None when it may."""
    if job.state is model.State.HELD_BACK:
        return model.Code.HELD_BACK
    queue = queues.get(job.queue)
    if queue is None:
        return model.Code.QUEUE_NOT_FOUND
    if queue.held or queue.drained:
        return model.Code.QUEUE_HELD
    if queue.max_importance is not None and job.importance > queue.max_importance:
        return model.Code.IMPORTANCE_TOO_HIGH
    return None


def _rank(turn: Turn) -> Rank:
    return turn.rank
