"""The invariants of claims and suspensions find what breaks them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import CONFIG, HOUR, MINUTE, NOW, QUEUE, claiming, runs, waits
from lstqueue.engine import invariants, justice, model
from lstqueue.engine.invariants import Rule


def plan_of(*victims: model.Job, node: str = "n0", owner: model.Job | None = None) -> model.Plan:
    """A plan in which the owner claims one node from these victims."""
    claimed = claiming(owner or waits(), *victims, node=node, written=False).claim
    assert claimed is not None
    return model.Plan(NOW, claim=(model.Claiming("j", "q", claimed),))


def found(snapshot: model.Snapshot, plan: model.Plan) -> set[Rule]:
    broken = (*invariants.of_plan(snapshot, plan), *justice.of_plan(snapshot, plan, CONFIG))
    return {one.rule for one in broken}


def test_a_just_claim_breaks_nothing() -> None:
    published = model.Published(band=model.Band.REST)
    assert found(rivals.world(runs(published=published), waits()), plan_of(runs())) == set()


REST: dict[str, Any] = {"published": model.Published(band=model.Band.REST)}


@pytest.mark.parametrize(
    "victim",
    [
        runs(preemptible=False, **REST),
        runs(stays=True, **REST),
        runs(ago=MINUTE, **REST),
        runs(suspensions=(NOW,) * 4, **REST),
        runs(wasted=2, saves_on_suspend=False, **REST),
        runs(mid=21 * MINUTE, restore=2 * MINUTE, **REST),
        runs(attempt=2, **REST),
        runs(queue="other", **REST),
        runs(deadline=rivals.slack_of(MINUTE)),
        runs(),
        runs(state=model.State.ENDING, **REST),
    ],
)
def test_a_victim_that_may_not_be_one_is_found(victim: model.Job) -> None:
    assert Rule.VICTIM in found(rivals.world(victim, waits()), plan_of(runs()))


@pytest.mark.parametrize(
    "owner",
    [
        waits(slack=5 * HOUR),
        waits(slack=-1),
        waits(failed_starts=3),
        waits(displaced_by=("v",)),
        waits(published=model.Published(band=model.Band.REST)),
    ],
)
def test_an_owner_that_has_no_right_is_found(owner: model.Job) -> None:
    assert Rule.VICTIM in found(rivals.world(runs(**REST), owner), plan_of(runs(), owner=owner))


def test_a_suspension_without_gain_is_found() -> None:
    victim, other = runs(gpus=4, **REST), runs("w", gpus=4, **REST)
    assert Rule.GAIN in found(rivals.world(victim, other, waits()), plan_of(victim))
    tight = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((rivals.GPU, 8),)),))
    snapshot = rivals.world(victim, runs("x", "n1", gpus=4, **REST), waits(), nodes=2, queue=tight)
    assert Rule.GAIN in found(snapshot, plan_of(victim))


def test_a_claim_in_parts_on_wrong_nodes_or_made_twice_is_found() -> None:
    gang = waits(count=2, gpus=4)
    plan = plan_of(runs(), owner=dataclasses.replace(gang, groups=waits(gpus=4).groups))
    assert Rule.CLAIM in found(rivals.world(runs(**REST), gang), plan)
    assert Rule.CLAIM in found(rivals.world(runs(**REST), waits(avoid=("n0",))), plan_of(runs()))
    twice = dataclasses.replace(plan_of(runs()), claim=plan_of(runs()).claim * 2)
    assert Rule.CLAIM in found(rivals.world(runs(**REST), waits()), twice)
    other = claiming(waits("k"), runs())
    assert Rule.CLAIM in found(rivals.world(runs(**REST), waits(), other), plan_of(runs()))


def test_suspensions_without_a_written_claim_are_found() -> None:
    suspend = model.Suspend("v", 3, model.Why.PREEMPTED, "j")
    written = rivals.world(runs(), claiming(waits(), runs()))
    assert found(written, model.Plan(NOW, suspend=(suspend,))) == set()
    unwritten = rivals.world(runs(), claiming(waits(), runs(), written=False))
    stranger = rivals.world(runs(), claiming(waits(), runs("w")))
    for snapshot in (rivals.world(runs(), waits()), unwritten, stranger):
        assert found(snapshot, model.Plan(NOW, suspend=(suspend,))) == {Rule.VICTIM}
    again = model.Suspend("v", 2, model.Why.PREEMPTED, "j")
    drained = model.Suspend("v", 3, model.Why.QUEUE_DRAINED)
    for plan in (
        model.Plan(NOW, suspend=(suspend, suspend)),
        model.Plan(NOW, suspend=(again,)),
        model.Plan(NOW, suspend=(drained,)),
        model.Plan(NOW, suspend=(suspend,), drop=(model.Drop("j", "why"),)),
    ):
        assert found(written, plan) == {Rule.VICTIM}
    kept, emptied = runs(stays=True), dataclasses.replace(QUEUE, drained=True)
    assert found(rivals.world(runs(), queue=emptied), model.Plan(NOW, suspend=(drained,))) == set()
    assert found(rivals.world(kept, queue=emptied), model.Plan(NOW, suspend=(drained,))) == {Rule.VICTIM}


def test_giving_up_what_one_has_not_is_found() -> None:
    assert found(rivals.world(waits()), model.Plan(NOW, drop=(model.Drop("j", "why"),))) == {Rule.CLAIM}


def test_an_owner_admitted_elsewhere_is_found() -> None:
    snapshot = rivals.world(claiming(waits(), runs()), nodes=2)
    for node, rules in (("n0", set()), ("n1", {Rule.ADMISSION})):
        admission = model.Admission("j", "q", (model.GroupPlacement("p", ((node, 1),)),))
        assert found(snapshot, model.Plan(NOW, admit=(admission,))) == rules
