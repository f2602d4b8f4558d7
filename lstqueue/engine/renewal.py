"""Promises that stand: when their slots move, who leaves for its own, and when a promise is lost.

A slot moves only to another that ends by the deadline too: in the same place to a later start once some of
the run is saved, to where its owner runs, or elsewhere when nodes are lost or a run took longer than thought.
Where there is none the promise is in doubt, and lost once its time has come, counted by its cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.engine import (
    aside,
    claims,
    estimate,
    kept,
    model,
    openings,
    promises,
    room,
    seats,
    siting,
    slots,
    tenure,
)

_RAN_PAST = "It runs longer than was thought at most."
_NEVER_FITS = {
    model.Code.NO_MATCHING_NODES: (model.Cause.CAPACITY, "No nodes are left that could ever hold it.", True),
    model.Code.QUOTA_TOO_SMALL: (model.Cause.EDIT, "The quota of its queue is smaller than it is.", True),
    model.Code.RESOURCE_NOT_IN_QUEUE: (model.Cause.EDIT, "Its queue lists no more what it asks for.", True),
}
Problem = tuple[model.Cause, str, bool]
"""(cause, in words, whether the promise is lost unless the slot moves now)."""


def step(known: kept.Kept) -> None:
    """Move slots that cannot stay, and those whose owner could run on; tell who has to leave for its own."""
    promised = known.promised
    if not promised.owed:
        return
    lacking = slots.short(known) is not None
    some = [
        (uid, one)
        for uid, one in promised.owed.items()
        if uid not in known.world.tenures.settled or (lacking and slots.crowded(known, one))
    ]
    leaving = _leaving(known) if some else frozenset()
    _settle(known, some, leaving)
    slots.line_up(known)


def _settle(known: kept.Kept, some: Sequence[tuple[str, tenure.Owed]], leaving: frozenset[str]) -> None:
    """Deal with the slots that may not stay as they are, the first to begin first."""
    promised, settled, moves = known.promised, known.world.tenures.settled, known.config.promise_moves
    for uid, one in sorted(some, key=slots.by_start):
        if (problem := _problem(known, one)) is not None:
            cause, why, now_or_never = problem
            moves -= not now_or_never
            if (now_or_never or moves >= 0) and _move(known, one):
                continue
            if now_or_never:
                promised.lost[uid] = model.Revoke(uid, cause, why)
            else:
                promised.doubts[uid] = why
                known.rouse(one.seat.due)
        elif not one.seat.placed and known.now >= one.slot.start - known.config.slot_grace:
            if not _postpone(known, one):
                _step_aside(known, one)
        elif not one.seat.placed or one.seated or _may_stay(known, one):
            settled.add(uid)
        elif not (_goes_on(known, one) or not one.seat.evictable or uid in leaving):
            promised.suspend.append(model.Suspend(uid, one.job.attempt, model.Why.PROMISED))


def _may_stay(known: kept.Kept, one: tenure.Owed) -> bool:
    """Whether one that owns room, and can leave it, need not do so for its slot yet."""
    return one.seat.evictable and (one.seat.there or known.now < one.seat.due)


def _leaving(known: kept.Kept) -> frozenset[str]:
    """Those (uids) who are told to leave already, by a drain or for a claim."""
    chosen = {job.uid for stake in known.going() for job in stake.victims}
    return frozenset(chosen | {one.uid for one in (*known.claims.suspend, *known.drained)})


def _goes_on(known: kept.Kept, one: tenure.Owed) -> bool:
    """Whether the owner of a slot need not leave for it, since its slot moves.

    One that could not leave has its slot follow as soon as that can be; only then is it sure of its room.
    """
    grace, lead = known.config.slot_grace, known.config.promise_lead
    if not one.seat.evictable:
        return _follow(known, one) or (known.now >= one.seat.due and _slide(known, one, by=grace))
    # Where it slides it may still be suspended for others, but each time that is a write.
    return _slide(known, one, by=lead) or _follow(known, one) or _slide(known, one, by=grace)


def _problem(known: kept.Kept, one: tenure.Owed) -> Problem | None:
    """Why a slot cannot stay as it is; None when it can."""
    here, slot, job = slots.standing_of(known, one), one.slot, one.job
    if job.deadline is None or here.left is None or here.finish is None or job.queue not in known.queues:
        return model.Cause.EDIT, "It has no deadline, no estimate or no queue any more.", True
    if not one.seat.whole:
        return model.Cause.EDIT, "Its groups are not those it was promised for.", True
    if slot.finish > job.deadline:
        return model.Cause.EDIT, "Its deadline is earlier than it was when it was promised.", True
    if one.seated:
        if known.now < slot.finish:
            return None
        slow = known.now <= seats.outrun(here, known.config)
        why = "Its start took longer than is allowed for." if slow else _RAN_PAST
        return model.Cause.RAN_PAST_HI, why, True
    if openings.needed(here, known.now, known.config) > slot.hi:
        placed = estimate.is_placed(job)
        cause = model.Cause.RAN_PAST_HI if placed or job.saved > 0 else model.Cause.EDIT
        # What others of its kind take says nothing of an edit: hi is frozen in the slot.
        edited = job.published.verdict is None
        return cause, "It may run longer than it was promised for.", placed or job.saved > 0 or edited
    return _lost_room(known, one)


def _lost_room(known: kept.Kept, one: tenure.Owed) -> Problem | None:
    slot, job = one.slot, one.job
    config, now, waits = known.config, known.now, not one.seat.placed
    if waits and now > slot.start + config.slot_grace:
        if slots.is_closed(known, job) and job.state is not model.State.ENDING:
            return model.Cause.EDIT, "It was held back, or its queue, when its slot began.", True
        return model.Cause.STUCK, "Those in its slot did not leave it in time.", True
    gang = known.gangs.get(job.uid) if waits else None  # of one that is held back none is known
    if gang is not None and (code := known.possible.code(gang)) is not None:
        return _NEVER_FITS[code]
    due = now >= one.seat.due
    if not _usable(known, one):
        return model.Cause.CAPACITY, "Nodes of its slot cannot be used any more.", due
    if slots.crowded(known, one):
        return model.Cause.CAPACITY, "There is not room for its slot any more.", due
    return None


def _usable(known: kept.Kept, one: tenure.Owed) -> bool:
    """Whether a job may still run on all nodes of its slot, and these stay."""
    job, usable = one.job, known.world.tenures.usable
    if job.uid in usable:
        return True
    gang, rows = known.world.firm(known.world.gang(job)), known.world.rows.rows
    if gang is None:
        return False
    for member in gang.members:
        place = one.slot.groups[member.group]
        option = next((one for one in member.options if one.pool == place.pool), None)
        if option is None or claims.barred_node(known, place, rows[option.row].mask) is not None:
            return False
    if not siting.holds(known.world.stage, gang, one.slot.groups):
        return False
    usable.add(job.uid)
    return True


def _postpone(known: kept.Kept, one: tenure.Owed) -> bool:
    """Move a slot whose time has come to a later one, if there is one by now."""
    job, hi = one.job, slots.standing_of(known, one).left
    if job.state is not model.State.WAITING or hi is None:
        return False
    with slots.owing(known).without(job.uid):
        found = openings.latest(known, job, known.world.gang(job), hi.hi, lead=known.config.promise_lead)
    later = found is not None and found[0].start > one.slot.start + known.config.slot_grace
    return found is not None and later and promises.make(known, job, *found)


def _step_aside(known: kept.Kept, one: tenure.Owed) -> bool:
    """Move a slot whose time has come to where those in it lose much less by leaving it."""
    job, slot = one.job, one.slot
    firm = openings.firm_gang(known, job, known.world.gang(job))
    if job.state is not model.State.WAITING or firm is None or slots.is_closed(known, job):
        return False
    taken = aside.cheaper(known, one, firm)
    if taken is None:
        return False
    placed = room.by_group(taken, known.nodes)
    groups = tuple(placed[index] for index in range(len(job.groups)))
    stage = known.world.stage
    if siting.slowdown_of(stage, job, groups) > siting.slowdown_of(stage, job, slot.groups):
        return False  # it would not be done there in time
    moved = model.Slot(groups, slot.start, slot.finish, slot.hi)
    return promises.make(known, job, moved, known.world.place(job, groups))


def _slide(known: kept.Kept, one: tenure.Owed, *, by: int) -> bool:
    """Start a slot later, by what its owner has saved meanwhile; whether it can then stay `by` ms more."""
    slot, config, job = one.slot, known.config, one.job
    gained = slot.hi - openings.needed(slots.standing_of(known, one), known.now, known.config)
    later = model.Slot(slot.groups, slot.start + gained, slot.finish, slot.hi - gained)
    if gained <= 0 or known.now >= seats.due(job, later, config) - by:
        return False
    # It is a part of the old one, which is owed until this is written.
    return promises.tell(known, job, later)


def _follow(known: kept.Kept, one: tenure.Owed) -> bool:
    """Have a slot be where its owner runs, from now on, if it can stay there until it ends."""
    job = one.job
    groups = openings.running_at(known, job)
    if groups is None:
        return False
    found = openings.where_it_stays(known, slots.standing_of(known, one), groups)
    return found is not None and promises.make(known, job, *found)


def _move(known: kept.Kept, one: tenure.Owed) -> bool:
    """Find another slot for a job that cannot keep its own."""
    job, here = one.job, slots.standing_of(known, one)
    if job.deadline is None or here.left is None or job.queue not in known.queues:
        return False
    found, placed = None, estimate.is_placed(job)
    if placed and (groups := openings.running_at(known, job)) is not None:
        found = openings.where_it_stays(known, here, groups)
    if found is None and (known.world.evictable(job) or not placed):
        with slots.owing(known).without(job.uid):
            gang = known.world.gang_near(job, siting.around(known.world.stage, one.slot.groups))
            found = openings.latest(known, job, gang, openings.needed(here, known.now, known.config), lead=0)
    return found is not None and promises.make(known, job, *found)
