"""Step 1: estimates, slack, bands."""

from __future__ import annotations

import dataclasses

import pytest

from lstqueue.engine import decide, estimate, model, slack, standing, words
from lstqueue.topology.model import PodShape

NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
CONFIG = model.Config()
GROUPS = (model.Group("g", 1, PodShape((("pods", 1),))),)


def job(**more: object) -> model.Job:
    base: dict[str, object] = {
        "uid": "u", "namespace": "ns", "name": "j", "queue": "q", "groups": GROUPS, "submit": NOW - HOUR,
        "estimate": model.Estimate(HOUR, 4 * HOUR, 6 * HOUR),
    }  # fmt: skip
    return model.Job(**(base | more))


def refresh(one: model.Job, now: int = NOW) -> standing.Standing:
    return standing.refresh(one, now, CONFIG)


def test_a_waiting_job_would_finish_after_its_launch_cost_and_its_run_time() -> None:
    here = refresh(job(deadline=NOW + 10 * HOUR, overhead=MINUTE))
    assert here.finish == (NOW + MINUTE + HOUR, NOW + MINUTE + 4 * HOUR, NOW + MINUTE + 6 * HOUR)
    assert here.slack == 6 * HOUR - MINUTE
    assert here.slack_lo == 9 * HOUR - MINUTE
    assert here.band is model.Band.DEADLINE


def test_an_admitted_job_starts_after_its_launch_cost_and_a_running_one_has_started() -> None:
    admitted = job(state=model.State.ADMITTED, since=NOW - MINUTE, overhead=2 * MINUTE)
    running = job(state=model.State.RUNNING, since=NOW - MINUTE, overhead=2 * MINUTE)
    assert estimate.finish(admitted, NOW, CONFIG) == tuple(NOW + MINUTE + h * HOUR for h in (1, 4, 6))
    assert estimate.finish(running, NOW, CONFIG) == tuple(NOW - MINUTE + h * HOUR for h in (1, 4, 6))


