"""Step 6, reserve: for whom room is kept until others have left it, which room, and from when on.

Without it a wide gang waits for as long as smaller ones take whatever comes free, until it is at its last
moment and has somebody suspended. So for the first in line that wait for others to leave (`Config.
reserve_most` per pool, and together no more of it than `Config.reserve_share`) the place is kept in which
they fit first, if everybody stays as long as they might. Only jobs of band 0, and as long as they have slack
to wait: the others have step 5. Who lacks quota alone, and would find the nodes, is kept nothing; it cannot
be told by the code, since in a queue whose quota is all there is whoever lacks nodes lacks quota as well.

A reservation is written into the job's status. It takes no room: it only binds others, in step 4 (`guests`),
from the next pass on. Each pass finds out anew for whom there is to be one and where, and writes what is
another (ADR 0015). When its time has come in vain a reservation is put off.

When they will be gone who leave already is not known, only that it takes them no longer than their grace from
now. That is a time which moves with the clock, so what is written with it once stands (`_Keeper._holds`).
"""

from __future__ import annotations

import bisect
import functools
from collections import Counter
from collections.abc import Iterable

import numpy as np

from lstqueue.engine import (
    claims,
    departures,
    foresight,
    guests,
    kept,
    lending,
    model,
    order,
    outlook,
    preempt,
    reclaim,
    room,
    siting,
    slots,
)
from lstqueue.engine.gangs import PPM

Selector = tuple[tuple[str, str], ...]
"""What the nodes of a pool are labelled with: pools of several queues may be the same nodes."""


def settle(known: kept.Kept) -> list[guests.Keeping]:
    """Read the reservations that stand, and give up the others; the line must be known."""
    uids = sorted(known.world.reserved)
    turns = {turn.job.uid: turn for turn in known.line} if uids else {}
    found: list[guests.Keeping] = []
    for uid in uids:
        job, turn = known.jobs[uid], turns.get(uid)
        if turn is None or job.reservation is None or (why := _void(known, turn, job.reservation)):
            why = _ABSENT if turn is None else why
            known.reservations.lost[uid] = model.Unreserve(uid, why)
        else:
            whole = known.world.kept(job, job.reservation)
            found.append(guests.Keeping(turn, job.reservation, whole))
    found.sort(key=_rank)
    if found:
        known.lendings.clear()  # who stands in line by the best-effort share is known since
    return found


def guests_of(known: kept.Kept) -> guests.Guests:
    """Who has to respect what of those that stand, and of slots; for the walk of step 4 alone.

    It asks the pass, so a pass does not keep it: what nobody holds in a circle is freed at once.
    """
    ahead = slots.Respect(known) if known.promised.owed else None
    if not known.keepings and ahead is None:
        return guests.NONE
    return guests.Guests(
        known.keepings,
        find=known.here,
        queues=known.queues,
        config=known.config,
        owed=lambda keeping: _owed(known, keeping),
        slots=ahead,
        yields=functools.partial(reclaim.comes_before, known),
        starts=functools.partial(lending.started, known),
    )


_ABSENT = "It does not stand in line."


def _void(known: kept.Kept, turn: order.Turn, reservation: model.Reservation) -> str:
    """Why nothing is kept for a job any more; empty when it is."""
    here, job = known.here(turn), turn.job
    if not known.config.reserve_most:
        return "No room is kept for anybody."
    if turn.observed or job.not_before > known.now:
        return _ABSENT
    if here.band is not model.Band.DEADLINE or here.slack is None or here.hopeless:
        return "Its deadline cannot hold any more, or it was given up for now."
    if turn.gang.unlisted is not None or len(reservation.groups) != len(job.groups):
        return "Its groups are not those it was made for."
    for member in turn.gang.members:
        group, place = job.groups[member.group], reservation.groups[member.group]
        if problem := claims.misplaced(known, group, place, member):
            return problem
    return "" if siting.holds(known.world.stage, turn.gang, reservation.groups) else claims.APART


def _rank(keeping: guests.Keeping) -> order.Rank:
    return keeping.turn.rank


