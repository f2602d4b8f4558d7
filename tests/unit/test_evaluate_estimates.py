"""What is known of run times: each model, and what the one that learns has learnt when."""

from __future__ import annotations

import heapq
import itertools
import math
import os
import subprocess
import sys

import pytest

from cases import replays
from cases import trace_files as files
from lstqueue.engine import model
from lstqueue.evaluate import digest, estimates, replay, traces, workload, world

HOUR = files.HOUR
CONFIG = model.Config()


def estimator(text: str, *, seed: int = 1) -> estimates.Estimator:
    return estimates.parse(text, seed=seed, config=CONFIG)


def ran(made: estimates.Estimator, *hours: float, **more: object) -> None:
    """Let jobs be submitted and end, one after the other."""
    for hour in hours:
        work = files.work(f"past-{next(COUNTER)}", duration=int(hour * HOUR), **more)
        made.ask(work)
        made.ended(work, work.duration)


COUNTER = itertools.count()


def test_exact_knows() -> None:
    assert estimator("exact").ask(files.work("a", duration=77)) == model.Estimate(77, 77, 77)


def test_user_repeats_the_request_with_the_configured_quantiles() -> None:
    made = estimator("user")

    assert made.ask(files.work("a", requested=4 * HOUR)) == model.Estimate(HOUR, 4 * HOUR, 6 * HOUR)
    assert made.ask(files.work("b")) is None


def test_lognormal_is_wrong_by_as_much_as_sigma_says() -> None:
    made = estimator("lognormal:0.5")
    asked = [made.ask(files.work(str(number))) for number in range(2000)]
    logs = [math.log(known.mid / HOUR) for known in asked if known]
    mean = sum(logs) / len(logs)

    assert abs(mean) < 0.05
    assert abs(math.sqrt(sum((log - mean) ** 2 for log in logs) / len(logs)) - 0.5) < 0.05
    assert estimator("lognormal:0").ask(files.work("a")).mid == HOUR


def test_lognormal_goes_by_seed_and_job_whatever_was_asked_before() -> None:
    made, other = estimator("lognormal:1"), estimator("lognormal:1")
    made.ask(files.work("before"))

    assert made.ask(files.work("a")) == other.ask(files.work("a"))
    assert made.ask(files.work("a")) != made.ask(files.work("b"))
    assert made.ask(files.work("a")) != estimator("lognormal:1", seed=2).ask(files.work("a"))


def test_lognormal_is_the_same_in_every_process() -> None:
    code = (
        "from cases import trace_files as f; from lstqueue.evaluate import estimates as e; "
        "from lstqueue.engine import model; "
        "print(e.parse('lognormal:1', seed=3, config=model.Config()).ask(f.work('a')))"
    )
    said = set()
    for hashes in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)}
        said.add(
            subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, check=True
            ).stdout
        )
    assert len(said) == 1


def test_last_two_is_the_user_until_something_of_the_kind_has_ended() -> None:
    made = estimator("last-two")

    assert made.ask(files.work("a", requested=4 * HOUR)) == model.Estimate(HOUR, 4 * HOUR, 6 * HOUR)
    assert made.ask(files.work("b")) is None
    ran(made, 2, gpus=16)
    ran(made, 2, user="bob")
    assert made.ask(files.work("c", requested=4 * HOUR)).mid == 4 * HOUR


def test_last_two_means_the_last_two_of_the_user_and_width() -> None:
    made = estimator("last-two")
    ran(made, 9)
    assert made.ask(files.work("a")).mid == 9 * HOUR
    ran(made, 1, 2)
    assert made.ask(files.work("b")).mid == 1.5 * HOUR


def test_last_two_never_exceeds_the_request() -> None:
    made = estimator("last-two")
    ran(made, 8, 8)

    assert made.ask(files.work("a", requested=3 * HOUR)).mid == 3 * HOUR


def test_last_two_learns_how_far_it_is_off() -> None:
    made = estimator("last-two")
    ran(made, 2, 2)
    assert made.ask(files.work("a")) == model.Estimate(HOUR // 2, 2 * HOUR, 3 * HOUR)
    ran(made, *[2] * 8)  # as predicted
    assert made.ask(files.work("b")) == model.Estimate(2 * HOUR, 2 * HOUR, 2 * HOUR)
    ran(made, 0.2, 2, 2)
    known = made.ask(files.work("c"))
    assert known.mid == 2 * HOUR
    assert known.lo == pytest.approx(0.2 * HOUR, rel=0.01)
    assert known.hi == pytest.approx(2 * HOUR * 2 / 1.1, rel=0.01)


def test_last_two_judges_users_by_all_users_once_enough_have_ended() -> None:
    made = estimator("last-two")
    for number in range(30):
        ran(made, 1, user=f"user-{number}", requested=10 * HOUR)

    known = made.ask(files.work("new", user="another", requested=20 * HOUR))
    assert known == model.Estimate(2 * HOUR, 20 * HOUR, 20 * HOUR)


def test_quantiles_keep_their_order_for_the_shortest_of_jobs() -> None:
    made = estimator("last-two")
    for hour in (1e-9, 1, 1e-9, 1, 1e-9, 1, 1e-9, 1):
        ran(made, hour)
        made.ended(files.work("instant", duration=1), 1)
    known = made.ask(files.work("a"))
    assert 1 <= known.lo <= known.mid <= known.hi


@pytest.mark.parametrize("text", ["", "oracle", "exact:1", "lognormal", "last-two:3"])
def test_an_unknown_model_says_which_there_are(text: str) -> None:
    with pytest.raises(estimates.EstimateError, match="must be exact, user, lognormal:SIGMA or last-two"):
        estimator(text)


@pytest.mark.parametrize("sigma", ["", "x", "-1", "nan", "inf", "6"])
def test_a_sigma_out_of_range_is_refused(sigma: str) -> None:
    with pytest.raises(estimates.EstimateError, match="as its sigma; it must be 0 to 5"):
        estimator(f"lognormal:{sigma}")


def test_learnt_quantiles_hold_for_most_of_a_real_trace() -> None:
    trace = traces.read(f"swf:{files.real('pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz')}")
    made = estimator("last-two")
    running: list[tuple[int, int, workload.Work]] = []
    below = above = 0
    for number, work in enumerate(trace.works):
        while running and running[0][0] <= work.submit:
            ended = heapq.heappop(running)[2]
            made.ended(ended, ended.duration)
        known = made.ask(work)
        below, above = below + (work.duration < known.lo), above + (work.duration > known.hi)
        heapq.heappush(running, (work.submit + work.duration, number, work))
    assert below / len(trace.works) < 0.1
    assert above / len(trace.works) < 0.1


def test_those_who_wait_are_asked_of_anew_when_one_of_their_kind_ends() -> None:
    works = [replays.work(f"j{number}", runs=(number + 1) * HOUR, due=10 * HOUR) for number in range(3)]
    place = world.World(world.Shape(1, 8), replays.FREE, model.Queue("q"), log=digest.Log())
    expected: dict[str, list[int | None]] = {"j1": [], "j2": []}

    def decided(snapshot: model.Snapshot, plan: model.Plan) -> None:
        for job in snapshot.jobs:
            if job.name in expected and job.state is model.State.WAITING:
                known = expected[job.name]
                mid = job.estimate.mid if job.estimate is not None else None
                if not known or known[-1] != mid:
                    known.append(mid)

    load = workload.Workload("made up", workload.ordered(works))
    replay.Replay(load, place, estimator("last-two"), config=CONFIG).run(decided=decided)
    assert expected["j2"] == [None, HOUR, int(1.5 * HOUR)]
