"""Every invariant finds what breaks it, and nothing in a sound world."""

from __future__ import annotations

import dataclasses

from lstqueue.engine import decide, invariants, model
from lstqueue.engine.invariants import Rule
from lstqueue.topology.model import Node, PodShape, Taint, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
NODES = tuple(Node(f"n{i}", resources({GPU: 8, "pods": 9}), labels=(("zone", "a"),)) for i in range(3))
QUEUE = model.Queue("q", pools=(model.Pool("p", (("zone", "a"),), nominal=((GPU, 16),)),), max_importance=1)
SHAPE = PodShape(resources({GPU: 8, "pods": 1}))


def job(uid: str, count: int = 2, **more: object) -> model.Job:
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW,
        "groups": (model.Group("g", count, SHAPE),),
    }  # fmt: skip
    return model.Job(**(base | more))


def part(node: str, bound: int = 0, held: int = 1, group: int = 0) -> model.Assigned:
    return model.Assigned(group, "p", node, bound, held)


def admitted(*parts: model.Assigned, uid: str = "a", count: int = 2) -> model.Job:
    return job(uid, count, state=model.State.ADMITTED, since=NOW, assigned=parts)


def world(*jobs: model.Job, nodes: tuple[Node, ...] = NODES) -> model.Snapshot:
    return model.Snapshot(nodes, (QUEUE,), jobs)


def rules(found: tuple[invariants.Violation, ...]) -> set[Rule]:
    return {violation.rule for violation in found}


def admission(uid: str, *nodes: tuple[str, int], pool: str = "p", queue: str = "q") -> model.Admission:
    return model.Admission(uid, queue, (model.GroupPlacement(pool, nodes),))


def judged(snapshot: model.Snapshot, *admissions: model.Admission, **more: object) -> set[Rule]:
    return rules(invariants.of_plan(snapshot, model.Plan(NOW, admissions, **more)))


def test_a_sound_world_and_the_plan_for_it_break_nothing() -> None:
    snapshot = world(admitted(part("n0"), part("n1")), job("b", 1))
    assert invariants.of_snapshot(snapshot) == ()
    assert invariants.of_snapshot(snapshot, {}) == ()
    assert invariants.of_plan(snapshot, decide.decide(snapshot, NOW)) == ()


def test_a_gang_in_parts_is_found_unless_its_other_members_have_finished() -> None:
    half = world(admitted(part("n0")))
    assert invariants.of_snapshot(half) == ()
    assert rules(invariants.of_snapshot(half, {})) == {Rule.WHOLE_GANG}
    assert invariants.of_snapshot(half, {"a": {0: 1}}) == ()
    many = world(admitted(part("n0"), part("n1"), count=1))
    assert rules(invariants.of_snapshot(many)) == {Rule.WHOLE_GANG}


def test_a_waiting_job_that_holds_capacity_is_found_and_an_ending_one_is_fine() -> None:
    waiting = dataclasses.replace(admitted(part("n0")), state=model.State.WAITING)
    assert rules(invariants.of_snapshot(world(waiting))) == {Rule.WHOLE_GANG}
    ending = dataclasses.replace(waiting, state=model.State.ENDING)
    assert invariants.of_snapshot(world(ending), {}) == ()


def test_our_overcommit_and_that_of_others_are_told_apart() -> None:
    ours = world(admitted(part("n0"), uid="a", count=1), admitted(part("n0"), uid="b", count=1))
    assert rules(invariants.of_snapshot(ours)) == {Rule.OVERCOMMIT}
    foreign = (dataclasses.replace(NODES[0], used=resources({GPU: 1})), *NODES[1:])
    found = invariants.of_snapshot(world(admitted(part("n0"), count=1), nodes=foreign))
    assert rules(found) == {Rule.FOREIGN_OVERCOMMIT}
    assert found[0].subject == "n0"
    assert "nvidia.com/gpu: allocatable 8, ours 8, in all 9" in found[0].detail


def test_more_than_the_quota_is_found() -> None:
    snapshot = world(admitted(part("n0"), part("n1"), part("n2"), count=3))
    assert rules(invariants.of_snapshot(snapshot)) == {Rule.QUOTA}


def test_a_plan_may_admit_only_waiting_jobs_once_and_wholly() -> None:
    snapshot = world(job("a", 1), admitted(part("n0"), count=1, uid="run"))
    good = admission("a", ("n1", 1))
    assert judged(snapshot, good) == set()
    assert judged(snapshot, good, admission("a", ("n2", 1))) >= {Rule.ADMISSION}
    assert judged(snapshot, admission("run", ("n1", 1))) >= {Rule.ADMISSION}
    assert judged(snapshot, admission("ghost", ("n1", 1))) == {Rule.ADMISSION}
    assert judged(snapshot, admission("a")) == {Rule.ADMISSION}
    assert judged(snapshot, model.Admission("a", "q", ())) == {Rule.ADMISSION}
    assert judged(snapshot, admission("a", ("n1", 1), pool="x")) == {Rule.ADMISSION}
    assert judged(snapshot, admission("a", ("n1", 1), queue="x")) == {Rule.ADMISSION}


def test_a_plan_may_use_only_nodes_that_are_there_fit_and_are_not_avoided() -> None:
    tainted = dataclasses.replace(NODES[1], taints=(Taint("t", "", "NoExecute"),))
    other = dataclasses.replace(NODES[2], labels=())
    snapshot = world(job("a", 1, avoid=("n0",)), nodes=(NODES[0], tainted, other))
    for name in ("n0", "n1", "n2", "gone"):
        assert judged(snapshot, admission("a", (name, 1))) == {Rule.ADMISSION}


def test_a_plan_may_not_admit_who_backs_off_or_asks_for_too_much_importance() -> None:
    for one in (job("a", 1, not_before=NOW + 1), job("a", 1, importance=2), job("a", 1, queue="none")):
        assert judged(world(one), admission("a", ("n0", 1))) >= {Rule.ADMISSION}


def test_a_plan_may_not_overfill_nodes_or_quotas() -> None:
    snapshot = world(job("a", 2), job("b", 1), admitted(part("n0"), count=1, uid="run"))
    assert Rule.OVERCOMMIT in judged(snapshot, admission("a", ("n0", 1), ("n1", 1)))
    assert Rule.OVERCOMMIT in judged(snapshot, admission("a", ("n1", 2)))
    assert judged(snapshot, admission("a", ("n1", 1), ("n2", 1))) == {Rule.QUOTA}


def test_a_plan_wakes_up_later_and_says_only_what_is_new() -> None:
    snapshot = world(job("a", 1))
    assert judged(snapshot, wake_at=NOW) == {Rule.WAKE}
    same = model.Update("a", model.Band.REST, None, "", None, "")
    published = model.Published(band=model.Band.REST)
    told = world(job("a", 1, published=published))
    assert judged(told, updates=(same,)) == {Rule.DELTA}
    assert judged(snapshot, updates=(same, same)) == {Rule.DELTA}