def _owed(known: kept.Kept, keeping: guests.Keeping) -> room.Release:
    """What of the room that is free now has to stay free for a reservation.

    That is all that is free on its nodes, so that a node comes free as a whole (`Config.reserve_whole`). Else
    whatever others leave there until its start is the owner's as well, and a guest may stay on the rest; of
    the quota it may in any case.
    """
    whole, now, leaving = keeping.whole, known.free, preempt.leaving(known)
    ends = known.world.leavers.read(known.lasting, [job.uid for job in leaving])
    last = bisect.bisect_right(ends.times, keeping.reservation.start)
    gone, come = [known.world.release(job) for job in leaving], [stake.rest for stake in known.going()]
    free = np.maximum(now.ledger.free[:, whole.nodes], 0)
    quotas = now.quota.copy()
    if known.config.reserve_whole:
        asked = free
        ends.return_to(quotas, 0, last)
        for part in gone:
            quotas.give(part.charges)
        for part in come:
            quotas.take(part.charges)
    else:
        then = now.copy()
        ends.leave(then, 0, last)
        then.release_all(gone)
        then.charge_all(come)
        comes, quotas = np.maximum(then.ledger.free[:, whole.nodes], 0) - free, then.quota
        asked = np.maximum(whole.amounts - np.maximum(comes, 0), 0)
    returns = {slot: max(quotas.free[slot] - now.quota.free[slot], 0) for slot, _ in whole.charges}
    charges = tuple((slot, max(amount - returns[slot], 0)) for slot, amount in whole.charges)
    return room.Release(whole.queue, whole.nodes, asked, charges)


def step(known: kept.Kept) -> kept.Reservations:
    """Find out for whom room is kept from now on, where, and until when."""
    if known.config.reserve_most:
        keeper = _Keeper(known)
        for turn in filter(functools.partial(_waits_for_room, known), known.line):
            if keeper.full:
                break
            keeper.keep(turn)
        keeper.give_up()
    return known.reservations


def _waits_for_room(known: kept.Kept, turn: order.Turn) -> bool:
    """Whether a job is one to keep room for, if there is some to keep."""
    if not turn.timely or (code := known.codes.get(turn.job.uid)) not in preempt.LACKING:
        return False
    if turn.asks_from is None:
        if known.queues[turn.gang.queue].preemption is not model.Preemption.NEVER:
            return False
    elif turn.asks_from <= known.now and known.config.reserve_early:
        return False
    return code is model.Code.NO_ROOM or not _nodes_fit(known.free, turn)


def _nodes_fit(free: room.Room, turn: order.Turn) -> bool:
    """Whether each group by itself would find the nodes now, quota left aside."""
    total = free.ledger.total
    return all(
        any(int(total[option.row]) >= member.count for option in member.options)
        for member in turn.gang.members
    )


Found = tuple[tuple[model.GroupPlacement, ...], int, room.Release]
"""(a place, when it is free in ms since the epoch, the same place in columns)."""


