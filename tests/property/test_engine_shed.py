"""Step 2 against a slow reading of it; its answer stands still and is told to change in time."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, shedding
from lstqueue.engine import decide, invariants, model
from lstqueue.topology.model import resources


def shed_by(snapshot: model.Snapshot, now: int) -> set[str]:
    plan = decide.decide(snapshot, now)
    assert invariants.of_plan(snapshot, plan) == ()
    bands = {job.uid: job.published.band for job in snapshot.jobs}
    bands |= {update.uid: update.band for update in plan.updates}
    return {uid for uid, band in bands.items() if band is model.Band.SHED}


@settings(max_examples=effort.examples(36))
@given(shedding.worlds(), st.integers(0, 9 * model.MINUTE))
def test_the_walk_agrees_with_a_slow_one(snapshot: model.Snapshot, later: int) -> None:
    assert shed_by(snapshot, shedding.NOW + later) == shedding.reference(snapshot, shedding.NOW + later)


@settings(max_examples=effort.examples(12))
@given(shedding.worlds())
def test_nobody_is_given_up_alone_or_without_an_overload(snapshot: model.Snapshot) -> None:
    plenty = tuple(
        dataclasses.replace(
            node, allocatable=resources({shedding.GPU: 10_000, "cpu": 1 << 40, "pods": 10_000})
        )
        for node in snapshot.nodes
    )
    open_queues = tuple(
        dataclasses.replace(
            queue, pools=tuple(dataclasses.replace(p, nominal=((shedding.GPU, 10_000),)) for p in queue.pools)
        )
        for queue in snapshot.queues
    )
    roomy = dataclasses.replace(
        snapshot, nodes=tuple(dataclasses.replace(n, unschedulable=False) for n in plenty), queues=open_queues
    )
    assert shed_by(roomy, shedding.NOW) == set()
    for job in snapshot.jobs:
        assert shed_by(dataclasses.replace(snapshot, jobs=(job,)), shedding.NOW) == set()


def publish(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    updates = {update.uid: update for update in plan.updates}
    jobs: list[model.Job] = []
    for job in snapshot.jobs:
        if (update := updates.get(job.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            job = dataclasses.replace(job, published=told, words=update.message)
        jobs.append(job)
    at = plan.now if plan.forecast else snapshot.forecast_at
    changed = snapshot.changed and not plan.forecast
    return dataclasses.replace(snapshot, jobs=tuple(jobs), forecast_at=at, changed=changed)


def bands(snapshot: model.Snapshot) -> dict[str, model.Band | None]:
    return {job.uid: job.published.band for job in snapshot.jobs}


@settings(max_examples=effort.examples(24))
@given(shedding.worlds())
def test_who_is_given_up_settles_while_nothing_happens(snapshot: model.Snapshot) -> None:
    for _ in range(4):
        before = bands(snapshot)
        snapshot = publish(snapshot, decide.decide(snapshot, shedding.NOW))
        if bands(snapshot) == before:
            return
    raise AssertionError("bands still change in the fourth pass")


def held(snapshot: model.Snapshot) -> model.Snapshot:
    """The same world in which nobody starts any more: each admission is refused by a back-off."""
    jobs = [
        dataclasses.replace(job, not_before=shedding.NOW + 9000 * model.HOUR)
        if job.state is model.State.WAITING
        else job
        for job in snapshot.jobs
    ]
    return dataclasses.replace(snapshot, jobs=tuple(jobs))


@settings(max_examples=effort.examples(12))
@given(shedding.worlds(), st.data())
def test_no_pass_before_wake_at_gives_up_others(snapshot: model.Snapshot, data: st.DataObject) -> None:
    snapshot, now = held(snapshot), shedding.NOW
    for _ in range(8):
        for _ in range(6):
            plan = decide.decide(snapshot, now)
            if not plan.updates and not plan.forecast:
                break
            snapshot = publish(snapshot, plan)
        assert not plan.updates
        if plan.wake_at is None:
            return
        assert plan.wake_at > now
        for moment in (plan.wake_at - 1, data.draw(st.integers(now, plan.wake_at - 1))):
            again = decide.decide(snapshot, moment)
            assert not again.updates
            assert not again.forecast
            assert again.wake_at is not None
            assert again.wake_at > moment
        now = plan.wake_at
