"""Recurring windows as points in time, over changes of clocks."""

from __future__ import annotations

import datetime
import itertools

import pytest

from lstqueue.api import crons, errors, gpuqueue, intervals
from lstqueue.operator import windows

HOUR = 3_600_000


def ms(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def window(**more: object) -> gpuqueue.Window:
    base = {
        "name": "day",
        "schedule": "0 8 * * 1-5",
        "zone": "Europe/Berlin",
        "duration": "12h",
        "keepFree": "40%",
    }
    return gpuqueue.Window.model_validate(base | more)


def test_it_recurs_at_the_same_time_of_day_before_and_after_clocks_change() -> None:
    found = windows.as_of((window(),), ms("2026-03-27T07:00:00+00:00"))
    friday, monday, tuesday = found[:3]
    assert (friday.start, friday.end) == (ms("2026-03-27T08:00:00+01:00"), ms("2026-03-27T20:00:00+01:00"))
    assert monday.start == ms("2026-03-30T08:00:00+02:00")
    assert tuesday.start - monday.start == 24 * HOUR
    assert friday.keep_free == 400_000


def test_one_that_has_begun_is_there_and_nothing_changes_within_a_day() -> None:
    said = (window(schedule="0 22 * * *", duration="6h"),)
    night = windows.as_of(said, ms("2026-06-02T00:30:00+00:00"))
    assert night[0].start == ms("2026-06-01T22:00:00+02:00")
    assert windows.as_of(said, ms("2026-06-02T23:59:00+00:00")) is night
    assert windows.as_of(said, ms("2026-06-03T00:00:00+00:00")) != night


def test_where_windows_meet_the_one_holds_that_keeps_most_and_none_overlaps() -> None:
    said = (window(schedule="0 8 * * *"), window(schedule="0 12 * * *", duration="1h", keepFree="90%"))
    found = windows.as_of(said, ms("2026-06-01T00:00:00+00:00"))
    assert [one.keep_free for one in found[:3]] == [400_000, 900_000, 400_000]
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("schedule", "duration"), [("*/10 * * * *", "10m"), ("* * * * *", "1m"), ("* * * * *", "400d")]
)
def test_a_schedule_that_never_pauses_is_one_window_without_end(schedule: str, duration: str) -> None:
    said = (window(schedule=schedule, duration=duration),)
    now = ms("2026-06-01T00:00:00+00:00")
    always = windows.as_of(said, now)
    assert len(always) == 1
    assert always[0].start <= now
    assert always[0].end >= now + 14 * 24 * HOUR
    assert windows.as_of(said, now + 23 * HOUR) is always


def test_one_that_pauses_every_minute_is_known_for_hours_at_any_time_of_day() -> None:
    said = (window(schedule="* * * * *", duration="1s"),)
    for hour in (0, 12, 23):
        now = ms("2026-06-01T00:59:59+00:00") + hour * HOUR
        found = windows.as_of(said, now)
        assert len(found) == intervals.MOST
        assert found[0].start <= now
        assert found[-1].end > now + 15 * HOUR


def test_by_the_minute_in_working_hours_is_one_window_a_day() -> None:
    found = windows.as_of((window(schedule="* 8-17 * * *", duration="1m"),), ms("2026-06-01T00:00:00+00:00"))
    assert {one.end - one.start for one in found} == {10 * HOUR}
    assert len(found) == 15


def test_a_fortnight_ahead_is_known() -> None:
    now = ms("2026-06-01T23:00:00+00:00")
    found = windows.as_of((window(schedule="0 0 * * *", duration="1h"),), now)
    assert found[-1].start > now + 13 * 24 * HOUR


@pytest.mark.parametrize(
    "schedule", ["", "0 8 * *", "0 25 * * *", "0 8 31 2 *", "@daily", "0 8 * * * *", "x" * 101]
)
def test_what_is_no_schedule_is_refused_by_name(schedule: str) -> None:
    with pytest.raises(errors.BadValueError, match="is not a schedule"):
        crons.parse(schedule)


def test_a_skipped_time_comes_when_the_clock_has_gone_forward() -> None:
    coming = crons.occurrences("30 2 * * *", "Europe/Berlin", ms("2026-03-28T12:00:00+01:00"))
    assert next(coming) == ms("2026-03-29T03:00:00+02:00")
    assert next(coming) == ms("2026-03-30T02:30:00+02:00")
