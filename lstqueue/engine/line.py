"""Step 3, order: who stands in line, in which order, and when time alone lets one of them turn urgent.

Not in line are those who may not start whatever room there is, and owners of claims, who have their place.
"""

from __future__ import annotations

from lstqueue.engine import kept, model, order, share, windows


def step(known: kept.Kept) -> None:
    """Line up those who wait."""
    trying, waiting = [], model.State.WAITING
    open_to_all = {name for name, queue in known.queues.items() if order.bars_nobody(queue)}
    for uid in known.waiting:
        here = known.standings[uid]
        job = here.job
        plain = job.state is waiting and job.queue in open_to_all
        if not plain and (code := _barred(known, job)) is not None:
            known.codes[uid] = code
        elif uid not in known.claims.admit and uid not in known.promised.claim:
            trying.append(here)
    known.heads = share.find(known, trying)
    favoured, ranks = share.favoured(known), known.world.ranks
    known.line = order.line_up(trying, known.queues, known.gangs, known.config, ranks, favoured)
    _rouse_the_urgent(known)
    if known.windows is not windows.NONE:
        _rouse_for_windows(known)


def _barred(known: kept.Kept, job: model.Job) -> model.Code | None:
    """Why a job does not stand in line; None when it does, or starts where it claimed."""
    if job.state is not model.State.CLAIMING:
        return order.barred(job, known.queues)
    return None if job.uid in known.claims.admit else model.Code.CLAIMING


def _rouse_the_urgent(known: kept.Kept) -> None:
    """Look again when the first of those who wait becomes urgent, where a policy has such a rule."""
    urgent = known.config.switches.urgent
    for turn in known.line if urgent is not None else ():
        if turn.standing.slack is not None and urgent is not None:
            known.rouse(known.now + turn.standing.slack - urgent)


def _rouse_for_windows(known: kept.Kept) -> None:
    """Look again when one of those who wait would not be through any more before a window begins."""
    for turn in known.line:
        until = windows.until(turn.standing)
        if until is not None and known.windows.concern(turn.gang.queue):
            for crossing in known.windows.crossings(turn.gang.queue, until - known.now):
                known.rouse(crossing)
