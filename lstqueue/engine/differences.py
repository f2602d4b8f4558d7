"""Which jobs of a snapshot are others than in the one before, without a look at those that are not.

Callers give most objects again, in the order of before. So both lists are gone through side by side, by
identity alone; where they part by uid. It finds the same in whatever order, only not as fast.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence

from lstqueue.engine import model, soundness

_UID = operator.attrgetter("uid")
MOST = 64
"""Places where the lists part: beyond these, to compare everything costs less."""


def take(
    before: Sequence[model.Job], known: Mapping[str, model.Job], after: Sequence[model.Job]
) -> tuple[dict[str, model.Job], list[str], list[str]]:
    """Compare two lists of jobs.

    Args:
        before: Those of before, no uid twice.
        known: The same in the order of their uids.
        after: Those of now.

    Returns:
        (those of now in the order of uids, uids of those that are new or another, uids of those that are
        gone).

    Raises:
        ValueError: A uid appears twice.
    """
    found = _find(before, after, known)
    if found is None:
        jobs = soundness.named("jobs", after, _UID)
        parts = itertools.compress(jobs.values(), map(operator.is_not, jobs.values(), map(known.get, jobs)))
        others, gone = list(parts), sorted(known.keys() - jobs.keys())
    else:
        others, gone = found
        jobs = dict(known)
        for uid in gone:
            del jobs[uid]
        ordered = [next(reversed(jobs), ""), *(job.uid for job in others if job.uid not in known)]
        jobs.update([(job.uid, job) for job in others])
        if ordered != sorted(ordered):
            jobs = dict(sorted(jobs.items()))
    changed = sorted([job.uid for job in others if known.get(job.uid) != job])
    return jobs, changed, sorted(gone)


def _find(
    before: Sequence[model.Job], after: Sequence[model.Job], known: Mapping[str, model.Job]
) -> tuple[list[model.Job], list[str]] | None:
    """Those that are new or another object, and the uids of those that are gone.

    None where there are too many, or a uid appears twice.
    """
    others: list[model.Job] = []
    gone: dict[str, model.Job] = {}
    new = old = place = 0
    for _ in range(MOST):
        step = _same(before[old:], after[place:])
        old, place = old + step, place + step
        if place == len(after):
            gone.update([(job.uid, job) for job in before[old:]])
            break
        job = after[place]
        if (past := gone.pop(job.uid, None)) is not None:  # it stands elsewhere
            place += 1
            if past is not job:
                others.append(job)
        elif job.uid not in known:
            place, new = place + 1, new + 1
            others.append(job)
        elif old == len(before):
            return None
        elif before[old].uid == job.uid:
            old, place = old + 1, place + 1
            others.append(job)
        else:
            gone[before[old].uid] = before[old]
            old += 1
    whole = place == len(after) and len(after) == len(known) + new - len(gone)
    return (others, list(gone)) if whole and len({job.uid for job in others}) == len(others) else None


def _same(before: Sequence[model.Job], after: Sequence[model.Job]) -> int:
    """How many there are at the beginning of both."""
    parts = map(operator.is_not, before, after)
    return next(itertools.compress(itertools.count(), parts), min(len(before), len(after)))
