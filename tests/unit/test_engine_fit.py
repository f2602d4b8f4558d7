"""Step 4: what is admitted where, and the code of what is not."""

from __future__ import annotations

import pytest

from lstqueue.engine import decide, model
from lstqueue.topology.model import Node, PodShape, Taint, Toleration, resources

GPU, NIC = "nvidia.com/gpu", "rdma/ib"
NOW = 1_800_000_000_000
HOUR = model.HOUR
ALL = model.Pool("all", nominal=((GPU, 64),))
QUEUE = model.Queue("q", pools=(ALL,))


def node(name: str, gpus: int = 8, **more: object) -> Node:
    return Node(name, resources({GPU: gpus, "cpu": 64_000, "pods": 20}), **more)


def group(count: int = 1, gpus: int = 8, name: str = "worker", **more: int) -> model.Group:
    return model.Group(name, count, PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1} | more)))


def job(uid: str, *groups: model.Group, **more: object) -> model.Job:
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW,
        "groups": groups or (group(),),
        "estimate": model.Estimate(HOUR, HOUR, HOUR), "deadline": NOW + 9 * HOUR,
    }  # fmt: skip
    return model.Job(**(base | more))


def world(*jobs: model.Job, nodes: int = 2, queue: model.Queue = QUEUE) -> model.Snapshot:
    return model.Snapshot(tuple(node(f"n{i}") for i in range(nodes)), (queue,), jobs)


def placed(plan: model.Plan, uid: str) -> list[tuple[str, dict[str, int]]] | None:
    for admission in plan.admit:
        if admission.uid == uid:
            return [(part.pool, dict(part.nodes)) for part in admission.groups]
    return None


def code(plan: model.Plan, uid: str) -> model.Code | None:
    return next(update for update in plan.updates if update.uid == uid).code


def message(plan: model.Plan, uid: str) -> str:
    return next(update for update in plan.updates if update.uid == uid).message


def holding(uid: str, *parts: model.Assigned, state: model.State = model.State.RUNNING) -> model.Job:
    return job(uid, group(2, 4), state=state, since=NOW, assigned=parts)


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    plan = decide.decide(world(job("wide", group(3)), job("fits", group(2))), NOW)
    assert placed(plan, "wide") is None
    assert placed(plan, "fits") == [("all", {"n0": 1, "n1": 1})]
    assert code(plan, "wide") is model.Code.NO_MATCHING_NODES
    assert message(plan, "wide") == (
        'Group "worker" is 3 pods of 8 nvidia.com/gpu, and 2 matching nodes could hold 2 of them even when'
        " empty; ask for less or add nodes."
    )


def test_what_admitted_jobs_expect_is_taken_and_what_they_bound_is_in_used() -> None:
    expecting = holding("a", model.Assigned(0, "all", "n0", 0, 2), state=model.State.ADMITTED)
    plan = decide.decide(world(expecting, job("b", group(1, 4)), nodes=1), NOW)
    assert code(plan, "b") is model.Code.NO_ROOM
    assert message(plan, "b") == (
        'Group "worker" is 1 pod of 4 nvidia.com/gpu, and 0 of them fit now on 1 matching node;'
        " it starts when others leave."
    )


def test_pods_that_leave_still_hold_quota() -> None:
    small = model.Queue("q", pools=(model.Pool("all", nominal=((GPU, 8),)),))
    leaving = holding("a", model.Assigned(0, "all", "n0", 1, 0), state=model.State.ENDING)
    snapshot = world(leaving, job("b", group(1, 8)), queue=small)
    plan = decide.decide(snapshot, NOW)
    assert code(plan, "b") is model.Code.QUOTA_EXCEEDED
    assert message(plan, "b") == (
        'It needs 8 nvidia.com/gpu, and 4 of the 8 of pool "all" in queue "q" are free;'
        " it starts when others leave."
    )


def test_more_than_the_nominal_quota_never_fits() -> None:
    plan = decide.decide(world(job("a", group(9)), nodes=20), NOW)
    assert code(plan, "a") is model.Code.QUOTA_TOO_SMALL
    assert 'asks for 72 nvidia.com/gpu, more than the 64 of pool "all" in queue "q"' in message(plan, "a")


def test_cpu_is_limited_by_quota_only_where_the_pool_lists_it() -> None:
    listing = model.Queue("q", pools=(model.Pool("all", nominal=((GPU, 64), ("cpu", 1500))),))
    jobs = (job("a", group(1, 1)), job("b", group(1, 1)))
    assert len(decide.decide(world(*jobs), NOW).admit) == 2
    plan = decide.decide(world(*jobs, queue=listing), NOW)
    assert len(plan.admit) == 1
    assert "It needs 1 cpu, and 0.5 of the 1.5" in message(plan, "b")


