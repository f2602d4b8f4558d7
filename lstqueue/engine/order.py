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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lstqueue.engine import estimate, gangs, model, standing
from lstqueue.engine.gangs import PPM

if TYPE_CHECKING:
    from lstqueue.engine import rights

Rank = tuple[int, int, int, int, int, int, str]
"""(-effective tier, band, key, D, -g, submit, uid); the lower goes first, no two are equal."""


@dataclass(slots=True)
class Turn:
    """One waiting job's place in the line. Kept between passes, so it says nothing that time changes.

    `asks_from` is when the job may have others suspended (ms since the epoch), None: never as it stands;
    `who` it is then, where its place does not decide.

    Of the jobs of one `lane` only the first may be tried: equal gangs of a queue share a lane, since what
    does not fit once does not fit twice; a strict fifo queue is one lane, since its head blocks the others.
    One that is `observed` is told where it stands, and never starts.
    """

    rank: Rank
    job: model.Job
    gang: gangs.Gang
    lane: str | int
    order: model.Order
    observed: bool
    strict: bool
    """Whether it holds up everybody behind it in its queue."""
    plain: bool
    """Whether it is tried unless it backs off: its queue lists what it asks for, and starts somebody."""
    asks_from: int | None
    who: rights.Candidate | None
    timely: bool
    """Whether it is of band DEADLINE, and its deadline can hold."""


def moved(turn: Turn, rank: Rank) -> Turn:
    """The same job elsewhere in line."""
    return dataclasses.replace(turn, rank=rank)


def given_up(turn: Turn, here: standing.Standing, config: model.Config) -> Turn:
    """The same job in band SHED, where `here` has it."""
    place = rank(turn.order, here, turn.gang.share, config)
    who = None if turn.who is None else turn.who._replace(band=here.band, tier=tier(here))
    return dataclasses.replace(turn, rank=place, who=who, timely=False)


def policy(queue: model.Queue, config: model.Config) -> model.Order:
    """The order of a queue, unless the configuration sets one for all."""
    return queue.order if config.order is None else config.order


def is_strict(order: model.Order, config: model.Config) -> bool:
    """Whether a job that lacks room holds up all of its queue."""
    strict = config.switches.strict
    return order is model.Order.FIFO if strict is None else strict


def rank(
    order: model.Order,
    here: standing.Standing,
    share: int,
    config: model.Config,
    *,
    running_at: int | None = None,
) -> Rank:
    """Place of a job in the order of its queue.

    Args:
        order: The queue's order.
        here: The job as refreshed.
        share: g, its gang's dominant share in ppm; of equals the wider goes first.
        config: For a and Q.
        running_at: Of a job that runs, the time (ms since the epoch) at which it is asked where it would
            stand; only then does what it does depend on time.
    """
    job = here.job
    if (blind := _blind(order, here, share, config, running_at)) is not None:
        return -job.importance, model.Band.DEADLINE, blind, 0, 0, job.submit, job.uid
    deadline = standing.NEVER if job.deadline is None else job.deadline
    if here.band is model.Band.REST:
        return (
            -tier(here),
            here.band,
            _shortest(here, config, running_at),
            deadline,
            -share,
            job.submit,
            job.uid,
        )
    key = deadline
    if order is model.Order.LST and here.left is not None:
        weight = PPM - round(config.overhead_share * PPM)
        latest = deadline - weight * _before(here, config, running_at) // PPM
        key = latest // config.quantum * config.quantum
    if is_urgent(here, config):
        key = int(running_at is None)  # of two that are urgent the one that runs goes on
    return -tier(here), here.band, key, deadline, -share, job.submit, job.uid


def end_of_tier(place: Rank) -> Rank:
    """The place behind everybody of the tier that a place belongs to."""
    return place[0], model.Band.REST + 1, 0, 0, 0, 0, ""


def is_urgent(here: standing.Standing, config: model.Config) -> bool:
    """Whether a job goes before all others since its slack is gone, and it could still be in time."""
    urgent = config.switches.urgent
    return urgent is not None and here.slack is not None and here.slack <= urgent and not here.hopeless


def _before(here: standing.Standing, config: model.Config, running_at: int | None) -> int:
    """The time in ms that a job has before it, its launch included; 0 where that is unknown.

    Where the order alone says who is suspended the launch is left out, and a gang that is still starting has
    all of its work before it: else two jobs that are nearly alike suspend each other in every pass, each
    ahead while it waits and behind while it starts, and neither ever works.
    """
    if running_at is not None:
        if here.finish is None:
            return 0
        return max(0, here.finish.mid - max(running_at, estimate.start(here.job)))
    launch = 0 if config.switches.by_rank else here.job.overhead
    return launch + (0 if here.left is None else here.left.mid)


def _shortest(here: standing.Standing, config: model.Config, running_at: int | None) -> int:
    """The key of the rest: the work in ms that a job has before it, without its launch."""
    if here.left is None:
        return standing.NEVER
    return here.left.mid if running_at is None else _before(here, config, running_at)


def _blind(
    order: model.Order, here: standing.Standing, share: int, config: model.Config, running_at: int | None
) -> int | None:
    """The key of orders that look neither at deadlines nor at lateness; None of the others."""
    job = here.job
    if order is model.Order.FIFO:
        return job.submit
    if order is model.Order.SJF:
        return standing.NEVER if here.left is None else _before(here, config, running_at)
    if order is model.Order.SERVICE:
        running = job.state is model.State.RUNNING and running_at is not None
        ran = max(0, (running_at or 0) - job.since) if running else 0
        return int(share * (job.served + ran) >= config.switches.service_step * PPM)
    return None


def tier(here: standing.Standing) -> int:
    """Effective tier: importance lifts nobody who is late or given up, so that costs what it gave."""
    importance = here.job.importance
    return importance if here.band is model.Band.DEADLINE else min(importance, 0)


def keeps_place(line: Sequence[Turn], index: int, deadline: int, now: int, config: model.Config) -> bool:
    """Whether `line[index]` would stay where it is if its deadline were `deadline` (ms since the epoch)."""
    turn = line[index]
    moved = dataclasses.replace(turn.job, deadline=deadline, published=model.Published())
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
    if queue.conflict:
        return model.Code.QUEUE_CONFLICT
    if queue.held or queue.drained:
        return model.Code.QUEUE_HELD
    if queue.max_importance is not None and job.importance > queue.max_importance:
        return model.Code.IMPORTANCE_TOO_HIGH
    return None
