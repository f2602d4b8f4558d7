"""Slots in a pass: whose stand, who has to respect them, and how a slot is taken when its time comes.

A promised job owns a slot: room from a start on, so late that it just ends by its deadline. Until then
anybody may be in that room who can be told to leave within `Config.slot_grace`; the order normally starts
the owner earlier, wherever it fits. If it does not, its slot is cleared a grace before the start: the owner
claims it, and those in it are suspended whatever protects them otherwise (minimum run, caps, best-effort
share).

Respected is a slot by two kinds of jobs. Who can be told to leave is not started in it when its minimum run
would not be over by then; that is a kindness. Who cannot leave in time is only started where no slot needs
the room before its end; on that the promise rests (docs/engine.md, Promises).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

import numpy as np

from lstqueue.engine import (
    calendar,
    estimate,
    guests,
    kept,
    model,
    order,
    owings,
    room,
    seats,
    siting,
    stakes,
    standing,
    tenure,
)
from lstqueue.topology import slowdown, table


def read(known: kept.Kept) -> None:
    """Note the slots that stand, and when the pass has to look at them again."""
    if not known.config.promising:
        return
    owed = known.promised.owed = known.world.tenures.at(known.now)
    if owed:
        known.rouse(min([one.wake for one in owed.values()]))


def look_at(known: kept.Kept, job: model.Job, slot: model.Slot) -> None:
    """Have a pass look at a slot when it is time to leave for it, or to clear it."""
    known.rouse(seats.due(job, slot, known.config))
    begins = slot.start - known.config.slot_grace
    if begins <= known.now and not estimate.is_placed(job):
        begins = known.now + known.config.trigger_margin  # to be claimed as soon as it is written
    known.rouse(begins)


def owing(known: kept.Kept) -> calendar.Calendar:
    """The calendar of the pass; made when it is asked for first."""
    made = known.promised.owing
    if made.whole is None:
        offered = known.world.allocatable - known.foreign
        nominal = known.free.quota.nominal  # what is borrowed can be wanted back
        made.whole = calendar.Calendar(offered, nominal, entries(known), known.now)
    return made.whole


def near(known: kept.Kept, until: int) -> calendar.Calendar:
    """A calendar that holds until a time (ms since the epoch): of what begins later nothing is in it.

    Of all that is owed little begins soon, so this is a small one; unless there is the whole already.
    """
    made = known.promised.owing
    if made.whole is not None:
        return made.whole
    if made.near is not None and made.near[0] < until:
        return owing(known)
    if made.near is None:
        offered, nominal = known.world.allocatable - known.foreign, known.free.quota.nominal
        some = [entry for entry in entries(known) if entry.begins < until]
        made.near = until, calendar.Calendar(offered, nominal, some, known.now)
    return made.near[1]


def short(known: kept.Kept) -> owings.Shortages | None:
    """Where there is less than what is owed as the pass begins; None: nowhere.

    No calendar is made for that: where its bins are wide it is thought fuller than it is, which may keep a
    promise from being made, and must not break one.
    """
    made = known.promised.owing
    if not made.looked:
        offered, nominal = known.world.allocatable - known.foreign, known.free.quota.nominal
        owed, now, made.looked = entries(known), known.now, True
        if not known.world.owing.fits(offered, nominal, owed, now):
            made.short = owings.Shortages(offered, nominal, owed, now)
    return made.short


def crowded(known: kept.Kept, one: tenure.Owed) -> bool:
    """Whether there is not room for a slot any more beside all that is owed."""
    lacking = short(known)
    return lacking is not None and any(lacking.touch(entry) for entry in one.entries)


def line_up(known: kept.Kept) -> None:
    """Find out which slots others may be in from now on: one that moves is owed in either place."""
    promised = known.promised
    ahead = [
        (entry.begins, uid, entry.ends)
        for uid, one in promised.owed.items()
        for entry in one.entries
        if not one.seated and uid not in promised.lost
    ]
    ahead += [(one.slot.start, uid, one.slot.finish) for uid, one in promised.made.items()]
    promised.ahead = sorted(ahead)


def standing_of(known: kept.Kept, one: tenure.Owed) -> standing.Standing:
    """How the owner of a slot stands; one that ends as if it waited."""
    job = one.job
    return known.standings.get(job.uid) or standing.refresh(job, known.now, known.config)


def entries(known: kept.Kept) -> list[calendar.Entry]:
    """What is owed as the pass begins."""
    made = known.promised.owing
    if made.entries is None:
        made.entries = list(_entries(known))
    return made.entries


def _entries(known: kept.Kept) -> Iterator[calendar.Entry]:
    """What is owed as the pass begins: slots, the room of those who cannot leave, quota kept free."""
    owed = known.promised.owed
    for one in owed.values():
        if (
            one.seated or one.seat.evictable or not one.seat.placed
        ):  # else it has its room elsewhere, and will not leave for its slot
            yield from one.entries
    for here in known.placed if known.world.fixed else ():
        if here.job.uid not in known.world.fixed:
            continue
        own = owed.get(here.job.uid)
        if own is None or not own.seated or own.slot.finish <= known.now:
            yield staying(known, here, known.world.release(here.job))
    for uid in sorted(known.world.ending):
        job = known.jobs[uid]
        if job.assigned and job.grace > known.config.slot_grace:  # its pods may be there as long as that
            yield calendar.Entry(uid, known.now, known.now + job.grace, known.world.release(job))
    for uid, stake in known.staked.items():
        stays = not known.world.evictable(stake.here.job) and not known.promised.due(stake)
        if stays and uid not in known.claims.drop:
            yield staying(known, stake.here, stake.whole)
    yield from _kept_free(known)


def _kept_free(known: kept.Kept) -> Iterator[calendar.Entry]:
    """The quota that windows keep free, owed to nobody's job."""
    nowhere = np.zeros(0, dtype=np.int64)
    nothing = np.zeros((len(known.world.allocatable), 0), dtype=np.int64)
    for begins, ends in known.windows.spans():
        part = room.Release(ends.queue, nowhere, nothing, ends.charges)
        yield calendar.Entry("", max(begins, known.now), ends.time, part)


