"""Who gets no promise is told for which deadline there would have been one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
LENGTH = CONFIG.slot_grace + CONFIG.launch_margin + 2 * HOUR


def decided(snapshot: model.Snapshot, config: model.Config = CONFIG) -> model.Plan:
    plan = decide.decide(snapshot, NOW, config)
    assert pledges.of_plan(snapshot, plan, config) == ()
    return plan


def told(plan: model.Plan, uid: str = "j") -> model.Verdict:
    verdict = next(one.verdict for one in plan.updates if one.uid == uid)
    assert verdict is not None
    return verdict


def new(uid: str = "j", **more: Any) -> model.Job:
    return rivals.waits(uid, **({"published": model.Published()} | more))


def holder(until: int = 10 * HOUR, **more: Any) -> model.Job:
    """Somebody who has the node for `until` ms and cannot be told to leave it."""
    return rivals.runs("v", ago=0, mid=until, **({"preemptible": False} | more))


@pytest.mark.parametrize("slack", [HOUR, 4 * HOUR, 8 * HOUR + CONFIG.slot_grace])
def test_the_deadline_that_is_told_would_be_promised_and_none_before_it(slack: int) -> None:
    verdict = told(decided(rivals.world(new(slack=slack), holder())))
    assert verdict.level is not model.Level.FEASIBLE
    assert verdict.earliest_promised == NOW + 10 * HOUR + LENGTH
    for due, level in ((verdict.earliest_promised, True), (verdict.earliest_promised - 1, False)):
        again = told(decided(rivals.world(new(deadline=due), holder())))
        assert (again.level is model.Level.FEASIBLE) is level
        assert (again.earliest_promised is None) is level


def test_the_reason_says_how_much_more_would_be_promised() -> None:
    verdict = told(decided(rivals.world(new(slack=10 * HOUR - 30 * MINUTE), holder())))
    assert verdict.reason == (
        "With expected run times it ends 30m after its deadline;"
        " ask for at least 30m more to be LIKELY, 38m more to be promised."
    )
    verdict = told(decided(rivals.world(new(slack=10 * HOUR), holder())))
    assert verdict.level is model.Level.LIKELY
    assert verdict.reason.endswith(" before its deadline; ask for at least 8m more to be promised.")


def test_one_that_is_too_late_already_is_told_as_well() -> None:
    verdict = told(decided(rivals.world(new(deadline=NOW + HOUR), holder())))
    assert verdict.level is model.Level.IMPOSSIBLE
    assert verdict.earliest_promised == NOW + 10 * HOUR + LENGTH


def test_nothing_is_told_where_nothing_would_be_promised() -> None:
    late = NOW + HOUR
    for job, more, config in (
        (new(deadline=late), {"until": 10 * HOUR, "estimate": None}, CONFIG),  # the holder never ends
        (new(deadline=late), {}, dataclasses.replace(CONFIG, promising=False)),
        (new(deadline=late, failed_starts=3), {}, CONFIG),
        (new(deadline=late, estimate=None), {}, CONFIG),
    ):
        assert told(decided(rivals.world(job, holder(**more)), config)).earliest_promised is None


def test_in_an_overload_it_is_told_only_of_what_is_small() -> None:
    for area, known in ((2.1, True), (1.9, False)):
        config = dataclasses.replace(CONFIG, promise_area=area)
        snapshot = dataclasses.replace(rivals.world(new(slack=HOUR, gpus=8), holder()), shed_at=NOW - HOUR)
        assert (told(decided(snapshot, config)).earliest_promised is not None) is known


def test_no_more_are_looked_at_in_a_pass_than_may_be() -> None:
    config = dataclasses.replace(CONFIG, promise_most=1)
    jobs = [new(f"j{i}", slack=(i + 1) * HOUR) for i in range(3)]
    plan = decided(rivals.world(*jobs, holder()), config)
    assert [told(plan, job.uid).earliest_promised is not None for job in jobs] == [True, False, False]


def test_what_was_told_stays_as_it_was_until_it_is_looked_for_again() -> None:
    plan = decided(rivals.world(new(slack=HOUR), holder()))
    update = next(one for one in plan.updates if one.uid == "j")
    said = model.Published(update.band, update.code, update.verdict, update.slack)
    snapshot = rivals.world(new(slack=HOUR, published=said), holder())
    assert [one.uid for one in decided(snapshot).updates if one.uid == "j"] == []


def test_it_is_told_when_room_comes_free_between_slots() -> None:
    """Two hours are free before a slot that begins in four, but not with the launch: only behind it."""
    own = model.Slot((model.GroupPlacement("p", (("n0", 1),)),), NOW + 4 * HOUR, NOW + 7 * HOUR, 2 * HOUR)
    owner = rivals.waits("o", deadline=NOW + 7 * HOUR, slot=own, not_before=NOW + 3 * HOUR)
    for until, ends in ((HOUR, NOW + HOUR + LENGTH), (2 * HOUR, NOW + 7 * HOUR + LENGTH)):
        plan = decided(rivals.world(new(deadline=NOW + 2 * HOUR), holder(until), owner))
        assert told(plan).earliest_promised == ends
