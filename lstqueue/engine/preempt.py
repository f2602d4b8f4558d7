"""Step 5, preempt: for whom others are suspended, whom that takes, and the claim that comes of it.

In the order of the line. What waits for room that is leaving anyway, by suspensions decided before or because
somebody has ended, has nobody suspended while there is slack to wait; so nobody is suspended twice for the
same room. For the others the search finds a set of victims after whose leaving the whole gang fits, nodes and
quota, and from which none can be spared; or nobody is suspended.

Nobody is suspended here either: a claim is planned, and once it is written its victims are (`claims`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from lstqueue.engine import (
    kept,
    lending,
    model,
    order,
    quota,
    reclaim,
    regions,
    room,
    slots,
    stakes,
    standing,
    trials,
    victims,
    windows,
)
from lstqueue.topology.table import Ints, Mask

LACKING = frozenset((model.Code.NO_ROOM, model.Code.QUOTA_EXCEEDED))
"""Codes of those whom room or quota would help; the head of a strict fifo queue is among them."""


Found = tuple[list[int], room.Placement]
"""(victims by their place in the herd, where the gang goes)."""


def step(known: kept.Kept) -> kept.Preempted:
    """Find claims for those at their last moment, charging them as it goes."""
    done, lacking = kept.Preempted(), _lacking(known)
    may = {turn.job.uid for turn in lacking if turn.asks_from is not None and turn.asks_from <= known.now}
    known.lendings.clear()  # who was admitted since counts
    lends = any(map(functools.partial(reclaim.shares, known), known.queues))
    lent = {turn.job.uid for turn in lacking if lends and reclaim.may(known, turn)}
    left, search = len(may | lent), _Search(known)
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
            stake = _claim(known, turn, search, done)
        if stake is not None:
            if soon is not None and comes is not None:
                soon.undo(comes)
            soon = _after(known, soon, stake)
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


def _claim(known: kept.Kept, turn: order.Turn, search: _Search, done: kept.Preempted) -> stakes.Stake | None:
    """Have others suspended for a job if that helps, and charge its claim."""
    who, herd = known.candidate(turn), known.herd(turn.gang.queue)
    mask, stake = herd.allowed(who), None
    done.searches += 1
    if mask is not herd.nobody:
        found = search.run(turn, herd, mask, functools.partial(herd.losses, who))
        stake = None if found is None else _made(known, turn, found, done)
    if stake is None:
        if who.rank is None:
            known.rouse(who.latest - known.config.pressing)
        known.rouse(herd.wake(who, mask, known.wake))
    return stake


def _claim_in_cohort(
    known: kept.Kept, turn: order.Turn, search: _Search, done: kept.Preempted, *, triggered: bool
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


def _made(known: kept.Kept, turn: order.Turn, found: Found, done: kept.Preempted) -> stakes.Stake | None:
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


class _Search:
    """Finds victims. A search that failed need not be repeated for an equal gang that may have no others."""

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._failed: dict[tuple[int, str, quota.Charges], Mask] = {}

    def run(
        self,
        turn: order.Turn,
        herd: victims.Herd,
        mask: Mask,
        losses_of: Callable[[], victims.Floats],
        kind: str = "",
        quotas: quota.Quota | None = None,
    ) -> Found | None:
        """Return the indices of the victims in the herd and where the gang goes; None when nothing helps.

        Of those it may ask for (`mask`) the cheapest are added first until the gang fits. Those who hold
        nothing where it then goes come last, and are needed only for quota; then who is not needed is spared,
        the dearest first. `quotas` is the quota that counts, all of it when None; it only shrinks within
        searches of one `kind`. What windows leave that the job would meet bounds it besides, whoever leaves.
        """
        gang = turn.gang
        windowed = self._known.windows.least(gang.queue, self._known.until(turn))
        key = id(gang), kind, tuple(windowed.items())
        failed = self._failed.get(key)
        if not mask.any() or (failed is not None and not (mask & ~failed).any()):
            return None
        ranked = mask.nonzero()[0]
        trial = trials.Trial(self._known, herd, gang, quotas, windowed)
        if not trial.fits(ranked):
            self._failed[key] = mask
            return None
        losses = losses_of()
        ranked = ranked[np.lexsort((herd.share[ranked], losses[ranked]))]  # of what costs nothing the least
        inside = regions.of(self._known, gang)
        if not inside:
            return _least(trial, herd, ranked, losses)
        found: list[tuple[float, int, Found]] = []
        for nodes in inside:  # victims that free one domain, and not as much in several
            one = trials.Trial(self._known, herd, gang, quotas, windowed, nodes)
            near = ranked[regions.holding(herd, nodes)[ranked]]
            those = next((some for some in (near, ranked) if len(some) and one.fits(some)), None)
            if those is not None:
                victims_there = _least(one, herd, those, losses)
                cost = float((losses * herd.share)[victims_there[0]].sum())
                found.append((cost, len(found), victims_there))
        return min(found, key=_cost)[2] if found else _least(trial, herd, ranked, losses)


def _cost(found: tuple[float, int, Found]) -> tuple[float, int]:
    return found[:2]


def _least(trial: trials.Trial, herd: victims.Herd, ranked: Ints, losses: victims.Floats) -> Found:
    """A set of `ranked`, all of which are enough, of which none can be spared, the cheapest first."""
    chosen = trial.shortest(ranked)
    touched = trial.touched(chosen)
    chosen = trial.shortest(np.concatenate([chosen[touched], chosen[~touched]]))
    kept_ones = chosen.tolist()
    dear = losses * herd.share
    for index in sorted(chosen.tolist(), key=lambda i: (-dear[i], -herd.share[i], i)):
        fewer = [one for one in kept_ones if one != index]
        if fewer and trial.fits(np.array(fewer)):
            kept_ones = fewer
    kept_ones.sort()
    return kept_ones, trial.placement(np.array(kept_ones))
