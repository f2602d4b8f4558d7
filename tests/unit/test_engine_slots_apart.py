"""What is owed to one promised job is not given to another in the pass in which it moves, or is in doubt."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import moments, rivals
from cases.rivals import GPU, HOUR, MINUTE, NOW
from lstqueue.engine import decide, invariants, justice, model, pledges
from lstqueue.topology.model import PodShape, resources

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0, promise_lead=0)
QUEUE = dataclasses.replace(rivals.QUEUE, pools=(model.Pool("p", nominal=((GPU, 4096),)),))
LENGTH = 2 * HOUR + 8 * MINUTE


def slot(node: str, start: int, length: int = LENGTH, hi: int = 2 * HOUR) -> model.Slot:
    return model.Slot((model.GroupPlacement("p", ((node, 1),)),), start, start + length, hi)


def owner(uid: str, own: model.Slot, *, until: int, **more: Any) -> model.Job:
    made = rivals.waits(uid, grace=MINUTE, mid=own.hi, slot=own, not_before=NOW + HOUR, **more)
    return dataclasses.replace(made, deadline=until)


def world(*jobs: model.Job, nodes: int, cordoned: str = "") -> model.Snapshot:
    made = rivals.world(*jobs, nodes=nodes, queue=QUEUE)
    some = tuple(dataclasses.replace(node, unschedulable=node.name == cordoned) for node in made.nodes)
    return dataclasses.replace(made, nodes=some)


def judged(snapshot: model.Snapshot, now: int = NOW) -> model.Plan:
    plan = decide.decide(snapshot, now, CONFIG)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, CONFIG) == ()
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def test_a_slot_that_has_just_moved_is_respected_by_those_who_start_in_the_same_pass() -> None:
    moves = owner("a", slot("n0", NOW + 10 * HOUR), until=NOW + 13 * HOUR)
    other = owner("b", slot("n1", NOW + 9 * HOUR, 6 * HOUR + 8 * MINUTE, 6 * HOUR), until=NOW + 16 * HOUR)
    stays = rivals.waits("x", mid=8 * HOUR, slack=20 * HOUR, preemptible=False)
    plan = judged(world(moves, other, stays, nodes=2, cordoned="n0"))
    assert [one.slot.groups[0].nodes for one in plan.promise if one.uid == "a"] == [(("n1", 1),)]
    assert plan.admit == ()
    assert [one.uid for one in judged(world(moves, other, stays, nodes=2)).admit] == ["x"]


@pytest.mark.parametrize("counts", [(8,), (4, 4)])
def test_a_claim_of_several_groups_is_held_against_slots_as_one(counts: tuple[int, ...]) -> None:
    own = owner("own", slot("n0", NOW + 5 * HOUR), until=NOW + 9 * HOUR, gpus=4)
    victim = rivals.runs("v", "n0", mid=30 * HOUR, grace=MINUTE)
    groups = tuple(
        model.Group(f"g{i}", 1, PodShape(resources({GPU: gpus, "pods": 1}))) for i, gpus in enumerate(counts)
    )
    fixed = rivals.waits("fix", mid=8 * HOUR, slack=20 * MINUTE, preemptible=False, groups=groups)
    assert judged(world(own, victim, fixed, nodes=1)).claim == ()


def test_the_old_place_of_a_slot_that_moves_is_owed_until_the_move_is_written() -> None:
    """Its time has come, and there is a later one by now; somebody who stays wants the room it leaves."""
    late = owner("a", slot("n0", NOW), until=NOW + 30 * HOUR)
    late = dataclasses.replace(late, not_before=0)
    guests = [rivals.runs(f"g{i}", f"n{i}", mid=5 * HOUR, ago=5 * HOUR - MINUTE) for i in range(1)]
    stays = rivals.waits("x", mid=10 * HOUR, slack=9 * HOUR, preemptible=False)
    plan = judged(world(late, *guests, stays, nodes=1))
    [moved] = [one.slot for one in plan.promise if one.uid == "a"]
    assert moved.start > NOW
    pending = dataclasses.replace(late, slot=moved, slot_before=late.slot)
    left = judged(world(pending, stays, nodes=1), NOW + MINUTE)
    assert "x" not in {one.uid for one in left.admit}


def test_one_crowded_node_puts_no_promise_elsewhere_in_doubt() -> None:
    """Slots one after the other, more of them than a calendar has bins."""
    jobs = [
        owner(f"j{node}-{i:03}", slot(f"n{node}", start), until=start + LENGTH)
        for node in range(2)
        for i, start in enumerate(range(NOW + 2 * HOUR, NOW + 2 * HOUR + 150 * LENGTH, LENGTH))
    ]
    first = owner("z", slot("n2", NOW + 2 * HOUR), until=NOW + 2 * HOUR + LENGTH)
    made = world(*jobs, first, nodes=3)
    assert judged(made).revoke == ()
    nodes = tuple(
        dataclasses.replace(node, used=resources({GPU: 1, "pods": 1})) if node.name == "n2" else node
        for node in made.nodes
    )
    plan = judged(dataclasses.replace(made, nodes=nodes))
    told = {one.uid for one in (*plan.promise, *plan.revoke)}
    doubted = {one.uid for one in plan.updates if one.verdict and one.verdict.level is model.Level.AT_RISK}
    assert told | (doubted - {"z"}) == set()


def test_after_a_lost_write_of_a_move_everybody_still_has_what_is_owed() -> None:
    moves = owner("a", slot("n0", NOW + 10 * HOUR), until=NOW + 13 * HOUR)
    snapshot = world(moves, nodes=2, cordoned="n0")
    plan = judged(snapshot)
    assert plan.promise
    judged(snapshot, NOW + MINUTE)  # the write was lost
    judged(moments.apply(snapshot, plan), NOW + MINUTE)


def test_whoever_owns_a_slot_in_several_pieces_respects_those_of_others() -> None:
    """All pieces of its own begin before the slot of its neighbour does."""
    own = slot("n1", NOW + HOUR, 8 * HOUR + 8 * MINUTE, 8 * HOUR)
    starts = rivals.waits("a", mid=8 * HOUR, slack=4 * HOUR, preemptible=False, slot=own)
    starts = dataclasses.replace(starts, slot_before=slot("n2", NOW + 2 * HOUR, HOUR, HOUR))
    neighbour = owner("b", slot("n0", NOW + 5 * HOUR), until=NOW + 8 * HOUR)
    guests = [rivals.runs(f"g{i}", f"n{i}", mid=30 * HOUR, grace=MINUTE) for i in (1, 2)]
    assert judged(world(starts, neighbour, *guests, nodes=3)).admit == ()
    assert [one.uid for one in judged(world(starts, *guests, nodes=3)).admit] == ["a"]
