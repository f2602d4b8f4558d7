"""Recurring times in a time zone, as cron writes them: `0 8 * * 1-5` in Europe/Berlin.

The library cronsim reads the five fields and steps through the times; here are only its errors in our words.
Where clocks change it does as Debian's cron: a time that is skipped comes when the clock has gone forward,
one that is there twice comes once. There is no clock here.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Iterator

import cronsim

from lstqueue.api import errors, zones

MAX_LENGTH = 100
FORM = "^[0-9A-Za-z*,/#-]+( [0-9A-Za-z*,/#-]+){4}$"
"""Five fields, as RE2 and Python both understand it; what may stand in them cronsim knows."""
REMEDY = 'write minute, hour, day of month, month and day of week, such as "0 8 * * 1-5"'

_WHOLE = re.compile(FORM.removesuffix("$") + r"\Z")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)


def parse(text: object) -> str:
    """Return a schedule that has been found to have times.

    Raises:
        BadValueError: It is none, or there is never such a time.
    """
    # cronsim knows schedules by the second as well, of which a CronJob knows nothing.
    if not isinstance(text, str) or len(text) > MAX_LENGTH or not _WHOLE.match(text):
        raise errors.BadValueError(f"{errors.show(text)} is not a schedule", REMEDY)
    try:
        next(cronsim.CronSim(text, _EPOCH))
    except cronsim.CronSimError as error:
        raise errors.BadValueError(f"{errors.show(text)} is not a schedule ({error})", REMEDY) from None
    except StopIteration:
        raise errors.BadValueError(f"{errors.show(text)} never comes", REMEDY) from None
    return text


def occurrences(schedule: str, zone: str, after: int) -> Iterator[int]:
    """Yield the times of a schedule after an instant, in ms since the epoch.

    Raises:
        BadValueError: The schedule or the zone cannot be used.
    """
    start = (_EPOCH + after * _MS).astimezone(zoneinfo.ZoneInfo(zones.name(zone)))
    for moment in cronsim.CronSim(parse(schedule), start):
        yield (moment.astimezone(datetime.UTC) - _EPOCH) // _MS
