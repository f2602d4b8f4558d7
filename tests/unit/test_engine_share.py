"""The best-effort share: who stands in line by it, who is safe within it, and what is kept for whom."""

from __future__ import annotations

import dataclasses
from typing import Any

from cases import rivals
from cases.rivals import HOUR, MINUTE, NOW
from lstqueue.engine import decide, explain, invariants, justice, model

QUEUE = dataclasses.replace(rivals.QUEUE, best_effort_share=250_000)


def world(*jobs: model.Job, nodes: int = 4, queue: model.Queue = QUEUE) -> model.Snapshot:
    return rivals.world(*jobs, nodes=nodes, queue=queue)


def judged(snapshot: model.Snapshot, now: int = NOW, config: model.Config = rivals.CONFIG) -> model.Plan:
    plan = decide.decide(snapshot, now, config)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, config) == ()
    return plan


def admitted(plan: model.Plan) -> list[str]:
    return [admission.uid for admission in plan.admit]


def rest(uid: str = "b", *, ago: int = 2 * HOUR, mid: int = 30 * MINUTE, **more: Any) -> model.Job:
    """A job without a deadline that was submitted `ago` ms ago."""
    return rivals.job(uid, mid=mid, submit=NOW - ago, **more)


def busy(uid: str, node: str, **more: Any) -> model.Job:
    """A job that runs to its deadline and can be no victim."""
    return rivals.runs(uid, node, deadline=NOW + 11 * HOUR, preemptible=False, **more)


# A node of four is a quarter of the queue: a gang of one node that runs 30 min is due 30 min after it came.


def test_once_overdue_the_oldest_goes_before_every_deadline() -> None:
    jobs = rest(), rivals.waits("d", slack=MINUTE), rest("younger", ago=HOUR)
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    assert admitted(judged(world(*jobs, *others))) == ["b"]
    off = dataclasses.replace(rivals.CONFIG, sharing=False)
    assert admitted(judged(world(*jobs, *others), config=off)) == ["d"]


def test_until_then_it_stands_where_its_deadline_would_put_it() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    soon = rivals.waits("soon", slack=MINUTE, mid=HOUR)
    later = rivals.waits("later", slack=9 * HOUR, mid=HOUR)
    young = rest(ago=0, mid=4 * HOUR)  # due in 4 h
    assert admitted(judged(world(soon, young, *others))) == ["soon"]
    assert admitted(judged(world(later, young, *others))) == ["b"]


def test_the_next_pass_is_due_when_it_is_overdue() -> None:
    blocked = [busy(f"r{i}", f"n{i}", mid=30 * HOUR) for i in range(4)]
    plan = judged(world(rest(ago=0, mid=40 * MINUTE), *blocked))
    assert plan.wake_at is not None
    assert plan.wake_at <= NOW + 40 * MINUTE


def test_while_its_elders_hold_more_than_the_share_nobody_is_favoured() -> None:
    elders = [rivals.runs(f"e{i}", f"n{i}", submit=NOW - 9 * HOUR) for i in range(2)]
    one = busy("r", "n2")
    jobs = rest(), rivals.waits("d", slack=MINUTE)
    assert admitted(judged(world(*jobs, one, *elders))) == ["d"]
    younger = [dataclasses.replace(elder, submit=NOW - HOUR) for elder in elders]
    assert admitted(judged(world(*jobs, one, *younger))) == ["b"]


def test_a_late_job_has_no_part_in_it() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    late = rivals.job("late", mid=30 * MINUTE, submit=NOW - 9 * HOUR, deadline=NOW - HOUR)
    assert admitted(judged(world(late, rivals.waits("d", slack=MINUTE), *others))) == ["d"]
    runs = rivals.runs("late", "n3", submit=NOW - 9 * HOUR, deadline=NOW - HOUR)
    assert rivals.victims(judged(world(rivals.waits(), runs, *others))) == ["late"]


def test_where_the_late_have_part_it_is_best_effort_work_from_its_deadline_on() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    late = rivals.job("late", mid=30 * MINUTE, submit=NOW - 9 * HOUR, deadline=NOW - HOUR)
    urgent = rivals.waits("d", slack=MINUTE)
    config = dataclasses.replace(rivals.CONFIG, share_late=True)
    assert admitted(judged(world(late, urgent, *others), config=config)) == ["late"]
    assert admitted(judged(world(late, rest(), urgent, *others), config=config)) == ["b"]


def test_an_unknown_run_time_counts_as_long() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    unknown = dataclasses.replace(rest(ago=23 * HOUR), estimate=None)
    urgent = rivals.waits("d", slack=MINUTE)
    assert admitted(judged(world(unknown, urgent, *others))) == ["d"]
    older = dataclasses.replace(unknown, submit=NOW - 24 * HOUR)
    assert admitted(judged(world(older, urgent, *others))) == ["b"]


