"""What follows from a job's reports of progress, and what does not."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies

from lstqueue.engine import model, progress

CONFIG = model.Config()
HOUR = model.HOUR
PRIOR = model.Estimate(HOUR, 4 * HOUR, 6 * HOUR)


def told(
    *reports: tuple[float, float], prior: model.Estimate | None = PRIOR, saved: float = 0, **first: object
) -> progress.Track:
    """A run whose reports are (share of the work, hours after it began)."""
    track = progress.begun(progress.NONE, 1, None, prior=prior, **{"fresh": True, **first})
    for share, hours in reports:
        report = round(share * progress.WHOLE), round(hours * HOUR)
        track = progress.reported(track, report, saved=round(saved * HOUR), config=CONFIG)
    return track


def hours(ms: int) -> float:
    return ms / HOUR


@pytest.mark.parametrize("text", ["", "half", "nan", "-nan", "inf", "-0.1", "1.01", "0,5", "50%", "1e400"])
def test_what_is_no_number_from_0_to_1_is_none(text: str) -> None:
    assert progress.read(text) is None


@pytest.mark.parametrize(("text", "ppm"), [("0", 0), ("1", 1_000_000), (" 0.25 ", 250_000), ("1e-6", 1)])
def test_a_number_from_0_to_1_is_read(text: str, ppm: int) -> None:
    assert progress.read(text) == ppm


def test_a_steady_pace_is_believed_once_it_was_seen_for_long() -> None:
    known = told((0.5, 5.0)).estimate
    assert known is not None
    # Ten hours by its pace, four as was expected.
    assert 9.5 < hours(known.mid) < 10
    assert hours(known.lo) > 8
    assert hours(known.hi) < 13


def test_a_first_small_report_moves_little() -> None:
    known = told((0.001, 1.0)).estimate
    assert known is not None
    assert hours(known.mid) < 7  # by its pace it would be a thousand hours


def test_nothing_follows_from_little_where_nothing_was_expected() -> None:
    assert told((0.01, 1.0), prior=None).estimate is None
    known = told((0.2, 1.0), prior=None).estimate
    assert known is not None
    assert hours(known.mid) == pytest.approx(5.0)


def test_the_time_before_the_first_report_is_no_pace_where_that_was_found() -> None:
    track = progress.begun(progress.NONE, 2, (600_000, HOUR), prior=None, fresh=False)
    assert track.estimate is None
    track = progress.reported(track, (800_000, 2 * HOUR), saved=5 * HOUR, config=CONFIG)
    assert track.estimate is not None
    assert hours(track.estimate.mid) == pytest.approx(8.0)


def test_a_later_run_begins_to_count_with_its_first_report() -> None:
    track = told((0.5, 0.1), fresh=False, saved=3)
    assert track.estimate is None
    track = told((0.5, 0.1), (0.7, 1.1), fresh=False, saved=3)
    assert track.estimate is not None
    assert 3 + 1.1 + 1.4 < hours(track.estimate.mid) < 3 + 1.1 + 1.7


def test_a_report_that_goes_back_begins_anew() -> None:
    before = told((0.5, 2.0))
    after = told((0.5, 2.0), (0.1, 2.5))
    assert after.estimate == before.estimate
    known = told((0.5, 2.0), (0.1, 2.5), (0.3, 4.5)).estimate
    assert known is not None
    assert hours(known.mid) == pytest.approx(4.5 + 7 * 0.9, rel=0.05)


def test_what_repeats_says_nothing() -> None:
    assert told((0.5, 2.0), (0.5, 9.0)) == told((0.5, 2.0))


def test_a_report_that_changes_little_leaves_the_estimate_as_it_is() -> None:
    first = told((0.5, 5.0))
    after = progress.reported(first, (505_000, round(5.05 * HOUR)), saved=0, config=CONFIG)
    assert after.estimate is first.estimate
    assert after.last != first.last


def test_when_all_is_done_a_minute_is_left() -> None:
    known = told((0.5, 2.0), (1.0, 4.0)).estimate
    assert known is not None
    assert known.mid == 4 * HOUR + model.MINUTE


SHARES = strategies.floats(0, 1, allow_nan=False)
GAPS = strategies.integers(0, 100 * HOUR)


@hypothesis.given(
    reports=strategies.lists(strategies.tuples(SHARES, GAPS), max_size=8),
    saved=GAPS,
    prior=strategies.none() | strategies.integers(1, 10_000 * HOUR),
    fresh=strategies.booleans(),
)
def test_whatever_is_reported_quantiles_are_in_order_and_ahead(
    reports: list[tuple[float, int]], saved: int, prior: int | None, fresh: bool
) -> None:
    expected = None if prior is None else model.Estimate(max(1, prior // 4), prior, prior * 3 // 2)
    track, ran = progress.begun(progress.NONE, 1, None, prior=expected, fresh=fresh), 0
    for share, gap in reports:
        ran, before = ran + gap, track
        track = progress.reported(track, (round(share * progress.WHOLE), ran), saved=saved, config=CONFIG)
        if track.estimate is not None and track.estimate is not before.estimate:
            known = track.estimate
            assert saved + ran < known.lo <= known.mid <= known.hi
