"""Nodes that may go at any time are used like others, and nothing is promised on them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, NOW
from lstqueue.engine import decide, invariants, model, pledges
from lstqueue.topology.model import Node, resources

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
HAS = resources({rivals.GPU: 8, "pods": 20})
SPOT = model.Pool("spot", selector=(("kind", "spot"),), nominal=((rivals.GPU, 8),), spot=True)
FIRM = model.Pool("firm", selector=(("kind", "firm"),), nominal=((rivals.GPU, 8),))


def world(*jobs: model.Job, pools: tuple[model.Pool, ...] = (SPOT, FIRM)) -> model.Snapshot:
    """A node that may go, n0, and one that stays, n1."""
    nodes = tuple(Node(f"n{i}", HAS, labels=(("kind", kind),)) for i, kind in enumerate(("spot", "firm")))
    return model.Snapshot(nodes, (dataclasses.replace(rivals.QUEUE, pools=pools),), jobs)


def new(**more: Any) -> model.Job:
    return rivals.waits("j", **({"slack": 10 * HOUR, "published": model.Published()} | more))


def holder(node: int, pool: str, **more: Any) -> model.Job:
    part = model.Assigned(0, pool, f"n{node}", 0, 1)
    return rivals.runs(f"v{node}", assigned=(part,), **({"mid": 30 * HOUR} | more))


BOTH = (holder(0, "spot"), holder(1, "firm"))


def decided(snapshot: model.Snapshot, now: int = NOW) -> model.Plan:
    plan = decide.decide(snapshot, now, CONFIG)
    assert invariants.of_plan(snapshot, plan) == ()
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def places(plan: model.Plan) -> list[str]:
    return [place.pool for promise in plan.promise for place in promise.slot.groups]


def test_a_slot_is_where_nodes_stay() -> None:
    assert places(decided(world(new(), *BOTH))) == ["firm"]
    everywhere = (dataclasses.replace(SPOT, spot=False), FIRM)
    assert places(decided(world(new(), *BOTH, pools=everywhere))) == ["spot"]


def test_one_that_starts_on_nodes_that_may_go_has_its_slot_where_they_stay() -> None:
    plan = decided(world(new(), holder(1, "firm")))
    assert [one.groups[0].pool for one in plan.admit] == ["spot"]
    assert places(plan) == ["firm"]


def test_nothing_is_promised_where_all_nodes_may_go() -> None:
    plan = decided(world(new(), BOTH[0], pools=(SPOT,)))
    [told] = [one.verdict for one in plan.updates if one.uid == "j"]
    assert plan.promise == ()
    assert told is not None
    assert told.earliest_promised is None


@pytest.mark.parametrize("free", [False, True])
def test_who_could_not_leave_such_a_node_for_a_slot_is_promised_nothing(free: bool) -> None:
    stays = new(preemptible=False)
    assert places(decided(world(stays, *(BOTH[1:] if free else BOTH)))) == []
    assert places(decided(world(stays, holder(1, "firm"), pools=(FIRM,)))) == ["firm"]


def test_one_that_runs_there_when_its_slot_comes_leaves_for_it() -> None:
    slot = model.Slot((model.GroupPlacement("firm", (("n1", 1),)),), NOW, NOW + 3 * HOUR, 2 * HOUR)
    part = model.Assigned(0, "spot", "n0", 0, 1)
    runs = rivals.runs("j", assigned=(part,), mid=2 * HOUR, ago=0, deadline=NOW + 3 * HOUR, slot=slot)
    plan = decided(world(runs))
    assert [(one.uid, one.why) for one in plan.suspend] == [("j", model.Why.PROMISED)]
    everywhere = (dataclasses.replace(SPOT, spot=False), FIRM)
    plan = decided(world(runs, pools=everywhere))
    assert (plan.suspend, places(plan)) == ((), ["spot"])


def test_a_promise_on_nodes_that_turn_out_to_be_such_moves_or_is_in_doubt() -> None:
    slot = model.Slot((model.GroupPlacement("spot", (("n0", 1),)),), NOW + 5 * HOUR, NOW + 8 * HOUR, 2 * HOUR)
    owner = new(deadline=NOW + 8 * HOUR, slot=slot)
    assert places(decided(world(owner, *BOTH))) == ["firm"]
    stays = (BOTH[0], holder(1, "firm", preemptible=False))
    plan = decided(world(owner, *stays))
    assert (plan.promise, plan.revoke) == ((), ())
    [told] = [one.verdict for one in plan.updates if one.uid == "j"]
    assert told is not None
    assert told.level is model.Level.AT_RISK
    plan = decided(world(owner, *stays), NOW + 5 * HOUR)
    assert [one.cause for one in plan.revoke] == [model.Cause.CAPACITY]
