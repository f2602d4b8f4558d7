"""The windows of a GPUQueue as intervals, for the days ahead that the engine may look at.

The engine knows no calendars and no zones; it is given points in time. They change once a day, so that the
queue, and what passes remember of it, stays the same in between.
"""

from __future__ import annotations

import functools
import itertools

from lstqueue.api import crons, gpuqueue
from lstqueue.engine import model

DAY = 24 * model.HOUR
HORIZON = 15 * DAY
"""How far ahead windows are known, from the beginning of the day (UTC): a fortnight at least."""
MOST = 1000
"""Beginnings of one window that are looked at: more come only from schedules by the minute."""


@functools.lru_cache(maxsize=256)
def expand(said: tuple[gpuqueue.Window, ...], day: int) -> tuple[model.Window, ...]:
    """Return what is kept free from a day (ms since the epoch) on, one interval after the other.

    Where windows meet, the one holds that keeps the most.
    """
    found = []
    for window in said:
        starts = crons.occurrences(window.schedule, window.zone, day - window.duration)
        for start in itertools.islice(starts, MOST):
            if start >= day + HORIZON:
                break
            found.append(model.Window(start, start + window.duration, window.keep_free))
    return _one_after_the_other(found)


def as_of(said: tuple[gpuqueue.Window, ...], now: int) -> tuple[model.Window, ...]:
    """The same from the day of `now` (ms since the epoch) on."""
    return expand(said, now // DAY * DAY) if said else ()


def _one_after_the_other(found: list[model.Window]) -> tuple[model.Window, ...]:
    edges = sorted({edge for window in found for edge in (window.start, window.end)})
    made: list[model.Window] = []
    for start, end in itertools.pairwise(edges):
        kept = max((one.keep_free for one in found if one.start <= start and one.end >= end), default=0)
        if not kept:
            continue
        if made and made[-1].end == start and made[-1].keep_free == kept:
            start = made.pop().start
        made.append(model.Window(start, end, kept))
    return tuple(made)
