"""The search for victims against a slow and obvious one: it finds a set when there is one, and a least one.

Who may be suspended is asked of `justice`, where a gang fits of the plain placement of the reference.
"""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from cases.reference import Reference
from lstqueue.engine import decide, invariants, justice, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE = model.MINUTE
CONFIG = model.Config(shedding=False, forecast_depth=0)


@st.composite
def fights(draw: st.DrawFn) -> model.Snapshot:
    """A queue whose nodes are full or nearly so, and one job at its last moment."""
    number = draw(st.integers(1, 4))
    free = [8] * number
    jobs: list[model.Job] = []
    for index in range(draw(st.integers(1, 8))):
        gpus, count = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 2))
        shape = PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1}))
        parts: list[model.Assigned] = []
        for _ in range(count):
            node = next((i for i in range(number) if free[i] >= gpus), None)
            if node is not None:
                free[node] -= gpus
                parts.append(model.Assigned(0, "p", f"n{node}", 0, 1))
        mid = draw(st.integers(1, 60)) * 10 * MINUTE
        slack = draw(st.sampled_from([None, 10, 100, 1000, 5000]))
        if len(parts) == count:
            jobs.append(
                model.Job(
                    uid=f"v{index}",
                    namespace="ns",
                    name=f"v{index}",
                    queue="q",
                    groups=(model.Group("g", count, shape),),
                    submit=NOW - index,
                    deadline=None if slack is None else NOW + mid + slack * MINUTE,
                    estimate=model.Estimate(mid, mid, mid),
                    state=model.State.RUNNING,
                    since=NOW - draw(st.sampled_from([5, 20, 50])) * MINUTE,
                    assigned=tuple(parts),
                    attempt=1,
                    preemptible=draw(st.integers(0, 5)) > 0,
                    saves_on_suspend=draw(st.booleans()),
                    checkpoint=draw(st.sampled_from([0, 15 * MINUTE])),
                    restore=draw(st.integers(0, 20)) * MINUTE,
                )
            )
    shape = PodShape(resources({GPU: draw(st.sampled_from([1, 2, 4, 8])), "cpu": 1000, "pods": 1}))
    owner = model.Job(
        uid="j",
        namespace="ns",
        name="j",
        queue="q",
        groups=(model.Group("g", draw(st.integers(1, 4)), shape),),
        submit=NOW,
        deadline=NOW + draw(st.integers(10, 100)) * MINUTE,
        estimate=model.Estimate(10 * MINUTE, 10 * MINUTE, 10 * MINUTE),
        importance=draw(st.sampled_from([0, 1])),
    )
    has = resources({GPU: 8, "cpu": 32_000, "pods": 20})
    nodes = tuple(Node(f"n{i}", has, ready=draw(st.integers(0, 7)) > 0) for i in range(number))
    pools = (model.Pool("p", nominal=((GPU, draw(st.integers(4, 40))),)),)
    rule = draw(st.sampled_from([model.Preemption.NO_HARM, model.Preemption.TIER]))
    return model.Snapshot(nodes, (model.Queue("q", pools=pools, preemption=rule),), (*jobs, owner))


def fits_without(snapshot: model.Snapshot, gone: set[str]) -> bool:
    """Whether the owner fits once some have left, by the plain placement."""
    left = dataclasses.replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.uid not in gone))
    plain = Reference(left)
    for job in left.jobs:
        for part in job.assigned:
            for name, amount in job.groups[part.group].shape.requests:
                plain.free[part.node][name] -= amount * part.held
                if (slot := ("q", part.pool, name)) in plain.quota:
                    plain.quota[slot] -= amount * part.held
    return plain.place(snapshot.queues[0], snapshot.jobs[-1].groups[0]) is not None


def may_be_suspended(snapshot: model.Snapshot, plan: model.Plan, uid: str) -> bool:
    """Whether a claim with this one victim would break no rule about victims."""
    place = (model.GroupPlacement("p", ()),)
    claim = model.Claim(place, (model.Victim(uid, 1),), NOW + MINUTE, committed=False)
    alone = dataclasses.replace(plan, claim=(model.Claiming("j", "q", claim),))
    found = justice.of_plan(snapshot, alone, CONFIG)
    return not any(broken.rule is invariants.Rule.VICTIM for broken in found)


@settings(max_examples=effort.examples(60), deadline=None)
@given(fights())
def test_victims_are_found_when_there_are_some_and_none_of_them_could_be_spared(
    snapshot: model.Snapshot,
) -> None:
    plan = decide.decide(snapshot, NOW, CONFIG)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, CONFIG) == ()
    allowed = {job.uid for job in snapshot.jobs[:-1] if may_be_suspended(snapshot, plan, job.uid)}
    if plan.admit:
        assert plan.claim == ()
    elif not plan.claim:
        assert not fits_without(snapshot, allowed)
    else:
        chosen = {victim.uid for victim in plan.claim[0].claim.victims}
        assert chosen <= allowed
        assert fits_without(snapshot, chosen)
        assert not any(fits_without(snapshot, chosen - {uid}) for uid in chosen)
