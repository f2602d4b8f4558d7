"""How much of what it has a queue may promise: in an overload, and after a quiet time.

What is small is promised in any case (`candidates`), since it takes little from the order. A budget says how
much else: a share of what the queue has, its own in an overload and `Config.promise_calm` without one,
measured as for the best-effort share (`means`), of which no more is owed until any time than it comes to
until then.
"""

from __future__ import annotations

from lstqueue.engine import candidates, kept, model, slots
from lstqueue.engine.gangs import PPM


def allows(known: kept.Kept, job: model.Job, slot: model.Slot) -> bool:
    """Whether a slot that is new is within the budget of its queue.

    With b the budget and W(F) what is owed to promised jobs of the queue whose slots end by F, each by the
    part of the queue that it is, times ms that are still to come, the new one included:
    W(F) <= b · (F - now), for the end of the new slot and of each after it.

    Args:
        known: The pass.
        job: The job that would own the slot.
        slot: The slot.
    """
    share, total = known.queues[job.queue].promise_budget, 0
    if candidates.quiet(known):
        share = max(share, int(known.config.promise_calm * PPM))
    if not share:
        return False
    works = [
        *_owed(known, job.queue),
        (slot.finish, known.world.whole_part(job) * (slot.finish - slot.start)),
    ]
    for finish, work in sorted(works):
        total += work
        if finish >= slot.finish and total > share * (finish - known.now):
            return False
    return True


def _owed(known: kept.Kept, queue: str) -> list[tuple[int, int]]:
    """(end, ppm of the queue × ms that are still to come) of every promised job of a queue."""
    found: list[tuple[int, int]] = []
    promised, entries = known.promised, slots.owing(known).entries
    for uid in promised.owed.keys() | promised.made.keys():
        mine = entries.get(uid, ())
        if known.jobs[uid].queue == queue and promised.holds(uid) and mine:
            time = sum([entry.ends - max(entry.begins, known.now) for entry in mine])
            found.append(
                (max([entry.ends for entry in mine]), known.world.whole_part(known.jobs[uid]) * time)
            )
    return found
