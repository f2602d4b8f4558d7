"""What must hold of suspensions across the queues of a cohort; `justice` has what holds within one.

The slow reading of docs/engine.md, Quota in a cohort, from the models alone: who runs on nominal quota and
who on borrowed is found by walking jobs one by one, and asked anew for every victim.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lstqueue.engine import estimate, model, order, standing

Demand = dict[tuple[str, str], int]
"""Amounts by (pool, resource)."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot at the moment of one claim: what the plan admitted and claimed before it is there.

    `queues` are settled, `bands` those of the pass. `favoured` are the jobs (uids) that the best-effort share
    protects or puts in front.
    """

    snapshot: model.Snapshot
    queues: Mapping[str, model.Queue]
    bands: Mapping[str, model.Band | None]
    favoured: Collection[str]
    now: int
    config: model.Config


def is_nominal(scene: Scene, job: model.Job, demand: Demand, gone: Collection[str] = ()) -> bool:
    """Whether a job with this demand would be wholly within its queue's nominal quota."""
    others = [one for one in _members(scene, job.queue) if one.uid != job.uid and one.uid not in gone]
    return job.uid in _nominal(scene, job.queue, [*((one, held(one)) for one in others), (job, demand)])


def borrows(scene: Scene, job: model.Job) -> bool:
    """Whether a job that holds room runs on quota that others lend."""
    members = [(one, held(one)) for one in _members(scene, job.queue)]
    return job.uid not in _nominal(scene, job.queue, members)


def protected(scene: Scene, victim: model.Job, queue: model.Queue) -> str:
    """What keeps a borrower from having to give back to a queue; empty for nothing."""
    config, now, grace = scene.config, scene.now, queue.reclaim_grace
    runs = victim.state is model.State.RUNNING
    run = max(0, now - victim.since) if runs else 0
    loss = run % victim.checkpoint if victim.checkpoint else run
    loss = 0 if victim.saves_on_suspend else loss
    own = scene.queues[victim.queue].min_run if victim.min_run is None else victim.min_run
    saves = victim.saves_on_suspend or (victim.checkpoint > 0 and run >= victim.checkpoint)
    wasted = victim.wasted >= config.wasted_most and not saves
    finish = estimate.finish(victim, now, config)
    left = 0 if finish is None else finish.mid - now
    if not victim.preemptible or victim.stays:
        return "it cannot be suspended"
    if runs and run < min(own, grace):
        return "it is not past its minimum run, nor the grace"
    if (not runs or wasted) and now - victim.since < grace:
        return "the grace is not over"
    if 0 < left <= min(loss + victim.restore, grace):
        return "it ends by itself before long"
    return ""


def reclaim_problems(scene: Scene, owner: model.Job, claim: model.Claim) -> list[str]:
    """Why a job may not take back what its queue lent."""
    queue, config = scene.queues[owner.queue], scene.config
    last = scene.snapshot.reclaimed.get(owner.queue, 0)
    checks = [
        (not queue.reclaims or not config.reclaims, "its queue takes nothing back"),
        (owner.failed_starts >= config.failed_starts_most, "it failed to start too often"),
        (last > 0 and scene.now < last + queue.reclaim_grace, "its queue took back a short time ago"),
        (not is_nominal(scene, owner, claimed(owner, claim)), "it would be borrowed itself"),
    ]
    return [words for broken, words in checks if broken]


def held(job: model.Job) -> Demand:
    """What a job holds or claims, by pool."""
    found: Demand = {}
    for part in job.assigned:
        _add(found, part.pool, job.groups[part.group], part.bound + part.held)
    if job.state is model.State.CLAIMING and job.claim is not None:
        return claimed(job, job.claim)
    return found


def claimed(job: model.Job, claim: model.Claim) -> Demand:
    """What a claim takes, by pool."""
    found: Demand = {}
    for group, place in zip(job.groups, claim.groups, strict=False):
        _add(found, place.pool, group, sum(count for _, count in place.nodes))
    return found


def _add(sums: Demand, pool: str, group: model.Group, count: int) -> None:
    for name, amount in group.shape.requests:
        sums[pool, name] = sums.get((pool, name), 0) + amount * count


def _members(scene: Scene, queue: str) -> list[model.Job]:
    states = (model.State.ADMITTED, model.State.RUNNING, model.State.CLAIMING)
    return [job for job in scene.snapshot.jobs if job.queue == queue and job.state in states]


def _nominal(scene: Scene, queue: str, members: Iterable[tuple[model.Job, Demand]]) -> set[str]:
    """Walk jobs in order; who fits wholly in what is left of the nominal quota takes it."""
    left: Demand = {}
    for pool in scene.queues[queue].pools:
        left |= {(pool.name, name): amount for name, amount in pool.nominal}
    found: set[str] = set()
    for job, demand in sorted(members, key=lambda member: _place(scene, member[0])):
        if all(amount <= left[key] for key, amount in demand.items() if key in left):
            found.add(job.uid)
            for key, amount in demand.items():
                if key in left:
                    left[key] -= amount
    return found


def _place(scene: Scene, job: model.Job) -> tuple[int, order.Rank]:
    here = standing.refresh(job, scene.now, scene.config)
    band = scene.bands.get(job.uid)
    here = dataclasses.replace(here, band=here.band if band is None else band)
    policy = order.policy(scene.queues[job.queue], scene.config)
    return int(job.uid not in scene.favoured), order.rank(policy, here, 0, scene.config)
