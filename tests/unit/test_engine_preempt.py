"""Step 5: which set of victims is chosen, what comes of it, and when a job waits instead."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, QUEUE, runs, slack_of, waits
from lstqueue.engine import explain, model


def place(plan: model.Plan, uid: str = "j") -> dict[str, int]:
    (claiming,) = (one for one in plan.claim if one.uid == uid)
    return dict(claiming.claim.groups[0].nodes)


def quota(gpus: int) -> model.Queue:
    return dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((rivals.GPU, gpus),)),))


def test_only_those_are_suspended_whose_room_is_needed() -> None:
    small = [runs(f"s{i}", "n0", gpus=2) for i in range(4)]
    plan = rivals.judged(rivals.world(*small, runs("large", "n1"), waits(gpus=4), nodes=2))
    assert rivals.victims(plan) == ["s0", "s1"]
    assert place(plan) == {"n0": 1}


def test_what_is_free_already_counts() -> None:
    plan = rivals.judged(rivals.world(runs("a", gpus=2), runs("b", gpus=2), waits(gpus=6)))
    assert rivals.victims(plan) == ["a"]


def test_of_equal_room_the_cheapest_is_taken() -> None:
    dear, cheap = runs("a", "n0", restore=9 * MINUTE), runs("b", "n1", restore=3 * MINUTE)
    plan = rivals.judged(rivals.world(dear, cheap, waits(), nodes=2))
    assert rivals.victims(plan) == ["b"]
    unsaved = runs("b", "n1", saves_on_suspend=False, ago=25 * MINUTE)
    assert rivals.victims(rivals.judged(rivals.world(dear, unsaved, waits(), nodes=2))) == ["a"]


def test_a_harmless_suspension_of_a_long_job_counts_less() -> None:
    costs: dict[str, Any] = {"restore": 4 * MINUTE}
    late = runs("a", "n0", restore=2 * MINUTE)
    # 10 h remain: 4 min / sqrt(60) is less than the 2 min of a job that is late anyway; of 30 min it is not.
    long = runs("b", "n1", deadline=slack_of(99 * HOUR), **costs)
    assert rivals.victims(rivals.judged(rivals.world(late, long, waits(), nodes=2))) == ["b"]
    brief = runs("b", "n1", mid=HOUR, deadline=slack_of(99 * HOUR, mid=HOUR), **costs)
    assert rivals.victims(rivals.judged(rivals.world(late, brief, waits(), nodes=2))) == ["a"]


def test_a_gang_is_helped_wholly_or_not_at_all() -> None:
    gang = waits(count=2)
    plan = rivals.judged(rivals.world(runs("a", "n0"), runs("b", "n1"), gang, nodes=2))
    assert rivals.victims(plan) == ["a", "b"]
    stays = runs("b", "n1", preemptible=False)
    plan = rivals.judged(rivals.world(runs("a", "n0"), stays, gang, nodes=2))
    assert (plan.claim, plan.suspend) == ((), ())


def test_quota_alone_is_made_room_in_as_well() -> None:
    plan = rivals.judged(rivals.world(runs("a", "n0", gpus=4), waits(), nodes=2, queue=quota(8)))
    assert rivals.victims(plan) == ["a"]


def test_nodes_and_quota_together() -> None:
    held = [runs("a", "n0"), runs("b", "n1", gpus=4), runs("c", "n1", gpus=4, restore=MINUTE)]
    plan = rivals.judged(rivals.world(*held, waits(), nodes=2, queue=quota(16)))
    assert rivals.victims(plan) == ["a"]
    # Somebody lowered the quota below what they use: with "a" gone it still lacks four.
    plan = rivals.judged(rivals.world(*held, waits(), nodes=2, queue=quota(12)))
    assert rivals.victims(plan) == ["a", "b"]
    assert place(plan) == {"n0": 1}


def test_nodes_that_failed_a_job_or_that_it_may_not_use_help_nothing() -> None:
    plan = rivals.judged(rivals.world(runs("a", "n0"), waits(avoid=("n0",)), nodes=1))
    assert plan.claim == ()
    world = rivals.world(runs("a", "n0"), waits())
    cordoned = dataclasses.replace(world.nodes[0], unschedulable=True)
    assert rivals.judged(dataclasses.replace(world, nodes=(cordoned,))).claim == ()


def test_all_groups_of_a_gang_fit_afterwards() -> None:
    groups = (*rivals.job("x", gpus=8).groups, *rivals.job("x", gpus=4, count=2).groups)
    named = tuple(dataclasses.replace(group, name=f"g{i}") for i, group in enumerate(groups))
    held = [runs("a", "n0"), runs("b", "n1", gpus=4), runs("c", "n2")]
    plan = rivals.judged(rivals.world(*held, waits(groups=named), nodes=3))
    (claiming,) = plan.claim
    assert [sum(count for _, count in group.nodes) for group in claiming.claim.groups] == [1, 2]
    assert len(claiming.claim.victims) == 2


def test_the_more_urgent_choose_first_and_nobody_is_claimed_twice() -> None:
    plan = rivals.judged(rivals.world(runs(), waits("a", slack=40 * MINUTE), waits("b", slack=MINUTE)))
    assert [(one.uid, one.claim.victims[0].uid) for one in plan.claim] == [("b", "v")]
    two = rivals.world(runs("v"), runs("w", "n1"), waits("a"), waits("b"), nodes=2)
    plan = rivals.judged(two)
    assert sorted(victim.uid for one in plan.claim for victim in one.claim.victims) == ["v", "w"]


def test_what_a_claim_leaves_over_is_waited_for() -> None:
    first, second = waits("a", gpus=4), waits("b", gpus=4)
    plan = rivals.judged(rivals.world(runs("v", "n0"), runs("w", "n1"), first, second, nodes=2))
    assert [one.uid for one in plan.claim] == ["a"]
    # It serves one that presses as well, if that is ahead; behind a claim it finds victims of its own.
    pressing = waits("b", slack=15 * MINUTE, gpus=4)
    plan = rivals.judged(rivals.world(runs("v", "n0"), runs("w", "n1"), first, pressing, nodes=2))
    assert [one.uid for one in plan.claim] == ["b"]
    both = [waits(uid, slack=15 * MINUTE, gpus=4) for uid in "ab"]
    plan = rivals.judged(rivals.world(runs("v", "n0"), runs("w", "n1"), *both, nodes=2))
    assert [one.uid for one in plan.claim] == ["a", "b"]


def test_pods_that_leave_anyway_are_waited_for_until_it_presses() -> None:
    leaving = runs("l", "n1", state=model.State.ENDING, since=0)
    snapshot = rivals.world(runs(), leaving, waits(slack=16 * MINUTE), nodes=2)
    plan = rivals.judged(snapshot)
    assert plan.claim == ()
    assert plan.wake_at == NOW + MINUTE
    told = explain.explain(snapshot, plan, "j").preemption
    assert told.startswith(
        "It fits as soon as those that are ending have left; others are suspended for it only"
    )
    assert rivals.victims(rivals.judged(snapshot, NOW + MINUTE)) == ["v"]
    # What leaves goes to those ahead first.
    ahead = waits("a", slack=15 * MINUTE + 1, gpus=8)
    plan = rivals.judged(rivals.world(runs(), leaving, ahead, waits(slack=16 * MINUTE), nodes=2))
    assert rivals.victims(plan) == ["v"]


def test_the_head_of_a_strict_queue_may_have_others_suspended_and_nobody_behind_it() -> None:
    strict = dataclasses.replace(QUEUE, order=model.Order.FIFO)
    head, behind = waits("a", submit=NOW - 2 * HOUR), waits("b", slack=0)
    plan = rivals.judged(rivals.world(runs("v"), runs("w", "n1"), head, behind, nodes=2, queue=strict))
    assert [one.uid for one in plan.claim] == ["a"]


@pytest.mark.parametrize(
    ("victim", "candidate", "wake"),
    [
        (runs(), waits(slack=HOUR + 50 * MINUTE), NOW + 2 * MINUTE),
        (runs(ago=14 * MINUTE), waits(), NOW + MINUTE),
        (runs(suspensions=(NOW - 24 * HOUR + 9 * MINUTE,) * 4), waits(slack=58 * MINUTE), NOW + 9 * MINUTE),
        (
            runs(wasted=2, saves_on_suspend=False, checkpoint=30 * MINUTE),
            waits(slack=58 * MINUTE),
            NOW + 10 * MINUTE,
        ),
        (
            runs(
                ago=25 * MINUTE, saves_on_suspend=False, checkpoint=30 * MINUTE,
                deadline=slack_of(99 * HOUR, ago=25 * MINUTE),
            ),
            waits(slack=58 * MINUTE),
            NOW + 5 * MINUTE,
        ),
        (
            runs(
                ago=29 * MINUTE, mid=50 * MINUTE, saves_on_suspend=False, checkpoint=30 * MINUTE,
            ),
            waits(slack=58 * MINUTE),
            NOW + MINUTE,
        ),
        (runs(deadline=slack_of(70 * MINUTE)), waits(slack=55 * MINUTE, mid=MINUTE), NOW + 5 * MINUTE + 1),
        (runs(state=model.State.ENDING, since=0), waits(slack=16 * MINUTE), NOW + MINUTE),
    ],
    ids=["trigger", "min-run", "cap", "wasted", "unsaved", "nearly-done", "harm", "leaving"],
)  # fmt: skip
def test_a_pass_wakes_up_when_time_alone_gives_a_victim(
    victim: model.Job, candidate: model.Job, wake: int
) -> None:
    snapshot = rivals.world(victim, candidate)
    if victim.state is model.State.ENDING:
        snapshot = rivals.world(victim, runs("w", "n1"), candidate, nodes=2)
    plan = rivals.judged(snapshot)
    assert plan.claim == ()
    assert plan.wake_at == wake
    assert rivals.judged(snapshot, wake - 1).claim == ()
    assert len(rivals.judged(snapshot, wake).claim) == 1


def test_a_job_that_may_have_nobody_suspended_is_told_why() -> None:
    def told(candidate: model.Job, *others: model.Job, queue: model.Queue = QUEUE) -> str:
        snapshot = rivals.world(*others, candidate, queue=queue)
        return explain.explain(snapshot, rivals.judged(snapshot), "j").preemption

    fresh = runs("v", gpus=4, ago=0)
    tight = runs("w", gpus=4, deadline=slack_of(MINUTE))
    assert told(waits(), fresh, tight) == (
        'Of 2 running jobs in queue "q" none may be suspended for it (1 not past its minimum run,'
        " 1 of its rank, and harmed by it)."
    )
    assert told(waits(), runs("w", gpus=4), fresh) == (
        'Of 2 running jobs in queue "q" 1 may be suspended for it (1 not past its minimum run),'
        " and it would not fit then."
    )
    never = dataclasses.replace(QUEUE, preemption=model.Preemption.NEVER)
    assert told(waits(), runs(), queue=never) == 'Queue "q" has nobody suspended for others.'
    assert told(waits(failed_starts=3), runs()) == (
        "It failed to start 3 times in a row, so nobody is suspended for it."
    )
    assert told(rivals.job("j"), runs()).startswith(
        "Others are suspended only for a job that has an estimate"
    )
    assert told(waits(displaced_by=("v",)), runs()) == (
        'Of 1 running job in queue "q" none may be suspended for it (1 had it suspended itself).'
    )
    assert told(waits(not_before=NOW + MINUTE), runs()) == ""
