"""Step 5: who may be suspended for whom, each rule on both sides of its edge."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, QUEUE, runs, slack_of, waits
from lstqueue.engine import kept, model, rights

NEVER_SAVES: dict[str, Any] = {"saves_on_suspend": False, "checkpoint": 0}


def claimed(victim: model.Job, candidate: model.Job | None = None, **queue: Any) -> bool:
    """Whether the candidate has the victim suspended on a node that it fills."""
    ruled = dataclasses.replace(QUEUE, **queue)
    plan = rivals.judged(rivals.world(victim, candidate or waits(), queue=ruled))
    assert plan.suspend == ()
    return rivals.victims(plan) == [victim.uid]


def test_a_job_of_the_rest_makes_room_for_a_deadline_at_its_last_moment() -> None:
    assert claimed(runs())
    assert claimed(runs(deadline=NOW, estimate=rivals.exact(10 * HOUR)))  # late


def test_nobody_is_suspended_before_the_trigger() -> None:
    # max(1 h, restore + grace + 2 s) + 0.4 x 2 h
    edge = HOUR + 48 * MINUTE
    assert claimed(runs(), waits(slack=edge))
    assert not claimed(runs(), waits(slack=edge + 1))
    slow: dict[str, Any] = {"restore": 70 * MINUTE, "grace": 10 * MINUTE}
    edge = 80 * MINUTE + 2000 + 48 * MINUTE
    assert claimed(runs(), waits(slack=edge, **slow))
    assert not claimed(runs(), waits(slack=edge + 1, **slow))


def test_the_trigger_counts_the_run_time_that_remains() -> None:
    # Of 2 h one is saved: 1 h + 0.4 x 1 h.
    edge = HOUR + 24 * MINUTE
    for slack, expected in ((edge, True), (edge + 1, False)):
        half = waits(saved=HOUR, deadline=NOW + HOUR + slack)
        assert claimed(runs(), half) is expected


def test_who_cannot_gain_has_nobody_suspended() -> None:
    assert not claimed(runs(), waits(slack=-1))
    assert not claimed(runs(), waits(slack=-1, keeps_band=True))
    assert not claimed(runs(), rivals.job("j"))
    hopeful = waits(slack=-MINUTE, estimate=model.Estimate(HOUR, 2 * HOUR, 3 * HOUR))
    assert claimed(runs(), hopeful)
    assert claimed(runs(), waits(failed_starts=2))
    assert not claimed(runs(), waits(failed_starts=3))
    assert not claimed(runs(), waits(not_before=NOW + MINUTE))
    assert not claimed(runs(), waits(state=model.State.HELD_BACK))


def test_a_queue_may_forbid_it() -> None:
    assert not claimed(runs(), preemption=model.Preemption.NEVER)


def test_jobs_of_another_queue_are_no_victims() -> None:
    other = dataclasses.replace(QUEUE, name="other")
    snapshot = rivals.world(runs(queue="other"), waits())
    plan = rivals.judged(dataclasses.replace(snapshot, queues=(QUEUE, other)))
    assert plan.claim == ()


def test_a_victim_must_be_preemptible_and_past_its_minimum_run() -> None:
    assert not claimed(runs(preemptible=False))
    assert claimed(runs(ago=15 * MINUTE))
    assert not claimed(runs(ago=15 * MINUTE - 1))
    assert claimed(runs(ago=MINUTE, min_run=MINUTE))
    assert not claimed(runs(ago=20 * MINUTE, min_run=20 * MINUTE + 1))
    starting = runs(state=model.State.ADMITTED, since=NOW - HOUR)
    assert not claimed(starting)
    assert claimed(dataclasses.replace(starting, min_run=0))


def test_after_two_suspensions_that_saved_nothing_a_victim_gets_to_its_next_checkpoint() -> None:
    short: dict[str, Any] = {"saves_on_suspend": False, "checkpoint": 30 * MINUTE}
    assert claimed(runs(ago=30 * MINUTE, wasted=2, **short))
    assert not claimed(runs(ago=30 * MINUTE - 1, wasted=2, **short), waits(slack=10 * MINUTE))
    assert claimed(runs(ago=30 * MINUTE - 1, wasted=1, **short), waits(slack=10 * MINUTE))
    assert not claimed(runs(wasted=2, **NEVER_SAVES))
    assert claimed(runs(wasted=2))


def test_a_victim_that_is_nearly_done_is_let_be() -> None:
    # It lost 20 min, has 22 min to go, and would need some for its restart.
    lossy: dict[str, Any] = {"ago": 20 * MINUTE, "mid": 42 * MINUTE, **NEVER_SAVES}
    assert claimed(runs(restore=2 * MINUTE - 1, **lossy))
    assert not claimed(runs(restore=2 * MINUTE, **lossy))
    unknown = runs(estimate=None, restore=9 * HOUR, **NEVER_SAVES)
    assert claimed(unknown)


def test_four_suspensions_a_day_are_enough() -> None:
    day = 24 * HOUR
    often = tuple(NOW - hours * HOUR for hours in (1, 2, 3))
    assert claimed(runs(suspensions=(*often, NOW - day)))
    assert not claimed(runs(suspensions=(*often, NOW - day + 1)))
    assert not claimed(runs(suspensions=often), cap=3)
    assert not claimed(runs(), cap=0)


def test_a_deadline_is_suspended_only_if_it_holds_all_the_same() -> None:
    # The other runs for 2 h and has 30 min of slack; a suspension is taken to cost 10 min at least.
    edge = 2 * HOUR + 10 * MINUTE
    assert claimed(runs(deadline=slack_of(edge + 1)))
    assert not claimed(runs(deadline=slack_of(edge)))
    # With a short run before it, it must have 10 min more slack left than the other has.
    brief = waits(mid=MINUTE)
    edge = 30 * MINUTE + 10 * MINUTE + 10 * MINUTE
    assert claimed(runs(deadline=slack_of(edge + 1)), brief)
    assert not claimed(runs(deadline=slack_of(edge)), brief)


def test_what_a_suspension_costs_a_deadline_is_its_loss_and_its_restart() -> None:
    costly: dict[str, Any] = {"saves_on_suspend": False, "checkpoint": 15 * MINUTE, "restore": 6 * MINUTE}
    edge = 2 * HOUR + 11 * MINUTE  # 20 min after the start 5 are unsaved
    assert claimed(runs(deadline=slack_of(edge + 1), **costly))
    assert not claimed(runs(deadline=slack_of(edge), **costly))


def test_much_unsaved_work_of_a_deadline_is_lost_only_for_one_that_presses() -> None:
    def lossy(ago: int) -> model.Job:
        return runs(
            ago=ago, deadline=slack_of(9 * HOUR, ago=ago), saves_on_suspend=False, checkpoint=30 * MINUTE
        )

    assert claimed(lossy(40 * MINUTE))
    assert not claimed(lossy(40 * MINUTE + 1))
    assert claimed(lossy(40 * MINUTE + 1), waits(slack=15 * MINUTE))
    assert not claimed(lossy(40 * MINUTE + 1), waits(slack=15 * MINUTE + 1))


@pytest.mark.parametrize(("rule", "expected"), [("Tier", True), ("NoHarm", False)])
def test_a_lower_tier_makes_room_where_the_queue_says_so(rule: str, expected: bool) -> None:
    tight = runs(deadline=slack_of(MINUTE))
    preemption = model.Preemption(rule)
    assert claimed(tight, waits(importance=1), preemption=preemption) is expected
    assert not claimed(tight, waits(), preemption=preemption)


def test_a_higher_tier_makes_no_room_for_a_lower_one() -> None:
    assert claimed(runs(importance=2), waits(importance=0))  # importance lifts nobody in the rest
    assert not claimed(runs(), waits(importance=-1))
    assert claimed(runs(importance=-1), waits(importance=-1))


def test_who_was_suspended_for_a_job_may_not_pay_it_back_yet() -> None:
    assert not claimed(runs(), waits(displaced_by=("v",)))
    assert claimed(runs(), waits(displaced_by=("other",)))


def test_pods_that_leave_already_belong_to_nobodys_victim() -> None:
    leaving = runs(state=model.State.ENDING, since=0)
    assert rivals.judged(rivals.world(leaving, waits(slack=MINUTE))).claim == ()


def test_a_job_given_up_in_an_overload_has_only_the_rest_suspended() -> None:
    snapshot = rivals.world(runs("rest"), runs("spare", deadline=slack_of(99 * HOUR)), waits(slack=9 * HOUR))
    known = rivals.judged(snapshot).kept
    assert isinstance(known, kept.Kept)
    herd, who = known.herd("q"), rights.candidate(known.standings["j"], QUEUE, known.now)
    assert herd.allowed(who).tolist() == [True, True]
    shed = who._replace(band=model.Band.SHED)
    assert herd.allowed(shed).tolist() == [True, False]
