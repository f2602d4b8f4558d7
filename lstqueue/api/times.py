"""Points in time as RFC 3339 text, to and from integer milliseconds since the Unix epoch.

Reads what the API server's own time fields accept: `T` and `Z` in capitals, any offset, any fraction (cut
off below the millisecond, so that a deadline never moves later). Writes UTC with `Z`, with milliseconds only
where they are not zero. There is no clock here and no local time zone.
"""

from __future__ import annotations

import datetime
import functools
import re

from lstqueue.api import errors

REMEDY = 'write an RFC 3339 time such as "2026-03-01T18:00:00Z" or "2026-03-01T18:00:00+09:00"'

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)


def parse(text: str) -> int:
    """Return the time in ms since the epoch; negative before 1970.

    Raises:
        BadValueError: it is no RFC 3339 time, or a date that does not exist, or lies outside the years
            1 to 9999 in UTC.
    """
    if not isinstance(text, str):
        raise errors.BadValueError(_problem(text), REMEDY)
    return _parse(text)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> int:
    # The times in a status are read again with everything that is written beside them.
    match = _TIME.fullmatch(text)
    if not match:
        raise errors.BadValueError(_problem(text), REMEDY)
    *fields, fraction, sign, hours, minutes = match.groups()
    try:
        year, month, day, hour, minute, second = map(int, fields)
        local = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError as error:
        problem = f"{errors.show(text)} is not a time that exists"
        raise errors.BadValueError(problem, REMEDY) from error
    ms = (local - _EPOCH) // _MS + int((fraction or "0")[:3].ljust(3, "0"))
    if sign:
        offset = (int(hours) * 60 + int(minutes)) * 60_000
        ms += -offset if sign == "+" else offset
    if not _FIRST <= ms <= _LAST:
        raise errors.BadValueError(f"{errors.show(text)} is outside the years 1 to 9999", REMEDY)
    return ms


@functools.lru_cache(maxsize=4096)
def format(ms: int) -> str:
    """Return "2026-03-01T18:00:00Z", or with ".250" before the Z where the second is not whole.

    Raises:
        ValueError: the time lies outside the years 1 to 9999.
    """
    if not _FIRST <= ms <= _LAST:
        raise ValueError(f"{ms} ms since the epoch is outside the years 1 to 9999")
    seconds, rest = divmod(ms, 1000)
    moment = _EPOCH + datetime.timedelta(seconds=seconds)
    text = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{text}.{rest:03}Z" if rest else f"{text}Z"


def _problem(text: object) -> str:
    shown = errors.show(text)
    if not isinstance(text, str):
        return f"{shown} is not a time"
    if not text:
        return "a time is empty"
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return f"{shown} has no time of day"
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+", text):
        return f"{shown} has no time zone"
    return f"{shown} is not an RFC 3339 time"


_FIRST = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _MS
_LAST = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // _MS
