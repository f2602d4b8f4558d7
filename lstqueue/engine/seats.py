"""How an owner stands to its slot, as far as time changes nothing about it: kept until the job is another.

Nothing of a pass is looked at here, so that the many slots that stand cost a pass next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lstqueue.engine import estimate, model, standing
from lstqueue.topology import slowdown


@dataclass(frozen=True, slots=True)
class Seat:
    """Whether the owner of a slot has room (`placed`), and all of it in the slot (`there`).

    It is `evictable` and `due` as the functions say; `whole` is a slot for all groups of the job.
    """

    placed: bool
    there: bool
    evictable: bool
    due: int
    whole: bool


def of(job: model.Job, slot: model.Slot, queue: model.Queue | None, config: model.Config) -> Seat:
    """How a job of a queue, None for one that is gone, stands to a slot."""
    placed = estimate.is_placed(job)
    there = placed and in_place(job, slot)
    return Seat(placed, there, evictable(job, queue, config), due(job, slot, config), _whole(job, slot))


def evictable(job: model.Job, queue: model.Queue | None, config: model.Config) -> bool:
    """Whether a job of a queue can be told to leave for a slot of whomever, and does so in time."""
    allowed = queue is None or queue.preemption is not model.Preemption.NEVER
    return allowed and job.movable and job.grace <= config.slot_grace


def ends(here: standing.Standing, now: int, config: model.Config) -> int | None:
    """When a job ends at the latest that has room or is given it now, in ms since the epoch; None: unknown.

    How long its pods take to start is not known before they have: until then the margin is added for it. And
    an end is known late: until a grace after it a job that is still there is taken to have ended, not to run
    longer than it was thought to, or it would seem to be in the way of whoever comes right behind it.
    """
    if here.finish is None:
        return None
    if estimate.is_placed(here.job) and now <= outrun(here, config):
        return outrun(here, config) - config.slot_grace
    return here.finish.hi + _launch(here.job, config)


def outrun(here: standing.Standing, config: model.Config) -> int:
    """Until when (ms since the epoch) one that owns room may still be thought to end as it was to at most."""
    whole = 0 if here.left is None else slowdown.stretched(here.left.hi, here.job.slowdown)
    return estimate.start(here.job) + _launch(here.job, config) + whole + config.slot_grace


def _launch(job: model.Job, config: model.Config) -> int:
    return 0 if job.state is model.State.RUNNING else config.launch_margin


def due(job: model.Job, slot: model.Slot, config: model.Config) -> int:
    """From when on (ms since the epoch) the owner of a slot stays in it, or leaves for it."""
    return slot.start - config.slot_grace - job.grace


def in_place(job: model.Job, slot: model.Slot) -> bool:
    """Whether a job that owns room has all of it in its slot."""
    places = [(place.pool, dict(place.nodes)) for place in slot.groups]
    for part in job.assigned:
        if part.group >= len(places):
            return False
        pool, nodes = places[part.group]
        if part.pool != pool or part.bound + part.held > nodes.get(part.node, 0):
            return False
    return True


def _whole(job: model.Job, slot: model.Slot) -> bool:
    if len(slot.groups) != len(job.groups):
        return False
    sums = [sum(count for _, count in place.nodes) for place in slot.groups]
    return sums == [group.count for group in job.groups]