def test_an_extended_resource_that_no_pool_lists_is_refused() -> None:
    plan = decide.decide(world(job("a", group(1, 1, **{NIC: 1}))), NOW)
    assert code(plan, "a") is model.Code.RESOURCE_NOT_IN_QUEUE
    assert 'asks for nvidia.com/gpu and rdma/ib, and no pool of queue "q" lists that' in message(plan, "a")


def test_no_pool_at_all_admits_nothing() -> None:
    plan = decide.decide(world(job("a"), queue=model.Queue("q")), NOW)
    assert code(plan, "a") is model.Code.RESOURCE_NOT_IN_QUEUE


def test_pools_are_tried_in_the_listed_order_with_their_labels_and_tolerations() -> None:
    nodes = (
        node("s1", labels=(("tier", "spot"),), taints=(Taint("spot", "", "NoSchedule"),)),
        node("d1", labels=(("tier", "own"),)),
    )
    own = model.Pool("own", (("tier", "own"),), (), ((GPU, 8),))
    spot = model.Pool("spot", (("tier", "spot"),), (Toleration("spot", "Exists"),), ((GPU, 8),))
    jobs = (job("a"), job("b"), job("c"))
    for pools, expected in (((own, spot), ["own", "spot"]), ((spot, own), ["spot", "own"])):
        snapshot = model.Snapshot(nodes, (model.Queue("q", pools=pools),), jobs)
        plan = decide.decide(snapshot, NOW)
        assert [admission.groups[0].pool for admission in plan.admit] == expected
        assert code(plan, "c") is model.Code.QUOTA_EXCEEDED


def test_largest_pods_choose_first_and_all_groups_fit_or_none() -> None:
    both = job("both", group(2, 4, "small"), group(1, 8, "large"))
    plan = decide.decide(world(both), NOW)
    assert placed(plan, "both") == [("all", {"n1": 2}), ("all", {"n0": 1})]
    plan = decide.decide(
        world(job("both", group(3, 4, "small"), group(1, 8, "large")), job("c", group(2))), NOW
    )
    assert placed(plan, "both") is None
    assert placed(plan, "c") == [("all", {"n0": 1, "n1": 1})]
    assert code(plan, "both") is model.Code.NO_MATCHING_NODES
    assert "No placement of all its groups together" in message(plan, "both")


def test_an_earlier_group_moves_to_another_pool_when_a_later_one_needs_its_place() -> None:
    nodes = (node("x", labels=(("p", "x"),)), node("y", labels=(("p", "y"),)))
    pools = (model.Pool("x", (("p", "x"),), (), ((GPU, 8),)), model.Pool("y", (("p", "y"),), (), ((GPU, 8),)))
    picky = model.Group("picky", 1, PodShape(resources({GPU: 4, "cpu": 1000, "pods": 1}), (("p", "x"),)))
    plan = decide.decide(
        model.Snapshot(nodes, (model.Queue("q", pools=pools),), (job("a", group(), picky),)), NOW
    )
    assert placed(plan, "a") == [("y", {"y": 1}), ("x", {"x": 1})]


def test_missing_queue_and_too_much_importance_wait_with_their_code() -> None:
    strict = model.Queue("q", pools=(ALL,), max_importance=1)
    plan = decide.decide(world(job("a", queue="other"), job("b", importance=2), queue=strict), NOW)
    assert code(plan, "a") is model.Code.QUEUE_NOT_FOUND
    assert message(plan, "a").startswith('There is no queue "other"')
    assert code(plan, "b") is model.Code.IMPORTANCE_TOO_HIGH
    assert message(plan, "b") == 'Importance 2 is above the 1 that queue "q" allows; lower it.'
    assert plan.admit == ()


def test_a_job_that_backs_off_or_is_held_back_is_not_admitted() -> None:
    backing = job("a", not_before=NOW + 90_000, failed_starts=1)
    held = job("b", state=model.State.HELD_BACK, held_back="The server refused its template.")
    plan = decide.decide(world(backing, held), NOW)
    assert plan.admit == ()
    assert code(plan, "a") is model.Code.BACKING_OFF
    assert message(plan, "a") == "It is tried again in 1m30s, after a failed start."
    assert code(plan, "b") is model.Code.HELD_BACK
    assert message(plan, "b") == "The server refused its template."
    assert plan.wake_at == NOW + 90_000
    assert placed(decide.decide(world(backing), NOW + 90_000), "a") is not None


def test_nodes_that_failed_a_job_are_avoided_but_only_for_it() -> None:
    plan = decide.decide(world(job("a", avoid=("n0",)), job("b")), NOW)
    assert placed(plan, "a") == [("all", {"n1": 1})]
    assert placed(plan, "b") == [("all", {"n0": 1})]
    plan = decide.decide(world(job("a", avoid=("n0", "gone")), nodes=1), NOW)
    assert code(plan, "a") is model.Code.NO_ROOM
    assert "(avoiding 2 nodes that failed it)" in message(plan, "a")


