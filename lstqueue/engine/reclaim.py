"""Step 5 in a cohort: whom a job may ask for beyond its own queue, and by which rule.

A job that its queue's nominal quota would hold may have back what was lent: borrowed jobs of other queues,
without waiting for its last moment and whatever that does to their deadlines, those first whom it does no
harm. They keep their minimum run, though no longer than `Queue.reclaim_grace`, and a queue takes back on one
occasion per grace, however many of its jobs do so then.

At its last moment a job may besides ask for victims in its own queue, by the rules of `victims`, and for
borrowed jobs elsewhere: those of band REST, and if it would be nominal itself any that it does no harm or
that rank below. Nominal jobs of another queue are nobody's victims; so queues cannot suspend each other's
jobs in turn, whatever their deadlines (docs/engine.md, Quota in a cohort).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import (
    cohorts,
    gangs,
    kept,
    lending,
    model,
    order,
    quota,
    rights,
    room,
    stakes,
    standing,
    victims,
)
from lstqueue.engine.victims import Floats
from lstqueue.topology.table import Ints, Mask


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a set of victims: whom of the herd (`mask`), in which order (`losses`), in which quota.

    `reclaims`: by the right to nominal quota. `extended` are those of the mask who may be asked for only if
    the owner is nominal when they have left.
    """

    kind: str
    mask: Mask
    losses: Callable[[], Floats]
    quota: quota.Quota
    reclaims: bool = False
    extended: Mask | None = None


def shares(known: kept.Kept, queue: str) -> bool:
    """Whether a queue is in a cohort, so that victims may be of others."""
    house = known.queues[queue]
    return house.account != house.name and not known.config.switches.by_rank


def may(known: kept.Kept, turn: order.Turn) -> bool:
    """Whether a job that lacks something could be nominal, and so take back what was lent, now or later."""
    here, queue = known.here(turn), known.queues[turn.gang.queue]
    if not known.config.reclaims or not queue.reclaims or not shares(known, queue.name):
        return False
    if here.job.failed_starts >= known.config.failed_starts_most or turn.observed:
        return False
    return _could_be_nominal(turn.gang, lending.of(known, queue.name).left(here))


def comes_before(known: kept.Kept, owner: order.Turn, turn: order.Turn) -> bool:
    """Whether a job could have back what the `owner` of a reservation, of another queue, would borrow."""
    house, other = known.queues[turn.gang.queue], known.queues[owner.gang.queue]
    if house is other or not cohorts.together(house, other) or not may(known, turn):
        return False
    left = lending.of(known, other.name).left(known.here(owner))
    return not _could_be_nominal(owner.gang, left)


def ways(known: kept.Kept, turn: order.Turn, *, triggered: bool) -> Iterator[Way]:
    """The ways open to a job, in the order in which they are to be tried."""
    here, queue = known.here(turn), turn.gang.queue
    herd, lends = known.herd(queue), lending.of(known, queue)
    left = lends.left(here)
    borrowed = _borrowed(known, herd, queue, lends)
    if borrowed.any() and may(known, turn):
        due = _next_occasion(known, queue)
        if due <= known.now:
            mask = _returnable(known, herd, here, queue) & borrowed & ~herd.claimed
            narrow = _narrowed(known.free.quota, left)
            losses = functools.partial(_losses, known, herd, here, lends)
            yield Way("reclaim", mask, losses, narrow, reclaims=True)
            known.rouse(_returnable_at(known, herd, queue, borrowed))
        else:
            known.rouse(due)
    if triggered:
        who = known.candidate(turn)
        nominal = _could_be_nominal(turn.gang, left)
        mask, extended = _at_last(herd, who, queue, borrowed, nominal=nominal)
        losses = functools.partial(herd.losses, who)
        if extended.any():
            yield Way("nominal", mask | extended, losses, known.free.quota, extended=extended)
        yield Way("last moment", mask, losses, known.free.quota)


def borrowers(known: kept.Kept, turn: order.Turn) -> tuple[int, int, int]:
    """Of whom a job could take back what was lent, for words.

    Returns:
        (jobs that run on borrowed quota in other queues, how many of them may be suspended for it now, when
        (ms since the epoch) its queue may take back at the earliest).
    """
    here, queue = known.here(turn), turn.gang.queue
    herd = known.herd(queue)
    borrowed = _borrowed(known, herd, queue, lending.of(known, queue))
    able = borrowed & _returnable(known, herd, here, queue) & ~herd.claimed
    return int(borrowed.sum()), int(able.sum()), _next_occasion(known, queue)


def holds(known: kept.Kept, turn: order.Turn, way: Way, found: tuple[list[int], room.Placement]) -> bool:
    """Whether victims that were found may be asked for: some only if the owner is nominal once they left."""
    chosen, placement = found
    if way.extended is None or not way.extended[chosen].any():
        return True
    here = known.herd(turn.gang.queue).here
    gone = frozenset(here[i].job.uid for i in chosen)
    left = lending.of(known, turn.gang.queue).left(known.here(turn), without=gone)
    sums: dict[int, int] = {}
    for part in placement:
        for slot, amount in part.option.charges:
            sums[slot] = sums.get(slot, 0) + amount
    return lending.fits(tuple(sums.items()), left)


