"""Who of a sweep is promised together: all of its jobs that have the deadline, or none.

A part of a sweep is of no use, so a promise to a part is none to its user. All are as many as have to succeed
still (`Job.sweep_needs`); until so many are there none is promised. Finds no slots: `promises` does.
"""

from __future__ import annotations

from lstqueue.engine import candidates, estimate, kept, model, order
from lstqueue.engine.standing import Standing


def missing(known: kept.Kept, job: model.Job) -> list[Standing]:
    """Return those of a job's sweep who are to be promised now, all of them; none where they cannot be."""
    members, found = _members(known)[job.sweep], list[Standing]()
    if len(members) < max([known.jobs[uid].sweep_needs for uid in members]):
        return []
    for uid, turn in sorted(members.items(), key=lambda member: member[0]):
        if known.promised.holds(uid):
            continue
        here = known.standings[uid]
        waits = not estimate.is_placed(here.job)
        if not candidates.in_time(here) or (waits and (turn is None or not candidates.judged(known, turn))):
            return []
        found.append(here)
    return found if len(found) <= known.config.promise_most else []


def _members(known: kept.Kept) -> dict[str, dict[str, order.Turn | None]]:
    """By sweep the uids of those that have a deadline and are not held back, with their turns in line."""
    if known.promised.sweeps is None:
        turns = {turn.job.uid: turn for turn in known.line if turn.job.sweep}
        found: dict[str, dict[str, order.Turn | None]] = {}
        for uid, one in known.lasting.items():
            job = one.here.job
            if job.sweep and job.deadline is not None and job.state is not model.State.HELD_BACK:
                found.setdefault(job.sweep, {})[uid] = turns.get(uid)
        known.promised.sweeps = found
    return known.promised.sweeps
