"""Two teams and more that share nodes through a cohort: queues, jobs and what a pass makes of them."""

from __future__ import annotations

from typing import Any

from cases import rivals
from lstqueue.engine import decide, invariants, justice, model

GPU, NOW, MINUTE, HOUR = rivals.GPU, rivals.NOW, rivals.MINUTE, rivals.HOUR


def team(name: str, nominal: int = 8, *, limit: int | None = None, **more: Any) -> model.Queue:
    """A queue of cohort `ml` with GPUs of its own; the first by name is the oldest."""
    limits = () if limit is None else ((GPU, limit),)
    pool = model.Pool("p", nominal=((GPU, nominal),), limits=limits)
    return model.Queue(name, **({"pools": (pool,), "cohort": "ml", "created": ord(name[0])} | more))


def world(*jobs: model.Job, queues: tuple[model.Queue, ...], nodes: int = 2) -> model.Snapshot:
    return model.Snapshot(rivals.world(nodes=nodes).nodes, queues, jobs)


def passed(snapshot: model.Snapshot, *, now: int = NOW, config: model.Config = rivals.CONFIG) -> model.Plan:
    """A pass whose plan breaks no invariant."""
    plan = decide.decide(snapshot, now, config)
    assert invariants.of_plan(snapshot, plan) == ()
    assert justice.of_plan(snapshot, plan, config) == ()
    return plan


def admitted(plan: model.Plan) -> set[str]:
    return {admission.uid for admission in plan.admit}


def words(plan: model.Plan, uid: str) -> str:
    return next(update.message for update in plan.updates if update.uid == uid)


def code(plan: model.Plan, uid: str) -> model.Code | None:
    return next(update.code for update in plan.updates if update.uid == uid)
