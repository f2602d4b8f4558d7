"""What ends a promise, and what does not: edits, lost nodes, and who stays in a slot or in its way."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, memory, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True)
START, HI = NOW + 5 * HOUR, 2 * HOUR
FINISH = START + CONFIG.slot_grace + HI


def owner(*, node: str = "n0", start: int = START, **more: Any) -> model.Job:
    """A job that waits and was promised two hours of a node from `start` on."""
    slot = model.Slot((model.GroupPlacement("p", ((node, 1),)),), start, start + FINISH - START, HI)
    return rivals.waits("j", **({"deadline": slot.finish, "slot": slot, "mid": HI} | more))


def holder(node: str = "n0", **more: Any) -> model.Job:
    """Somebody who has a node for longer than the slot is, and cannot be told to leave it."""
    return rivals.runs("v", node, **({"preemptible": False, "mid": 20 * HOUR} | more))


def decided(snapshot: model.Snapshot) -> model.Plan:
    plan = decide.decide(snapshot, NOW, CONFIG)
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def lost(*jobs: model.Job, **more: Any) -> list[model.Cause]:
    return [one.cause for one in decided(rivals.world(*jobs, **more)).revoke]


@pytest.mark.parametrize(
    "edit",
    [
        {"deadline": NOW + HI},
        {"deadline": None},
        {"estimate": None},
        {"estimate": rivals.exact(FINISH - NOW), "published": model.Published()},
        {"groups": rivals.job("x", count=2).groups},
    ],
    ids=["earlier", "none", "unknown", "longer", "larger"],
)
def test_an_edit_for_which_there_is_no_other_slot_ends_a_promise(edit: dict[str, Any]) -> None:
    other = rivals.runs("v")
    assert lost(owner(), other) == []
    assert lost(dataclasses.replace(owner(), **edit), other) == [model.Cause.EDIT]


def test_a_deadline_that_is_a_little_earlier_moves_the_slot() -> None:
    plan = decided(rivals.world(owner(deadline=FINISH - 1), rivals.runs("v")))
    assert ([one.slot.finish for one in plan.promise], plan.revoke) == ([FINISH - 1], ())


def test_a_later_deadline_or_a_shorter_run_leaves_a_promise() -> None:
    assert lost(owner(deadline=FINISH + HOUR), rivals.runs("v")) == []
    assert lost(owner(mid=HI // 2), rivals.runs("v")) == []


def test_a_slot_whose_node_is_lost_moves_to_another() -> None:
    other = rivals.runs("v", mid=20 * HOUR)
    assert decided(rivals.world(owner(), other)).promise == ()
    plan = decided(rivals.world(owner(node="lost"), other))
    assert plan.revoke == ()
    assert [one.slot.groups[0].nodes for one in plan.promise] == [(("n0", 1),)]


def test_a_lost_node_ends_a_promise_only_when_its_time_comes() -> None:
    waits = owner(node="lost", start=NOW + 5 * MINUTE)
    assert lost(waits, holder()) == []
    assert lost(owner(node="lost", start=NOW + MINUTE), holder()) == [model.Cause.CAPACITY]


def test_a_slot_that_is_not_cleared_a_grace_after_its_start_ends_the_promise() -> None:
    leaving = holder(state=model.State.ENDING)
    late = owner(start=NOW - CONFIG.slot_grace)
    assert lost(late, leaving) == []
    assert lost(owner(start=NOW - CONFIG.slot_grace - 1), leaving) == [model.Cause.STUCK]


def test_one_that_runs_longer_than_was_thought_at_most_loses_its_promise() -> None:
    begun = NOW - (FINISH - START)
    running = rivals.runs("j", mid=HI, ago=NOW - begun, deadline=NOW + 1, slot=owner(start=begun).slot)
    assert lost(running) == [model.Cause.RAN_PAST_HI]
    assert lost(dataclasses.replace(running, since=begun + 1, slot=owner(start=begun + 1).slot)) == []


def test_who_could_not_leave_in_time_is_not_started_in_the_way_of_a_slot() -> None:
    own = owner(start=NOW + HOUR, not_before=NOW + HOUR)
    for guest, starts in (
        ({"preemptible": False}, False),
        ({"grace": CONFIG.slot_grace + 1}, False),
        ({"min_run": 2 * HOUR}, False),
        ({"preemptible": False, "mid": 30 * MINUTE}, True),
        ({"grace": CONFIG.slot_grace, "min_run": 0}, True),
    ):
        other = rivals.waits("g", **({"mid": 3 * HOUR, "slack": 20 * HOUR} | guest))
        assert [one.uid for one in decided(rivals.world(own, other)).admit] == ["g"] * starts, guest


def test_a_memory_tells_of_room_that_is_lost_meanwhile() -> None:
    kept, world = memory.Memory(), rivals.world(owner(start=NOW + MINUTE, node="n0"))
    first = decide.decide(world, NOW, CONFIG, kept)
    crowded = rivals.world(*world.jobs, holder())
    again = decide.decide(crowded, NOW, CONFIG, kept)
    assert (first.revoke, [one.cause for one in again.revoke]) == ((), [model.Cause.CAPACITY])