class _Keeper:
    """Keeps count of what is kept, and looks for room to come."""

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._free: room.Room | None = None
        self._departures = departures.Departures()
        self._leaving: list[tuple[int, room.Release]] = []
        starting = known.fitted.placed.keys() | known.staked.keys()
        before = {one.turn.job.uid: one for one in known.keepings}
        self._before = {uid: one for uid, one in before.items() if uid not in starting}
        self._pools = {pool.selector for queue in known.queues.values() for pool in queue.pools}
        self._heads: Counter[Selector] = Counter()
        self._share: Counter[Selector] = Counter()

    @property
    def full(self) -> bool:
        """Whether as many have room kept for them, or were found none, as may in every pool."""
        return all(self._heads[pool] >= self._known.config.reserve_most for pool in self._pools)

    def give_up(self) -> None:
        """Give up what was kept for those who were found nothing this time."""
        for uid in self._before:
            self._known.reservations.lost[uid] = model.Unreserve(
                uid, "Room is kept for others, or for nobody."
            )

    def keep(self, turn: order.Turn) -> None:
        """Keep room for a job, unless it is too much, or as many before it have some."""
        config, pools = self._known.config, self._of(turn)
        most, share = round(config.reserve_share * PPM), turn.gang.share
        if any(self._heads[one] >= config.reserve_most or self._share[one] + share > most for one in pools):
            return
        self._count(turn)
        self._future()
        before = self._before.pop(turn.job.uid, None)
        if before is not None and self._holds(before):
            self._future().charge(before.whole)
            self._known.rouse(self._drifts(before.reservation.start + config.claim_margin))
        elif (found := self._search(turn)) is not None:
            self._note(turn, found, slips=0 if before is None else self._slips(before.reservation))
        elif before is not None:
            self._before[turn.job.uid] = before

    def _slips(self, written: model.Reservation) -> int:
        """How often a reservation was put off, once it is put off or moved."""
        return written.slips + (written.start <= self._known.now)

    def _holds(self, before: guests.Keeping) -> bool:
        """Whether what is written stands: its place comes free in time, and none comes free sooner.

        Both by more than a moment, since ends are known a moment late. So an owner costs two looks at the
        room to come, and a search only when it has to move. Who leaves already is gone in time, and not
        sooner than its grace from now: else each pass would find a start a little later than the last, and
        what it writes would call for the next. Who takes longer makes the reservation slip.
        """
        written, margin, now = before.reservation, self._known.config.claim_margin, self._known.now
        if written.start <= now:
            return now < written.start + margin
        ends = self._departures
        sooner, in_time = (bisect.bisect_left(ends.times, written.start + by) for by in (-margin, margin + 1))
        alone = self._known.world.alone(before.turn.gang)
        then = self._future().alone(alone)
        ends.leave(then, 0, sooner)
        if then.could_place(alone.gang):
            return False
        ends.leave(then, sooner, in_time)
        then.release_all([parts for at, parts in self._leaving if at > written.start + margin])
        return _has(then, before.whole)

    def _drifts(self, until: int) -> int:
        """When a place that is to be free by a time may come free later than that.

        The end of one that claims is as far away as ever until it starts.
        """
        times = self._departures.times
        in_time = bisect.bisect_right(times, until)
        if not in_time or not self._known.going():
            return until
        return min(until, self._known.now + until - times[in_time - 1] + 1)

    def _count(self, turn: order.Turn) -> None:
        for pool in self._of(turn):
            self._heads[pool] += 1
            self._share[pool] += turn.gang.share

    def _of(self, turn: order.Turn) -> set[Selector]:
        """The pools that a gang may use; it is counted in each."""
        names = {option.pool for member in turn.gang.members for option in member.options}
        return {pool.selector for pool in self._known.queues[turn.gang.queue].pools if pool.name in names}

    def _note(self, turn: order.Turn, found: Found, *, slips: int) -> None:
        known, uid = self._known, turn.job.uid
        groups, start, whole = found
        self._future().charge(whole)
        known.reservations.lost.pop(uid, None)  # what is made takes its place
        known.reservations.made[uid] = model.Reserve(uid, model.Reservation(groups, start, slips))
        known.rouse(start + known.config.claim_margin)

    def _future(self) -> room.Room:
        """What is free beside all claims and reservations, as if they had begun; made when needed."""
        if self._free is None:
            known = self._known
            leaving = preempt.leaving(known)
            self._leaving = [(known.now + job.grace, known.world.release(job)) for job in leaving]
            self._departures = _departures(known, leaving)
            for at, parts in self._leaving:
                self._departures.insert(bisect.bisect_right(self._departures.times, at), (at, [parts]))
            self._free = known.free.copy()
            self._free.charge_all([stake.rest for stake in known.going()])
        return self._free

    def _search(self, turn: order.Turn) -> Found | None:
        """Where a gang fits first if nobody else starts and everybody leaves as late as they might."""
        alone = self._known.world.alone(turn.gang)
        free = self._future().alone(alone)
        first = self._departures.first(free, lambda then: then.could_place(alone.gang))
        if first is None:
            return None
        count, then = first
        start = self._departures.times[count - 1] if count else self._known.now
        taken = then.place(alone.gang)
        if taken is None:
            return None  # several groups: what fits is not found again in another order of pools
        placed = room.by_group(taken, self._known.nodes)
        groups = tuple(placed[index] for index in range(len(turn.job.groups)))
        return groups, start, self._known.world.place(turn.job, groups)


def _departures(known: kept.Kept, leaving: Iterable[model.Job]) -> departures.Departures:
    """What becomes free when, at the latest, of all that holds room or is about to, `leaving` left aside.

    Room that windows take meanwhile is left aside as well: what is free is to grow with time alone.
    """
    found = known.world.leavers.read(known.lasting, [job.uid for job in leaving])
    scene = foresight.scene(known, [])
    for finish, parts in reversed(outlook.of_others(scene, scene.windows.active)):
        found.insert(bisect.bisect_left(found.times, finish.hi), (finish.hi, parts))
    for finish, parts in outlook.of_placed(scene):
        found.insert(bisect.bisect_right(found.times, finish.hi), (finish.hi, parts))
    return found


def _has(free: room.Room, whole: room.Release) -> bool:
    """Whether all of a place is free, and the quota for it."""
    there = free.ledger.free[:, whole.nodes]
    enough = all(free.quota.free[slot] >= amount for slot, amount in whole.charges)
    return enough and bool(((there >= whole.amounts) | (whole.amounts == 0)).all())
