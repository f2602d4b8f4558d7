"""Whether a queue is overloaded, and when one was last: a condition of its status, so that a restart knows.

Somebody of it is given up for now so that the others hold. After that only little is promised until nobody
was for `Config.promise_quiet`, a week.
"""

from __future__ import annotations

from collections.abc import Iterable

from lstqueue.api import conditions, percents
from lstqueue.engine import kept
from lstqueue.operator import lenient, queues

KIND = "Overloaded"
"""The type of the condition."""


def last(known: Iterable[queues.QueueView], now: int) -> int:
    """Return when somebody was last given up (ms since the epoch), 0 when that is not known."""
    found = 0
    for queue in known:
        told = conditions.get(lenient.condition_list((queue.status or {}).get("conditions")), KIND)
        if told is not None:
            lasts = told.status is conditions.Truth.TRUE
            found = max(found, now if lasts else min(told.last_transition_time, now))
    return found


def by_queue(known: kept.Kept | None) -> dict[str, int]:
    """Return how many of each queue a pass has given up."""
    found: dict[str, int] = {}
    for uid in known.shedding.given if known is not None else ():
        queue = known.jobs[uid].queue if known is not None else ""
        found[queue] = found.get(queue, 0) + 1
    return found


def told(queue: queues.QueueView, given_up: int) -> tuple[bool, str, str] | None:
    """Return what the condition says (value, reason, sentence); None where it never applied."""
    if given_up:
        jobs = "1 job is" if given_up == 1 else f"{given_up} jobs are"
        more, budget = "", queue.engine.promise_budget
        if budget:
            more = f" Beside small jobs, up to {percents.format(budget)} of the queue is promised."
        return True, KIND, f"{jobs} given up for now, so that the others hold.{more}"
    before = conditions.get(lenient.condition_list((queue.status or {}).get("conditions")), KIND)
    return None if before is None else (False, "NoOverload", "")