def test_a_node_that_is_down_makes_a_job_wait_and_not_impossible() -> None:
    snapshot = model.Snapshot((node("n0"), node("n1", ready=False)), (QUEUE,), (job("a", group(2)),))
    assert code(decide.decide(snapshot, NOW), "a") is model.Code.NO_ROOM


def test_a_strict_fifo_queue_waits_for_its_head_and_lst_does_not() -> None:
    busy = holding("run", model.Assigned(0, "all", "n0", 0, 2))
    jobs = (busy, job("head", group(2), submit=NOW - 2), job("next", submit=NOW - 1))
    strict = model.Queue("q", model.Order.FIFO, (ALL,))
    plan = decide.decide(world(*jobs, queue=strict), NOW)
    assert plan.admit == ()
    assert code(plan, "head") is model.Code.NO_ROOM
    assert code(plan, "next") is model.Code.HEAD_OF_LINE
    assert (
        message(plan, "next") == 'Queue "q" is strictly first in, first out, and ns/head at its head waits.'
    )
    assert placed(decide.decide(world(*jobs), NOW), "next") == [("all", {"n1": 1})]


def test_a_fifo_head_that_cannot_or_may_not_start_blocks_nobody() -> None:
    strict = model.Queue("q", model.Order.FIFO, (ALL,))
    never = job("never", group(9), submit=NOW - 9)
    backing = job("backing", not_before=NOW + 1, submit=NOW - 8)
    held = job("held", state=model.State.HELD_BACK, submit=NOW - 7)
    plan = decide.decide(world(never, backing, held, job("next"), queue=strict), NOW)
    assert [admission.uid for admission in plan.admit] == ["next"]


def test_a_blocked_fifo_queue_still_tells_those_behind_when_they_can_never_fit() -> None:
    strict = model.Queue("q", model.Order.FIFO, (ALL,))
    busy = holding("run", model.Assigned(0, "all", "n0", 0, 2))
    jobs = (busy, job("head", group(2), submit=NOW - 2), job("never", group(9)))
    assert code(decide.decide(world(*jobs, queue=strict), NOW), "never") is model.Code.QUOTA_TOO_SMALL


def test_equal_gangs_are_tried_once_and_room_lost_to_foreign_pods_counts() -> None:
    full = Node("n0", resources({GPU: 8, "cpu": 64_000, "pods": 20}), used=resources({GPU: 7}))
    jobs = tuple(job(f"u{i}", group(1, 4)) for i in range(20))
    plan = decide.decide(model.Snapshot((full,), (QUEUE,), jobs), NOW)
    assert dict(plan.counts)["fits_tried"] == 1
    assert {update.code for update in plan.updates} == {model.Code.NO_ROOM}


def test_smallest_first_is_tried_when_largest_first_finds_no_placement() -> None:
    # The memory-hungry pod fits only on the roomy node, which the larger GPU pod would take first.
    roomy = Node("a", resources({GPU: 4, "cpu": 64_000, "pods": 20, "memory": 100}))
    plain = Node("b", resources({GPU: 4, "cpu": 64_000, "pods": 20, "memory": 10}))
    hungry = group(1, 3, "hungry", memory=100)
    snapshot = model.Snapshot((roomy, plain), (QUEUE,), (job("x", group(1, 4, memory=1), hungry),))
    assert placed(decide.decide(snapshot, NOW), "x") == [("all", {"b": 1}), ("all", {"a": 1})]


@pytest.mark.parametrize("order", [model.Order.LST, model.Order.EDF, model.Order.FIFO])
def test_small_jobs_take_small_holes_so_that_every_gpu_is_used(order: model.Order) -> None:
    """Packing by percentage would put jobs of one GPU on nodes of eight, and stop at 30 of the 36."""
    nodes = tuple(node(f"n{i}") for i in range(4)) + tuple(node(f"s{i}", 1) for i in range(4))
    sizes = [5] * 4 + [1] * 4 + [3] * 4
    jobs = tuple(
        job(f"j{i:02}", group(1, gpus), submit=NOW - HOUR + i, deadline=NOW + (9 + i) * HOUR)
        for i, gpus in enumerate(sizes)
    )
    plan = decide.decide(model.Snapshot(nodes, (model.Queue("q", order, (ALL,)),), jobs), NOW)
    assert len(plan.admit) == len(jobs)
    used: dict[str, int] = {}
    for admission in plan.admit:
        for part in admission.groups:
            for name, _ in part.nodes:
                used[name] = used.get(name, 0) + sizes[int(admission.uid[1:])]
    assert used == {one.name: dict(one.allocatable)[GPU] for one in nodes}
