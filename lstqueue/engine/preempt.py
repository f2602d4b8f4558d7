"""Step 5, preempt: for whom others are suspended, whom that takes, and the claim that comes of it.

In the order of the line. What waits for room that is leaving anyway, by suspensions decided before or because
somebody has ended, has nobody suspended while there is slack to wait; so nobody is suspended twice for the
same room. For the others the search finds a set of victims after whose leaving the whole gang fits, nodes and
quota, and from which none can be spared; or nobody is suspended.

Nobody is suspended here either: a claim is planned, and once it is written its victims are (`claims`).
"""

from __future__ import annotations

import functools

from lstqueue.engine import (
    kept,
    lending,
    model,
    moves,
    order,
    reclaim,
    room,
    searches,
    slots,
    stakes,
    standing,
    windows,
)

LACKING = frozenset((model.Code.NO_ROOM, model.Code.QUOTA_EXCEEDED))
"""Codes of those whom room or quota would help; the head of a strict fifo queue is among them."""


def step(known: kept.Kept) -> kept.Preempted:
    """Find claims for those at their last moment, charging them as it goes."""
    done, lacking = kept.Preempted(), _lacking(known)
    may = {turn.job.uid for turn in lacking if turn.asks_from is not None and turn.asks_from <= known.now}
    known.lendings.clear()  # who was admitted since counts
    lends = any(map(functools.partial(reclaim.shares, known), known.queues))
    lent = {turn.job.uid for turn in lacking if lends and reclaim.may(known, turn)}
    left, search = len(may | lent), searches.Search(known)
    moving = moves.Moves(known, search)
    going = leaving(known) if left else []
    soon = _soon(known, going) if going else None
    for turn in lacking:
        if not left:
            break
        uid = turn.job.uid
        comes = None if soon is None else soon.place(turn.gang)
        if uid not in may and uid not in lent:
            continue
        left -= 1
        if comes is not None and _patient(known, turn, done):
            continue
        if reclaim.shares(known, turn.gang.queue):
            stake = _claim_in_cohort(known, turn, search, done, triggered=uid in may)
        else:
            stake = _claim(known, turn, search, moving, done)
        if stake is not None:
            if soon is not None and comes is not None:
                soon.undo(comes)
            soon = _after(known, soon, stake)
    moving.let_go()
    return done


def _lacking(known: kept.Kept) -> list[order.Turn]:
    """Those of the line whom room or quota would help; look again when one may have others suspended.

    Be it for room that is kept for another.
    """
    found, codes, bound = list[order.Turn](), known.codes, known.fitted.bound
    now, first = known.now, standing.NEVER
    for turn in known.line:
        lacks = codes.get(turn.job.uid) in LACKING
        if lacks:
            found.append(turn)
        asks = turn.asks_from
        if asks is not None and now < asks < first and (lacks or turn.job.uid in bound):
            first = asks
    known.rouse(first)
    return found


def _patient(known: kept.Kept, turn: order.Turn, done: kept.Preempted) -> bool:
    """Whether a job for which room is leaving can wait for it; so it does, until it presses."""
    here = known.here(turn)
    if known.config.switches.by_rank:
        return True
    if here.slack is not None and here.slack <= known.config.pressing and not here.hopeless:
        return False
    done.coming.add(here.job.uid)
    if here.slack is not None:
        known.rouse(known.now + here.slack - known.config.pressing)
    return True


def _claim(
    known: kept.Kept,
    turn: order.Turn,
    search: searches.Search,
    moving: moves.Moves,
    done: kept.Preempted,
) -> stakes.Stake | None:
    """Have others suspended for a job if that helps, and charge its claim."""
    who, herd = known.candidate(turn), known.herd(turn.gang.queue)
    mask, stake = herd.allowed(who), None
    done.searches += 1
    if mask is not herd.nobody:
        found = search.run(turn, herd, mask, functools.partial(herd.losses, who))
        stake = None if found is None else _made(known, turn, found, done)
    if stake is None and (found := moving.find(turn, who, herd, mask)) is not None:
        stake = _made(known, turn, found, done)
        if stake is not None:
            moving.keep()
    if stake is None:
        if who.rank is None:
            known.rouse(who.latest - known.config.pressing)
        known.rouse(herd.wake(who, mask, known.wake))
    return stake


def _claim_in_cohort(
    known: kept.Kept, turn: order.Turn, search: searches.Search, done: kept.Preempted, *, triggered: bool
) -> stakes.Stake | None:
    """The same where victims may be of other queues, by one way after the other."""
    here, queue = known.here(turn), turn.gang.queue
    done.searches += 1
    herd = known.herd(queue)
    for way in reclaim.ways(known, turn, triggered=triggered):
        found = search.run(turn, herd, way.mask, way.losses, way.kind, way.quota)
        if found is None or not reclaim.holds(known, turn, way, found):
            continue
        if (stake := _made(known, turn, found, done)) is not None:
            lending.of(known, queue).add(here, stake.whole.charges)
            if way.reclaims:
                done.reclaims.add(here.job.uid)
            return stake
    if triggered:
        who = known.candidate(turn)
        known.rouse(who.latest - known.config.pressing)
        known.rouse(herd.wake(who, herd.nobody, known.wake))
    return None


def _made(
    known: kept.Kept, turn: order.Turn, found: searches.Found, done: kept.Preempted
) -> stakes.Stake | None:
    """Charge the claim that was found, unless a promise does not allow it."""
    here, herd, (chosen, placement) = known.here(turn), known.herd(turn.gang.queue), found
    later = max(herd.here[i].job.grace for i in chosen)
    if not slots.lets(known, turn, placement, later=later):
        return None
    groups = room.by_group(placement, known.nodes)
    jobs = tuple(herd.here[i].job for i in chosen)
    claim = model.Claim(
        groups=tuple(groups[index] for index in range(len(here.job.groups))),
        victims=tuple(model.Victim(job.uid, job.attempt) for job in jobs),
        expires=known.now + max(job.grace for job in jobs) + known.config.claim_margin,
        committed=False,
    )
    stake = known.world.new_stake(here, claim, jobs)
    known.free.charge(stake.charged)
    for part in placement:
        known.windows.stay(turn.gang.queue, part.option.charges, windows.until(here))
    herd.take(chosen)
    done.claim[here.job.uid] = known.staked[here.job.uid] = stake
    known.codes[here.job.uid] = model.Code.CLAIMING
    return stake


def leaving(known: kept.Kept) -> list[model.Job]:
    """Jobs whose room is on its way to be free: they end, or are suspended."""
    ending = (known.jobs[uid] for uid in known.ending)
    found = {job.uid: job for job in ending if job.assigned}
    for stake in known.going():
        found |= {job.uid: job for job in stake.victims}
    for suspend in known.drained:
        found[suspend.uid] = known.standings[suspend.uid].job
    return list(found.values())


def _soon(known: kept.Kept, leaving: list[model.Job]) -> room.Room:
    """The room once everybody who leaves is gone, claims charged in full."""
    soon = known.free.copy()
    soon.release_all([known.world.release(job) for job in leaving])
    soon.charge_all([stake.rest for stake in known.going()])
    return soon


def _after(known: kept.Kept, soon: room.Room | None, stake: stakes.Stake) -> room.Room:
    """`soon` with one more claim in it."""
    if soon is None:
        return _soon(known, leaving(known))
    soon.release_all([known.world.release(job) for job in stake.victims])
    soon.charge(stake.whole)
    return soon