def test_the_oldest_that_fit_in_the_share_are_no_victims() -> None:
    elder = rivals.runs("elder", "n0", submit=NOW - 9 * HOUR)
    younger = rivals.runs("younger", "n1", submit=NOW - 8 * HOUR)
    others = [busy(f"r{i}", f"n{i + 2}") for i in range(2)]
    assert rivals.victims(judged(world(rivals.waits(), elder, younger, *others))) == ["younger"]
    assert rivals.victims(judged(world(rivals.waits(), elder, *others, busy("r2", "n1")))) is None


def test_one_wider_than_the_share_is_a_victim_and_makes_nobody_else_one() -> None:
    wide = rivals.runs("wide", "n0", count=2, gpus=8, submit=NOW - 9 * HOUR)
    parts = tuple(model.Assigned(0, "p", f"n{i}", 0, 1) for i in range(2))
    wide = dataclasses.replace(wide, assigned=parts)
    narrow = rivals.runs("narrow", "n2", submit=NOW - HOUR)
    assert rivals.victims(judged(world(rivals.waits(), wide, narrow, busy("r", "n3")))) == ["wide"]


def test_what_comes_free_is_kept_for_an_overdue_gang() -> None:
    wide = rest(count=2, ago=9 * HOUR)
    first = busy("first", "n0", mid=HOUR)
    others = [busy(f"r{i}", f"n{i}", mid=9 * HOUR) for i in range(1, 3)]
    small = rivals.waits("small", slack=6 * HOUR, gpus=1)
    snapshot = world(wide, small, first, *others)  # n3 is free, and n0 comes free next
    plan = judged(snapshot)
    assert admitted(plan) == []
    assert explain.explain(snapshot, plan, "small").message == (
        "It would fit now, on room that is kept for ns/b: the oldest best-effort work, and overdue."
    )
    assert explain.explain(snapshot, plan, "b").preemption.endswith(
        "As 25 % of its queue are kept for such work and it is the oldest and overdue, it goes before"
        " everybody; what comes free in its place is kept for it."
    )
    loose = dataclasses.replace(rivals.CONFIG, share_keeps=False)
    assert admitted(judged(snapshot, config=loose)) == ["small"]


def test_nobody_has_others_suspended_on_what_is_kept() -> None:
    wide = rest(count=2, ago=9 * HOUR)
    unsafe = rivals.runs("v", "n3", submit=NOW - HOUR, mid=HOUR, gpus=4)
    others = [busy(f"r{i}", f"n{i}", mid=(1 + 8 * i) * HOUR) for i in range(3)]
    queue = dataclasses.replace(QUEUE, best_effort_share=100_000)
    snapshot = world(wide, rivals.waits(), unsafe, *others, queue=queue)
    assert rivals.victims(judged(snapshot)) is None
    loose = dataclasses.replace(rivals.CONFIG, share_keeps=False)
    assert rivals.victims(judged(snapshot, config=loose)) == ["v"]


def test_it_has_nobody_suspended_itself_and_stays_in_its_band() -> None:
    victim = rivals.runs("v", "n0", submit=NOW - HOUR)
    others = [busy(f"r{i}", f"n{i}") for i in range(1, 4)]
    plan = judged(world(rest(ago=9 * HOUR), victim, *others))
    assert plan.claim == ()
    bands = {update.uid: update.band for update in plan.updates}
    assert bands["b"] is model.Band.REST


def test_a_share_of_nothing_and_a_fifo_queue_favour_nobody() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    jobs = rest(), rivals.waits("d", slack=MINUTE)
    none = dataclasses.replace(QUEUE, best_effort_share=0)
    assert admitted(judged(world(*jobs, *others, queue=none))) == ["d"]
    fifo = dataclasses.replace(QUEUE, order=model.Order.FIFO)
    assert admitted(judged(world(*jobs, rest("older", ago=9 * HOUR), *others, queue=fifo))) == ["older"]


def test_whoever_could_never_fit_or_backs_off_is_not_the_oldest() -> None:
    others = [busy(f"r{i}", f"n{i}") for i in range(3)]
    huge = rest("huge", count=99, ago=30 * HOUR)
    failed = rest("failed", ago=20 * HOUR, not_before=NOW + MINUTE, failed_starts=1)
    urgent = rivals.waits("d", slack=MINUTE)
    assert admitted(judged(world(huge, failed, rest(), urgent, *others))) == ["b"]


def test_the_quota_of_the_queue_is_what_the_share_is_of() -> None:
    small = model.Pool("p", nominal=((rivals.GPU, 8),))
    queue = dataclasses.replace(QUEUE, pools=(small,))
    elder = rivals.runs("elder", "n0", gpus=4, submit=NOW - 9 * HOUR)  # half of the quota
    assert rivals.victims(judged(world(rivals.waits(), elder, queue=queue))) == ["elder"]