def complete(known: kept.Kept) -> None:
    """Owe to those who start or claim in this pass, and could not be told to leave, what they are given."""
    profile = owing(known)
    staked = [stake for stake in known.staked.values() if not known.promised.due(stake)]
    coming = [(stake.here, [stake.whole]) for stake in staked]
    for uid, taken in known.fitted.placed.items():
        here = known.standings[uid]
        coming.append((here, room.release_after(here.job.queue, taken, known.free)))
    for here, parts in coming:
        job = here.job
        if known.world.evictable(job) or job.uid in known.claims.drop:
            continue
        entries = [staying(known, here, part) for part in parts]
        there = [(entry.begins, entry.ends) for entry in profile.entries.get(job.uid, ())]
        if (entries[0].begins, entries[0].ends) not in there:
            for entry in entries:
                profile.add(entry)


def staying(known: kept.Kept, here: standing.Standing, part: room.Release) -> calendar.Entry:
    """What is owed to one that has room now and cannot be told to leave."""
    last = seats.ends(here, known.now, known.config)
    if estimate.is_placed(here.job):
        known.rouse(seats.outrun(here, known.config) + 1)
    return calendar.Entry(here.job.uid, known.now, standing.NEVER if last is None else last, part)


class Respect:
    """Whom slots bind in step 4, and where those find a place."""

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._ahead = known.promised.ahead
        self._begins: list[int] | None = None

    def binding(self, turn: order.Turn) -> guests.Ahead | None:
        """What of the calendar a job has to respect; None: nothing."""
        if not self._ahead:
            return None
        until, uid = self._until(turn) + self._longest(turn), turn.job.uid
        first = next((start for start, owner, _ in self._ahead if owner != uid), until)
        if first >= until:
            return None
        if self._begins is None:
            owed = [entry.begins for entry in entries(self._known)]
            moved = [promise.slot.start for promise in self._known.promised.made.values()]
            self._begins = sorted({*owed, *moved})
        ahead = bisect.bisect_left(self._begins, until)
        return ahead, uid if uid in self._known.promised.owed else ""

    def _stays(self, turn: order.Turn) -> bool:
        """Whether one that starts now stays to its end: it cannot leave in time, or its own slot is due."""
        job, known = turn.job, self._known
        if not known.world.evictable(job):
            return True
        own = known.promised.owed.get(job.uid)
        return own is not None and known.now >= seats.due(job, own.slot, known.config)

    def _longest(self, turn: order.Turn) -> int:
        """By how much (ms) a place could have a job that stays end later than on the best."""
        here, stage = self._known.here(turn), self._known.world.stage
        if here.left is None or not siting.varies(stage, here.job) or not self._stays(turn):
            return 0
        return slowdown.stretched(here.left.hi, slowdown.MOST) - here.left.hi

    def _until(self, turn: order.Turn) -> int:
        """Until when a job that starts now may not be told to leave, or cannot."""
        here, config = self._known.here(turn), self._known.config
        if self._stays(turn):
            last = seats.ends(here, self._known.now, config)
            return standing.NEVER if last is None else last
        queue = self._known.queues[turn.gang.queue]
        least = queue.min_run if here.job.min_run is None else here.job.min_run
        return self._known.now + here.job.overhead + least + config.slot_grace

    def place(self, turn: order.Turn, free: room.Room) -> room.Placement | None:
        """Charge a gang in what slots leave; None, and nothing charged, when it does not fit there."""
        owed = self._owed(turn, free)
        free.charge(owed)
        taken = free.place(turn.gang)
        free.release(owed)
        if taken is not None and not self._lasts(turn, taken, free):
            free.undo(taken)
            return None
        if taken is not None and self._stays(turn):
            for part in room.release_after(turn.gang.queue, taken, free):
                owing(self._known).add(staying(self._known, self._known.here(turn), part))
        return taken

    def _lasts(self, turn: order.Turn, taken: room.Placement, free: room.Room) -> bool:
        """Whether a job that stays may also be as long in a place as that makes it run."""
        here, stage = self._known.here(turn), self._known.world.stage
        if here.left is None or not siting.varies(stage, here.job) or not self._stays(turn):
            return True
        placed = room.by_group(taken, self._known.nodes)
        groups = [placed[index] for index in range(len(here.job.groups))]
        hi = here.left.hi
        longer = slowdown.stretched(hi, siting.slowdown_of(stage, here.job, groups)) - hi
        parts = room.release_after(turn.gang.queue, taken, free)
        return self.clear(turn, parts, later=longer) if longer else True

    def clear(self, turn: order.Turn, place: Sequence[room.Release], *, later: int) -> bool:
        """Whether a job may have a place `later` ms from now."""
        if not self._ahead:
            return True
        uid, now = turn.job.uid, self._known.now
        until = min(self._until(turn) + later, standing.NEVER)
        profile = near(self._known, until)
        with profile.without(uid):
            return profile.holds(calendar.Entry(uid, now, until, stakes.together(place)))

    def latest(self, turn: order.Turn) -> int:
        """When the last of the slots that bind a job ends, in ms since the epoch."""
        until = self._until(turn) + self._longest(turn)
        return max(finish for start, _, finish in self._ahead if start < until)

    def earliest(self) -> int:
        """When the first slot ahead starts, in ms since the epoch."""
        return self._ahead[0][0]

    def _owed(self, turn: order.Turn, free: room.Room) -> room.Release:
        """What of the room that is free now has to be left alone."""
        until, uid = self._until(turn), turn.job.uid
        profile = near(self._known, until)
        with profile.without(uid):
            there, left = profile.window(self._known.now, until)
        beyond = np.maximum(free.ledger.free - np.maximum(there, 0), 0)
        columns = np.flatnonzero(beyond.any(axis=0))
        spare = enumerate(zip(free.quota.free, left.tolist(), strict=True))
        charges = tuple((slot, now - max(then, 0)) for slot, (now, then) in spare if now > max(then, 0))
        return room.Release(turn.gang.queue, columns, beyond[:, columns], charges)


