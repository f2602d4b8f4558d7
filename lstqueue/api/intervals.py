"""The windows of a GPUQueue as points in time, for the days ahead that anybody may look at.

They change once a day, or once an hour where there are too many to know all, so that a queue, and what
passes remember of it, stays the same in between.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import NamedTuple

from lstqueue.api import crons, durations, gpuqueue

DAY = durations.DAY
HORIZON = 15 * DAY
"""How far ahead windows are known, from the beginning of the day (UTC): a fortnight at least."""
MOST = 1000
"""Intervals of one window that are known: more come only from schedules by the minute, with pauses between.
From the beginning of the hour that is still more than 15 hours ahead."""


class Interval(NamedTuple):
    """From `start` until `end` (ms since the epoch) `keep_free` (ppm) of a queue's quotas is not used."""

    start: int
    end: int
    keep_free: int


Intervals = tuple[Interval, ...]


def as_of(said: tuple[gpuqueue.Window, ...], now: int) -> Intervals:
    """Return what is kept free from the day of `now` (ms since the epoch) on, one interval after the other.

    Where windows meet, the one holds that keeps the most. The same object until something changes.
    """
    return _together(said, tuple(_begin(window, now) for window in said)) if said else ()


def _begin(window: gpuqueue.Window, now: int) -> int:
    """From when on a window is looked at."""
    day = now // DAY * DAY
    _, complete = _ahead(window, day)
    return day if complete else now // durations.HOUR * durations.HOUR


@functools.lru_cache(maxsize=1024)
def _ahead(window: gpuqueue.Window, begin: int) -> tuple[Intervals, bool]:
    """The intervals of a window from a time on, and whether those are all up to the horizon.

    What touches is one interval: so a schedule by the minute that lasts a minute is one that never ends.
    """
    limit = begin + HORIZON
    found: list[tuple[int, int]] = []
    for start in crons.occurrences(window.schedule, window.zone, begin - window.duration):
        if start >= limit or (found and found[-1][1] >= limit):
            break
        first = start
        if found and start <= found[-1][1]:
            first, _ = found.pop()
        elif len(found) == MOST:
            return _made(found, window), False
        found.append((first, start + window.duration))
    return _made(found, window), True


def _made(found: Iterable[tuple[int, int]], window: gpuqueue.Window) -> Intervals:
    return tuple(Interval(start, end, window.keep_free) for start, end in found)


@functools.lru_cache(maxsize=256)
def _together(said: tuple[gpuqueue.Window, ...], begins: tuple[int, ...]) -> Intervals:
    edges: list[tuple[int, int, int]] = []
    for number, (window, begin) in enumerate(zip(said, begins, strict=True)):
        for one in _ahead(window, begin)[0]:
            edges += [(one.start, number, one.keep_free), (one.end, number, 0)]
    made: list[Interval] = []
    kept = [0] * len(said)
    for (start, number, part), (end, _, _) in itertools.pairwise(sorted(edges)):
        kept[number] = part
        most = max(kept)
        if not most or start == end:
            continue
        if made and made[-1].end == start and made[-1].keep_free == most:
            start = made.pop().start
        made.append(Interval(start, end, most))
    return tuple(made)