def test_an_outrun_estimate_grows_to_one_and_a_half_times_what_elapsed() -> None:
    exact = model.Estimate(HOUR, HOUR, HOUR)
    running = job(state=model.State.RUNNING, since=NOW, estimate=exact)
    assert estimate.finish(running, NOW + HOUR, CONFIG) == (NOW + HOUR,) * 3
    assert estimate.next_outrun(running, NOW, CONFIG) == NOW + HOUR + 1
    assert estimate.finish(running, NOW + HOUR + 1, CONFIG) == (NOW + HOUR * 3 // 2,) * 3
    assert estimate.finish(running, NOW + 2 * HOUR, CONFIG) == (NOW + HOUR * 9 // 4,) * 3


def test_quantiles_stay_in_order_while_they_grow() -> None:
    running = job(
        state=model.State.RUNNING, since=NOW, estimate=model.Estimate(60 * MINUTE, 70 * MINUTE, 80 * MINUTE)
    )
    for minutes in range(0, 600, 7):
        finish = estimate.finish(running, NOW + minutes * MINUTE, CONFIG)
        assert finish is not None
        assert NOW + minutes * MINUTE <= finish.lo <= finish.mid <= finish.hi


def test_tiny_and_zero_estimates_grow_as_well() -> None:
    assert estimate.grown(0, 100_000, 1.5) >= 100_000
    assert estimate.grown(1, 1, 1.5) == 1


def test_lateness_is_judged_on_the_optimistic_run_time() -> None:
    tight = job(deadline=NOW + HOUR)
    assert refresh(tight).slack == -3 * HOUR
    assert refresh(tight).band is model.Band.DEADLINE
    assert refresh(tight, NOW + 1).band is model.Band.REST


@pytest.mark.parametrize("keeps_band", [False, True])
def test_after_three_failed_starts_in_a_row_a_job_ranks_with_the_rest(keeps_band: bool) -> None:
    made = job(deadline=NOW + 9 * HOUR, keeps_band=keeps_band)
    for count, band in ((2, model.Band.DEADLINE), (3, model.Band.REST), (7, model.Band.REST)):
        here = refresh(dataclasses.replace(made, failed_starts=count))
        assert here.band is band
        assert here.slack == 5 * HOUR
    back = dataclasses.replace(made, published=model.Published(band=model.Band.REST))
    assert refresh(back).band is model.Band.DEADLINE


@pytest.mark.parametrize("keeps_band", [False, True])
def test_what_is_kept_of_a_job_whose_starts_fail_is_what_a_look_at_it_finds(keeps_band: bool) -> None:
    made = job(deadline=NOW + 3 * HOUR, failed_starts=3, keeps_band=keeps_band)
    kept, now = standing.lasting(made, NOW, CONFIG), NOW
    while kept.wake < standing.NEVER and now < NOW + 5 * HOUR:
        for at in (now, (now + kept.until) // 2, kept.until - 1):
            assert kept.seen(at) == refresh(made, at)
        now = kept.until
        kept = standing.lasting(made, now, CONFIG)
    assert now > NOW + HOUR


def test_a_late_job_comes_back_only_with_more_than_the_hysteresis() -> None:
    told = model.Published(band=model.Band.REST)
    edge = NOW + HOUR + 10 * MINUTE
    assert refresh(job(deadline=edge, published=told)).band is model.Band.REST
    assert refresh(job(deadline=edge + 1, published=told)).band is model.Band.DEADLINE


def test_without_deadline_or_estimate_a_job_is_in_the_rest_without_slack() -> None:
    for one in (job(), job(deadline=NOW + HOUR, estimate=None)):
        here = refresh(one)
        assert here.band is model.Band.REST
        assert here.slack is None
        assert slack.bucket(here.slack) == ""


def test_buckets_and_their_edges() -> None:
    assert [name for name, _ in slack.BUCKETS] == ["<0", "<15m", "<1h", "<4h", "<12h", "<1d", "<3d", ">=3d"]
    assert slack.bucket(-1) == "<0"
    assert slack.bucket(0) == "<15m"
    assert slack.bucket(15 * MINUTE) == "<1h"
    assert slack.bucket(1000 * HOUR) == ">=3d"
    for left in (0, 1, 15 * MINUTE - 1, 15 * MINUTE, 71 * HOUR, 72 * HOUR, 1000 * HOUR):
        step = slack.until_next(left)
        assert step is not None
        assert slack.bucket(left - step) != slack.bucket(left) == slack.bucket(left - step + 1)
    assert slack.until_next(-1) is None


def test_a_figure_alone_spreads_by_the_configured_factors() -> None:
    assert estimate.spread(4 * HOUR, CONFIG) == model.Estimate(HOUR, 4 * HOUR, 6 * HOUR)
    assert estimate.spread(1, CONFIG) == model.Estimate(1, 1, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [("outrun_factor", 1.0), ("quantum", 0), ("lo_factor", 0), ("hi_factor", 0.5), ("overhead_share", 1.5),
     ("forecast_interval", 0), ("forecast_depth", -1), ("late_hysteresis", -1), ("forecast_tolerance", 0),
     ("trigger_share", -0.1), ("harm_least", 0), ("claim_margin", 0), ("cap_window", 0), ("wasted_most", 0),
     ("failed_starts_most", 0), ("avoid_graces", 0)],
)  # fmt: skip
def test_a_figure_out_of_range_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"config\.{field} is {value}; it must be"):
        model.Config(**{field: value})


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        (model.Snapshot(jobs=(job(), job())), "jobs: u appears twice"),
        (model.Snapshot(queues=(model.Queue("q"), model.Queue("q"))), "queues: q appears twice"),
        (model.Snapshot(jobs=(job(groups=()),)), r"jobs\[u\]\.groups is empty"),
        (
            model.Snapshot(jobs=(job(groups=(model.Group("g", 0, GROUPS[0].shape),)),)),
            r"groups\[g\]\.count is 0",
        ),
        (model.Snapshot(jobs=(job(assigned=(model.Assigned(1, "p", "n", 1, 0),)),)), "it must be 0 to 0"),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(snapshot: model.Snapshot, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide.decide(snapshot, NOW)


def test_an_empty_world_gives_an_empty_plan() -> None:
    assert decide.decide(model.Snapshot(), NOW).wake_at is None
    assert decide.decide(model.Snapshot(), NOW).updates == ()


def test_durations_and_amounts_read_well() -> None:
    assert [words.duration(ms) for ms in (0, 999, 30_000, 90_000, 36 * HOUR, -HOUR, 48 * HOUR)] == [
        "0s", "0s", "30s", "1m30s", "1d12h", "-1h", "2d",
    ]  # fmt: skip
    up = [words.at_least(ms) for ms in (0, 1, 30_001, HOUR - 1, HOUR + 1, 36 * HOUR + 1, 48 * HOUR)]
    assert up == ["0s", "1s", "31s", "1h", "1h1m", "1d13h", "2d"]
    assert words.amount("cpu", 1500) == "1.5 cpu"
    assert words.amount("memory", 64 << 30) == "64Gi memory"
    assert words.amount("memory", 1000) == "1000 memory"
    assert words.amount("nvidia.com/gpu", 8) == "8 nvidia.com/gpu"
