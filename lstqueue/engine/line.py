"""Step 3, order: who stands in line, in which order, and when time alone lets one of them turn urgent.

Not in line are those who may not start whatever room there is, and owners of claims, who have their place.
"""

from __future__ import annotations

import operator

from lstqueue.engine import kept, model, order, share, windows

_RANK = operator.attrgetter("rank")


def step(known: kept.Kept) -> None:
    """Line up those who wait."""
    lineup = known.world.lineup
    lineup.refresh(known.lasting, known.standings, known.gangs)
    known.codes |= lineup.barred
    for uid in known.claiming:
        if uid not in known.claims.admit:
            known.codes[uid] = model.Code.CLAIMING
    known.sharing.heads = share.find(known, lineup.sharing - known.promised.claim.keys())
    known.line = _moved(known) if _moves(known) else lineup.turns
    _rouse_the_urgent(known)
    if known.windows is not windows.NONE:
        _rouse_for_windows(known)


def _moves(known: kept.Kept) -> bool:
    """Whether somebody does not stand where all of the time before says."""
    return bool(known.shedding.given or known.sharing.heads or known.promised.claim)


def _moved(known: kept.Kept) -> list[order.Turn]:
    """The line with those given up and the heads of the best-effort share where they stand in this pass.

    Not in it are those whose slots have come, since they claim these.
    """
    lineup, away = known.world.lineup, known.promised.claim
    elsewhere: dict[str, order.Turn] = {}
    for uid in known.shedding.given:
        if (turn := lineup.given_up(known.standings[uid])) is not None:
            elsewhere[uid] = turn
    for uid, rank in share.favoured(known).items():
        if (turn := lineup.turn(uid)) is not None:
            elsewhere[uid] = order.moved(turn, rank)
    found = [turn for turn in lineup.turns if (uid := turn.job.uid) not in elsewhere and uid not in away]
    found += [turn for uid, turn in elsewhere.items() if uid not in away]
    found.sort(key=_RANK)
    return found


def _rouse_the_urgent(known: kept.Kept) -> None:
    """Look again when the first of those who wait becomes urgent, where a policy has such a rule."""
    urgent = known.config.switches.urgent
    for turn in known.line if urgent is not None else ():
        slack = known.here(turn).slack
        if slack is not None and urgent is not None:
            known.rouse(known.now + slack - urgent)


def _rouse_for_windows(known: kept.Kept) -> None:
    """Look again when one of those who wait would not be through any more before a window begins."""
    for turn in known.line:
        until = known.until(turn)
        if until is not None and known.windows.concern(turn.gang.queue):
            for crossing in known.windows.crossings(turn.gang.queue, until - known.now):
                known.rouse(crossing)
