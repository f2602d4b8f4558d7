"""Claims from the day they are made to the day they end: charged, fulfilled, or given up."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, QUEUE, claiming, runs, waits
from lstqueue.engine import decide, explain, invariants, model
from lstqueue.topology.model import resources

GONE: dict[str, Any] = {"state": model.State.WAITING, "assigned": (), "since": 0}
LEAVING: dict[str, Any] = {"state": model.State.ENDING, "since": 0}


def drop(plan: model.Plan) -> model.Drop:
    (only,) = plan.drop
    assert plan.suspend == ()
    assert plan.admit == ()
    return only


def admitted(plan: model.Plan) -> list[str]:
    return [admission.uid for admission in plan.admit]


def test_a_claim_is_planned_with_its_place_its_victims_and_its_end_and_nobody_is_suspended_yet() -> None:
    plan = rivals.judged(rivals.world(runs(grace=90_000), waits()))
    place = (model.GroupPlacement("p", (("n0", 1),)),)
    claim = model.Claim(place, (model.Victim("v", 3),), NOW + 90_000 + 2 * MINUTE, committed=False)
    assert plan.claim == (model.Claiming("j", "q", claim),)
    assert plan.suspend == ()
    assert plan.admit == ()
    update = next(one for one in plan.updates if one.uid == "j")
    assert update.code is model.Code.CLAIMING
    assert update.message == "It starts on n0 as soon as ns/v leaves its place."
    assert update.verdict is not None
    assert update.verdict.finish == (NOW + 2 * HOUR, NOW + 2 * HOUR)


def test_a_claim_that_is_not_written_is_charged_and_nothing_else() -> None:
    victim = runs()
    owner = claiming(waits(), victim, left=-MINUTE, written=False)
    plan = rivals.judged(rivals.world(victim, owner, waits("k", slack=MINUTE), nodes=2))
    assert (admitted(plan), plan.suspend, plan.drop, plan.claim) == (["k"], (), (), ())
    gone = dataclasses.replace(victim, **GONE)
    other = waits("k", slack=MINUTE)
    assert admitted(rivals.judged(rivals.world(gone, owner, other))) == []


def test_the_victims_of_a_written_claim_are_suspended_in_every_pass_until_they_are() -> None:
    victim = runs()
    owner = claiming(waits(), victim)
    for moment in (NOW, NOW + MINUTE):
        plan = rivals.judged(rivals.world(victim, owner), moment)
        assert plan.suspend == (model.Suspend("v", 3, model.Why.PREEMPTED, "j"),)
    leaving = dataclasses.replace(victim, **LEAVING)
    plan = rivals.judged(rivals.world(leaving, owner))
    assert (plan.suspend, plan.admit, plan.drop) == ((), (), ())
    again = dataclasses.replace(victim, attempt=4)
    assert rivals.judged(rivals.world(again, owner)).suspend == ()


def test_the_owner_starts_exactly_where_it_claimed_once_its_victims_have_left() -> None:
    gone = runs(**GONE)
    owner = claiming(waits(), runs())
    plan = rivals.judged(rivals.world(gone, owner, nodes=2))
    assert plan.admit[0] == model.Admission("j", "q", (model.GroupPlacement("p", (("n0", 1),)),))
    assert admitted(plan) == ["j", "v"]


def test_nobody_takes_what_victims_leave() -> None:
    half: dict[str, Any] = {"gpus": 4}
    left, stays = runs("v", **GONE, **half), runs("w", **LEAVING, **half)
    owner = claiming(waits(), runs("v", **half), runs("w", **half))
    ahead = waits("a", slack=0, gpus=4)
    plan = rivals.judged(rivals.world(left, stays, owner, ahead))
    assert (admitted(plan), plan.claim, plan.drop) == ([], (), ())


def test_a_victim_that_cannot_leave_any_more_is_not_told_to() -> None:
    half: dict[str, Any] = {"gpus": 4}
    left, kept = runs("v", **GONE, **half), runs("w", stays=True, **half)
    owner = claiming(waits(), runs("v", **half), runs("w", **half))
    plan = rivals.judged(rivals.world(left, kept, owner))
    assert (admitted(plan), plan.suspend, plan.drop) == ([], (), ())
    late = rivals.judged(rivals.world(left, kept, owner), NOW + HOUR)
    assert drop(late).avoid == ("n0",)
    alone = claiming(waits(), runs("w", **half))
    assert "may not be suspended" in drop(rivals.judged(rivals.world(kept, alone))).why


def test_quota_is_charged_only_beyond_what_the_victims_hold_of_it() -> None:
    tight = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((rivals.GPU, 12),)),))
    victim = runs()
    owner = claiming(waits(), victim)
    little, more = rivals.job("l", gpus=4, mid=MINUTE), rivals.job("m", gpus=4, mid=2 * MINUTE)
    leaving = dataclasses.replace(victim, **LEAVING)
    for state in (victim, leaving, dataclasses.replace(victim, **GONE)):
        snapshot = rivals.world(state, owner, little, more, nodes=3, queue=tight)
        assert "m" not in admitted(rivals.judged(snapshot))
        assert "l" in admitted(rivals.judged(snapshot))


def test_victims_that_nobody_suspended_yet_are_spared_when_room_comes_by_itself() -> None:
    first, second = runs("v", gpus=4), runs("w", gpus=4)
    owner = claiming(waits(gpus=4), first, second)
    plan = rivals.judged(rivals.world(second, owner))
    assert admitted(plan) == ["j"]
    assert plan.suspend == ()


def test_an_expired_claim_is_given_up_with_the_nodes_that_did_not_come_free() -> None:
    stuck = runs(**LEAVING, grace=5 * MINUTE)
    owner = claiming(waits(), stuck, left=0)
    snapshot = rivals.world(stuck, owner)
    # Pods that leave get their grace once more.
    assert rivals.judged(snapshot, NOW + 5 * MINUTE - 1).drop == ()
    assert rivals.judged(snapshot).wake_at == NOW + 5 * MINUTE
    late = NOW + 5 * MINUTE
    told = drop(rivals.judged(snapshot, late))
    assert told == model.Drop("j", "Its place on n0 did not come free in time.", ("n0",), late + 10 * MINUTE)


def test_a_claim_that_expired_while_nobody_looked_is_fulfilled_if_its_place_is_free() -> None:
    owner = claiming(waits(), runs(), left=-HOUR)
    assert admitted(rivals.judged(rivals.world(owner))) == ["j"]
    unsuspended = rivals.world(runs(), owner)
    assert drop(rivals.judged(unsuspended)).uid == "j"


def test_a_late_owner_gives_up_unless_somebody_left_for_it_already() -> None:
    owner = claiming(waits(slack=-1), runs())
    assert drop(rivals.judged(rivals.world(runs(), owner))).why == "Its deadline cannot hold any more."
    assert drop(rivals.judged(rivals.world(owner))).why == "Its deadline cannot hold any more."
    assert rivals.judged(rivals.world(runs(**LEAVING), owner)).drop == ()
    assert admitted(rivals.judged(rivals.world(runs(**GONE), owner)))[0] == "j"


@pytest.mark.parametrize(
    "reason",
    [
        {"preemptible": False},
        {"min_run": HOUR},
        {"suspensions": (NOW, NOW, NOW, NOW)},
        {"deadline": rivals.slack_of(MINUTE)},
    ],
)
def test_victims_that_may_not_be_suspended_any_more_are_spared(reason: dict[str, Any]) -> None:
    owner = claiming(waits(), runs())
    told = drop(rivals.judged(rivals.world(runs(**reason), owner)))
    assert told.why == "ns/v may not be suspended for it any more."
    other = runs("w", node="n1", **GONE)
    sunk = claiming(waits(), runs(), runs("w"))
    assert rivals.judged(rivals.world(runs(**reason), other, sunk)).drop == ()


def test_an_owner_that_lost_the_right_gives_up() -> None:
    for lost in (waits(failed_starts=3), waits(deadline=NOW + 99 * HOUR)):
        told = drop(rivals.judged(rivals.world(runs(), claiming(lost, runs()))))
        assert told.why == "It may have nobody suspended any more."


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ({"name": "other"}, 'Queue "q" is not there any more.'),
        ({"max_importance": -1}, 'Its importance is above the -1 that queue "q" allows.'),
        ({"pools": ()}, 'Pool "p" may not be used any more.'),
        ({"held": True}, 'Queue "q" admits nobody for now.'),
        ({"observed": True}, 'Queue "q" only observes.'),
        ({"observed": True, "drained": True}, 'Queue "q" only observes.'),
    ],
)
def test_a_claim_in_a_queue_that_changed_is_given_up(queue: dict[str, Any], why: str) -> None:
    changed = dataclasses.replace(QUEUE, **queue)
    assert drop(rivals.judged(rivals.world(runs(), claiming(waits(), runs()), queue=changed))).why == why


def test_a_claim_for_which_somebody_left_is_fulfilled_in_a_queue_that_is_held_meanwhile() -> None:
    held = dataclasses.replace(QUEUE, held=True)
    plan = rivals.judged(rivals.world(runs(**GONE), claiming(waits(), runs()), queue=held))
    assert admitted(plan) == ["j"]


def test_a_claim_on_nodes_or_for_groups_that_changed_is_given_up() -> None:
    owner = claiming(waits(), runs())
    world = rivals.world(runs(), owner)
    down = dataclasses.replace(world, nodes=(dataclasses.replace(world.nodes[0], ready=False),))
    assert drop(rivals.judged(down)).why == "Node n0 may not be used any more."
    assert (
        drop(rivals.judged(dataclasses.replace(world, nodes=()))).why == "Node n0 may not be used any more."
    )
    wider = dataclasses.replace(owner, groups=rivals.job("x", count=2, gpus=4).groups)
    assert "not of the size" in drop(rivals.judged(rivals.world(wider))).why
    split = dataclasses.replace(owner, groups=owner.groups * 2)
    assert drop(rivals.judged(rivals.world(split))).why == "Its groups are not those it was claimed for."
    none = dataclasses.replace(owner, claim=None)
    assert drop(rivals.judged(rivals.world(none))).why == "It has no claim on record."


def test_a_drained_queue_suspends_everybody_and_gives_up_its_claims() -> None:
    drained = dataclasses.replace(QUEUE, drained=True)
    owner = claiming(waits(), runs())
    fresh = runs("w", "n1", ago=0, preemptible=False, state=model.State.ADMITTED)
    plan = rivals.judged(rivals.world(runs(), fresh, owner, waits("k"), nodes=3, queue=drained))
    why = model.Why.QUEUE_DRAINED
    assert plan.suspend == (model.Suspend("v", 3, why), model.Suspend("w", 3, why))
    assert [one.uid for one in plan.drop] == ["j"]
    assert plan.admit == ()
    update = next(one for one in plan.updates if one.uid == "k")
    assert update.code is model.Code.QUEUE_HELD
    assert "admits nobody for now and is being emptied" in update.message


def test_foreign_pods_on_the_place_keep_the_owner_waiting() -> None:
    owner = claiming(waits(), runs())
    world = rivals.world(runs(**GONE), owner)
    taken = dataclasses.replace(world.nodes[0], used=resources({rivals.GPU: 1}))
    plan = rivals.judged(dataclasses.replace(world, nodes=(taken,)))
    assert (plan.admit, plan.drop) == ((), ())


def test_an_owner_whose_writes_fail_is_not_tried_before_its_time() -> None:
    owner = claiming(waits(not_before=NOW + 1000), runs())
    plan = rivals.judged(rivals.world(owner))
    assert (plan.admit, plan.wake_at) == ((), NOW + 1000)


def test_who_claims_and_who_has_to_go_are_explained() -> None:
    snapshot = rivals.world(runs(), claiming(waits(), runs()), waits("k", slack=9 * HOUR))
    plan = rivals.judged(snapshot)
    owner = explain.explain(snapshot, plan, "j")
    assert owner.message == "It starts on n0 as soon as ns/v leaves its place."
    assert [(one.name, one.how) for one in owner.blockers] == [("v", "holding")]
    assert owner.preemption == "For it ns/v had to leave."
    assert explain.explain(snapshot, plan, "v").preemption == "It is suspended for ns/j."
    other = explain.explain(snapshot, plan, "k")
    assert [(one.name, one.how) for one in other.blockers] == [("v", "holding"), ("j", "holding")]
    assert other.preemption == "Its slack is 9h; others are suspended for it from 1h48m on."


def test_a_claim_is_charged_in_the_invariants_as_in_the_pass() -> None:
    both = rivals.world(runs(), claiming(waits(), runs()))
    assert invariants.of_snapshot(both) == ()
    stranger = rivals.world(runs("x"), claiming(waits(), runs()))
    assert {one.rule for one in invariants.of_snapshot(stranger)} == {invariants.Rule.OVERCOMMIT}
    tight = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((rivals.GPU, 8),)),))
    elsewhere = rivals.world(runs("x", "n1"), claiming(waits(), runs()), nodes=2, queue=tight)
    assert {one.rule for one in invariants.of_snapshot(elsewhere)} == {invariants.Rule.QUOTA}
    assert decide.decide(elsewhere, NOW, rivals.CONFIG).admit == ()
