"""Step 6: for whom room is kept, which, until when, and whom that keeps from starting."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import CONFIG, HOUR, MINUTE, NOW, runs, waits
from lstqueue.engine import decide, explain, invariants, justice, keeping, model

DAY = 24 * HOUR
FULL = [runs(f"v{i}", f"n{i}", mid=(3 + i) * HOUR, ago=HOUR) for i in range(4)]
"""Four nodes, free in 2, 3, 4 and 5 h."""


def wide(**more: Any) -> model.Job:
    """A gang of half of all, with slack to wait."""
    return waits("wide", **({"count": 2, "slack": DAY} | more))


def judged(snapshot: model.Snapshot, now: int = NOW, **config: Any) -> model.Plan:
    settings = dataclasses.replace(CONFIG, **config)
    plan = decide.decide(snapshot, now, settings)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, settings) == ()
    assert keeping.of_plan(snapshot, plan, settings) == ()
    return plan


def kept(plan: model.Plan, uid: str = "wide") -> dict[str, int] | None:
    for made in plan.reserve:
        if made.uid == uid:
            return dict(made.reservation.groups[0].nodes)
    return None


def written(snapshot: model.Snapshot, **config: Any) -> model.Snapshot:
    """The world once a pass was carried out; nobody started."""
    plan = judged(snapshot, **config)
    assert plan.admit == ()
    return invariants.after(snapshot, plan)


def code(plan: model.Plan, uid: str) -> model.Code | None:
    return next(update.code for update in plan.updates if update.uid == uid)


def gone(snapshot: model.Snapshot, *uids: str, more: tuple[model.Job, ...] = ()) -> model.Snapshot:
    jobs = tuple(job for job in snapshot.jobs if job.uid not in uids)
    return dataclasses.replace(snapshot, jobs=(*jobs, *more))


def test_the_place_is_kept_that_is_free_first() -> None:
    plan = judged(rivals.world(*FULL, wide(), nodes=4))
    assert kept(plan) == {"n0": 1, "n1": 1}
    assert plan.reserve[0].reservation.start == NOW + 3 * HOUR
    again = invariants.after(rivals.world(*FULL, wide(), nodes=4), plan)
    assert judged(again).reserve == ()


@pytest.mark.parametrize(
    "fields",
    [{"slack": 30 * MINUTE}, {"deadline": None}, {"count": 3}, {"deadline": NOW}, {"failed_starts": 3}],
    ids=["at its last moment", "no deadline", "more than half", "late", "does not start"],
)
def test_nothing_is_kept_for(fields: dict[str, Any]) -> None:
    assert judged(rivals.world(*FULL, wide(**fields), nodes=4)).reserve == ()


def test_who_lacks_quota_alone_is_kept_nothing() -> None:
    short = dataclasses.replace(rivals.QUEUE, pools=(model.Pool("p", nominal=((rivals.GPU, 32),)),))
    crowd = rivals.world(*FULL, wide(), nodes=4, queue=short)
    plan = judged(crowd)
    assert code(plan, "wide") is model.Code.QUOTA_EXCEEDED
    assert kept(plan) == {"n0": 1, "n1": 1}  # the quota is all there is: it lacks nodes as well
    plan = judged(rivals.world(*FULL, wide(), nodes=8, queue=short))
    assert code(plan, "wide") is model.Code.QUOTA_EXCEEDED
    assert plan.reserve == ()


def test_room_is_kept_for_two_and_for_half_of_the_nodes() -> None:
    ones = [waits(f"w{i}", slack=DAY + i * HOUR) for i in range(3)]
    plan = judged(rivals.world(*FULL, *ones, nodes=4))
    assert [made.uid for made in plan.reserve] == ["w0", "w1"]
    assert kept(plan, "w0") != kept(plan, "w1")
    plan = judged(rivals.world(*FULL, wide(slack=HOUR * 20), *ones, nodes=4))
    assert [made.uid for made in plan.reserve] == ["wide"]
    assert judged(rivals.world(*FULL, *ones, nodes=4), reserve_most=0).reserve == ()


def test_guests_are_those_who_leave_in_time() -> None:
    later = gone(written(rivals.world(*FULL, wide(), nodes=4)), "v0")
    brief, long = (waits(uid, mid=mid, slack=5 * DAY) for uid, mid in (("g", 3 * HOUR), ("g", 4 * HOUR)))
    assert [one.uid for one in judged(gone(later, more=(brief,))).admit] == ["g"]
    seen = gone(later, more=(long,))
    plan = judged(seen)
    assert plan.admit == ()
    assert code(plan, "g") is model.Code.RESERVED
    told = explain.explain(seen, plan, "g")
    assert "kept for ns/wide" in told.message
    assert "an estimate of at most 3h" in told.change


def test_one_at_its_last_moment_waits_for_nobody_with_slack() -> None:
    later = gone(written(rivals.world(*FULL, wide(), nodes=4)), "v0")
    urgent = waits("u", mid=5 * HOUR, slack=30 * MINUTE)
    assert [one.uid for one in judged(gone(later, more=(urgent,))).admit] == ["u"]


def test_one_who_stays_too_long_takes_what_the_owner_will_not_need() -> None:
    later = gone(written(rivals.world(*FULL, wide(), nodes=4)), "v3")
    long = waits("g", mid=9 * HOUR, slack=5 * DAY)
    (admitted,) = judged(gone(later, more=(long,))).admit
    assert dict(admitted.groups[0].nodes) == {"n3": 1}


def test_who_stays_too_long_finds_a_kept_node_closed() -> None:
    later = gone(written(rivals.world(*FULL, wide(gpus=5), nodes=4)), "v0")
    long = waits("g", mid=9 * HOUR, slack=5 * DAY, gpus=3)
    plan = judged(gone(later, more=(long,)))
    assert code(plan, "g") is model.Code.RESERVED
    (admitted,) = judged(gone(later, more=(long,)), reserve_whole=False).admit
    assert dict(admitted.groups[0].nodes) == {"n0": 1}


def test_it_is_put_off_when_its_time_came_in_vain() -> None:
    later = written(rivals.world(*FULL, wide(), nodes=4))
    slow = [dataclasses.replace(job, estimate=rivals.exact(9 * HOUR)) for job in FULL[:2]]
    late = gone(later, "v0", "v1", more=tuple(slow))
    start = NOW + 3 * HOUR
    assert judged(late, start).reserve == ()  # a moment for what is to leave
    (moved,) = judged(late, start + CONFIG.claim_margin).reserve
    assert dict(moved.reservation.groups[0].nodes) == {"n2": 1, "n3": 1}
    assert (moved.reservation.start, moved.reservation.slips) == (NOW + 5 * HOUR, 1)


def test_put_off_twice_it_has_no_guests_who_cannot_be_suspended() -> None:
    later = gone(written(rivals.world(*FULL, wide(), nodes=4)), "v0")
    brief = waits("g", mid=HOUR, slack=5 * DAY, preemptible=False)
    assert judged(gone(later, more=(brief,))).admit != ()
    jobs = [
        dataclasses.replace(job, reservation=dataclasses.replace(job.reservation, slips=2))
        if job.reservation is not None
        else job
        for job in later.jobs
    ]
    tired = dataclasses.replace(later, jobs=(*jobs, brief))
    assert judged(tired).admit == ()


def test_it_ends_with_what_it_was_for() -> None:
    later = written(rivals.world(*FULL, wide(), nodes=4))
    free = judged(gone(later, "v0", "v1"))
    assert [one.uid for one in free.admit] == ["wide"]
    assert free.unreserve == ()
    owner = dataclasses.replace(later.jobs[-1], deadline=NOW)
    assert [lost.uid for lost in judged(gone(later, "wide", more=(owner,))).unreserve] == ["wide"]
    cordoned = [dataclasses.replace(node, unschedulable=node.name == "n0") for node in later.nodes]
    plan = judged(dataclasses.replace(later, nodes=tuple(cordoned)))
    assert kept(plan) == {"n1": 1, "n2": 1}
    assert plan.unreserve == ()
    assert [lost.uid for lost in judged(later, reserve_most=0).unreserve] == ["wide"]


def test_whoever_comes_before_the_owner_in_line_has_the_room_kept() -> None:
    later = written(rivals.world(*FULL, wide(), nodes=4), reserve_most=1)
    before = waits("before", count=2, slack=20 * HOUR)
    plan = judged(gone(later, more=(before,)), reserve_most=1)
    assert kept(plan, "before") == {"n0": 1, "n1": 1}
    assert [lost.uid for lost in plan.unreserve] == ["wide"]


def test_the_place_moves_to_where_the_owner_fits_first() -> None:
    later = gone(written(rivals.world(*FULL, wide(), nodes=4)), "v3")
    plan = judged(later)
    assert kept(plan) == {"n0": 1, "n3": 1}
    (made,) = plan.reserve
    assert (made.reservation.start, made.reservation.slips) == (NOW + 2 * HOUR, 0)


def passes(snapshot: model.Snapshot, count: int, *, every: int = 1000) -> list[tuple[model.Reserve, ...]]:
    """What passes write of reservations, each made of what the one before has written."""
    found = []
    for number in range(count):
        plan = judged(snapshot, NOW + number * every)
        assert plan.unreserve == ()
        found.append(plan.reserve)
        snapshot = invariants.after(snapshot, plan)
    return found


def leaves(job: model.Job, grace: int) -> model.Job:
    return dataclasses.replace(job, state=model.State.ENDING, grace=grace)


@pytest.mark.parametrize("grace", [30_000, 12 * MINUTE], ids=["half a minute", "twelve minutes"])
def test_a_place_that_others_leave_already_is_kept_from_the_end_of_their_grace_on(grace: int) -> None:
    first, *later = passes(rivals.world(*[leaves(job, grace) for job in FULL], wide(), nodes=4), 5)
    assert [made.reservation.start for made in first] == [NOW + grace]
    assert later == [(), (), (), ()]


def test_who_does_not_leave_within_its_grace_has_the_reservation_slip() -> None:
    crowd = rivals.world(*[leaves(job, 12 * MINUTE) for job in FULL], wide(), nodes=4)
    made = [one for some in passes(crowd, 30, every=MINUTE) for one in some]
    assert [((one.reservation.start - NOW) // MINUTE, one.reservation.slips) for one in made] == [
        (12, 0),
        (12 + 2 + 12, 1),
        (12 + 2 + 12 + 2 + 12, 2),
    ]


def test_the_grace_of_those_who_leave_other_nodes_puts_nothing_off() -> None:
    """Of another pool, and of the same one."""
    apart = dataclasses.replace(rivals.POOL, selector=(("pool", "a"),))
    other = model.Queue("z", pools=(dataclasses.replace(rivals.POOL, selector=(("pool", "b"),)),))
    crowd = rivals.world(*FULL, wide(), nodes=6, queue=dataclasses.replace(rivals.QUEUE, pools=(apart,)))
    labels = ["a", "a", "a", "a", "b", "a"]
    nodes = [
        dataclasses.replace(node, labels=(("pool", one),))
        for node, one in zip(crowd.nodes, labels, strict=True)
    ]
    slow = [leaves(runs("e", "n4", queue="z"), DAY), leaves(runs("f", "n5"), DAY)]
    both = model.Snapshot(tuple(nodes), (*crowd.queues, other), (*crowd.jobs, *slow))
    first, *later = passes(both, 4)
    assert [(one.reservation.start, dict(one.reservation.groups[0].nodes)) for one in first] == [
        (NOW + 3 * HOUR, {"n0": 1, "n1": 1})
    ]
    assert later == [(), (), ()]
