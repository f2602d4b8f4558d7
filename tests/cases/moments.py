"""Moments in the life of a few nodes and queues, as hypothesis draws them, and what a plan makes of them."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from lstqueue.engine import invariants, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR

estimates = st.one_of(
    st.none(),
    st.integers(1, 500).map(lambda m: model.Estimate(m * MINUTE // 4, m * MINUTE, m * MINUTE * 3 // 2)),
    st.integers(1, 500).map(lambda m: model.Estimate(m * MINUTE, m * MINUTE, m * MINUTE)),
    st.integers(1, 50).map(lambda ms: model.Estimate(ms, ms + 1, ms + 7)),
)


HOLDING = (model.State.ADMITTED, model.State.RUNNING, model.State.ENDING)
BEFORE = (model.Band.DEADLINE, model.Band.DEADLINE, model.Band.SHED)
AGES = st.integers(0, 1000).map(lambda m: m * MINUTE + m % 5)


@st.composite
def jobs(draw: st.DrawFn, number: int, crowded: bool, queues: list[str]) -> model.Job:
    if crowded:
        return draw(rivals(number, queues))
    pods, gpus = draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, 4, 8, 9]))
    group = model.Group("g", pods, PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1})))
    state = draw(st.sampled_from([*model.State, model.State.WAITING, model.State.RUNNING]))
    holds = state in HOLDING
    back_off = draw(st.one_of(st.just(0), st.integers(-10 * MINUTE, 10 * MINUTE).map(lambda ms: NOW + ms)))
    claim = slot = None
    if draw(st.integers(0, 3)) == 0:
        placement = model.GroupPlacement("all", ((f"node-{number % 4}", pods),))
        start = NOW + draw(st.sampled_from([-90, -3, -1, 0, 2, 5, 60, 900])) * MINUTE
        hi = draw(st.sampled_from([1, 30, 600])) * MINUTE
        slot = model.Slot((placement,), start, start + hi + draw(st.integers(0, 5)) * MINUTE, hi)
    if state is model.State.CLAIMING:
        placement = model.GroupPlacement("all", ((f"node-{number % 4}", pods),))
        victims = (model.Victim(f"u{number - 1}", draw(st.integers(0, 1))),) if number else ()
        expires = NOW + draw(st.integers(-1, 10)) * MINUTE
        claim = model.Claim((placement,), victims, expires, draw(st.booleans()))
    return model.Job(
        uid=f"u{number}",
        namespace="ns",
        name=f"n{number}",
        queue=draw(st.sampled_from(["lst", "fifo", "lst", "edf", "none", "watched", "lst"])),
        groups=(group,),
        submit=NOW - draw(st.integers(0, 1000)),
        deadline=draw(st.one_of(st.none(), st.integers(-100, 6000).map(lambda m: NOW + m * MINUTE + m % 7))),
        estimate=draw(estimates),
        importance=draw(st.integers(-1, 2)),
        overhead=draw(st.sampled_from([0, 2 * MINUTE, 45 * MINUTE])),
        state=state,
        since=NOW - draw(AGES) if holds else 0,
        assigned=(model.Assigned(0, "all", f"node-{number % 4}", 0, 1),) if holds else (),
        not_before=0 if holds else back_off,
        held_back="No service account." if state is model.State.HELD_BACK else "",
        published=model.Published(band=draw(st.sampled_from([None, *model.Band]))),
        claim=claim,
        slot=slot,
        failed_starts=draw(st.sampled_from([0, 0, 0, 3])),
        preemptible=draw(st.integers(0, 4)) > 0,
        min_run=draw(st.sampled_from([None, 0, 40 * MINUTE])),
        saved=draw(st.sampled_from([0, 0, 20 * MINUTE])),
        checkpoint=draw(st.sampled_from([0, 7 * MINUTE, 30 * MINUTE, 1])),
        saves_on_suspend=draw(st.integers(0, 3)) == 0,
        restore=draw(st.sampled_from([0, 2 * MINUTE, 12 * MINUTE])),
        suspensions=tuple(NOW - age for age in draw(st.lists(AGES.map(lambda age: 2 * age), max_size=3))),
        wasted=draw(st.sampled_from([0, 0, 2])),
        displaced_by=draw(st.sampled_from([(), (), (f"u{number + 1}",)])),
        keeps_band=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def rivals(draw: st.DrawFn, number: int, queues: list[str]) -> model.Job:
    """One of many that share quota: some hold all there is, the others are near their last moment."""
    runs = number < 4
    gpus = draw(st.sampled_from([4, 8, 8]))
    mid = draw(st.integers(5, 500)) * MINUTE
    loose = draw(st.sampled_from([30, 100, 1000, 3000]))
    slack = draw(st.integers(-5, loose)) * MINUTE + draw(st.integers(0, 5))
    deadline = draw(st.sampled_from([NOW + mid + slack, NOW + mid + slack, None]))
    spread = draw(st.sampled_from([(4, 4), (1, 6), (3, 5)]))
    return model.Job(
        uid=f"u{number:02}",
        namespace="ns",
        name=f"n{number}",
        queue=draw(st.sampled_from(queues)),
        groups=(model.Group("g", 1, PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1}))),),
        submit=NOW - number,
        deadline=deadline,
        estimate=model.Estimate(mid * spread[0] // 4, mid, mid * spread[1] // 4),
        importance=draw(st.sampled_from([0, 0, 0, 1])),
        state=model.State.RUNNING if runs else model.State.WAITING,
        since=NOW - draw(st.integers(0, 60)) * MINUTE if runs else 0,
        assigned=(model.Assigned(0, "all", f"node-{number % 4}", 0, 1),) if runs else (),
        published=model.Published(band=None if deadline is None else draw(st.sampled_from(BEFORE))),
        min_run=draw(st.sampled_from([None, None, 0, 40 * MINUTE])),
        checkpoint=draw(st.sampled_from([0, 7 * MINUTE, 30 * MINUTE, 1])),
        saves_on_suspend=draw(st.integers(0, 3)) == 0,
        restore=draw(st.sampled_from([0, 2 * MINUTE, 12 * MINUTE])),
        suspensions=tuple(NOW - age for age in draw(st.lists(AGES.map(lambda age: 2 * age), max_size=3))),
        wasted=draw(st.sampled_from([0, 0, 2])),
    )


@st.composite
def windows(draw: st.DrawFn) -> tuple[model.Window, ...]:
    """None, mostly; else a few, one after the other, of which one may be on."""
    made, at = [], NOW - 90 * MINUTE
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        start = at + draw(st.integers(0, 400)) * MINUTE
        at = start + draw(st.integers(1, 300)) * MINUTE
        made.append(model.Window(start, at, draw(st.sampled_from([400_000, 1_000_000]))))
    return tuple(made)


@st.composite
def cohorts(draw: st.DrawFn, queues: tuple[model.Queue, ...]) -> tuple[model.Queue, ...]:
    """The same queues in a cohort, all of them or some; those that are not stand in its way."""
    made: list[model.Queue] = []
    for age, queue in enumerate(queues):
        name = "ml" if age < 2 or draw(st.booleans()) else ""
        has = draw(st.sampled_from([0, 8, 16, 20]))
        pools = tuple(
            dataclasses.replace(
                pool,
                nominal=((GPU, has),),
                limits=draw(st.sampled_from([(), (), ((GPU, 0),), ((GPU, 8),)])) if name else (),
            )
            for pool in queue.pools
        )
        made.append(
            dataclasses.replace(
                queue,
                cohort=name,
                created=draw(st.sampled_from([age, 9 - age])),
                pools=pools,
                reclaims=draw(st.integers(0, 4)) > 0,
                reclaim_grace=draw(st.sampled_from([0, 15 * MINUTE])),
            )
        )
    return tuple(made)


@st.composite
def snapshots(draw: st.DrawFn) -> model.Snapshot:
    has = resources({GPU: 8, "cpu": 16_000, "pods": 20})
    nodes = tuple(Node(f"node-{i}", has, ready=draw(st.integers(0, 9)) > 0) for i in range(4))
    pools = (model.Pool("all", nominal=((GPU, draw(st.integers(4, 80))),)),)
    rule = draw(st.sampled_from([model.Preemption.NO_HARM, *model.Preemption]))
    queues = (
        model.Queue(
            "lst", pools=pools, preemption=rule, cap=draw(st.sampled_from([2, 4])), windows=draw(windows())
        ),
        model.Queue("edf", model.Order.EDF, pools, max_importance=1),
        model.Queue(
            "fifo", model.Order.FIFO, pools, drained=draw(st.integers(0, 9)) == 0, windows=draw(windows())
        ),
        model.Queue("watched", pools=pools, observed=draw(st.booleans()), held=draw(st.booleans())),
    )
    crowded = draw(st.booleans())
    shared: list[str] = []
    if draw(st.integers(0, 2)) == 0:
        queues, shared = draw(cohorts(queues)), ["lst", "edf"]
    made = tuple(draw(jobs(number, crowded, shared or ["lst"])) for number in range(draw(st.integers(0, 12))))
    at = draw(st.sampled_from([0, NOW - 10 * MINUTE, NOW - 10_000, NOW]))
    last = st.sampled_from([0, 0, 0, NOW - 10 * MINUTE, NOW - HOUR])
    reclaimed = {queue.name: draw(last) for queue in queues if queue.cohort}
    return model.Snapshot(nodes, queues, made, at, draw(st.booleans()), reclaimed=reclaimed)


def apply(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The snapshot with everything the plan asked for done at once; pods of those suspended still leave."""
    updates = {update.uid: update for update in plan.updates}
    claims = {claiming.uid: dataclasses.replace(claiming.claim, committed=True) for claiming in plan.claim}
    suspended = {suspend.uid for suspend in plan.suspend}
    dropped = {drop.uid for drop in plan.drop}
    admitted = {admission.uid for admission in plan.admit}
    jobs: list[model.Job] = []
    for job in invariants.after(snapshot, plan).jobs:
        if (update := updates.get(job.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            job = dataclasses.replace(job, published=told, words=update.message)
        if job.uid in admitted:
            job = dataclasses.replace(job, not_before=0)
        elif job.uid in claims:
            job = dataclasses.replace(job, claim=claims[job.uid])
        elif job.uid in suspended:
            job = dataclasses.replace(job, state=model.State.ENDING, since=0)
        elif job.uid in dropped:
            job = dataclasses.replace(job, state=model.State.WAITING, claim=None)
        jobs.append(job)
    slots: dict[str, model.Slot | None] = {promise.uid: promise.slot for promise in plan.promise}
    slots |= {lost.uid: None for lost in plan.revoke}
    jobs = [dataclasses.replace(job, slot=slots.get(job.uid, job.slot)) for job in jobs]
    forecast_at = plan.now if plan.forecast else snapshot.forecast_at
    changed = (snapshot.changed and not plan.forecast) or acts(plan)
    return dataclasses.replace(
        snapshot, jobs=tuple(jobs), forecast_at=forecast_at, changed=changed, round=plan.round
    )


def acts(plan: model.Plan) -> bool:
    """Whether a plan does more than say something."""
    moves = plan.reserve or plan.unreserve or plan.promise or plan.revoke
    return bool(plan.admit or plan.claim or plan.suspend or plan.drop or moves)
