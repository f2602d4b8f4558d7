"""The demo's trace and its runs: the rule of the deadlines, both orders on a few jobs, and the figures."""

import pytest

from lstqueue.demo import play, report, scenario, trace


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


def test_both_orders_end_every_job_soundly_and_the_figures_say_so() -> None:
    outcomes = []
    for order in ("lst", "fifo"):
        told: list[tuple[int, int, float]] = []
        plan = play.Plan(order, jobs=6, nodes=2, seed=1)
        outcome = play.play(plan, lambda *news, told=told: told.append(news))
        assert outcome.jobs == 5  # one of the six is 64 GPUs wide
        assert outcome.unfinished == 0
        assert outcome.violations == ()
        assert outcome.checks > 0
        assert 0 < outcome.met <= 5
        assert [finished for finished, _, _ in told] == [1, 2, 3, 4, 5]
        outcomes.append(outcome)
    assert report.figures(outcomes, 1.234) == {
        "jobs": 5,
        "met": outcomes[0].met,
        "met_fifo": outcomes[1].met,
        "suspensions": 0,
        "checks": outcomes[0].checks + outcomes[1].checks,
        "violations": 0,
        "wall_s": 1.23,
        "virtual_s": round(outcomes[0].virtual_s, 1),
    }
