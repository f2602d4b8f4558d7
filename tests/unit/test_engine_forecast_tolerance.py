"""Which moves of a forecast are worth a status write."""

from __future__ import annotations

import dataclasses

import pytest

from lstqueue.engine import model, verdict

NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR


def verdict_of(
    latest: int, *, earliest: int = 0, level: model.Level = model.Level.LIKELY, feasible: int | None = None
) -> model.Verdict:
    finish = (NOW + (earliest or latest), NOW + latest)
    start = (finish[0] - HOUR, finish[1] - HOUR)
    return model.Verdict(level, "as foreseen", start, finish, feasible and NOW + feasible)


@pytest.mark.parametrize(
    ("told_latest", "latest", "worth_it"),
    [
        (HOUR, HOUR + 6 * MINUTE - 1, False),  # a tenth of an hour
        (HOUR, HOUR + 6 * MINUTE, True),
        (HOUR, HOUR - 6 * MINUTE, True),
        (10 * MINUTE, 15 * MINUTE - 1, False),  # and at least five minutes
        (10 * MINUTE, 15 * MINUTE, True),
        (100 * HOUR, 109 * HOUR, False),
        (100 * HOUR, 111 * HOUR, True),
    ],
)
def test_a_far_forecast_may_move_further_than_a_near_one(
    told_latest: int, latest: int, worth_it: bool
) -> None:
    said = dataclasses.replace(verdict_of(told_latest), start=None)
    new = dataclasses.replace(verdict_of(latest), start=None)
    assert verdict.differs(said, new, since=NOW, config=model.Config()) is worth_it


def test_the_earliest_end_alone_is_told_only_to_who_asks_closely() -> None:
    said, new = verdict_of(5 * HOUR, earliest=2 * HOUR), verdict_of(5 * HOUR, earliest=3 * HOUR)
    assert not verdict.differs(said, new, since=NOW, config=model.Config())
    assert verdict.differs(said, new, since=NOW, config=model.Config(), closely=True)


@pytest.mark.parametrize(
    "new",
    [
        verdict_of(50 * HOUR, level=model.Level.AT_RISK),
        verdict_of(50 * HOUR, feasible=60 * HOUR),
        dataclasses.replace(verdict_of(50 * HOUR), finish=None),
        dataclasses.replace(verdict_of(50 * HOUR), start=None),
    ],
    ids=["another level", "a deadline that would do", "no end foreseen", "no start foreseen"],
)
def test_what_is_promised_is_told_however_far_away(new: model.Verdict) -> None:
    assert verdict.differs(verdict_of(50 * HOUR), new, since=NOW, config=model.Config())
