"""Step 7, the occasion: for whom a pass forecasts, and in which line.

Everybody in line now and then; whoever is new, or was told something that is no more, at once. Jobs of a
queue that only observes are forecast in a line of their own, as if their queue admitted; in the line of the
others they do not stand, since they take no room. Owners of claims start where they claim.
"""

from __future__ import annotations

import functools

from lstqueue.engine import estimate, fit, guests, kept, model, order, outlook, slots, verdict
from lstqueue.engine.standing import Standing


def step(known: kept.Kept) -> tuple[bool, bool]:
    """Forecast for whom this pass must answer, and keep the outlooks.

    Args:
        known: The pass; its line has been walked.

    Returns:
        (whether published forecasts are out of date, whether this pass made all of them anew).
    """
    now = known.now
    claiming = [stake.here for stake in known.going()]
    imagined = _foreseeable(known, observed=True)
    line = [turn for turn in imagined if not turn.observed]
    if len(line) < len(imagined):
        line = _foreseeable(known, observed=False)
    if not imagined and not claiming:
        return False, False
    stale = _stale(known)
    due = stale and _again(known)
    asked = [turn for turn in line if due or _asks(known, turn)]
    watched = [turn for turn in imagined if turn.observed]
    curious = [turn for turn in watched if due or _asks(known, turn)]
    if asked:
        known.outlooks |= outlook.foresee(scene(known, line), _uids(asked))
    if curious:
        known.outlooks |= outlook.foresee(scene(known, imagined), _uids(curious))
    if any(one.start is None for one in known.outlooks.values()):
        known.wording.calm = outlook.calm(scene(known, line))
    owners = [here for here in claiming if due or _is_new(here)]
    known.outlooks |= {here.job.uid: _owner(here, now) for here in owners}
    answered = len(asked) + len(curious) + len(owners)
    return stale, answered == len(line) + len(watched) + len(claiming)


def due(known: kept.Kept) -> bool:
    """Whether all in line are to be forecast anew: something has changed, and it is time."""
    return _again(known) and _stale(known)


def _again(known: kept.Kept) -> bool:
    return known.now - known.snapshot.forecast_at >= known.config.forecast_interval


def _stale(known: kept.Kept) -> bool:
    return known.snapshot.changed or _outran(known)


def _foreseeable(known: kept.Kept, *, observed: bool) -> list[order.Turn]:
    """Those at the front of the line who stay in it and could fit some day, as many as a forecast follows."""
    found: list[order.Turn] = []
    for turn in known.line:
        if len(found) == known.config.forecast_depth:
            break
        uid = turn.job.uid
        gone = uid in known.fitted.placed or uid in known.staked or known.codes.get(uid) in fit.NEVER_FITS
        if not gone and (observed or not turn.observed):
            found.append(turn)
    return found


def _asks(known: kept.Kept, turn: order.Turn) -> bool:
    """Whether a job has to be forecast in this pass, whether or not the others are.

    Why no start can be foreseen is nothing but words, which move no figure that would have them told anew.
    """
    here, uid = known.here(turn), turn.job.uid
    renewed = uid in known.snapshot.restate and verdict.tells_no_start(here.job.published.verdict)
    return renewed or uid in known.promised.lost or verdict.wants_forecast(here)


def scene(known: kept.Kept, line: list[order.Turn]) -> outlook.Scene:
    """What a forecast of those in a line starts from, once the pass has admitted and claimed."""
    leaving = {suspend.uid for suspend in known.drained}
    for stake in known.going():
        leaving |= {job.uid for job in stake.victims}
    return outlook.Scene(
        free=known.free,
        jobs=known.jobs.values(),
        release=known.world.release,
        standings=known.standings,
        line=line,
        placed=known.fitted.placed,
        starting=tuple(known.claims.admit.values()),
        claims=tuple(known.going()),
        given_up=tuple(known.staked[uid] for uid in known.claims.drop if uid in known.staked),
        leaving=frozenset(leaving),
        bound=_bound(known) if line else {},
        windows=known.windows,
        now=known.now,
        config=known.config,
    )


def _bound(known: kept.Kept) -> dict[str, int]:
    """When those may start who would fit on room that is kept for others, or who wait for a better domain."""
    found = dict(known.fitted.relaxed)
    if known.fitted.bound:
        turns = {turn.job.uid: turn for turn in known.line}
        ask = functools.partial(slots.Respect, known)
        for uid, binding in known.fitted.bound.items():
            found[uid] = guests.latest(known.keepings, binding, turns[uid], ask)
    return found


def _is_new(here: Standing) -> bool:
    """Whether what the owner of a claim was told is of the time when it had none."""
    return here.job.published.code is not model.Code.CLAIMING or verdict.wants_forecast(here)


def _owner(here: Standing, now: int) -> outlook.Outlook:
    """The owner of a claim starts as soon as its victims have left: their grace counts as nothing."""
    if here.finish is None:
        return outlook.Outlook(start=(now, now))
    finish = here.finish
    return outlook.Outlook((now, now), (finish.lo, finish.hi), finish.mid, finish.hi)


def _uids(turns: list[order.Turn]) -> frozenset[str]:
    return frozenset(turn.job.uid for turn in turns)


def _outran(known: kept.Kept) -> bool:
    """Whether somebody has outrun an estimate since the last forecast."""
    since, now = known.snapshot.forecast_at, known.now
    for one in known.lasting.values():
        if not one.placed or one.at <= since:
            continue  # nothing has changed since a time before the forecast
        moved = estimate.next_outrun(one.here.job, since, known.config)
        if moved is not None and moved <= now:
            return True
    return False
