import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.api import errors, times

FIRST = times.parse("0001-01-01T00:00:00Z")
LAST = times.parse("9999-12-31T23:59:59.999Z")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.5Z", 500),
        ("1970-01-01T00:00:00,5Z", 500),
        ("1970-01-01T00:00:00.0019Z", 1),
        ("1970-01-01T00:00:01.000000Z", 1_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1970-01-01T09:00:00+09:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("2024-02-29T12:00:00-00:00", 1_709_208_000_000),
    ],
)
def test_times_are_read_with_any_offset_and_fraction(text, ms):
    assert times.parse(text) == ms


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("2026-03-01", "no time of day"),
        ("2026-03-01T18:00:00", "no time zone"),
        ("2026-03-01 18:00:00", "no time zone"),
        ("2026-03-01t18:00:00z", "not an RFC 3339 time"),
        ("2026-02-29T18:00:00Z", "not a time that exists"),
        ("2026-03-01T24:00:00Z", "not a time that exists"),
        ("2026-03-01T18:00:60Z", "not a time that exists"),
        ("0000-01-01T00:00:00Z", "not a time that exists"),
        ("9999-12-31T23:59:59-01:00", "outside the years"),
        ("0001-01-01T00:00:00+01:00", "outside the years"),
        ("2026-03-01T18:00:00+25:00", "not an RFC 3339 time"),
        ("2026-03-01T18:00:00Z\n", "not an RFC 3339 time"),
        ("٢026-03-01T18:00:00Z", "not an RFC 3339 time"),
        ("tomorrow", "not an RFC 3339 time"),
        (1_700_000_000, "not a time"),
        (None, "not a time"),
        ([], "not a time"),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text, problem):
    with pytest.raises(errors.BadValueError, match=problem) as caught:
        times.parse(text)
    assert "2026-03-01T18:00:00Z" in caught.value.remedy


def test_milliseconds_are_written_only_when_there_are_any():
    assert times.format(1_709_208_000_000) == "2024-02-29T12:00:00Z"
    assert times.format(1_709_208_000_050) == "2024-02-29T12:00:00.050Z"
    assert times.format(-1) == "1969-12-31T23:59:59.999Z"


def test_a_time_beyond_the_calendar_is_not_written():
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        times.format(LAST + 1)


@given(st.integers(FIRST, LAST))
def test_what_is_written_is_read_back(ms):
    assert times.parse(times.format(ms)) == ms


DAY = 86_400_000


@given(st.integers(FIRST + DAY, LAST - DAY), st.integers(-23 * 60, 23 * 60))
def test_offsets_agree_with_the_standard_library(ms, minutes):
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    local = (epoch + datetime.timedelta(milliseconds=ms)).astimezone(zone)
    assert times.parse(local.isoformat()) == ms
