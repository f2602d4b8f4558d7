"""The demo's trace and its runs: the rule of the deadlines, what a run gets over, and the figures."""

import dataclasses
import functools

import pytest

from lstqueue.demo import outcome, play, report, scenario, trace


@functools.cache
def played(plan: play.Plan) -> outcome.Outcome:
    """What came of a plan, played once for all tests."""
    return play.play(plan, lambda *_: None)


@pytest.mark.parametrize("seed", [1, 7])
def test_deadlines_are_between_1_1_and_3_run_times_after_submission(seed: int) -> None:
    jobs = trace.load(seed=seed)
    assert len(jobs) == 240
    assert jobs[0].submit == 0
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
    for job in jobs:
        assert (job.deadline - job.submit + 1) / job.duration >= 1.1
        assert (job.deadline - job.submit) / job.duration <= 3.0


def test_a_part_of_the_trace_has_the_deadlines_of_the_whole() -> None:
    assert trace.load(seed=3, jobs=20) == trace.load(seed=3)[:20]
    assert trace.load(seed=3, jobs=20) != trace.load(seed=4, jobs=20)


def test_jobs_wider_than_the_cluster_are_left_out() -> None:
    jobs = trace.load(seed=1, jobs=10)
    assert {job.gpus for job in scenario.fitting(jobs, nodes=8)} == {8, 16, 64}
    assert {job.gpus for job in scenario.fitting(jobs, nodes=7)} == {8, 16}
    assert {job.gpus for job in scenario.fitting(jobs, nodes=1)} == {8}


def test_a_run_gets_over_preemptions_a_lost_node_and_a_killed_operator() -> None:
    told: list[tuple[int, int, float]] = []
    found = play.play(play.Plan("lst", jobs=12, nodes=2, seed=1), lambda *news: told.append(news))
    assert found.violations == ()
    assert found.checks > 0
    assert (found.results.unfinished, found.results.failed) == (0, 0)
    assert found.sound
    assert found.preemptions > 0
    assert (found.nodes_lost, found.restarts) == (1, 1)
    assert found.suspensions_node_lost > 0
    assert found.suspensions == found.preemptions + found.suspensions_node_lost
    assert found.results.lost_gpu_hours > 0
    assert 0 < found.results.met <= found.results.with_deadline < found.jobs == 11
    assert [finished for finished, _, _ in told] == list(range(1, 12))
    story = "\n".join(found.story)
    for words in ("takes the room of", "falls silent under", "is back", "operator is killed"):
        assert words in story


def test_first_come_first_suspends_nobody_for_another_and_the_figures_are_of_both() -> None:
    outcomes = [played(play.Plan(order, jobs=6, nodes=2, seed=1)) for order in ("lst", "fifo")]
    best, baseline = outcomes
    assert baseline.preemptions == 0
    assert best.sound
    assert baseline.sound
    figures = report.figures(outcomes, 1.234)
    runs = figures.pop("runs")
    assert figures == {
        "jobs": 5,  # one of the six is 64 GPUs wide
        "with_deadline": best.results.with_deadline,
        "met": best.results.met,
        "met_fifo": baseline.results.met,
        "suspensions": best.suspensions,
        "preemptions": best.preemptions,
        "nodes_lost": 1,
        "restarts": 1,
        "checks": best.checks + baseline.checks,
        "violations": 0,
        "wall_s": 1.23,
        "virtual_s": round(best.virtual_s, 1),
    }
    assert runs["fifo"]["met"] == baseline.results.met
    assert runs["lst"]["requests"]["patch pods"] > 0


def test_the_same_seed_gives_the_same_run() -> None:
    plan = play.Plan("lst", jobs=6, nodes=2, seed=1)
    once, again = played(plan), play.play(plan, lambda *_: None)
    assert once.results == again.results
    assert once.story == again.story
    assert once.virtual_s == again.virtual_s


def test_a_failed_or_endless_job_and_a_violation_make_a_run_unsound() -> None:
    found = play.play(play.Plan("fifo", jobs=2, nodes=1, seed=1), lambda *_: None)
    assert found.sound
    assert not dataclasses.replace(found, violations=("quota",)).sound
    for spoilt in ({"failed": 1}, {"unfinished": 1}):
        assert not dataclasses.replace(found, results=dataclasses.replace(found.results, **spoilt)).sound
