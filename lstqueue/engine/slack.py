"""Slack in coarse buckets, so that a status changes a few times in a job's life and not every second."""

from __future__ import annotations

import bisect
from typing import NamedTuple

from lstqueue.engine import model


class Bucket(NamedTuple):
    """A bucket's name and the slack in ms below which it applies; None: no upper end."""

    name: str
    below: int | None


NO_DEADLINE = ""
"""The bucket of a job without a deadline or without an estimate: it has no slack."""

BUCKETS: tuple[Bucket, ...] = (
    Bucket("<0", 0),  # not "late": that is judged on lo, this on mid
    Bucket("<15m", 15 * model.MINUTE),
    Bucket("<1h", model.HOUR),
    Bucket("<4h", 4 * model.HOUR),
    Bucket("<12h", 12 * model.HOUR),
    Bucket("<1d", 24 * model.HOUR),
    Bucket("<3d", 72 * model.HOUR),
    Bucket(">=3d", None),
)


_EDGES = [below for _, below in BUCKETS if below is not None]


def bucket(slack: int | None) -> str:
    """Name of the bucket of a slack in ms; None (no deadline or no estimate) has the empty name."""
    return NO_DEADLINE if slack is None else BUCKETS[bisect.bisect_right(_EDGES, slack)].name


def until_next(slack: int) -> int | None:
    """Time in ms until a slack that shrinks with time enters the next bucket. None: it is in the last one."""
    place = bisect.bisect_right(_EDGES, slack)
    return slack - _EDGES[place - 1] + 1 if place else None
