"""What any policy could meet at most: bounds against cases one can count, and against each other."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from cases import effort
from cases import trace_files as files
from lstqueue.evaluate import bounds, bounds_exact, deadlines, traces, workload

pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
EPOCH, HOUR = files.EPOCH, files.HOUR


def near(expected: float) -> object:
    return pytest.approx(expected, rel=1e-6)


def test_what_fits_is_met_and_what_cannot_is_not() -> None:
    fits = [files.work("a", due=HOUR), files.work("b", due=2 * HOUR), files.work("free")]
    assert bounds.fluid(fits, 8).share == near(1.0)
    too_late = [*fits, files.work("c", due=HOUR - 1), files.work("d", gpus=16, due=9 * HOUR)]
    found = bounds.fluid(too_late, 8)
    assert (found.met, found.jobs, found.possible) == (near(2.0), 4, 2)
    assert found.share == near(0.5)


def test_of_two_that_exclude_each_other_the_fluid_takes_one() -> None:
    works = [files.work("a", due=HOUR), files.work("b", due=HOUR)]

    assert bounds.fluid(works, 8).met == near(1.0)
    assert bounds.fluid(works, 12).met == near(1.5)
    assert bounds.fluid(works, 16).met == near(2.0)


def test_weights_change_what_counts() -> None:
    works = [files.work("small", gpus=1, due=HOUR, value=3), files.work("wide", gpus=8, due=HOUR)]

    jobs, hours, value = (bounds.fluid(works, 8, weight=weight) for weight in bounds.Weight)
    assert jobs.met == near(1 + 7 / 8)
    assert (hours.met, hours.total) == (near(8.0), near(9.0))
    assert value.met == near(3 + 7 / 8)


def test_a_wider_bin_is_a_weaker_bound() -> None:
    works = [files.work("a", due=HOUR), files.work("b", due=HOUR)]

    assert bounds.fluid(works, 8, bin_ms=HOUR // 3).met == near(1.0)
    assert bounds.fluid(works, 8, bin_ms=HOUR).met == near(1.0)
    assert bounds.fluid(works, 8, bin_ms=2 * HOUR).met == near(2.0)


def test_capacity_may_change_with_time() -> None:
    works = [files.work(name, due=2 * HOUR) for name in "abc"]
    half = EPOCH + HOUR // 2
    steps = [bounds.Capacity(EPOCH, 16), bounds.Capacity(half, 0), bounds.Capacity(EPOCH + HOUR, 8)]

    assert bounds.fluid(works, steps).met == near(2.0)
    assert bounds.fluid(works, steps[::-1]).met == near(2.0)
    assert bounds.fluid(works, [bounds.Capacity(half, 8)]).met == near(1.5)


def test_launching_takes_time_and_room() -> None:
    works = [files.work("a", due=2 * HOUR), files.work("b", due=2 * HOUR)]

    assert bounds.fluid(works, 8).met == near(2.0)
    assert bounds.fluid(works, 8, launch=HOUR).met == near(1.0)
    assert bounds.fluid(works, 8, launch=HOUR + 1).met == 0.0


def test_nothing_to_meet_is_all_met() -> None:
    assert bounds.fluid([], 8).share == 1.0
    assert bounds.fluid([files.work("a")], 8).share == 1.0
    assert bounds.fluid([files.work("a", due=1)], 8).share == 0.0
    with pytest.raises(ValueError, match="bin_ms is 0; it must be 1 or more"):
        bounds.fluid([], 8, bin_ms=0)


def test_a_missing_solver_is_named_with_what_brings_it() -> None:
    with pytest.raises(
        bounds.BoundError, match=r"bounds need nosuchsolver.*pip install 'lstqueue\[evaluate\]'"
    ):
        bounds.solver("nosuchsolver.part")


def test_suspending_meets_what_a_rigid_schedule_cannot() -> None:
    pytest.importorskip("ortools", reason="the extra `evaluate` brings the solvers")
    long = files.work("long", duration=4 * HOUR, due=6 * HOUR)
    short = files.work("short", submit=HOUR, duration=HOUR, due=int(2.5 * HOUR))
    other = files.work("other", submit=3 * HOUR, duration=HOUR, due=int(4.5 * HOUR))

    assert bounds_exact.rigid([long, short, other], 8) == bounds_exact.Proof(2.0, 2.0)
    assert bounds_exact.preemptive([long, short, other], 8) == bounds_exact.Proof(3.0, 3.0)


def test_wide_gangs_exclude_each_other_where_the_fluid_mixes_them() -> None:
    works = [files.work(name, gpus=5, due=2 * HOUR) for name in "abc"]

    assert bounds.fluid(works, 8).met == near(3.0)
    assert bounds_exact.preemptive(works, 8) == bounds_exact.Proof(2.0, 2.0)
    pair = [files.work(name, gpus=5, due=int(1.3 * HOUR)) for name in "ab"]
    assert bounds_exact.preemptive(pair, 8) == bounds_exact.Proof(1.0, 1.0)


def test_exact_bounds_weigh_too() -> None:
    works = [files.work("a", due=HOUR, value=5), files.work("b", gpus=4, due=HOUR, value=2)]

    assert bounds_exact.preemptive(works, 8, weight=bounds.Weight.VALUE).met == 5.0
    assert bounds_exact.preemptive(works, 8, weight=bounds.Weight.GPU_HOURS).bound == near(8.0)


def test_too_many_jobs_to_prove_are_refused() -> None:
    works = [files.work(str(number), due=2 * HOUR) for number in range(401)]

    with pytest.raises(
        bounds.BoundError, match="401 jobs are too many to prove, above 400; take the fluid bound"
    ):
        bounds_exact.preemptive(works, 8)


@st.composite
def crowds(draw: st.DrawFn) -> list[workload.Work]:
    works = []
    for number in range(draw(st.integers(1, 6))):
        submit, duration = draw(st.integers(0, 5)), draw(st.integers(1, 4))
        due = submit + duration + draw(st.integers(0, 3))
        gpus = draw(st.integers(1, 8))
        works.append(
            files.work(str(number), submit=submit * HOUR, duration=duration * HOUR, gpus=gpus, due=due * HOUR)
        )
    return works


def best(works: list[workload.Work], gpus: int) -> int:
    """Jobs met by the best schedule that starts on full hours and may suspend at every one: all are tried."""
    return max(
        len(chosen)
        for size in range(len(works) + 1)
        for chosen in itertools.combinations(works, size)
        if feasible(chosen, gpus)
    )


def feasible(works: tuple[workload.Work, ...], gpus: int) -> bool:
    states = {tuple(work.duration // HOUR for work in works)}
    for hour in range(13):
        now = EPOCH + hour * HOUR
        following = set()
        for state in states:
            live = [
                i
                for i, left in enumerate(state)
                if left and works[i].submit <= now < (works[i].deadline or 0)
            ]
            for size in range(len(live) + 1):
                for running in itertools.combinations(live, size):
                    if sum(works[i].gpus for i in running) <= gpus:
                        following.add(tuple(left - (i in running) for i, left in enumerate(state)))
        states = following
    return (0,) * len(works) in states


@hypothesis.settings(max_examples=effort.examples(6))
@hypothesis.given(crowds())
def test_no_schedule_meets_more_than_the_bounds(works: list[workload.Work]) -> None:
    pytest.importorskip("ortools", reason="the extra `evaluate` brings the solvers")
    met = best(works, 8)
    suspending, staying = bounds_exact.preemptive(works, 8), bounds_exact.rigid(works, 8)

    assert staying.closed
    assert suspending.closed
    assert staying.met <= met <= suspending.bound <= bounds.fluid(works, 8).met + 1e-6


def test_the_bound_of_cluster03_is_the_known_one() -> None:
    trace = traces.read(f"elasticflow:{files.real('elasticflow-itp/cluster03.csv.gz')}")
    works = deadlines.apply(trace, deadlines.parse("uniform:1.1:3.0"), seed=1).works

    assert round(bounds.fluid(works, 128).share, 3) == 0.925
    assert round(bounds.fluid(works, 128, weight=bounds.Weight.GPU_HOURS).share, 3) == 0.762