def lets(known: kept.Kept, turn: order.Turn, placement: room.Placement, *, later: int) -> bool:
    """Whether a job may claim a place that those in it leave within `later` ms.

    One that has a slot itself must be able to rely on it after all, should that take longer.
    """
    if not known.promised.owed:
        return True
    one, config = known.promised.owed.get(turn.job.uid), known.config
    waits = later + config.claim_margin
    if one is not None and known.now + waits > one.slot.start - config.slot_grace:
        return False
    place = room.release_after(turn.gang.queue, placement, known.free)
    return Respect(known).clear(turn, place, later=waits)


def start(known: kept.Kept) -> None:
    """Have the owners of slots whose time has come claim them."""
    config, promised = known.config, known.promised
    until = known.now + config.slot_grace
    come = [item for item in promised.owed.items() if item[1].slot.start <= until]
    for uid, one in sorted(come, key=by_start):
        job = one.job
        if job.state is not model.State.WAITING:
            continue
        if uid in promised.lost or uid in promised.made or job.not_before > known.now:
            continue
        if not is_closed(known, job):
            _claim(known, one)


def is_closed(known: kept.Kept, job: model.Job) -> bool:
    """Whether a job may not start now though its slot begins: it is held back, or its queue starts nobody."""
    return order.barred(job, known.queues) is not None or known.queues[job.queue].observed


def by_start(item: tuple[str, tenure.Owed]) -> tuple[int, str]:
    """The order in which slots come."""
    return item[1].slot.start, item[0]


