"""Who of a sweep is wanted: of the jobs of one namespace that name the same sweep, `need` have to succeed.

The others are *spare*: they give their deadline up for as long as there are enough without them, and run
when others leave room. Who is wanted is found out anew from what the API shows, so nothing of it can be lost:
those that have succeeded count, then those that hold room, those that are promised, those that ran before,
and those that are expected to be done soonest, the oldest first. Of those that hold room the figures of their
users decide: what is expected of them moves with every report of progress, and nobody is to gain and lose a
deadline by that.
One that is paused, or being deleted, does not count; one that failed makes room for the next.
One that was spare is not wanted once its deadline is past: it could only miss it. One that has succeeded
*counts* until none is left to succeed, and is not removed before, whatever its time to live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lstqueue.engine import model
from lstqueue.operator import ledger, records

ENOUGH = "SweepHasEnough"
"""A job became spare."""
WANTED = "SweepNeedsIt"
"""A job that was spare is wanted after all."""


Expected = Callable[[records.Record], model.Estimate | None]
"""Says how long a job is expected to run in all, None where nobody knows."""


def settle(known: Iterable[records.Record], expected: Expected, now: int) -> list[records.Record]:
    """Find out who is spare at `now` (ms), whose success counts, and how many have to succeed still.

    Returns those of whom that is new.
    """
    sweeps: dict[tuple[str, str], list[records.Record]] = {}
    changed = []
    for record in known:
        spec = record.ledger.spec
        if spec is not None and spec.sweep:
            sweeps.setdefault((record.ledger.namespace, spec.sweep), []).append(record)
        elif record.spare or record.counts or record.wanted:
            record.spare, record.counts, record.wanted = False, False, 0
            changed.append(record)
    for members in sweeps.values():
        wanted = _wanted(members)
        spare = _spare(members, wanted, expected, now)
        going = any(not record.ledger.final for record in members)
        for record in members:
            counts = going and record.ledger.status.phase is ledger.Phase.SUCCEEDED
            fresh = record.ledger.uid in spare, counts, wanted
            if (record.spare, record.counts, record.wanted) != fresh:
                record.spare, record.counts, record.wanted = fresh
                changed.append(record)
    return changed


def _wanted(members: list[records.Record]) -> int:
    """Return how many have to succeed still."""
    jobs = [member.ledger for member in members]
    need = max(job.spec.need for job in jobs if job.spec is not None)
    return max(need - sum(job.status.phase is ledger.Phase.SUCCEEDED for job in jobs), 0)


def _spare(members: list[records.Record], wanted: int, expected: Expected, now: int) -> set[str]:
    """Return the UIDs of those without whom there are enough."""
    going = [member for member in members if member.ledger.may_claim and not member.ledger.final]
    late = {member.ledger.uid for member in going if _is_late(member.ledger, now)}
    timely = [member for member in going if member.ledger.uid not in late]
    timely.sort(key=lambda member: _rank(member, expected))
    return late | {member.ledger.uid for member in timely[wanted:]}


def _is_late(job: ledger.Ledger, now: int) -> bool:
    """Whether one that was spare could only miss its deadline now."""
    deadline = job.spec.deadline if job.spec is not None else None
    return job.status.spare and deadline is not None and deadline <= now


def _rank(member: records.Record, expected: Expected) -> tuple[bool, bool, bool, float, float, int, str]:
    job = member.ledger
    holds = job.status.admission is not None or job.status.claim is not None
    figure = job.spec.estimate if job.spec is not None else None
    believed = None if holds else expected(member)
    known = _left(job, None if believed is None else believed.mid)
    promised = job.status.slot is not None
    return not holds, not promised, not job.status.attempt, known, _left(job, figure), job.created, job.uid


def _left(job: ledger.Ledger, length: int | None) -> float:
    return float("inf") if length is None else length - job.status.saved
