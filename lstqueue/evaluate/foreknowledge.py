"""Whom to give up if one knew the whole trace: a witness of what foresight alone is worth.

The rule of step 2 of the engine, that of Moore and Hodgson, over the whole trace at once. Jobs are taken by
deadline. Where those taken so far that lie within some stretch of time, from a submission to a deadline, need
more than `FILL` of all GPUs until then, the one of them with the largest work for its value is given up. No
policy could know this; what it meets beyond `lst` is the price of not knowing arrivals, and not of `lst`'s
other rules. It is no bound: others may give up better, and gangs do not pack like a fluid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstqueue.evaluate import workload

FILL = 0.95
"""Part of the GPUs that may be asked for; the rest is what gangs leave unused."""


def given_up(works: Sequence[workload.Work], gpus: int, *, launch: int = 0) -> frozenset[str]:
    """Return the keys of the jobs with a deadline that are not worth trying.

    Args:
        works: The trace.
        gpus: Of the cluster.
        launch: What a start costs, in ms of the whole gang.
    """
    dated = sorted((work for work in works if work.deadline is not None), key=_deadline)
    ranked = sorted(dated, key=lambda work: (work.submit, work.row))
    submits = np.array([work.submit for work in ranked], dtype=np.int64)
    place_of = {work.key: place for place, work in enumerate(ranked)}
    needed = np.zeros(len(dated), dtype=np.float64)  # by submission (in their order) of those taken
    holder: list[workload.Work | None] = [None] * len(dated)
    gone: set[str] = set()
    for work in dated:
        due, need = _deadline(work), _need(work, launch)
        if work.submit + launch + work.duration > due:
            gone.add(work.key)
            continue
        place = place_of[work.key]
        needed[place], holder[place] = need, work
        while True:
            within = np.cumsum(needed[::-1])[::-1]  # of those taken, submitted then or later
            room = FILL * gpus * (due - submits)
            over = (within > room) & (submits <= work.submit)
            if not over.any():
                break
            begin = int(over.argmax())
            victim = max(
                (one for one in holder[begin:] if one is not None),
                key=lambda one: (_need(one, launch) / one.value, one.submit, one.key),
            )
            there = place_of[victim.key]
            needed[there], holder[there] = 0.0, None
            gone.add(victim.key)
    return frozenset(gone)


def _need(work: workload.Work, launch: int) -> float:
    return float(work.gpus) * (work.duration + launch)


def _deadline(work: workload.Work) -> int:
    assert work.deadline is not None
    return work.deadline
