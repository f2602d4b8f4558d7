"""Step 8: why a job waits, who is before it, what would help."""

from __future__ import annotations

import dataclasses

import pytest

from lstqueue.engine import decide, explain, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
HOUR = model.HOUR


def job(uid: str, count: int = 1, gpus: int = 8, **more: object) -> model.Job:
    shape = PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1}))
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW, "deadline": NOW + 50 * HOUR,
        "groups": (model.Group("w", count, shape),), "estimate": model.Estimate(HOUR, HOUR, HOUR),
    }  # fmt: skip
    return model.Job(**(base | more))


def running(uid: str, node: str, gpus: int, **more: object) -> model.Job:
    parts = (model.Assigned(0, "p", node, 0, 1),)
    return job(uid, 1, gpus, **({"state": model.State.RUNNING, "since": NOW - 1, "assigned": parts} | more))


def ask(
    uid: str,
    *jobs: model.Job,
    quota: int = 64,
    order: model.Order = model.Order.LST,
    cordoned: tuple[str, ...] = (),
) -> model.Explanation:
    has = resources({GPU: 8, "cpu": 9000, "pods": 9})
    nodes = tuple(Node(name, has, unschedulable=name in cordoned) for name in ("n0", "n1"))
    queue = model.Queue("q", order, (model.Pool("p", nominal=((GPU, quota),)),), shedding=False)
    snapshot = model.Snapshot(nodes, (queue,), jobs)
    return explain.explain(snapshot, decide.decide(snapshot, NOW), uid)


def test_room_that_is_missing_is_told_in_numbers_with_who_holds_it_and_who_is_ahead() -> None:
    answer = ask(
        "a",
        running("r", "n0", 6),
        running("s", "n1", 3),
        job("a", 3, 4),
        job("before", 2, deadline=NOW + 3 * HOUR),
    )
    assert answer.code is model.Code.NO_ROOM
    assert dict(answer.needed) == {GPU: 12, "cpu": 3000, "pods": 3}
    assert dict(answer.free)[GPU] == 7
    assert answer.largest == 1
    assert [(one.name, one.how) for one in answer.blockers] == [
        ("before", "ahead"), ("r", "holding"), ("s", "holding"),
    ]  # fmt: skip
    assert answer.start == (NOW + 2 * HOUR - 1, NOW + 2 * HOUR - 1)
    assert answer.change == 'With 1 instead of 3 pods in group "w" it would find room now.'


def test_pods_too_large_for_any_hole_are_told_the_largest_hole() -> None:
    answer = ask("a", running("r", "n0", 5), running("s", "n1", 6), job("a", 1, 8))
    assert answer.largest == 0
    assert answer.change == "With pods of 3 nvidia.com/gpu one would find room now."
    full = ask("a", running("r", "n0", 8), running("s", "n1", 8), job("a", 1, 8))
    assert full.change == "No node it may use has room for even a smaller pod; it starts when others leave."


def test_a_cordon_in_the_way_is_to_be_undone() -> None:
    assert ask("a", job("a", 2, 8), cordoned=("n1",)).change == "Uncordon n1 (kubectl uncordon)."
    elsewhere = ask("a", running("r", "n0", 8), running("s", "n1", 8), job("a", 1, 8), cordoned=("n1",))
    assert "Uncordon" not in elsewhere.change


def test_missing_quota_names_the_pool_and_only_holders_of_the_same_queue() -> None:
    foreign = running("foreign", "n1", 1, queue="other")
    answer = ask("a", running("r", "n0", 4), foreign, job("a", 1, 4), quota=6)
    assert answer.code is model.Code.QUOTA_EXCEEDED
    assert [one.name for one in answer.blockers] == ["r"]
    assert (
        answer.change
        == 'With 2 nvidia.com/gpu more of nominal quota in pool "p" of queue "q" it would start now.'
    )


def test_behind_the_head_of_a_fifo_queue_the_head_is_named() -> None:
    head = job("head", 2, 8, submit=NOW - 9)
    answer = ask("a", running("r", "n0", 8), head, job("a"), order=model.Order.FIFO)
    assert answer.code is model.Code.HEAD_OF_LINE
    assert answer.blockers[0] == model.Blocker("head", "ns", "head", "ahead")
    assert answer.change == 'With order lst or edf in queue "q" it would start now.'


def test_what_can_never_be_gets_its_remedy_and_no_blockers_ahead() -> None:
    answer = ask("a", job("a", 1, 9), job("huge", 9, 8, deadline=NOW + 2 * HOUR))
    assert answer.code is model.Code.NO_MATCHING_NODES
    assert answer.blockers == ()
    assert answer.change == 'Ask for at most 8 nvidia.com/gpu per pod, or add larger nodes to pool "p".'
    wide = ask("a", job("a", 3, 8))
    assert wide.change == "Ask for less, loosen the constraints, or add nodes."
    assert ask("a", job("a", queue="none")).change == "Name a queue that exists."


def test_those_that_do_not_wait_are_told_so() -> None:
    assert ask("a", job("a")).message == "It is admitted by this pass."
    started = running("r", "n0", 1, since=NOW - HOUR)
    assert ask("r", started).message == "It has been running for 1h."
    assert ask("r", dataclasses.replace(started, state=model.State.ADMITTED)).message == (
        "It was admitted 1h ago and starts."
    )
    assert ask("r", dataclasses.replace(started, state=model.State.ENDING)).message.startswith("It has ended")


def test_at_most_five_blockers_of_each_kind_are_named() -> None:
    jobs = [job(f"b{i}", 2, 8, deadline=NOW + 3 * HOUR) for i in range(9)]
    holders = [running(f"r{i}", "n0", 1) for i in range(8)]
    answer = ask("a", *jobs, *holders, job("a", 2, 8))
    assert [one.how for one in answer.blockers] == ["ahead"] * 5 + ["holding"] * 5


def test_another_snapshot_or_an_unknown_job_is_refused() -> None:
    snapshot = model.Snapshot(jobs=(job("a"),))
    plan = decide.decide(snapshot, NOW)
    with pytest.raises(ValueError, match="no job b"):
        explain.explain(snapshot, plan, "b")
    with pytest.raises(ValueError, match="decide again"):
        explain.explain(model.Snapshot(), plan, "a")
    with pytest.raises(ValueError, match="decide again"):
        explain.explain(snapshot, dataclasses.replace(plan, kept=None), "a")
