"""Queues that admit nobody, held or only observing; and what a job has before it when it comes back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, QUEUE, runs, waits
from lstqueue.engine import decide, estimate, explain, model

CONFIG = model.Config()
HELD = dataclasses.replace(QUEUE, held=True)
OBSERVED = dataclasses.replace(QUEUE, observed=True)


def said(plan: model.Plan, uid: str) -> model.Update:
    return next(update for update in plan.updates if update.uid == uid)


def test_a_held_queue_admits_nobody_and_has_nobody_suspended() -> None:
    snapshot = rivals.world(runs(), waits("a"), nodes=2, queue=HELD)
    plan = rivals.judged(snapshot)
    assert (plan.admit, plan.claim, plan.suspend) == ((), (), ())
    assert said(plan, "a").code is model.Code.QUEUE_HELD
    assert said(plan, "a").message == (
        'Queue "q" admits nobody for now; set its stopPolicy to None to go on.'
    )
    told = explain.explain(snapshot, plan, "a")
    assert (told.blockers, told.preemption) == ((), "")
    assert told.change == "Set the queue's stopPolicy to None, or use another queue."


def test_an_observed_queue_forecasts_as_if_it_admitted() -> None:
    snapshot = rivals.world(waits("a"), waits("b", slack=40 * MINUTE), queue=OBSERVED)
    plan = rivals.judged(snapshot)
    assert (plan.admit, plan.claim) == ((), ())
    first, second = said(plan, "a"), said(plan, "b")
    assert first.code is model.Code.OBSERVING
    assert first.verdict is not None
    assert first.verdict.start == (NOW, NOW)
    assert second.verdict is not None
    assert second.verdict.start == (NOW + 2 * HOUR, NOW + 2 * HOUR)
    assert plan.forecast
    assert explain.explain(snapshot, plan, "a").change.startswith("Set the queue's mode to Enforce")


def test_an_observed_queue_drains_nobody() -> None:
    both = dataclasses.replace(OBSERVED, drained=True, held=True)
    snapshot = rivals.world(runs(), runs("w", "n1"), waits("a"), nodes=2, queue=both)
    plan = rivals.judged(snapshot)
    assert (plan.suspend, plan.admit, plan.claim) == ((), (), ())
    assert "being emptied" not in said(plan, "a").message


STOPS = [{"observed": True}, {"held": True}, {"observed": True, "drained": True, "held": True}]
LEAVING: dict[str, Any] = {"state": model.State.ENDING, "since": 0}
GONE: dict[str, Any] = {"state": model.State.WAITING, "assigned": (), "since": 0}


@pytest.mark.parametrize("stop", STOPS, ids=str)
@pytest.mark.parametrize("first", [{}, LEAVING, GONE], ids=["runs", "leaving", "gone"])
def test_where_nobody_is_admitted_those_who_still_run_are_spared_whoever_has_left(
    stop: dict[str, Any], first: dict[str, Any]
) -> None:
    two = (runs("v", gpus=4), runs("w", gpus=4))
    owner = rivals.claiming(waits(), *two)
    there = (dataclasses.replace(two[0], **first), two[1])
    plan = rivals.judged(rivals.world(*there, owner, queue=dataclasses.replace(QUEUE, **stop)))
    assert (plan.suspend, plan.admit) == ((), ())
    assert [one.uid for one in plan.drop] == ["j"]


@pytest.mark.parametrize(
    ("stop", "admitted"), [(STOPS[0], []), (STOPS[1], ["j"]), (STOPS[2], [])], ids=["observed", "held", "all"]
)
def test_a_place_that_all_have_left_is_taken_in_a_held_queue_and_given_up_in_an_observed_one(
    stop: dict[str, Any], admitted: list[str]
) -> None:
    owner = rivals.claiming(waits(), runs())
    snapshot = rivals.world(runs(**GONE), owner, queue=dataclasses.replace(QUEUE, **stop))
    plan = rivals.judged(snapshot)
    assert [one.uid for one in plan.admit] == admitted
    assert [one.uid for one in plan.drop] == ([] if admitted else ["j"])


def test_jobs_that_are_only_observed_stand_in_nobodys_way() -> None:
    other = dataclasses.replace(OBSERVED, name="watched")
    snapshot = rivals.world(waits("w", slack=0, queue="watched"), runs(ago=0), waits("a", slack=11 * HOUR))
    plan = rivals.judged(dataclasses.replace(snapshot, queues=(QUEUE, other)))
    verdict = said(plan, "a").verdict
    assert verdict is not None
    assert verdict.start == (NOW + 10 * HOUR, NOW + 10 * HOUR)


def test_what_cannot_fit_is_told_in_an_observed_queue_as_well() -> None:
    plan = rivals.judged(rivals.world(waits("a", count=2), queue=OBSERVED))
    assert said(plan, "a").code is model.Code.NO_MATCHING_NODES


def test_what_is_saved_is_not_before_a_job_any_more() -> None:
    job = waits(saved=90 * MINUTE, overhead=MINUTE)
    assert estimate.remaining(job, CONFIG) == rivals.exact(30 * MINUTE)
    finish = estimate.finish(job, NOW, CONFIG)
    assert finish is not None
    assert finish.mid == NOW + 31 * MINUTE
    running = runs(ago=10 * MINUTE, mid=2 * HOUR, saved=90 * MINUTE)
    assert estimate.finish(running, NOW, CONFIG) == (NOW + 20 * MINUTE,) * 3
    assert estimate.next_outrun(running, NOW, CONFIG) == NOW + 20 * MINUTE + 1


def test_a_job_that_saved_all_it_was_thought_to_need_has_a_minute_left_and_grows_when_it_saved_more() -> None:
    assert estimate.remaining(waits(saved=2 * HOUR), CONFIG) == rivals.exact(MINUTE)
    assert estimate.remaining(waits(saved=2 * HOUR - 1), CONFIG) == rivals.exact(MINUTE)
    grown = estimate.remaining(waits(saved=2 * HOUR + 1), CONFIG)
    assert grown == rivals.exact(HOUR - 1)
    assert estimate.remaining(waits(mid=1000, saved=1000), CONFIG) == rivals.exact(1000)


def test_the_order_counts_what_is_left() -> None:
    # Both end at the same deadline; the one with less before it can wait longer.
    long, short = waits("long", mid=9 * HOUR), waits("short", mid=9 * HOUR, saved=8 * HOUR)
    deadline = NOW + 12 * HOUR
    pair = [dataclasses.replace(one, deadline=deadline) for one in (short, long)]
    assert [one.uid for one in decide.decide(rivals.world(*pair), NOW, rivals.CONFIG).admit] == ["long"]


def test_a_job_that_keeps_its_band_stands_before_others_though_it_is_late() -> None:
    late = waits("late", slack=-HOUR)
    keeping = dataclasses.replace(late, keeps_band=True)
    for first, expected in ((late, "other"), (keeping, "late")):
        plan = decide.decide(rivals.world(first, waits("other", slack=3 * HOUR)), NOW, rivals.CONFIG)
        assert [one.uid for one in plan.admit] == [expected]
