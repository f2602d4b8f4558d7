"""How much of its quota a queue may promise although there is an overload.

What is small is promised in any case (`candidates`), since it takes little from the order. A budget says how
much else: a share of the queue's nominal quota, of which no more is owed until any time than it comes to
until then.
"""

from __future__ import annotations

from lstqueue.engine import kept, model, room, slots
from lstqueue.engine.gangs import PPM


def allows(known: kept.Kept, job: model.Job, slot: model.Slot, part: room.Release) -> bool:
    """Whether a slot that is new is within the budget of its queue.

    With b the budget, N the nominal quota and W(F) all that is owed to promised jobs of the queue whose slots
    end by F (quota × ms, the new one included): W(F) <= b · N · (F - now), for the end of the new slot and of
    each after it. Of every resource that the queue counts, and at least one.

    Args:
        known: The pass.
        job: The job that would own the slot.
        slot: The slot.
        part: The room of the slot.
    """
    share, quotas = known.queues[job.queue].promise_budget, known.free.quota
    counted = [charge for charge in part.charges if not quotas.is_cohorts(charge[0])]
    if not share or not counted:
        return False
    return all(_fits(known, place, amount, slot, share) for place, amount in counted)


def _fits(known: kept.Kept, place: int, amount: int, slot: model.Slot, share: int) -> bool:
    """The same of one slot of quota, of which the job takes `amount`; `share` in ppm."""
    most, total = share * known.free.quota.nominal[place], 0
    works = [*_owed(known, place), (slot.finish, amount * (slot.finish - slot.start))]
    for finish, work in sorted(works):
        total += work
        if finish >= slot.finish and total * PPM > most * (finish - known.now):
            return False
    return True


def _owed(known: kept.Kept, place: int) -> list[tuple[int, int]]:
    """(end, quota × ms that is still to come) of every promised job, in one slot of quota."""
    found: list[tuple[int, int]] = []
    promised, entries = known.promised, slots.owing(known).entries
    for uid in promised.owed.keys() | promised.made.keys():
        mine = entries.get(uid, ()) if promised.holds(uid) else ()
        work = sum(
            amount * (entry.ends - max(entry.begins, known.now))
            for entry in mine
            for charged, amount in entry.part.charges
            if charged == place
        )
        if work:
            found.append((max(entry.ends for entry in mine), work))
    return found
