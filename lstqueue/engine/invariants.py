"""What must hold of every snapshot and of every plan. Pure, slow and obvious; used by tests and by operators.

Written without the columns and ledgers of the pass, from the models alone, so that a mistake there cannot
excuse itself here. Each check returns violations; none raises.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from lstqueue.engine import estimate, model
from lstqueue.topology import eligibility

Amounts = dict[str, int]


class Rule(enum.Enum):
    """Which invariant was broken."""

    WHOLE_GANG = "a gang holds capacity for all of its members or for none"
    OVERCOMMIT = "we charge no node with more than it has"
    FOREIGN_OVERCOMMIT = "all pods of a node fit what it has"  # others may break it; reported, not ours
    QUOTA = "no queue uses more of a pool than its nominal quota"
    ADMISSION = "only waiting jobs are admitted, once, where they may run"
    WAKE = "a plan wakes up after it was made"
    DELTA = "a plan changes only what differs"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: whose (`subject`: node, queue or job) and how."""

    rule: Rule
    subject: str
    detail: str


def of_snapshot(
    snapshot: model.Snapshot, finished: Mapping[str, Mapping[int, int]] | None = None
) -> tuple[Violation, ...]:
    """Check a state of the world.

    Args:
        snapshot: The state.
        finished: Members that have succeeded, by job uid and index of the group; None: not known, then a gang
            may hold less than all its members.

    Returns:
        Violations. FOREIGN_OVERCOMMIT and, after somebody lowered a quota, QUOTA can come from outside.
    """
    return (*_node_violations(snapshot), *_quota_violations(snapshot), *_gang_violations(snapshot, finished))


def of_plan(snapshot: model.Snapshot, plan: model.Plan) -> tuple[Violation, ...]:
    """Check a plan against the snapshot it was made of."""
    found: list[Violation] = []
    if plan.wake_at is not None and plan.wake_at <= plan.now:
        found.append(Violation(Rule.WAKE, "plan", f"wake_at {plan.wake_at} is not after now {plan.now}"))
    jobs = {job.uid: job for job in snapshot.jobs}
    queues = {queue.name: queue for queue in snapshot.queues}
    seen: set[str] = set()
    for admission in plan.admit:
        job = jobs.get(admission.uid)
        if job is None or admission.uid in seen:
            found.append(Violation(Rule.ADMISSION, admission.uid, "unknown, or admitted twice"))
            continue
        seen.add(admission.uid)
        problems = _admission_problems(snapshot, job, queues.get(job.queue), admission, plan.now)
        found += [Violation(Rule.ADMISSION, job.uid, problem) for problem in problems]
    found += _room_violations(snapshot, plan, jobs)
    found += _delta_violations(snapshot, plan, jobs)
    return tuple(found)


def _delta_violations(
    snapshot: model.Snapshot, plan: model.Plan, jobs: Mapping[str, model.Job]
) -> list[Violation]:
    found: list[Violation] = []
    uids = [update.uid for update in plan.updates]
    if len(set(uids)) != len(uids):
        found.append(Violation(Rule.DELTA, "plan", "a job is updated twice"))
    for update in plan.updates:
        told = jobs[update.uid].published
        if update.uid in snapshot.restate and update.message != jobs[update.uid].words:
            continue
        if (update.band, update.code, update.verdict, update.slack) == (
            told.band,
            told.code,
            told.verdict,
            told.slack,
        ):
            found.append(Violation(Rule.DELTA, update.uid, "the update says what was published"))
    return found


def _add(sums: Amounts, requests: tuple[tuple[str, int], ...], times: int) -> None:
    for name, amount in requests:
        sums[name] = sums.get(name, 0) + amount * times


def _charges(snapshot: model.Snapshot) -> tuple[dict[str, Amounts], dict[str, Amounts]]:
    """What our jobs use per node: (bound, held)."""
    bound: dict[str, Amounts] = {}
    held: dict[str, Amounts] = {}
    for job in snapshot.jobs:
        for part in job.assigned:
            requests = job.groups[part.group].shape.requests
            _add(bound.setdefault(part.node, {}), requests, part.bound)
            _add(held.setdefault(part.node, {}), requests, part.held)
    return bound, held


def _node_violations(snapshot: model.Snapshot) -> list[Violation]:
    found: list[Violation] = []
    bound, held = _charges(snapshot)
    for node in snapshot.nodes:
        has, used = dict(node.allocatable), dict(node.used)
        mine, expected = bound.get(node.name, {}), held.get(node.name, {})
        for name in sorted(used.keys() | mine.keys() | expected.keys()):
            ours = mine.get(name, 0) + expected.get(name, 0)
            everything = used.get(name, 0) + expected.get(name, 0)
            detail = f"{name}: allocatable {has.get(name, 0)}, ours {ours}, in all {everything}"
            if ours > has.get(name, 0):
                found.append(Violation(Rule.OVERCOMMIT, node.name, detail))
            elif everything > has.get(name, 0):
                found.append(Violation(Rule.FOREIGN_OVERCOMMIT, node.name, detail))
    return found


