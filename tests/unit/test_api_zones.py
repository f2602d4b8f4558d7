"""When it is next 06:00 somewhere, also on the days on which clocks change."""

import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.api import errors, times, zones

DAY = 86_400_000


def coming(time, zone, after):
    found = zones.following(time, zone, times.parse(after))
    return times.format(found.at), found.note


@pytest.mark.parametrize(
    ("time", "zone", "after", "at"),
    [
        ("06:00", "UTC", "2026-03-01T05:59:59Z", "2026-03-01T06:00:00Z"),
        ("06:00", "UTC", "2026-03-01T06:00:00Z", "2026-03-02T06:00:00Z"),
        ("06:00", "Europe/Berlin", "2026-03-01T04:59:00Z", "2026-03-01T05:00:00Z"),
        ("06:00", "Europe/Berlin", "2026-03-01T05:01:00Z", "2026-03-02T05:00:00Z"),
        ("06:00", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T04:00:00Z"),
        ("00:00", "Pacific/Kiritimati", "2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z"),
        ("23:59:59", "Etc/GMT+12", "2026-03-01T12:00:00Z", "2026-03-02T11:59:59Z"),
        ("12:34:56", "Asia/Kathmandu", "2026-03-01T00:00:00Z", "2026-03-01T06:49:56Z"),
        ("06:00", "UTC", "2028-02-28T12:00:00Z", "2028-02-29T06:00:00Z"),
        ("06:00", "UTC", "2026-12-31T12:00:00.500Z", "2027-01-01T06:00:00Z"),
    ],
)
def test_the_next_time_of_day_is_strictly_after(time, zone, after, at):
    assert coming(time, zone, after) == (at, "")


@pytest.mark.parametrize("time", ["02:00", "02:30", "02:59:59"])
def test_a_skipped_time_is_the_first_moment_after_the_gap(time):
    at, note = coming(time, "Europe/Berlin", "2026-03-28T12:00:00Z")
    assert at == "2026-03-29T01:00:00Z"
    assert note == (
        f"{time} does not exist on 2026-03-29 in Europe/Berlin, where clocks go forward; "
        "2026-03-29 03:00:00 is the first moment after it"
    )


def test_once_the_gap_is_over_the_next_day_counts():
    assert coming("02:30", "Europe/Berlin", "2026-03-29T01:00:00Z") == ("2026-03-30T00:30:00Z", "")


def test_a_time_that_comes_twice_means_the_first():
    at, note = coming("02:30", "Europe/Berlin", "2026-10-24T12:00:00Z")
    assert at == "2026-10-25T00:30:00Z"
    assert note == (
        "02:30 comes twice on 2026-10-25 in Europe/Berlin, where clocks go back; the first one counts"
    )
    assert coming("02:30", "Europe/Berlin", "2026-10-25T00:30:00Z") == ("2026-10-26T01:30:00Z", "")
    assert coming("03:00", "Europe/Berlin", "2026-10-24T12:00:00Z") == ("2026-10-25T02:00:00Z", "")


def test_a_gap_of_half_an_hour_and_one_at_midnight():
    assert coming("02:15", "Australia/Lord_Howe", "2026-10-03T12:00:00Z")[0] == "2026-10-03T15:30:00Z"
    assert coming("00:30", "America/Santiago", "2026-09-05T12:00:00Z")[0] == "2026-09-06T04:00:00Z"


def test_a_day_that_was_left_out_becomes_the_first_moment_of_the_next():
    at, note = coming("06:00", "Pacific/Apia", "2011-12-29T20:00:00Z")
    assert at == "2011-12-30T10:00:00Z"
    assert "2011-12-31 00:00:00" in note


@pytest.mark.parametrize(
    "zone",
    ["Europe/Atlantis", "Europe", "europe/berlin", "../UTC", "/etc/localtime", "localtime", "Factory", "",
     "right/UTC", "posixrules", "UTC\n", "x" * 100_000, "\x00", "Zürich", None, 7],
)  # fmt: skip
def test_a_zone_that_nobody_knows_is_refused_with_a_remedy(zone):
    with pytest.raises(errors.BadValueError, match="not a time zone known here") as caught:
        zones.following("06:00", zone, 0)
    assert "Europe/Berlin" in caught.value.remedy
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "time", ["", "6:00", "24:00", "06:60", "06:00:60", "06:00Z", "06:00\n", "٠٦:٠٠", None, 6]
)
def test_what_is_no_time_of_day_is_refused_with_a_remedy(time):
    with pytest.raises(errors.BadValueError, match="not a time of day") as caught:
        zones.following(time, "UTC", 0)
    assert '"06:00"' in caught.value.remedy


@given(
    st.times().map(lambda time: time.replace(microsecond=0).isoformat()),
    st.sampled_from(sorted(zoneinfo.available_timezones() - {"Factory", "localtime"})),
    st.integers(0, 4_102_444_800_000),
)
def test_it_is_always_within_three_days_and_no_later_instant_gets_an_earlier_one(time, zone, after):
    found = zones.following(time, zone, after)
    assert after < found.at <= after + 3 * DAY
    assert zones.following(time, zone, found.at - 1) == found
    assert zones.following(time, zone, found.at).at > found.at
