"""`wake_at`: between a settled pass and the time it names, time alone changes nothing."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from lstqueue.engine import decide, invariants, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE = model.MINUTE
PASSES = 5

estimates = st.one_of(
    st.none(),
    st.integers(1, 500).map(lambda m: model.Estimate(m * MINUTE // 4, m * MINUTE, m * MINUTE * 3 // 2)),
    st.integers(1, 500).map(lambda m: model.Estimate(m * MINUTE, m * MINUTE, m * MINUTE)),
    st.integers(1, 50).map(lambda ms: model.Estimate(ms, ms + 1, ms + 7)),
)


@st.composite
def jobs(draw: st.DrawFn, number: int) -> model.Job:
    pods, gpus = draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, 4, 8, 9]))
    group = model.Group("g", pods, PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1})))
    state = draw(st.sampled_from(list(model.State)))
    holds = state in (model.State.ADMITTED, model.State.RUNNING, model.State.ENDING)
    back_off = draw(st.one_of(st.just(0), st.integers(-10 * MINUTE, 10 * MINUTE).map(lambda ms: NOW + ms)))
    return model.Job(
        uid=f"u{number}",
        namespace="ns",
        name=f"n{number}",
        queue=draw(st.sampled_from(["lst", "fifo", "lst", "edf", "none"])),
        groups=(group,),
        submit=NOW - draw(st.integers(0, 1000)),
        deadline=draw(st.one_of(st.none(), st.integers(-100, 6000).map(lambda m: NOW + m * MINUTE + m % 7))),
        estimate=draw(estimates),
        importance=draw(st.integers(-1, 2)),
        overhead=draw(st.sampled_from([0, 2 * MINUTE, 45 * MINUTE])),
        state=state,
        since=NOW - draw(st.integers(0, 1000)) * MINUTE if holds else 0,
        assigned=(model.Assigned(0, "all", f"node-{number % 4}", 0, 1),) if holds else (),
        not_before=0 if holds else back_off,
        held_back="No service account." if state is model.State.HELD_BACK else "",
        published=model.Published(band=draw(st.sampled_from([None, model.Band.DEADLINE, model.Band.REST]))),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> model.Snapshot:
    has = resources({GPU: 8, "cpu": 16_000, "pods": 20})
    nodes = tuple(Node(f"node-{i}", has, ready=draw(st.integers(0, 9)) > 0) for i in range(4))
    pools = (model.Pool("all", nominal=((GPU, draw(st.integers(4, 40))),)),)
    queues = (
        model.Queue("lst", pools=pools),
        model.Queue("edf", model.Order.EDF, pools, max_importance=1),
        model.Queue("fifo", model.Order.FIFO, pools),
    )
    made = tuple(draw(jobs(number)) for number in range(draw(st.integers(0, 12))))
    at = draw(st.sampled_from([0, NOW - 10 * MINUTE, NOW - 10_000, NOW]))
    return model.Snapshot(nodes, queues, made, at, draw(st.booleans()))


def apply(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The snapshot with everything the plan asked for done at once."""
    updates = {update.uid: update for update in plan.updates}
    admitted = {admission.uid: admission for admission in plan.admit}
    jobs: list[model.Job] = []
    for job in snapshot.jobs:
        if (update := updates.get(job.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            job = dataclasses.replace(job, published=told, words=update.message)
        if (admission := admitted.get(job.uid)) is not None:
            parts: list[model.Assigned] = []
            for index, group in enumerate(admission.groups):
                parts += [model.Assigned(index, group.pool, node, 0, pods) for node, pods in group.nodes]
            job = dataclasses.replace(
                job, state=model.State.ADMITTED, since=plan.now, assigned=tuple(parts), not_before=0
            )
        jobs.append(job)
    forecast_at = plan.now if plan.forecast else snapshot.forecast_at
    changed = (snapshot.changed and not plan.forecast) or bool(plan.admit)
    return dataclasses.replace(snapshot, jobs=tuple(jobs), forecast_at=forecast_at, changed=changed)


def changes(plan: model.Plan) -> bool:
    return bool(plan.admit or plan.updates or plan.forecast)


def settle(snapshot: model.Snapshot, now: int) -> tuple[model.Snapshot, model.Plan]:
    for _ in range(PASSES):
        plan = decide.decide(snapshot, now)
        if not changes(plan):
            return snapshot, plan
        snapshot = apply(snapshot, plan)
    raise AssertionError(f"still changing after {PASSES} passes: {plan}")


@settings(max_examples=200, deadline=None)
@given(snapshots(), st.data())
def test_a_pass_before_wake_at_changes_nothing(snapshot: model.Snapshot, data: st.DataObject) -> None:
    now = NOW
    for _ in range(6):
        snapshot, plan = settle(snapshot, now)
        if plan.wake_at is None:
            assert not changes(decide.decide(snapshot, now + 1000 * 24 * model.HOUR))
            return
        assert plan.wake_at > now
        between = data.draw(st.integers(now, plan.wake_at - 1))
        for moment in (plan.wake_at - 1, between):
            again = decide.decide(snapshot, moment)
            assert not changes(again)
            assert again.wake_at == plan.wake_at
        now = plan.wake_at


@settings(max_examples=60, deadline=None)
@given(snapshots())
def test_a_settled_world_wakes_up_seldom(snapshot: model.Snapshot) -> None:
    snapshot, plan = settle(snapshot, NOW)
    wakes = 0
    while plan.wake_at is not None and plan.wake_at < NOW + 24 * model.HOUR and wakes < 1000:
        wakes += 1
        snapshot, plan = settle(snapshot, plan.wake_at)
    # Per job: seven slack buckets, the end of a back-off, lateness, and for each quantile the steps of an
    # estimate that grows by half each time, from a millisecond to a day.
    assert wakes <= 2 * len(snapshot.jobs) * (9 + 3 * 46)


@settings(max_examples=150, deadline=None)
@given(snapshots(), st.integers(0, 100), st.integers(1, 40))
def test_words_said_anew_are_said_once_and_change_nothing_else(
    snapshot: model.Snapshot, minutes: int, nominal: int
) -> None:
    snapshot, _ = settle(snapshot, NOW)
    pools = (model.Pool("all", nominal=((GPU, nominal),)),)
    queues = tuple(dataclasses.replace(queue, pools=pools) for queue in snapshot.queues)
    now = NOW + minutes * MINUTE
    quiet, plain = settle(dataclasses.replace(snapshot, queues=queues), now)
    everybody = frozenset(job.uid for job in quiet.jobs)
    asked = dataclasses.replace(quiet, restate=everybody)
    again = decide.decide(asked, now)
    assert invariants.of_plan(asked, again) == ()
    assert (again.admit, again.forecast, again.wake_at) == (plain.admit, plain.forecast, plain.wake_at)
    for update in again.updates:
        told = next(job.published for job in quiet.jobs if job.uid == update.uid)
        assert (update.band, update.code, update.slack) == (told.band, told.code, told.slack)
        assert told.verdict is not None
        assert update.verdict is not None
        assert update.verdict.level is told.verdict.level
    assert not changes(decide.decide(apply(asked, again), now))
