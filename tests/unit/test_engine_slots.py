"""Slots beside each other: one that moves takes nothing from its neighbours; nobody is asked for twice."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW, runs, waits
from lstqueue.engine import calendar, decide, either, invariants, justice, model, pledges, room

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
GRACE = MINUTE


def slot(node: str, start: int, finish: int, hi: int) -> model.Slot:
    return model.Slot((model.GroupPlacement("p", ((node, 1),)),), start, finish, hi)


def judged(snapshot: model.Snapshot, now: int = NOW) -> model.Plan:
    plan = decide.decide(snapshot, now, CONFIG)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, CONFIG) == ()
    assert pledges.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def written(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The world once a plan that starts nobody was carried out."""
    lost = {one.uid: None for one in plan.revoke}
    slots: dict[str, Any] = lost | {one.uid: one.slot for one in plan.promise}
    jobs = tuple(
        dataclasses.replace(job, slot=slots.get(job.uid, job.slot))
        for job in invariants.after(snapshot, plan).jobs
    )
    return dataclasses.replace(snapshot, jobs=jobs)


def part(node: int, gpus: int) -> room.Release:
    return room.Release("q", np.array([node]), np.array([[gpus]]), ((0, gpus),))


def elsewhere(start: int, **more: Any) -> model.Job:
    """One that has run for an hour of three on n0, saves as it runs, and has a slot on n1."""
    until = start + 3 * HOUR + 10 * MINUTE
    own = slot("n1", start, until, 3 * HOUR)
    fixed: dict[str, Any] = {"gpus": 4, "ago": HOUR, "mid": 3 * HOUR, "grace": GRACE, "slot": own}
    fixed |= {"checkpoint": 10 * MINUTE, "saves_on_suspend": False, "deadline": start + 4 * HOUR}
    return runs("a", "n0", **(fixed | {"published": rivals.TOLD} | more))


def test_a_slot_that_slides_leaves_its_neighbour_what_it_was_promised() -> None:
    start = NOW + 4 * MINUTE
    neighbour = waits(
        "b", gpus=4, mid=2 * HOUR, grace=GRACE, slot=slot("n1", start, start + 123 * MINUTE, 2 * HOUR)
    )
    neighbour = dataclasses.replace(neighbour, deadline=start + 125 * MINUTE)
    blocks = runs("f", "n0", gpus=4, preemptible=False, mid=20 * HOUR)
    guest = runs("g", "n1", gpus=8, grace=GRACE, mid=20 * HOUR)
    plan = judged(rivals.world(elsewhere(start), neighbour, blocks, guest, nodes=2))
    assert plan.revoke == ()
    assert [(one.uid, one.slot.start) for one in plan.promise] == [("a", start + HOUR)]


def test_a_slot_that_follows_its_owner_is_owed_the_room_there_once() -> None:
    """n0 has room for the owner, who cannot leave, and for the neighbour's slot, and no more."""
    start = NOW + 20 * HOUR
    owner = runs(
        "a", "n0", gpus=4, ago=0, mid=2 * HOUR, preemptible=False, deadline=NOW + 30 * HOUR,
        slot=slot("n1", start, start + 3 * HOUR, 2 * HOUR),
    )  # fmt: skip
    neighbour = waits(
        "b", gpus=4, mid=2 * HOUR, grace=GRACE, slot=slot("n0", NOW + HOUR, NOW + 4 * HOUR, 2 * HOUR)
    )
    neighbour = dataclasses.replace(neighbour, deadline=NOW + 5 * HOUR)
    others = [runs(f"f{i}", f"n{i}", gpus=4, grace=GRACE, mid=20 * HOUR) for i in range(2)]
    others.append(runs("g", "n1", gpus=4, grace=GRACE, mid=20 * HOUR))
    plan = judged(rivals.world(owner, neighbour, *others, nodes=2))
    assert plan.revoke == ()
    assert [(one.uid, one.slot.groups[0].nodes) for one in plan.promise] == [("a", (("n0", 1),))]


def test_a_promised_job_that_cannot_leave_has_its_slot_moved_once() -> None:
    for saves in (False, True):
        start = NOW + 20 * HOUR
        owner = runs(
            "n", "n0", gpus=4, ago=0, mid=2 * HOUR, preemptible=False, saves_on_suspend=saves,
            deadline=NOW + 30 * HOUR, slot=slot("n1", start, start + 3 * HOUR, 2 * HOUR),
        )  # fmt: skip
        snapshot, told = rivals.world(owner, nodes=2), []
        for step in range(4):
            plan = judged(snapshot, NOW + step * 1000)
            told.append(len(plan.promise))
            snapshot = written(snapshot, plan)
        assert told == [1, 0, 0, 0]


