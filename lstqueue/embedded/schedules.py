"""Schedules of CronJobs: five fields, the usual descriptors, in a time zone.

The rules are those of the parser that Kubernetes uses: names for months and weekdays, `N/step` runs to the
end of the field, Sunday is 0 only, and a day matches when the day of the month or the weekday does where both
are restricted. A local time that a clock change skips is left out; one that it repeats comes twice.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from lstqueue.api import durations, errors

_SEARCHED_DAYS = 5 * 366
_MONTHS = {
    name: number + 1
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    )
}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule; `every_ms` is its period where it is one and not a calendar."""

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    either_day: bool = False
    every_ms: int = 0

    def next(self, after_ms: int, zone: str) -> int | None:
        """Return the first time after `after_ms` (ms since the epoch), None when there is none in five years.

        Args:
            after_ms: the time to start from, which is no candidate itself.
            zone: IANA name of the time zone that the fields are in.
        """
        if self.every_ms:
            return after_ms // 1000 * 1000 + self.every_ms
        place = zoneinfo.ZoneInfo(zone)
        after = datetime.fromtimestamp(after_ms / 1000, place)
        for offset in range(_SEARCHED_DAYS):
            day = after.date() + timedelta(days=offset)
            if day.month in self.months and self._has(day):
                for at_ms in self._times(day, place, after_ms):
                    if at_ms > after_ms:
                        return at_ms
        return None

    def _has(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week

    def _times(self, day: date, zone: zoneinfo.ZoneInfo, after_ms: int) -> Iterator[int]:
        for hour in self.hours:
            last = datetime.combine(day, time(hour, 59, 59), zone)
            twice = last.utcoffset() != last.replace(fold=1).utcoffset()
            for fold in (0, 1) if twice else (0,):
                if last.replace(fold=fold).timestamp() * 1000 <= after_ms:
                    continue
                # Clocks change by whole hours, on the hour, in all but one zone.
                start = datetime.combine(day, time(hour, fold=fold), zone)
                if start.astimezone(UTC).astimezone(zone).hour == hour:
                    yield from (round(start.timestamp()) * 1000 + minute * 60_000 for minute in self.minutes)


def parse(text: str) -> Schedule:
    """Read a schedule.

    Raises:
        ValueError: it is none; the message is the one that Kubernetes gives where the fields are at fault.
    """
    if text.startswith(_EVERY):
        try:
            period = durations.parse(text.removeprefix(_EVERY).strip())
        except errors.BadValueError as error:
            raise ValueError(f"failed to parse duration {text}: {error}") from error
        return Schedule(every_ms=max(1000, period // 1000 * 1000))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise ValueError(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (
        _field(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    return Schedule(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(weekdays),
        either_day=not any(_is_star(part) for field in (fields[2], fields[4]) for part in field.split(",")),
    )


def _is_star(part: str) -> bool:
    return part in ("*", "?", "*/1", "?/1")


def _field(field: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        bounds, slash, step_text = part.partition("/")
        step = _number(step_text, {}) if slash else 1
        first_text, dash, last_text = bounds.partition("-")
        if first_text in ("*", "?"):
            first, last = low, high
        else:
            first = _number(first_text, names)
            last = _number(last_text, names) if dash else high if slash else first
        if first < low:
            raise ValueError(f"beginning of range ({first}) below minimum ({low}): {part}")
        if last > high:
            raise ValueError(f"end of range ({last}) above maximum ({high}): {part}")
        if first > last:
            raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
        if step == 0:
            raise ValueError(f"step of range should be a positive number: {part}")
        found.update(range(first, last + 1, step))
    return found


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"failed to parse int from {text}")
    return int(text)
