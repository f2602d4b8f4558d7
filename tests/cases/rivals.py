"""Jobs of one queue that want the same room: some run, others are near their last moment."""

from __future__ import annotations

import dataclasses
from typing import Any

from lstqueue.engine import decide, invariants, justice, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
CONFIG = model.Config(shedding=False)
POOL = model.Pool("p", nominal=((GPU, 64),))
QUEUE = model.Queue("q", pools=(POOL,))


def exact(ms: int) -> model.Estimate:
    return model.Estimate(ms, ms, ms)


def job(uid: str, *, gpus: int = 8, count: int = 1, mid: int = 2 * HOUR, **more: Any) -> model.Job:
    shape = PodShape(resources({GPU: gpus, "pods": 1}))
    base: dict[str, Any] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW - HOUR,
        "groups": (model.Group("g", count, shape),), "estimate": exact(mid), "published": TOLD,
    }  # fmt: skip
    return model.Job(**(base | more))


TOLD = model.Published(band=model.Band.DEADLINE)


def waits(uid: str = "j", *, slack: int = 30 * MINUTE, mid: int = 2 * HOUR, **more: Any) -> model.Job:
    """A job that waits with `slack` ms left."""
    return job(uid, mid=mid, **({"deadline": NOW + mid + slack} | more))


def runs(
    uid: str = "v", node: str = "n0", *, ago: int = 20 * MINUTE, mid: int = 10 * HOUR, **more: Any
) -> model.Job:
    """A job without a deadline whose pods have been running for `ago` ms on one node; it saves when told."""
    parts = (model.Assigned(0, "p", node, 0, more.get("count", 1)),)
    base: dict[str, Any] = {
        "state": model.State.RUNNING, "since": NOW - ago, "assigned": parts, "attempt": 3,
        "saves_on_suspend": True,
    }  # fmt: skip
    return job(uid, mid=mid, **(base | more))


def slack_of(ms: int, *, ago: int = 20 * MINUTE, mid: int = 10 * HOUR) -> int:
    """The deadline with which `runs` has this slack."""
    return NOW - ago + mid + ms


def world(*jobs: model.Job, nodes: int = 1, queue: model.Queue = QUEUE, gpus: int = 8) -> model.Snapshot:
    made = tuple(Node(f"n{i}", resources({GPU: gpus, "pods": 20})) for i in range(nodes))
    return model.Snapshot(made, (queue,), jobs)


def judged(snapshot: model.Snapshot, now: int = NOW) -> model.Plan:
    """The plan of a pass, after the invariants had a look at it."""
    plan = decide.decide(snapshot, now, CONFIG)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, CONFIG) == ()
    return plan


def victims(plan: model.Plan, uid: str = "j") -> list[str] | None:
    """Those claimed for a job, None when it claims nothing."""
    for claiming in plan.claim:
        if claiming.uid == uid:
            return [victim.uid for victim in claiming.claim.victims]
    return None


def claiming(
    owner: model.Job, *victims: model.Job, node: str = "n0", left: int = 2 * MINUTE, written: bool = True
) -> model.Job:
    """The owner with a claim on one node, which expires `left` ms from NOW."""
    place = model.GroupPlacement("p", ((node, owner.groups[0].count),))
    named = tuple(model.Victim(victim.uid, victim.attempt) for victim in victims)
    claim = model.Claim((place,), named, NOW + left, written)
    return dataclasses.replace(owner, state=model.State.CLAIMING, claim=claim)
