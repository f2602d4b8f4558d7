"""The windows of a GPUQueue as the engine is given them: it knows no calendars and no zones."""

from __future__ import annotations

import functools

from lstqueue.api import gpuqueue, intervals
from lstqueue.engine import model


def as_of(said: tuple[gpuqueue.Window, ...], now: int) -> tuple[model.Window, ...]:
    """Return what is kept free from the day of `now` (ms since the epoch) on, one after the other."""
    return _given(intervals.as_of(said, now))


@functools.lru_cache(maxsize=256)
def _given(found: intervals.Intervals) -> tuple[model.Window, ...]:
    return tuple(model.Window(*one) for one in found)
