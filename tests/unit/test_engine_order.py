"""Step 3: who is before whom."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from lstqueue.engine import decide, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR


def job(uid: str, *, gpus: int = 8, hours: float = 1, **more: object) -> model.Job:
    mid = int(hours * HOUR)
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW,
        "groups": (model.Group("g", 1, PodShape(resources({GPU: gpus, "pods": 1}))),),
        "estimate": model.Estimate(mid // 4, mid, mid * 3 // 2),
    }  # fmt: skip
    return model.Job(**(base | more))


def line(
    order: model.Order, *jobs: model.Job, now: int = NOW, config: model.Config | None = None
) -> list[str]:
    """The order in which jobs are admitted when all of them fit."""
    nodes = tuple(Node(f"n{i}", resources({GPU: 8, "pods": 9})) for i in range(len(jobs)))
    queue = model.Queue("q", order, (model.Pool("p", nominal=((GPU, 8 * len(jobs)),)),))
    plan = decide.decide(model.Snapshot(nodes, (queue,), jobs), now, config or model.Config())
    return [admission.uid for admission in plan.admit]


def test_lst_puts_the_least_slack_first_and_edf_the_earliest_deadline() -> None:
    long = job("long", hours=10, deadline=NOW + 11 * HOUR)
    short = job("short", hours=1, deadline=NOW + 8 * HOUR)
    assert line(model.Order.LST, long, short) == ["long", "short"]
    assert line(model.Order.EDF, long, short) == ["short", "long"]


def test_the_configuration_can_set_the_order_for_all_queues() -> None:
    long = job("long", hours=10, deadline=NOW + 11 * HOUR)
    short = job("short", hours=1, deadline=NOW + 8 * HOUR)
    assert line(model.Order.LST, long, short, config=model.Config(order=model.Order.EDF)) == ["short", "long"]


def test_importance_comes_before_slack() -> None:
    urgent = job("urgent", deadline=NOW + 2 * HOUR)
    important = job("important", deadline=NOW + 99 * HOUR, importance=1)
    assert line(model.Order.LST, urgent, important) == ["important", "urgent"]


def test_late_jobs_and_those_without_deadline_follow_shortest_first() -> None:
    jobs = (
        job("best-effort", hours=3),
        job("late", hours=2, deadline=NOW - HOUR),
        job("no-estimate", deadline=NOW + HOUR, estimate=None),
        job("tight", hours=9, deadline=NOW + 10 * HOUR),
    )
    alone = model.Config(sharing=False)
    assert line(model.Order.LST, *jobs, config=alone) == ["tight", "late", "best-effort", "no-estimate"]


def test_a_late_job_loses_the_importance_it_had_but_keeps_what_it_lacked() -> None:
    late = job("late", hours=2, deadline=NOW - HOUR, importance=5)
    assert line(model.Order.LST, late, job("plain", deadline=NOW + 9 * HOUR)) == ["plain", "late"]
    humble = job("humble", hours=1, importance=-1)
    assert line(model.Order.LST, humble, job("plain", hours=99)) == ["plain", "humble"]


def test_jobs_of_one_quantum_go_by_deadline_then_width_then_submission_then_uid() -> None:
    base = NOW // (5 * MINUTE) * 5 * MINUTE + 90 * HOUR
    first = job("first", deadline=base)
    wide = job("wide", deadline=base + 1)
    narrow = job("narrow", gpus=1, deadline=base + 1)
    older = job("older", gpus=1, deadline=base + 1, submit=NOW - 1)
    other = job("other", gpus=1, deadline=base + 1)
    assert line(model.Order.LST, other, narrow, older, wide, first) == [
        "first", "wide", "older", "narrow", "other",
    ]  # fmt: skip


def test_fifo_looks_at_submission_alone_within_a_tier() -> None:
    jobs = (
        job("second", deadline=NOW + 2 * HOUR, submit=NOW - 2),
        job("first", submit=NOW - 3),
        job("third", deadline=NOW - HOUR, submit=NOW - 1),
        job("important", importance=1),
        job("humble", importance=-1, submit=NOW - 9),
    )
    assert line(model.Order.FIFO, *jobs) == ["important", "first", "second", "third", "humble"]


@settings(max_examples=effort.examples(15), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(60, 200), st.integers(-1, 1)), min_size=2, max_size=6),
    st.integers(0, 9 * HOUR),
    st.sampled_from(list(model.Order)),
)
def test_time_alone_moves_nobody_who_is_not_late(
    some: list[tuple[int, int, int]], later: int, order: model.Order
) -> None:
    jobs = tuple(
        job(f"u{i}", hours=hours, deadline=NOW + (hours + extra) * HOUR, importance=tier)
        for i, (hours, extra, tier) in enumerate(some)
    )
    assert line(order, *jobs) == line(order, *jobs, now=NOW + later)


@settings(max_examples=effort.examples(15), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 200)), min_size=2, max_size=6),
    st.integers(0, 50 * HOUR),
    st.sampled_from([model.Order.LST, model.Order.EDF]),
)
def test_a_tighter_deadline_that_still_holds_moves_nobody_back(
    some: list[tuple[int, int]], tighter: int, order: model.Order
) -> None:
    jobs = [
        job(f"u{i}", hours=hours, deadline=NOW + (hours + extra) * HOUR)
        for i, (hours, extra) in enumerate(some)
    ]
    assert jobs[0].deadline is not None
    assert jobs[0].estimate is not None
    deadline = max(jobs[0].deadline - tighter, NOW + jobs[0].estimate.lo)
    tight = dataclasses.replace(jobs[0], deadline=deadline)
    assert line(order, tight, *jobs[1:]).index("u0") <= line(order, *jobs).index("u0")
