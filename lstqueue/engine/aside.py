"""Where a slot is cleared: if that takes much from those in it, in another place where it takes less.

A slot is found long before its time, when nobody knows who will be in it. One GPU of it may then be in the
middle of a gang of hundreds, of which all would have to leave. So once its time has come, and there is no
later one, a place is looked for with the same times that costs no more than half. It decides nothing about
when: the calendar has the room there as well.
"""

from __future__ import annotations

import numpy as np

from lstqueue.engine import gangs, kept, model, room, slots, tenure
from lstqueue.topology import capacity
from lstqueue.topology.table import Ints

_CLAIMED = 1 << 50
"""What it costs to clear a node that somebody claims: more than anything."""


def cheaper(known: kept.Kept, one: tenure.Owed, gang: gangs.Gang) -> room.Placement | None:
    """Another place for a slot at its own times, where those who have to leave lose half as much at most.

    Args:
        known: The pass.
        one: The slot, whose owner waits.
        gang: Its owner in pools in which there may be slots.
    """
    costs = _costs(known, one)
    here = int(costs[one.whole.nodes].max(initial=0))
    levels = np.unique(costs[costs * 2 <= here])
    if not here or not len(levels):
        return None
    profile, alone = slots.owing(known), known.world.alone(gang)
    with profile.without(one.job.uid):
        free, left = profile.window(max(known.now, one.slot.start), one.slot.finish)
    found: room.Placement | None = None
    first, last = 0, len(levels) - 1
    while first <= last:
        middle = (first + last) // 2
        quotas = known.free.quota.copy()
        quotas.free = left.tolist()
        allowed = np.where(costs <= levels[middle], free, 0)
        taken = room.Room(capacity.Ledger(alone.rows, allowed), quotas).place(alone.gang)
        if taken is None:
            first = middle + 1
        else:
            found, last = taken, middle - 1
    return found


def _costs(known: kept.Kept, one: tenure.Owed) -> Ints:
    """By node what its guests lose together, should they leave: their part of a queue (ppm) × s."""
    costs: Ints = np.zeros(len(known.nodes.nodes), dtype=np.int64)
    for here in known.placed:
        job = here.job
        if job.uid == one.job.uid or not known.world.evictable(job):
            continue
        loss = max(_unsaved(job, known.now) + job.restore, known.config.harm_least)
        nodes = known.world.release(job).nodes
        costs[nodes] += known.world.held_part(job) * (loss // 1000)
    for stake in known.going():
        costs[stake.whole.nodes] = _CLAIMED
    return costs


def _unsaved(job: model.Job, now: int) -> int:
    """Run time (ms) that a suspension now would undo."""
    if job.state is not model.State.RUNNING or job.saves_on_suspend:
        return 0
    run = max(0, now - job.since)
    return run % job.checkpoint if job.checkpoint else run
