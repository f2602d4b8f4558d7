"""Times of day in time zones: when it is next 06:00 in Europe/Berlin.

A time of day is no point in time: clocks that go forward skip some, clocks that go back have some twice. What
is skipped becomes the first moment that exists after it, and what comes twice is its first coming; both are
also said in words. There is no clock here. The zones are those of the system or else of the package `tzdata`.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from dataclasses import dataclass

from lstqueue.api import errors

CLOCK = "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"
"""Every time of day that can be read, as RE2 and Python both understand it."""
NAME = "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
"""The form of a zone's name; which ones exist only the zone data know."""
NAME_LENGTH = 64
"""Characters of a zone's name; the longest in use has 32."""

CLOCK_REMEDY = 'write a time of day such as "06:00" or "18:30:00"'
NAME_REMEDY = 'write an IANA name such as "Europe/Berlin" or "UTC"'

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY = datetime.timedelta(days=1)
_MS = datetime.timedelta(milliseconds=1)
_SECOND = datetime.timedelta(seconds=1)
_WHOLE_CLOCK = re.compile(CLOCK.removesuffix("$") + r"\Z")
_NOWHERE = frozenset({"Factory", "localtime"})
"""Entries of the zone data that are no place: what they mean depends on the machine."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One coming of a time of day: `at` in ms since the epoch; a `note` where it was skipped or doubled."""

    at: int
    note: str = ""


def clock(text: object) -> datetime.time:
    """Return a time of day.

    Raises:
        BadValueError: it is none, in the form HH:MM or HH:MM:SS.
    """
    if not isinstance(text, str) or not _WHOLE_CLOCK.match(text):
        raise errors.BadValueError(f"{errors.show(text)} is not a time of day", CLOCK_REMEDY)
    return datetime.time.fromisoformat(text)


def name(text: object) -> str:
    """Return the name of a time zone, checked against the zone data.

    Raises:
        BadValueError: no such zone is known here.
    """
    if not isinstance(text, str) or text not in _known():
        raise errors.BadValueError(f"{errors.show(text)} is not a time zone known here", NAME_REMEDY)
    return text


@functools.cache
def _known() -> frozenset[str]:
    """Read the names once: a few hundred files, some tens of milliseconds."""
    return frozenset(zoneinfo.available_timezones()) - _NOWHERE


def following(time: str, zone: str, after: int) -> Occurrence:
    """Return the first coming of a time of day in a zone after an instant, in ms since the epoch.

    Raises:
        BadValueError: the time or the zone cannot be used.
    """
    wanted, place = clock(time), zoneinfo.ZoneInfo(name(zone))
    start = _EPOCH + after * _MS
    today = start.astimezone(place).date()
    # What was skipped moves to a later day where clocks leave out a whole one, so a day may bring nothing.
    days = (datetime.datetime.combine(today + count * _DAY, wanted) for count in range(4))
    found = (_instant(local, place, time) for local in days)
    return next(one for one in found if one.at > after)


def _instant(local: datetime.datetime, place: zoneinfo.ZoneInfo, time: str) -> Occurrence:
    """Return when clocks in a zone show a date and time."""
    # Of a doubled time fold 0 is the first coming and fold 1 the second. Of a skipped one fold 0 reckons with
    # the offset before the change and fold 1 with that after it, so that their order is the other way round.
    first, second = (local.replace(tzinfo=place, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    day = local.date().isoformat()
    if first < second:
        note = f"{time} comes twice on {day} in {place.key}, where clocks go back; the first one counts"
        return Occurrence((first - _EPOCH) // _MS, note)
    if first > second:
        change = _change(second, first, place)
        shown = change.astimezone(place).replace(tzinfo=None).isoformat(sep=" ")
        note = (
            f"{time} does not exist on {day} in {place.key}, where clocks go forward; "
            f"{shown} is the first moment after it"
        )
        return Occurrence((change - _EPOCH) // _MS, note)
    return Occurrence((first - _EPOCH) // _MS)


def _change(
    before: datetime.datetime, after: datetime.datetime, place: zoneinfo.ZoneInfo
) -> datetime.datetime:
    """Return the first whole second in (before, after] at which the later offset holds, by bisection."""
    offset = after.astimezone(place).utcoffset()
    low, high = 0, (after - before) // _SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if (before + middle * _SECOND).astimezone(place).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return before + high * _SECOND