def unjustified(known: kept.Kept, stake: stakes.Stake) -> model.Job | None:
    """The first victim of a claim for which nobody has left yet that may not be asked for any more."""
    here, queue = stake.here, stake.here.job.queue
    herd, lends = known.herd(queue), lending.of(known, queue)
    borrowed = _borrowed(known, herd, queue, lends)
    allowed: Mask = np.zeros(len(herd.here), dtype=np.bool_)
    nominal = lending.fits(stake.whole.charges, lends.left(here))
    house = known.queues[queue]
    if nominal and known.config.reclaims and house.reclaims:
        allowed |= _returnable(known, herd, here, queue) & borrowed
    if rights.denial(here, house, known.config) is None:
        who = rights.candidate(here, house, known.now)
        mask, extended = _at_last(herd, who, queue, borrowed, nominal=nominal, even_claimed=True)
        allowed |= mask | extended
    for job in stake.running:
        place = herd.flock.place(job.uid)
        if place is None or not allowed[place]:
            return job
    return None


def _at_last(
    herd: victims.Herd,
    who: rights.Candidate,
    queue: str,
    borrowed: Mask,
    *,
    nominal: bool,
    even_claimed: bool = False,
) -> tuple[Mask, Mask]:
    """Whom a job at its last moment may ask for, and whom besides if it is nominal."""
    own = herd.of(queue)
    mask = herd.allowed(who, even_claimed=even_claimed) & own
    # Tiers are a matter of one queue: another's importance is its own business.
    others = herd.allowed(who._replace(tiers=False), even_claimed=even_claimed) & borrowed
    rest = herd.flock.band == model.Band.REST
    extended: Mask = others & ~rest if nominal else np.zeros(len(herd.here), dtype=np.bool_)
    return mask | (others & rest), extended


def _borrowed(known: kept.Kept, herd: victims.Herd, queue: str, lends: lending.Lending) -> Mask:
    """Who of the herd is of another queue, runs on what others lend, and can be suspended there."""
    found: Mask = np.zeros(len(herd.here), dtype=np.bool_)
    for other in lends.queues:
        if other != queue and not known.queues[other].observed:
            found[herd.flock.places(lends.borrowed(other))] = True
    return found


def _could_be_nominal(gang: gangs.Gang, left: Mapping[int, int]) -> bool:
    """Whether each group by itself has a pool in which the nominal quota that is left would hold it."""
    return all(any(lending.fits(option.charges, left) for option in one.options) for one in gang.members)


def _narrowed(free: quota.Quota, left: Mapping[int, int]) -> quota.Quota:
    """The quota of a job that may only be placed where it is nominal."""
    narrow = free.copy()
    for slot, amount in left.items():
        narrow.free[slot] = min(narrow.free[slot], amount)
    return narrow


def _next_occasion(known: kept.Kept, queue: str) -> int:
    """When (ms since the epoch) a queue may take back again."""
    last = known.snapshot.reclaimed.get(queue, 0)
    return last + known.queues[queue].reclaim_grace if last else 0


def _protected_until(known: kept.Kept, herd: victims.Herd, queue: str) -> Ints:
    """Until when (ms since the epoch) each of the herd may go on because it began a short time ago.

    Its minimum run, and after wasted suspensions its next checkpoint, but no longer than the grace; one that
    only starts has the grace.
    """
    grace = known.queues[queue].reclaim_grace
    flock = herd.flock
    run = known.now - flock.since
    keeps = flock.saves | ((flock.checkpoint > 0) & (run >= flock.checkpoint))
    wasted = (flock.wasted >= known.config.wasted_most) & ~keeps
    least: Ints = np.where(flock.runs & ~wasted, np.minimum(flock.min_run, grace), grace)
    until: Ints = flock.since + least
    return until


def _returnable(known: kept.Kept, herd: victims.Herd, here: standing.Standing, queue: str) -> Mask:
    """Whom a queue may take back from, borrowed or not, claimed or not: cap and deadline do not protect."""
    promised = herd.bar == victims.BARS.index(victims.Bar.PROMISED)
    mask: Mask = herd.flock.preemptible & ~promised & ~_ends_soon(known, herd, queue) & ~herd.taken
    mask &= _protected_until(known, herd, queue) <= known.now
    mask[herd.flock.places(here.job.displaced_by)] = False
    return mask


def _returnable_at(known: kept.Kept, herd: victims.Herd, queue: str, borrowed: Mask) -> int:
    """When time alone may first make somebody returnable."""
    until = np.where(borrowed, _protected_until(known, herd, queue), standing.NEVER)
    first = int(until.min(initial=standing.NEVER, where=until > known.now))
    # Whoever saves before it ends has less to lose by a suspension than by going on.
    saves = borrowed & _ends_soon(known, herd, queue) & (herd.saves_at > known.now)
    saves &= herd.flock.finish - herd.saves_at > herd.flock.restore
    return min(first, int(herd.saves_at.min(initial=standing.NEVER, where=saves)))


def _ends_soon(known: kept.Kept, herd: victims.Herd, queue: str) -> Mask:
    """Who ends by itself within the grace, and with less loss than by a suspension."""
    least = np.minimum(herd.weight, known.queues[queue].reclaim_grace)
    soon: Mask = (herd.left > 0) & (herd.left <= least)
    return soon


def _losses(known: kept.Kept, herd: victims.Herd, here: standing.Standing, lends: lending.Lending) -> Floats:
    """The order in which to take back: from whom it does no harm by cost, then from the lowest rank on."""
    config = known.config
    mid = 0 if here.left is None else here.left.mid
    harmless = (herd.after > mid) & (herd.unsaved <= config.unsaved_most)
    mild = harmless | (herd.flock.band == model.Band.REST)
    long = np.sqrt(np.maximum(herd.left, config.harm_least) / config.harm_least)
    losses: Floats = np.where(harmless, herd.weight / long, herd.weight.astype(np.float64))
    severe = [i for i in range(len(herd.here)) if not mild[i]]
    severe.sort(key=lambda i: lends.place(herd.here[i]), reverse=True)
    worst = float(losses.max(initial=0.0)) + 1.0
    for position, i in enumerate(severe, start=1):
        losses[i] = worst * position
    return losses