def _usage(snapshot: model.Snapshot) -> dict[tuple[str, str], Amounts]:
    usage: dict[tuple[str, str], Amounts] = {}
    for job in snapshot.jobs:
        for part in job.assigned:
            sums = usage.setdefault((job.queue, part.pool), {})
            _add(sums, job.groups[part.group].shape.requests, part.bound + part.held)
    return usage


def _quota_violations(snapshot: model.Snapshot) -> list[Violation]:
    usage = _usage(snapshot)
    found: list[Violation] = []
    for queue in snapshot.queues:
        for pool in queue.pools:
            for name, nominal in pool.nominal:
                used = usage.get((queue.name, pool.name), {}).get(name, 0)
                if used > nominal:
                    detail = f"pool {pool.name}, {name}: uses {used} of {nominal}"
                    found.append(Violation(Rule.QUOTA, queue.name, detail))
    return found


def _gang_violations(
    snapshot: model.Snapshot, finished: Mapping[str, Mapping[int, int]] | None
) -> list[Violation]:
    found: list[Violation] = []
    for job in snapshot.jobs:
        held = [0] * len(job.groups)
        for part in job.assigned:
            held[part.group] += part.bound + part.held
        if not estimate.is_placed(job):
            if job.state is not model.State.ENDING and any(held):
                found.append(Violation(Rule.WHOLE_GANG, job.uid, f"{job.state.value}, but holds {held}"))
            continue
        done = {} if finished is None else finished.get(job.uid, {})
        for index, group in enumerate(job.groups):
            there = held[index] + done.get(index, 0)
            if there > group.count or (finished is not None and there < group.count):
                detail = f"group {group.name}: {there} of {group.count} members"
                found.append(Violation(Rule.WHOLE_GANG, job.uid, detail))
    return found


def _admission_problems(
    snapshot: model.Snapshot,
    job: model.Job,
    queue: model.Queue | None,
    admission: model.Admission,
    now: int,
) -> list[str]:
    if job.state is not model.State.WAITING:
        return [f"it is {job.state.value}"]
    if queue is None or admission.queue != job.queue:
        return ["its queue is not there"]
    problems: list[str] = []
    if job.not_before > now:
        problems.append("it backs off")
    if queue.max_importance is not None and job.importance > queue.max_importance:
        problems.append("its importance is too high")
    if len(admission.groups) != len(job.groups):
        return [*problems, "not all groups are placed"]
    nodes = {node.name: node for node in snapshot.nodes}
    pools = {pool.name: pool for pool in queue.pools}
    for group, placed in zip(job.groups, admission.groups, strict=True):
        pool = pools.get(placed.pool)
        if pool is None:
            problems.append(f"pool {placed.pool} is not of its queue")
            continue
        if sum(count for _, count in placed.nodes) != group.count:
            problems.append(f"group {group.name} is not whole")
        for name, count in placed.nodes:
            fine = name in nodes and name not in job.avoid and count > 0
            if not fine or not eligibility.eligible(
                nodes[name], group.shape, selector=pool.selector, tolerations=pool.tolerations
            ):
                problems.append(f"group {group.name} may not run on {name}")
    return problems


def _room_violations(
    snapshot: model.Snapshot, plan: model.Plan, jobs: Mapping[str, model.Job]
) -> list[Violation]:
    """Nodes and quotas that the plan adds to must hold everything that is there and everything it adds."""
    on_nodes: dict[str, Amounts] = {}
    on_pools: dict[tuple[str, str], Amounts] = {}
    for admission in plan.admit:
        job = jobs.get(admission.uid)
        if job is None:
            continue
        for group, placed in zip(job.groups, admission.groups, strict=False):
            for name, count in placed.nodes:
                _add(on_nodes.setdefault(name, {}), group.shape.requests, count)
                _add(on_pools.setdefault((job.queue, placed.pool), {}), group.shape.requests, count)
    found: list[Violation] = []
    _, held = _charges(snapshot)
    for node in snapshot.nodes:
        has, used, expected = dict(node.allocatable), dict(node.used), held.get(node.name, {})
        for name, added in on_nodes.get(node.name, {}).items():
            total = used.get(name, 0) + expected.get(name, 0) + added
            if added and total > has.get(name, 0):
                detail = f"{name}: {total} of {has.get(name, 0)}, {added} of it added by the plan"
                found.append(Violation(Rule.OVERCOMMIT, node.name, detail))
    usage = _usage(snapshot)
    for queue in snapshot.queues:
        for pool in queue.pools:
            added_here = on_pools.get((queue.name, pool.name), {})
            for name, nominal in pool.nominal:
                added = added_here.get(name, 0)
                total = usage.get((queue.name, pool.name), {}).get(name, 0) + added
                if added and total > nominal:
                    detail = f"pool {pool.name}, {name}: {total} of {nominal}, {added} added by the plan"
                    found.append(Violation(Rule.QUOTA, queue.name, detail))
    return found
