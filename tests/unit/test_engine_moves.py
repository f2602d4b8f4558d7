"""Step 5: whoever is in the way of a long gang, and has room elsewhere, moves; others stay."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, QUEUE, runs, slack_of, waits
from lstqueue.engine import decide, justice, model

LONG = 13 * HOUR
TICK = 2 * MINUTE


def small(
    uid: str,
    node: str,
    *,
    slack: int = HOUR,
    ago: int = 20 * MINUTE,
    mid: int = 10 * HOUR,
    **more: Any,
) -> model.Job:
    """One that the gang would harm by having it wait, though it can spare what a suspension costs."""
    return runs(
        uid, node, deadline=slack_of(slack, ago=ago, mid=mid), ago=ago, mid=mid, **({"gpus": 2} | more)
    )


def gang(**more: Any) -> model.Job:
    return waits(mid=LONG, **more)


def test_a_small_job_moves_for_a_long_gang_where_it_has_room_elsewhere() -> None:
    plan = rivals.judged(rivals.world(small("a", "n0"), small("b", "n1", gpus=6), gang(), nodes=2))
    assert rivals.victims(plan) == ["a"]
    assert plan.claim[0].claim.groups[0].nodes == (("n0", 1),)


def test_nobody_moves_without_room_elsewhere() -> None:
    plan = rivals.judged(rivals.world(small("a", "n0", gpus=4), small("b", "n1", gpus=6), gang(), nodes=2))
    assert plan.claim == ()


def test_who_finds_no_place_is_left_alone_and_another_sought() -> None:
    crowd = [small("a", "n0", avoid=("n1", "n2")), small("b", "n1", gpus=6), small("c", "n2")]
    plan = rivals.judged(rivals.world(*crowd, gang(), nodes=3))
    assert rivals.victims(plan) == ["c"]


@pytest.mark.parametrize(
    "held",
    [
        small("a", "n0", slack=21 * MINUTE),  # 10 min of it go with a suspension, 12 have to stay
        small("a", "n0", saves_on_suspend=False, checkpoint=30 * MINUTE),  # 20 min behind its last
        small("a", "n0", mid=23 * MINUTE),  # nearly done
        small("a", "n0", preemptible=False),
        small("a", "n0", min_run=HOUR),
    ],
)
def test_who_could_not_spare_it_or_is_protected_stays(held: model.Job) -> None:
    plan = rivals.judged(rivals.world(held, small("b", "n1", gpus=6), gang(), nodes=2))
    assert plan.claim == ()


def test_nobody_moves_for_a_short_gang_nor_much_for_a_small_one() -> None:
    crowd = [small("a", "n0"), small("b", "n1", gpus=6)]
    assert rivals.judged(rivals.world(*crowd, waits(mid=11 * HOUR), nodes=2)).claim == ()
    # Five of eight would move for it: more than half of what it takes.
    large = [small("a", "n0", gpus=5), small("b", "n1", gpus=6), small("c", "n2", gpus=3)]
    assert rivals.judged(rivals.world(*large, gang(), nodes=3)).claim[0].claim.victims[0].uid == "c"
    assert rivals.judged(rivals.world(*large[:2], gang(), nodes=2)).claim == ()


def test_nobody_moves_for_one_that_was_suspended_for_it() -> None:
    crowd = [small("a", "n0"), small("b", "n1", gpus=6)]
    plan = rivals.judged(rivals.world(*crowd, gang(displaced_by=("a",)), nodes=2))
    assert plan.claim == ()


def test_in_a_cohort_nobody_moves() -> None:
    queue = dataclasses.replace(QUEUE, cohort="c")
    crowd = [small("a", "n0"), small("b", "n1", gpus=6)]
    assert rivals.judged(rivals.world(*crowd, gang(), nodes=2, queue=queue)).claim == ()


def test_who_moves_starts_elsewhere_in_the_pass_after_it_left() -> None:
    queue, a, b, j = QUEUE, small("a", "n0"), small("b", "n1", gpus=6), gang()
    plan = rivals.judged(rivals.world(a, b, j, nodes=2))
    claim = dataclasses.replace(plan.claim[0].claim, committed=True)
    claimed = dataclasses.replace(j, state=model.State.CLAIMING, claim=claim)
    plan = decide.decide(rivals.world(a, b, claimed, nodes=2, queue=queue), NOW + 1000, rivals.CONFIG)
    assert [one.uid for one in plan.suspend] == ["a"]
    left = dataclasses.replace(
        a, state=model.State.WAITING, assigned=(), displaced_by=("j",), suspensions=(NOW + 1000,)
    )
    plan = decide.decide(rivals.world(left, b, claimed, nodes=2, queue=queue), NOW + 2000, rivals.CONFIG)
    started = {one.uid: one.groups[0].nodes for one in plan.admit}
    assert started == {"j": (("n0", 1),), "a": (("n1", 1),)}


def test_a_pass_looks_again_at_the_next_step_and_finds_who_may_move_by_then() -> None:
    unsaved = small("a", "n0", saves_on_suspend=False, checkpoint=30 * MINUTE, ago=28 * MINUTE)
    snapshot = rivals.world(unsaved, small("b", "n1", gpus=6), gang(), nodes=2)
    now, moments = NOW, 0
    while not (plan := rivals.judged(snapshot, now)).claim:
        assert plan.wake_at is not None
        assert plan.wake_at <= (now // TICK + 1) * TICK
        now, moments = plan.wake_at, moments + 1
        assert moments < 10
    assert rivals.victims(plan) == ["a"]
    assert NOW + 2 * MINUTE <= now <= NOW + 2 * MINUTE + TICK


def test_one_place_elsewhere_serves_one_that_moves() -> None:
    crowd = [small("a", "n0"), small("b", "n1"), small("c", "n2", gpus=6)]
    plan = rivals.judged(rivals.world(*crowd, gang(uid="j"), gang(uid="k"), nodes=3))
    assert [one.uid for one in plan.claim] == ["j"]


def test_nor_does_it_serve_one_for_whom_another_leaves_already() -> None:
    crowd = [small("a", "n0"), small("b", "n1"), small("c", "n2", gpus=6)]
    going = rivals.claiming(gang(uid="j"), crowd[0])
    plan = rivals.judged(rivals.world(*crowd, going, gang(uid="k"), nodes=3))
    assert [one.uid for one in plan.suspend] == ["a"]
    assert plan.claim == ()


def test_a_claim_is_given_up_where_the_room_elsewhere_is_gone_before_anybody_left() -> None:
    a, b, owner = small("a", "n0"), small("b", "n1", gpus=6), rivals.claiming(gang(), small("a", "n0"))
    plan = decide.decide(rivals.world(a, b, owner, nodes=2), NOW, rivals.CONFIG)
    assert [one.uid for one in plan.suspend] == ["a"]
    plan = decide.decide(rivals.world(a, b, small("c", "n1"), owner, nodes=2), NOW, rivals.CONFIG)
    assert plan.suspend == ()
    (drop,) = plan.drop
    assert "has no room elsewhere any more" in drop.why


def test_pods_that_share_a_node_may_move_to_several() -> None:
    crowd = [small("a", "n0", gpus=1, count=2), small("b", "n1", gpus=7), small("c", "n2", gpus=7)]
    plan = rivals.judged(rivals.world(*crowd, gang(), nodes=3))
    assert rivals.victims(plan) == ["a"]


def test_a_gang_for_which_nobody_finds_a_place_keeps_no_other_from_moving_somebody() -> None:
    crowd = [small(f"a{i}", f"n{i}", avoid=("n4", "n5")) for i in range(4)]
    crowd += [small("b", "n4", gpus=1), small("c", "n5", gpus=7)]
    wide = waits("j", mid=LONG, count=5)
    plan = rivals.judged(rivals.world(*crowd, wide, gang(uid="k"), nodes=6))
    assert [one.uid for one in plan.claim] == ["k"]


def test_the_room_of_one_that_moves_is_kept_from_who_claims_after_it() -> None:
    stays = [runs("s", "n1", gpus=6, preemptible=False), runs("c", "n2", gpus=6, preemptible=False)]
    crowd = [small("a", "n0"), runs("w", "n0", gpus=6), runs("r", "n1", gpus=2), *stays]
    pair = waits("k", gpus=2, count=2, mid=10 * HOUR, slack=4 * HOUR)
    assert [one.uid for one in rivals.judged(rivals.world(*crowd, pair, nodes=3)).claim] == ["k"]
    plan = rivals.judged(rivals.world(*crowd, gang(uid="j", slack=0), pair, nodes=3))
    assert [one.uid for one in plan.claim] == ["j"]
    assert rivals.victims(plan, "j") == ["a", "w"]


def test_who_saves_when_told_moves_however_little_may_be_lost() -> None:
    config = dataclasses.replace(rivals.CONFIG, unsaved_most=0)
    snapshot = rivals.world(small("a", "n0"), small("b", "n1", gpus=6), gang(), nodes=2)
    assert [one.uid for one in decide.decide(snapshot, NOW, config).claim] == ["j"]


@pytest.mark.parametrize("moved", [("a", "b"), ("a", "c")])
def test_the_check_sees_who_has_no_place_and_who_moves_too_much(moved: tuple[str, str]) -> None:
    crowd = {"a": small("a", "n0"), "b": small("b", "n0", gpus=3), "c": small("c", "n0", gpus=2)}
    jobs = [crowd[uid] for uid in moved]
    held = small("d", "n1", gpus=5)
    snapshot = rivals.world(*jobs, held, gang(), nodes=2)
    plan = decide.decide(snapshot, NOW, rivals.CONFIG)
    place = model.GroupPlacement("p", (("n0", 1),))
    victims = tuple(model.Victim(one.uid, one.attempt) for one in jobs)
    claim = model.Claim((place,), victims, NOW + MINUTE, committed=False)
    forged = dataclasses.replace(plan, claim=(model.Claiming("j", "q", claim),))
    told = {one.detail for one in justice.of_plan(snapshot, forged, rivals.CONFIG)}
    assert "there is no room for all that are to move" in told
    assert ("too much moves for it" in told) == (moved == ("a", "b"))


def test_without_anybody_to_move_no_pass_looks_for_them() -> None:
    stays = runs("a", "n0", gpus=2, preemptible=False)
    plan = rivals.judged(rivals.world(stays, gang(), nodes=1))
    assert plan.wake_at is None or plan.wake_at > NOW + TICK
