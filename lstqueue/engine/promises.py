"""Promises that are new: for whom a slot is found, and is written down.

A promise is made together with the first verdict of a job, or later in a round (`rounds`): to those that ask
for little (`Config.promise_area`), and to others as far as a budget goes (`budget`), since slots for all that
fits would keep the order from doing any better. Where slots may be is the business of `openings`, what
becomes of them later that of `renewal`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lstqueue.engine import (
    budget,
    calendar,
    candidates,
    either,
    estimate,
    kept,
    model,
    openings,
    order,
    room,
    rounds,
    siting,
    slots,
    standing,
    sweeps,
)
from lstqueue.topology import slowdown


def step(known: kept.Kept) -> None:
    """Make the promises of this pass; say for which deadline there would be one of those that get none."""
    if not known.config.promising:
        return
    looked = [*itertools.islice(candidates.in_order(known), known.config.promise_most), *rounds.again(known)]
    if looked:
        slots.complete(known)
    for turn in looked:
        here = known.here(turn)
        if here.job.uid not in known.promised.made and candidates.in_time(here):
            _promise(known, [here] if not here.job.sweep else sweeps.missing(known, here.job))
    for turn in looked:
        if turn.job.uid not in known.promised.made:
            known.promised.soonest[turn.job.uid] = _soonest(known, turn)


def _promise(known: kept.Kept, together: Sequence[standing.Standing]) -> None:
    """Find slots for some jobs, and promise them if so much may be promised: to all of them or to none."""
    profile, before = slots.owing(known), dict[str, list[calendar.Entry]]()
    for here in together:
        job, found = here.job, _find(known, here)
        if found is not None and (candidates.small(known, here) or budget.allows(known, job, found[0])):
            before[job.uid] = list(profile.entries.get(job.uid, ()))
            make(known, job, *found)
            continue
        for uid, entries in before.items():
            del known.promised.made[uid]
            profile.remove(uid)
            for entry in entries:
                profile.add(entry)
        return


def _find(known: kept.Kept, here: standing.Standing) -> tuple[model.Slot, room.Release] | None:
    """A slot for a job; for one that runs, or starts now, where it is if it can be."""
    job, taken = here.job, known.fitted.placed.get(here.job.uid)
    groups = openings.running_at(known, job) if estimate.is_placed(job) else None
    if taken is not None:
        placed = room.by_group(taken, known.nodes)
        groups = tuple(placed[index] for index in range(len(job.groups)))
    if groups is not None and (found := _where_it_is(known, here, groups)) is not None:
        return found
    stays = (taken is not None or estimate.is_placed(job)) and not known.world.evictable(job)
    if stays or job.uid in known.staked:
        return None  # the owner of a claim is looked at again once it has its place
    hi = openings.needed(here, known.now, known.config)
    return openings.latest(known, job, known.world.gang(job), hi, lead=_lead(known))


def _where_it_is(
    known: kept.Kept, here: standing.Standing, groups: tuple[model.GroupPlacement, ...]
) -> tuple[model.Slot, room.Release] | None:
    """A slot for a job in the place that it has, or is given now."""
    job, profile, part = here.job, slots.owing(known), known.world.place(here.job, groups)
    leaves = known.world.evictable(job) and not estimate.is_placed(job)
    if leaves and here.left is not None and not openings.on_spot(known, job, groups):
        slower = siting.slowdown_of(known.world.stage, job, groups)
        length = openings.length_of(known, job, slowdown.stretched(here.left.hi, slower))
        earliest = openings.earliest_begin(known, job, lead=_lead(known))
        at = profile.latest_here(part, length=length, earliest=earliest, end=openings.latest_end(known, job))
        if at is not None:
            return model.Slot(groups, at, at + length, here.left.hi), part
    return openings.where_it_stays(known, here, groups)


def _soonest(known: kept.Kept, turn: order.Turn) -> int | None:
    """The earliest deadline from its own on by which a job that waits would be promised to end.

    Of one of a sweep it is not known, since it would be that of all of them.
    """
    here, job = known.here(turn), turn.job
    starts = job.uid in known.fitted.placed or job.uid in known.staked or bool(job.sweep)
    starts = starts or siting.varies(known.world.stage, job)  # how long it takes depends on where
    firm = openings.firm_gang(known, job, turn.gang)
    if starts or here.left is None or job.deadline is None or firm is None:
        return None
    length = openings.length_of(known, job, here.left.hi)
    earliest = max(openings.earliest_begin(known, job, lead=_lead(known)), job.deadline - length)
    begins = slots.owing(known).soonest(
        known.world.alone(firm), known.free.quota, length=length, earliest=earliest
    )
    if begins is None:
        return None
    slot = model.Slot((), begins, begins + length, here.left.hi)
    within = candidates.small(known, here) or budget.allows(known, job, slot)
    return slot.finish if within and slot.finish <= openings.known_until(known, job) else None


def _lead(known: kept.Kept) -> int:
    """How long (ms) the guests of a new slot have to end by themselves; few are in the way in quiet times."""
    return 0 if candidates.quiet(known) else known.config.promise_lead


def make(known: kept.Kept, job: model.Job, slot: model.Slot, part: room.Release) -> bool:
    """Promise a slot, and owe it or what is owed to the job already, until that is written."""
    profile, entry = slots.owing(known), calendar.Entry(job.uid, slot.start, slot.finish, part)
    for piece in either.of([*profile.remove(job.uid), entry]):
        profile.add(piece)
    return tell(known, job, slot)


def tell(known: kept.Kept, job: model.Job, slot: model.Slot) -> bool:
    """Promise a slot that takes no more room than what is owed to the job already."""
    known.promised.made[job.uid] = model.Promise(job.uid, slot)
    slots.look_at(known, job, slot)
    return True
