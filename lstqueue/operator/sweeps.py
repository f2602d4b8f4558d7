"""Who of a sweep is wanted: of the jobs of one namespace that name the same sweep, `need` have to succeed.

The others are *spare*: they give their deadline up for as long as there are enough without them, and run
when others leave room. Who is wanted is found out anew from what the API shows, so nothing of it can be lost:
those that have succeeded count, then those that hold room, then those that ran before, then those with the
shortest estimates, the oldest first. One that is paused, or being deleted, does not count; one that failed
makes room for the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from lstqueue.operator import ledger, records

ENOUGH = "SweepHasEnough"
"""A job became spare."""
WANTED = "SweepNeedsIt"
"""A job that was spare is wanted after all."""


def settle(known: Iterable[records.Record]) -> list[records.Record]:
    """Find out who is spare; return those of whom that is new."""
    sweeps: dict[tuple[str, str], list[records.Record]] = {}
    changed = []
    for record in known:
        spec = record.ledger.spec
        if spec is not None and spec.sweep:
            sweeps.setdefault((record.ledger.namespace, spec.sweep), []).append(record)
        elif record.spare:
            record.spare = False
            changed.append(record)
    for members in sweeps.values():
        spare = _spare([record.ledger for record in members])
        for record in members:
            if record.spare is not (record.ledger.uid in spare):
                record.spare = not record.spare
                changed.append(record)
    return changed


def _spare(members: list[ledger.Ledger]) -> set[str]:
    """Return the UIDs of those without whom there are enough."""
    need = max(member.spec.need for member in members if member.spec is not None)
    done = sum(member.status.phase is ledger.Phase.SUCCEEDED for member in members)
    going = sorted((member for member in members if member.may_claim and not member.final), key=_rank)
    return {member.uid for member in going[max(need - done, 0) :]}


def _rank(member: ledger.Ledger) -> tuple[bool, bool, float, int, str]:
    estimate = member.spec.estimate if member.spec is not None else None
    holds = member.status.admission is not None or member.status.claim is not None
    length = float("inf") if estimate is None else estimate - member.status.saved
    return not holds, not member.status.attempt, length, member.created, member.uid
