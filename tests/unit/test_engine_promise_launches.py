"""A promise survives an ordinary launch: nobody knows what one takes, so slots have room for it."""

from __future__ import annotations

import dataclasses
from typing import Any

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
LAUNCH, GRACE = CONFIG.launch_margin, CONFIG.slot_grace


def decided(snapshot: model.Snapshot) -> model.Plan:
    plan = decide.decide(snapshot, NOW, CONFIG)
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def slot(start: int, finish: int, node: str = "n0") -> model.Slot:
    return model.Slot((model.GroupPlacement("p", ((node, 1),)),), start, finish, finish - start - GRACE)


def test_a_slot_has_room_for_a_launch_and_a_restore() -> None:
    new = rivals.waits("j", slack=10 * HOUR, restore=2 * MINUTE, published=model.Published())
    plan = decided(rivals.world(new, rivals.runs("v", mid=30 * HOUR)))
    [made] = [one.slot for one in plan.promise]
    assert made.finish - made.start == GRACE + LAUNCH + 2 * MINUTE + 2 * HOUR


def test_a_deadline_that_a_launch_might_take_is_not_promised() -> None:
    for slack, promised in ((LAUNCH - 1, []), (LAUNCH, ["j"])):
        new = rivals.waits("j", slack=slack, published=model.Published())
        plan = decided(rivals.world(new))
        assert [one.uid for one in plan.admit] == ["j"]
        assert [one.uid for one in plan.promise] == promised


def test_who_stays_is_started_only_where_it_is_gone_by_a_slot_even_if_it_starts_slowly() -> None:
    start = NOW + 4 * HOUR
    own = rivals.waits("j", slack=10 * HOUR, not_before=start, slot=slot(start, start + 3 * HOUR))
    for early, starts in ((LAUNCH, ["g"]), (LAUNCH - 1, [])):
        stays = rivals.waits("g", mid=4 * HOUR - early, slack=20 * HOUR, preemptible=False)
        assert [one.uid for one in decided(rivals.world(own, stays)).admit] == starts


def launching(*, ago: int, **more: Any) -> model.Job:
    """One that was admitted to its slot and of which not all members run yet."""
    begun = NOW - ago
    own = dict(state=model.State.ADMITTED, deadline=begun + 3 * HOUR, slot=slot(begun, begun + 3 * HOUR))
    return rivals.runs("j", mid=2 * HOUR, ago=ago, **(own | more))


def test_behind_one_that_still_starts_nothing_is_promised_for_as_long_as_its_launch_may_take() -> None:
    for state, left in ((model.State.ADMITTED, LAUNCH), (model.State.RUNNING, 0)):
        first = launching(ago=0, state=state)
        ends = NOW + 2 * HOUR + left + GRACE
        need = 2 * HOUR + LAUNCH + GRACE
        for due, promised in ((ends + need, ["n"]), (ends + need - 1, [])):
            new = rivals.waits("n", deadline=due, published=model.Published())
            plan = decided(rivals.world(first, new))
            assert [one.uid for one in plan.promise] == promised, (state, due)


def test_a_short_job_that_starts_slowly_keeps_its_promise_until_its_slot_is_over() -> None:
    begun = NOW - LAUNCH
    own = slot(begun, begun + GRACE + LAUNCH + MINUTE)
    job = launching(ago=LAUNCH, estimate=rivals.exact(MINUTE), deadline=own.finish, slot=own)
    assert decided(rivals.world(job)).revoke == ()


def test_a_start_that_took_the_time_of_a_slot_is_told_from_a_run_that_did() -> None:
    words = []
    for ran in (HOUR, 4 * HOUR):
        job = launching(ago=3 * HOUR, state=model.State.RUNNING, since=NOW - ran)
        [lost] = decided(rivals.world(job)).revoke
        assert lost.cause is model.Cause.RAN_PAST_HI
        words.append(lost.why)
    assert words == [
        "Its start took longer than is allowed for.",
        "It runs longer than was thought at most.",
    ]


def test_one_whose_end_is_not_known_yet_is_in_nobodys_way_until_a_grace_later() -> None:
    """Right behind it somebody has a slot, which is due."""
    for preemptible in (True, False):
        for over, lost in ((0, []), (1, []), (GRACE, []), (GRACE + 1, [model.Cause.CAPACITY])):
            ended = NOW - over
            first = rivals.runs("f", mid=2 * HOUR, ago=2 * HOUR + over, preemptible=preemptible)
            if preemptible:
                room = slot(ended - 2 * HOUR, ended + HOUR)
                first = dataclasses.replace(first, slot=room, deadline=ended + HOUR)
            start = ended + GRACE
            behind = rivals.waits("b", deadline=start + 3 * HOUR, slot=slot(start, start + 3 * HOUR))
            revoked = decided(rivals.world(first, behind)).revoke
            assert [one.cause for one in revoked if one.uid == "b"] == lost, (preemptible, over)