def test_who_has_to_leave_a_slot_is_not_asked_for_by_another_in_the_same_pass() -> None:
    """Since a claim goes on, whom the queue may ask for was worked out before slots were claimed."""
    leaves = runs("v", "n0")
    claims = rivals.claiming(waits("c"), leaves, node="n0")
    spread = (model.Assigned(0, "p", "n1", 0, 1), model.Assigned(0, "p", "n2", 0, 1))
    guest = runs("g", "n1", grace=MINUTE // 2, count=2, assigned=spread)
    owner = waits("p", grace=MINUTE // 2, slack=10 * MINUTE)
    owner = dataclasses.replace(
        owner, slot=slot("n2", NOW + 2 * MINUTE, NOW + 2 * HOUR + 6 * MINUTE, 2 * HOUR)
    )
    plan = judged(rivals.world(leaves, claims, guest, owner, waits("j", slack=14 * MINUTE), nodes=3))
    assert rivals.victims(plan, "p") == ["g"]
    assert rivals.victims(plan, "j") is None


def test_who_is_told_to_leave_is_not_told_again_for_its_own_slot() -> None:
    """The owner of the slot on n1 runs on n0, where somebody has a slot before it would end."""
    start, run = NOW + 3 * MINUTE, 3 * HOUR
    own = slot("n1", start, start + run + 3 * MINUTE, run)
    owner = elsewhere(start, checkpoint=0, gpus=8, ago=0, mid=run, slot=own)
    neighbour = waits("b", mid=2 * HOUR, grace=GRACE, slot=slot("n0", NOW + HOUR, NOW + 4 * HOUR, 2 * HOUR))
    neighbour = dataclasses.replace(neighbour, deadline=NOW + 5 * HOUR)
    for drained, why in ((False, model.Why.PROMISED), (True, model.Why.QUEUE_DRAINED)):
        queue = dataclasses.replace(rivals.QUEUE, drained=drained)
        plan = judged(rivals.world(owner, neighbour, nodes=2, queue=queue))
        assert [(one.uid, one.why) for one in plan.suspend] == [("a", why)]
        assert dict(plan.counts)["suspending"] == 1


def test_who_claims_its_slot_is_not_counted_among_those_that_wait() -> None:
    own = slot("n0", NOW + 2 * MINUTE, NOW + 2 * HOUR + 6 * MINUTE, 2 * HOUR)
    owner = dataclasses.replace(waits("p", grace=GRACE, slack=10 * MINUTE), slot=own)
    plan = judged(rivals.world(runs("g", "n0", grace=GRACE // 2), owner, waits("w"), nodes=1))
    assert [one.uid for one in plan.claim] == ["p"]
    counts = dict(plan.counts)
    assert (counts["waiting"], counts["claiming"], counts["admitting"]) == (1, 1, 0)


def test_a_slot_is_not_in_a_window_that_keeps_its_quota_free() -> None:
    pool = model.Pool("p", nominal=((rivals.GPU, 16),))
    job = dataclasses.replace(waits("j", slack=16 * HOUR), published=model.Published())
    holders = [runs(f"h{i}", f"n{i}", mid=30 * HOUR) for i in range(2)]
    for keeps, latest in ((1_000_000, NOW + 10 * HOUR), (500_000, NOW + 18 * HOUR)):
        window = model.Window(NOW + 10 * HOUR, NOW + 20 * HOUR, keeps)
        queue = dataclasses.replace(rivals.QUEUE, pools=(pool,), windows=(window,))
        plan = judged(rivals.world(job, *holders, nodes=2, queue=queue))
        assert [(one.uid, one.slot.finish) for one in plan.promise] == [("j", latest)]


def test_a_window_that_is_set_up_later_has_a_slot_moved_out_of_it() -> None:
    pool = model.Pool("p", nominal=((rivals.GPU, 8),))
    own = slot("n0", NOW + 15 * HOUR, NOW + 18 * HOUR, 2 * HOUR)
    job = waits("j", slack=16 * HOUR, slot=own)
    window = model.Window(NOW + 10 * HOUR, NOW + 20 * HOUR, 1_000_000)
    queue = dataclasses.replace(rivals.QUEUE, pools=(pool,), windows=(window,))
    holder = runs("h", mid=30 * HOUR)
    plan = judged(rivals.world(job, holder, queue=queue))
    assert plan.revoke == ()
    assert [(one.uid, one.slot.finish) for one in plan.promise] == [("j", NOW + 10 * HOUR)]


def test_one_that_lost_its_promise_or_had_none_gets_one_when_all_are_forecast_anew() -> None:
    told = model.Published(band=model.Band.DEADLINE, verdict=model.Verdict(model.Level.LIKELY))
    holder = runs("h", mid=30 * HOUR)
    for bereft, ago, changed, again in (
        (False, HOUR, True, True),
        (True, HOUR, True, True),
        (True, HOUR, False, False),
        (True, 1000, True, False),
    ):
        job = waits("j", slack=16 * HOUR, published=told, bereft=bereft)
        snapshot = dataclasses.replace(rivals.world(job, holder), forecast_at=NOW - ago, changed=changed)
        plan = judged(snapshot)
        assert [one.uid for one in plan.promise] == (["j"] if again else [])
        if again:
            levels = [one.verdict.level for one in plan.updates if one.uid == "j" and one.verdict]
            assert levels == [model.Level.FEASIBLE]


def test_one_of_two_places_is_owed_the_larger_of_both() -> None:
    first = calendar.Entry("a", 10, 50, part(0, 4))
    second = calendar.Entry("a", 30, 70, room.Release("q", np.array([0, 1]), np.array([[2, 3]]), ((0, 5),)))
    found = [
        (one.begins, one.ends, one.part.nodes.tolist(), one.part.amounts.tolist(), one.part.charges)
        for one in either.of([first, second])
    ]
    assert found == [
        (10, 30, [0], [[4]], ((0, 4),)),
        (30, 50, [0, 1], [[4, 3]], ((0, 5),)),
        (50, 70, [0, 1], [[2, 3]], ((0, 5),)),
    ]
