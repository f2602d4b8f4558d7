"""Promises: for whom a slot is found, when it moves, and when it is lost.

A promise is made together with the first verdict of a job, or later in a round (`rounds`): to those that ask
for little (`Config.promise_area`), and to others as far as a budget goes (`budget`), since slots for all that
fits would keep the order from doing any better. A slot is found as late as it can be: it is an insurance, no
schedule, and whoever has one is started by the order like everybody else.

A slot moves only to another that ends by the deadline too: in the same place to a later start once some of
the run is saved, to where its owner runs, or elsewhere when nodes are lost or a run took longer than thought.
Where there is none the promise is in doubt, and lost once its time has come, counted by its cause.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lstqueue.engine import (
    aside,
    budget,
    calendar,
    candidates,
    claims,
    either,
    estimate,
    gangs,
    kept,
    model,
    order,
    room,
    rounds,
    seats,
    siting,
    slots,
    standing,
    sweeps,
    tenure,
)
from lstqueue.topology import slowdown

_RAN_PAST = "It runs longer than was thought at most."
_NEVER_FITS = {
    model.Code.NO_MATCHING_NODES: (model.Cause.CAPACITY, "No nodes are left that could ever hold it.", True),
    model.Code.QUOTA_TOO_SMALL: (model.Cause.EDIT, "The quota of its queue is smaller than it is.", True),
    model.Code.RESOURCE_NOT_IN_QUEUE: (model.Cause.EDIT, "Its queue lists no more what it asks for.", True),
}
SLOWER = 3
"""Slots tried for one job, each as long as it would take in the place of the one before."""
Problem = tuple[model.Cause, str, bool]
"""(cause, in words, whether the promise is lost unless the slot moves now)."""


def renew(known: kept.Kept) -> None:
    """Move slots that cannot stay, and those whose owner could run on; tell who has to leave for its own."""
    promised = known.promised
    if not promised.owed:
        return
    lacking = slots.short(known) is not None
    some = [
        (uid, one)
        for uid, one in promised.owed.items()
        if uid not in known.world.settled or (lacking and slots.crowded(known, one))
    ]
    leaving = _leaving(known) if some else frozenset()
    _settle(known, some, leaving)
    slots.line_up(known)


def _settle(known: kept.Kept, some: Sequence[tuple[str, tenure.Owed]], leaving: frozenset[str]) -> None:
    """Deal with the slots that may not stay as they are, the first to begin first."""
    promised, settled, moves = known.promised, known.world.settled, known.config.promise_moves
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
    if needed(here, known.now, known.config) > slot.hi:
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
    job, usable = one.job, known.world.usable
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


def _postpone(known: kept.Kept, one: tenure.Owed) -> bool:
    """Move a slot whose time has come to a later one, if there is one by now."""
    job, hi = one.job, slots.standing_of(known, one).left
    if job.state is not model.State.WAITING or hi is None:
        return False
    with slots.owing(known).without(job.uid):
        found = _search(known, job, known.world.gang(job), hi.hi, lead=known.config.promise_lead)
    later = found is not None and found[0].start > one.slot.start + known.config.slot_grace
    return found is not None and later and _make(known, job, *found)


def _step_aside(known: kept.Kept, one: tenure.Owed) -> bool:
    """Move a slot whose time has come to where those in it lose much less by leaving it."""
    job, slot = one.job, one.slot
    firm = _firm(known, job, known.world.gang(job))
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
    return _make(known, job, moved, known.world.place(job, groups))


def _slide(known: kept.Kept, one: tenure.Owed, *, by: int) -> bool:
    """Start a slot later, by what its owner has saved meanwhile; whether it can then stay `by` ms more."""
    slot, config, job = one.slot, known.config, one.job
    gained = slot.hi - needed(slots.standing_of(known, one), known.now, known.config)
    later = model.Slot(slot.groups, slot.start + gained, slot.finish, slot.hi - gained)
    if gained <= 0 or known.now >= seats.due(job, later, config) - by:
        return False
    return _tell(known, job, later)  # it is a part of the old one, which is owed until this is written


def _follow(known: kept.Kept, one: tenure.Owed) -> bool:
    """Have a slot be where its owner runs, from now on, if it can stay there until it ends."""
    job = one.job
    groups = _running_at(known, job)
    if groups is None:
        return False
    found = _stays(known, slots.standing_of(known, one), groups)
    return found is not None and _make(known, job, *found)


def _stays(
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
    if _on_spot(known, here.job, groups):
        return None
    ends = min(deadline, last + more + known.config.slot_grace)
    return model.Slot(groups, known.now, ends, hi)


def _on_spot(known: kept.Kept, job: model.Job, groups: tuple[model.GroupPlacement, ...]) -> bool:
    """Whether a place is on nodes that may go at any time."""
    spot = {pool.name for pool in known.queues[job.queue].pools if pool.spot}
    return any(place.pool in spot for place in groups)


def _running_at(known: kept.Kept, job: model.Job) -> tuple[model.GroupPlacement, ...] | None:
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


def _move(known: kept.Kept, one: tenure.Owed) -> bool:
    """Find another slot for a job that cannot keep its own."""
    job, here = one.job, slots.standing_of(known, one)
    if job.deadline is None or here.left is None or job.queue not in known.queues:
        return False
    found, placed = None, estimate.is_placed(job)
    if placed and (groups := _running_at(known, job)) is not None:
        found = _stays(known, here, groups)
    if found is None and (known.world.evictable(job) or not placed):
        with slots.owing(known).without(job.uid):
            gang = known.world.gang_near(job, siting.around(known.world.stage, one.slot.groups))
            found = _search(known, job, gang, needed(here, known.now, known.config), lead=0)
    return found is not None and _make(known, job, *found)


def _make(known: kept.Kept, job: model.Job, slot: model.Slot, part: room.Release) -> bool:
    """Promise a slot, and owe it or what is owed to the job already, until that is written."""
    profile, entry = slots.owing(known), calendar.Entry(job.uid, slot.start, slot.finish, part)
    for piece in either.of([*profile.remove(job.uid), entry]):
        profile.add(piece)
    return _tell(known, job, slot)


def _tell(known: kept.Kept, job: model.Job, slot: model.Slot) -> bool:
    known.promised.made[job.uid] = model.Promise(job.uid, slot)
    slots.look_at(known, job, slot)
    return True


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
            _make(known, job, *found)
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
    groups = _running_at(known, job) if estimate.is_placed(job) else None
    if taken is not None:
        placed = room.by_group(taken, known.nodes)
        groups = tuple(placed[index] for index in range(len(job.groups)))
    if groups is not None and (found := _where_it_is(known, here, groups)) is not None:
        return found
    stays = (taken is not None or estimate.is_placed(job)) and not known.world.evictable(job)
    if stays or job.uid in known.staked:
        return None  # the owner of a claim is looked at again once it has its place
    hi = needed(here, known.now, known.config)
    return _search(known, job, known.world.gang(job), hi, lead=_lead(known))


def _where_it_is(
    known: kept.Kept, here: standing.Standing, groups: tuple[model.GroupPlacement, ...]
) -> tuple[model.Slot, room.Release] | None:
    """A slot for a job in the place that it has, or is given now."""
    job, profile, part = here.job, slots.owing(known), known.world.place(here.job, groups)
    leaves = known.world.evictable(job) and not estimate.is_placed(job)
    if leaves and here.left is not None and not _on_spot(known, job, groups):
        slower = siting.slowdown_of(known.world.stage, job, groups)
        length = _length(known, job, slowdown.stretched(here.left.hi, slower))
        earliest = _earliest(known, job, lead=_lead(known))
        at = profile.latest_here(part, length=length, earliest=earliest, end=_end(known, job))
        if at is not None:
            return model.Slot(groups, at, at + length, here.left.hi), part
    return _stays(known, here, groups)


def _length(known: kept.Kept, job: model.Job, hi: int) -> int:
    """How long a slot is: time for others to leave once more, for a launch and a restore, and the run."""
    config = known.config
    return config.slot_grace + config.launch_margin + max(job.overhead, job.restore) + hi


def _lead(known: kept.Kept) -> int:
    """How long (ms) the guests of a new slot have to end by themselves; few are in the way in quiet times."""
    return 0 if candidates.quiet(known) else known.config.promise_lead


def _earliest(known: kept.Kept, job: model.Job, *, lead: int) -> int:
    """When a slot may begin: once others could be told to leave it, and `lead` ms later."""
    return known.now + lead + 2 * known.config.slot_grace + job.grace


def _end(known: kept.Kept, job: model.Job) -> int:
    """By when a slot has to end, in ms since the epoch: the deadline, while windows are known."""
    return min(standing.NEVER if job.deadline is None else job.deadline, _horizon(known, job))


def _horizon(known: kept.Kept, job: model.Job) -> int:
    """Until when (ms since the epoch) the windows of a queue, or of its cohort, are known."""
    account = known.queues[job.queue].account
    houses = [queue for queue in known.queues.values() if queue.account == account and queue.windows]
    return min([max(window.end for window in queue.windows) for queue in houses], default=standing.NEVER)


def _search(
    known: kept.Kept, job: model.Job, gang: gangs.Gang, hi: int, *, lead: int
) -> tuple[model.Slot, room.Release] | None:
    """The latest slot that there is for a job, beside all that is owed."""
    firm, earliest, slower = _firm(known, job, gang), _earliest(known, job, lead=lead), slowdown.PPM
    for _ in range(SLOWER):
        length = _length(known, job, slowdown.stretched(hi, slower))
        if firm is None or earliest + length > (end := _end(known, job)):
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


def _firm(known: kept.Kept, job: model.Job, gang: gangs.Gang) -> gangs.Gang | None:
    """Where there may be slots for a job: a gang without spot pools; None: nowhere.

    One that could not leave a spot pool for its slot in time, should it be started there, has none either.
    """
    if gang.unlisted is not None:
        return None
    firm = known.world.firm(gang)
    return firm if firm is gang or known.world.evictable(job) else None


def _soonest(known: kept.Kept, turn: order.Turn) -> int | None:
    """The earliest deadline from its own on by which a job that waits would be promised to end.

    Of one of a sweep it is not known, since it would be that of all of them.
    """
    here, job = known.here(turn), turn.job
    starts = job.uid in known.fitted.placed or job.uid in known.staked or bool(job.sweep)
    starts = starts or siting.varies(known.world.stage, job)  # how long it takes depends on where
    firm = _firm(known, job, turn.gang)
    if starts or here.left is None or job.deadline is None or firm is None:
        return None
    length = _length(known, job, here.left.hi)
    earliest = max(_earliest(known, job, lead=_lead(known)), job.deadline - length)
    begins = slots.owing(known).soonest(
        known.world.alone(firm), known.free.quota, length=length, earliest=earliest
    )
    if begins is None:
        return None
    slot = model.Slot((), begins, begins + length, here.left.hi)
    within = candidates.small(known, here) or budget.allows(known, job, slot)
    return slot.finish if within and slot.finish <= _horizon(known, job) else None