def _claim(known: kept.Kept, one: tenure.Owed) -> None:
    """Have those in a slot suspended for its owner, if that clears it; else wait for those who leave."""
    clearing = _Clearing(known, one)
    if not clearing.run():
        return
    jobs = clearing.chosen
    grace = max([known.config.slot_grace, *(job.grace for job in jobs)])
    claim = model.Claim(
        groups=one.slot.groups,
        victims=tuple(model.Victim(job.uid, job.attempt) for job in jobs),
        expires=known.now + grace + known.config.claim_margin,
        committed=False,
    )
    uid = one.job.uid
    stake = known.world.new_stake(standing_of(known, one), claim, tuple(jobs))
    known.free.charge(stake.charged)
    known.promised.claim[uid] = known.staked[uid] = stake
    known.codes[uid] = model.Code.CLAIMING
    for herd in known.herds.values():  # made by those whose claims go on
        herd.take(herd.flock.places(job.uid for job in jobs))


class _Clearing:
    """Finds who has to leave a slot: the last in rank first, and nobody whom it does not need."""

    def __init__(self, known: kept.Kept, one: tenure.Owed) -> None:
        self._known, self._one = known, one
        self.chosen: list[model.Job] = []
        free, whole = known.free, one.whole
        lacks = whole.amounts - free.ledger.free[:, whole.nodes]
        self._short = np.where(whole.amounts > 0, lacks, -table.LIMIT)
        self._lacks = {slot: amount - free.quota.free[slot] for slot, amount in whole.charges}

    def run(self) -> bool:
        """Whether the slot can be cleared, by those who are `chosen`."""
        for job in self._leaving():
            self._take(job)
        for job in self._guests():
            if self._done():
                break
            self._take(job)
        if not self._done():
            self._give_up_claims()
            return False
        for job in [one for one in reversed(self.chosen) if one.state is not model.State.ENDING]:
            self._take(job, back=True)
            if not self._done():
                self._take(job)
        return True

    def _done(self) -> bool:
        return not (self._short > 0).any() and all(amount <= 0 for amount in self._lacks.values())

    def _take(self, job: model.Job, *, back: bool = False) -> None:
        """Count what a job leaves, if it is of use; `back`: that it stays after all."""
        part = self._known.world.release(job)
        columns = self._one.whole.nodes.tolist()
        place = {column: i for i, column in enumerate(columns)}
        useful = any(self._lacks.get(slot, 0) > 0 for slot, _ in part.charges)
        for i, column in enumerate(part.nodes.tolist()):
            if column in place:
                useful |= bool(((self._short[:, place[column]] > 0) & (part.amounts[:, i] > 0)).any())
        if not useful and not back:
            return
        sign = 1 if back else -1
        for i, column in enumerate(part.nodes.tolist()):
            if column in place:
                self._short[:, place[column]] += sign * part.amounts[:, i]
        for slot, amount in part.charges:
            if slot in self._lacks:
                self._lacks[slot] += sign * amount
        if back:
            self.chosen.remove(job)
        else:
            self.chosen.append(job)

    def _claimed(self) -> set[str]:
        taken = {job.uid for stake in self._known.staked.values() for job in stake.victims}
        return taken | {one.uid for one in (*self._known.drained, *self._known.promised.suspend)}

    def _leaving(self) -> list[model.Job]:
        """Those whose pods leave already, for nobody else."""
        claimed, ending = self._claimed(), model.State.ENDING
        jobs = self._known.jobs.values()
        return [job for job in jobs if job.state is ending and job.assigned and job.uid not in claimed]

    def _guests(self) -> list[model.Job]:
        """Those who can be told to leave, the first to go first: without a promise, of the last band."""
        known, owed = self._known, self._known.promised.owed
        claimed = self._claimed()
        found: list[tuple[tuple[bool, int, int, int, str], model.Job]] = []
        for here in known.placed:
            job = here.job
            seated = job.uid in owed and owed[job.uid].seated
            if seated or job.uid in claimed or not known.world.evictable(job):
                continue
            spare = -standing.NEVER if here.slack is None else -here.slack
            rank = (job.uid in owed, -here.band, order.tier(here), spare, job.uid)
            found.append((rank, job))
        found.sort(key=lambda pair: pair[0])
        return [job for _, job in found]

    def _give_up_claims(self) -> None:
        """Claims of others in the slot end, since their owners could not stay there."""
        known, nodes = self._known, set(self._one.whole.nodes.tolist())
        for uid, stake in known.staked.items():
            one = known.promised.owed.get(uid)
            mine = one is not None and stake.claim.groups == one.slot.groups
            if mine or not stake.claim.committed or uid in known.claims.admit or uid in known.claims.drop:
                continue
            if nodes & set(stake.whole.nodes.tolist()):
                known.claims.drop[uid] = model.Drop(uid, "The time of a promised job's slot has come there.")
