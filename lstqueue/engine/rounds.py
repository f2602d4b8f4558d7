"""Who without a promise is looked at again: a few in a pass, one after the other, until everybody was.

An edit of a queue, another estimate or room that has come free may bring a promise that there was none for.
Nobody knows for whom, and to look at all of a flood would take longer than a pass may. So every change that
calls for forecasts begins a round over those who wait, in the order of their uids from where the last one
stood; it goes on every `forecast_interval` and ends where it began, so without changes it ends for good.
"""

from __future__ import annotations

import heapq

from lstqueue.engine import candidates, foresight, kept, model, order


def again(known: kept.Kept) -> list[order.Turn]:
    """Return whom this pass looks at again, and note where the round stands then."""
    before, config, now = known.snapshot.round, known.config, known.now
    begins = foresight.due(known)
    if not config.promise_again or not (begins or before):
        return []
    early = before is not None and now < before.at + config.forecast_interval
    if begins:
        start = "" if before is None else before.after
        before = model.Round(start, start, now if before is None else before.at)
    if before is None:
        return []
    if early:
        _goes_on(known, before)
        return []
    turns = {turn.job.uid: turn for turn in known.line if _waits(known, turn)}
    ahead = [uid for uid in turns if _is_ahead(uid, before)]
    after = before.after
    chosen = heapq.nsmallest(config.promise_again, ahead, key=lambda uid: (uid <= after, uid))
    if len(chosen) < len(ahead):
        _goes_on(known, model.Round(chosen[-1], before.until, now))
    return [turns[uid] for uid in chosen]


def _goes_on(known: kept.Kept, one: model.Round) -> None:
    known.promised.round = one
    known.rouse(one.at + known.config.forecast_interval)


def _waits(known: kept.Kept, turn: order.Turn) -> bool:
    """Whether a job may be promised what it was not when it was new."""
    return not candidates.is_new(turn) and candidates.judged(known, turn)


def _is_ahead(uid: str, one: model.Round) -> bool:
    """Whether a round that is under way has still to come to a job."""
    if one.after < one.until:
        return one.after < uid <= one.until
    return uid > one.after or uid <= one.until
