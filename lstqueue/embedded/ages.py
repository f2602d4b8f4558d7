"""Lengths of time as kubectl shows them: the two largest units while they matter, then one.

The shape is that of a real server's AGE columns, so that `4m12s` becomes `5h3m` and later `9d`. These texts
are for people; data carry RFC 3339 times.
"""

from __future__ import annotations

from lstqueue.api import times

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

_STEPS = (
    # (below, unit, its letter, smaller unit or 0, its letter); all in seconds
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human(ms: int) -> str:
    """A duration of `ms` milliseconds; a negative one is `<invalid>` beyond a second of clock skew."""
    if ms <= -2000:
        return INVALID
    seconds = max(0, ms // 1000)
    for below, unit, letter, smaller, small_letter in _STEPS:
        if seconds < below:
            rest = seconds % unit // smaller if smaller else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


def since(stamp: object, now_ms: int) -> str:
    """The age of an RFC 3339 time, `<unknown>` when there is none, `<invalid>` when it cannot be read."""
    if not stamp:
        return UNKNOWN
    try:
        return human(now_ms - times.parse(str(stamp)))
    except ValueError:
        return INVALID
