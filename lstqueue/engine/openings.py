"""Where there may be a slot for a job: beside all that is owed, or where it is already.

A slot is looked for as late as it can be: it is an insurance, no schedule, and whoever has one is started by
the order like everybody else. Nothing is promised here; `promises` does that for those who have no slot, and
`renewal` for those whose slot cannot stay.
"""

from __future__ import annotations

from lstqueue.engine import (
    calendar,
    estimate,
    gangs,
    kept,
    model,
    room,
    seats,
    siting,
    slots,
    standing,
)
from lstqueue.topology import slowdown

SLOWER = 3
"""Slots tried for one job, each as long as it would take in the place of the one before."""


def needed(here: standing.Standing, now: int, config: model.Config) -> int:
    """The most run time (ms, on the best place) that a job would have before it, were it suspended now.

    Its end is known late, so it is no more than it was for a moment after it should be over.
    """
    job = here.job
    if here.left is None or here.finish is None or not estimate.is_placed(job):
        return 0 if here.left is None else here.left.hi
    begin = estimate.start(job)
    outrun = slowdown.shrunk(here.finish.hi - begin, job.slowdown)
    whole = here.left.hi if now <= seats.outrun(here, config) else outrun
    run = max(0, now - job.since) if job.state is model.State.RUNNING else 0
    kept = run // job.checkpoint * job.checkpoint if job.checkpoint else 0
    saved = slowdown.shrunk(run if job.saves_on_suspend else kept, job.slowdown)
    return max(whole - saved, min(here.left.hi, estimate.LEAST))


def latest(
    known: kept.Kept, job: model.Job, gang: gangs.Gang, hi: int, *, lead: int
) -> tuple[model.Slot, room.Release] | None:
    """The latest slot that there is for a job, beside all that is owed."""
    firm, earliest, slower = firm_gang(known, job, gang), earliest_begin(known, job, lead=lead), slowdown.PPM
    for _ in range(SLOWER):
        length = length_of(known, job, slowdown.stretched(hi, slower))
        if firm is None or earliest + length > (end := latest_end(known, job)):
            return None
        found = slots.owing(known).latest(
            known.world.alone(firm), known.free.quota, length=length, earliest=earliest, end=end
        )
        if found is None:
            return None
        start, taken = found
        placed = room.by_group(taken, known.nodes)
        groups = tuple(placed[index] for index in range(len(job.groups)))
        there = siting.slowdown_of(known.world.stage, job, groups)
        if there <= slower:
            return model.Slot(groups, start, start + length, hi), known.world.place(job, groups)
        slower = there  # it takes longer there, so the slot is to be longer, and may be elsewhere
    return None


def firm_gang(known: kept.Kept, job: model.Job, gang: gangs.Gang) -> gangs.Gang | None:
    """Where there may be slots for a job: a gang without spot pools; None: nowhere.

    One that could not leave a spot pool for its slot in time, should it be started there, has none either.
    """
    if gang.unlisted is not None:
        return None
    firm = known.world.firm(gang)
    return firm if firm is gang or known.world.evictable(job) else None


def length_of(known: kept.Kept, job: model.Job, hi: int) -> int:
    """How long a slot is: time for others to leave once more, for a launch and a restore, and the run."""
    config = known.config
    return config.slot_grace + config.launch_margin + max(job.overhead, job.restore) + hi


def earliest_begin(known: kept.Kept, job: model.Job, *, lead: int) -> int:
    """When a slot may begin: once others could be told to leave it, and `lead` ms later."""
    return known.now + lead + 2 * known.config.slot_grace + job.grace


def latest_end(known: kept.Kept, job: model.Job) -> int:
    """By when a slot has to end, in ms since the epoch: the deadline, while windows are known."""
    return min(standing.NEVER if job.deadline is None else job.deadline, known_until(known, job))


def known_until(known: kept.Kept, job: model.Job) -> int:
    """Until when (ms since the epoch) the windows of a queue, or of its cohort, are known."""
    account = known.queues[job.queue].account
    houses = [queue for queue in known.queues.values() if queue.account == account and queue.windows]
    return min([max(window.end for window in queue.windows) for queue in houses], default=standing.NEVER)


def where_it_stays(
    known: kept.Kept, here: standing.Standing, groups: tuple[model.GroupPlacement, ...]
) -> tuple[model.Slot, room.Release] | None:
    """The slot of one that stays where it is to its end, if all that is owed to others leaves it that."""
    job, slot, profile = here.job, _stay(known, here, groups), slots.owing(known)
    if slot is None:
        return None
    part = known.world.place(job, groups)
    with profile.without(job.uid):
        fits = profile.holds(calendar.Entry(job.uid, known.now, slot.finish, part))
    return (slot, part) if fits else None


def _stay(
    known: kept.Kept, here: standing.Standing, groups: tuple[model.GroupPlacement, ...]
) -> model.Slot | None:
    """The slot of one that runs, or starts now, and stays where it is; None: it would not end in time."""
    finish, deadline = here.finish, here.job.deadline
    last = seats.ends(here, known.now, known.config)
    if finish is None or last is None or deadline is None:
        return None
    hi, more = finish.hi - known.now, 0
    if not estimate.is_placed(here.job):
        hi = slowdown.stretched(hi, siting.slowdown_of(known.world.stage, here.job, groups))
        more = hi - (finish.hi - known.now)
    if not known.now < last + more <= deadline:
        return None
    if on_spot(known, here.job, groups):
        return None
    ends = min(deadline, last + more + known.config.slot_grace)
    return model.Slot(groups, known.now, ends, hi)


def running_at(known: kept.Kept, job: model.Job) -> tuple[model.GroupPlacement, ...] | None:
    """The place of a job that owns room, in rank order.

    None where members have finished, or a group is in two pools.
    """
    found: list[model.GroupPlacement] = []

    def place(item: tuple[str, int]) -> tuple[int, str]:
        return known.nodes.index.get(item[0], len(known.nodes)), item[0]

    for index, group in enumerate(job.groups):
        parts = [part for part in job.assigned if part.group == index]
        pools = {part.pool for part in parts}
        nodes: dict[str, int] = {}
        for part in parts:
            nodes[part.node] = nodes.get(part.node, 0) + part.bound + part.held
        if len(pools) != 1 or sum(nodes.values()) != group.count:
            return None
        found.append(model.GroupPlacement(pools.pop(), tuple(sorted(nodes.items(), key=place))))
    return tuple(found)


def on_spot(known: kept.Kept, job: model.Job, groups: tuple[model.GroupPlacement, ...]) -> bool:
    """Whether a place is on nodes that may go at any time."""
    spot = {pool.name for pool in known.queues[job.queue].pools if pool.spot}
    return any(place.pool in spot for place in groups)
