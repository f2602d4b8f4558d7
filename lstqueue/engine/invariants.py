"""What must hold of every snapshot and of every plan. Pure, slow and obvious; used by tests and by operators.

Written without the columns and ledgers of the pass, from the models alone, so that a mistake there cannot
excuse itself here. Each check returns violations; none raises. What must hold of claims and suspensions is in
`justice`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lstqueue.engine import cohorts, estimate, model, proximity
from lstqueue.topology import eligibility

Amounts = dict[str, int]


class Rule(enum.Enum):
    """Which invariant was broken."""

    WHOLE_GANG = "a gang holds capacity for all of its members or for none"
    OVERCOMMIT = "we charge no node with more than it has"
    FOREIGN_OVERCOMMIT = "all pods of a node fit what it has"  # others may break it; reported, not ours
    QUOTA = "no queue uses more of a pool than it has and may borrow, no cohort more than it has"
    ADMISSION = "only waiting jobs are admitted, once, where they may run"
    WAKE = "a plan wakes up after it was made"
    DELTA = "a plan changes only what differs"
    CLAIM = "a claim is whole, on nodes that its owner may use, and nobody is claimed twice"
    GAIN = "nobody is suspended for a job that would not then fit completely"
    PROMISE = "slots end by the deadlines of their owners, and nothing takes their room"
    RESERVATION = "room is kept for few, for whole gangs that wait in time, and where they may run"
    VICTIM = "only those are suspended who may be, and only for a claim that is written or a drained queue"


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
        problems = admission_problems(snapshot, job, queues.get(job.queue), admission, plan.now)
        found += [Violation(Rule.ADMISSION, job.uid, problem) for problem in problems]
    for claiming in plan.claim:
        job = jobs.get(claiming.uid)
        if job is None or claiming.uid in seen:
            found.append(Violation(Rule.CLAIM, claiming.uid, "unknown, or planned twice"))
            continue
        seen.add(claiming.uid)
        place = model.Admission(claiming.uid, claiming.queue, claiming.claim.groups)
        problems = admission_problems(snapshot, job, queues.get(job.queue), place, plan.now)
        found += [Violation(Rule.CLAIM, job.uid, problem) for problem in problems]
    found += _room_violations(snapshot, plan)
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
    """What our jobs use per node: (bound, held); held is what claims own beyond their victims as well."""
    bound: dict[str, Amounts] = {}
    held: dict[str, Amounts] = {}
    for job in snapshot.jobs:
        for name, amounts in claimed_on_nodes(snapshot, job).items():
            _add(held.setdefault(name, {}), tuple(amounts.items()), 1)
        for part in job.assigned:
            requests = job.groups[part.group].shape.requests
            _add(bound.setdefault(part.node, {}), requests, part.bound)
            _add(held.setdefault(part.node, {}), requests, part.held)
    return bound, held


def held_on_nodes(snapshot: model.Snapshot) -> dict[str, Amounts]:
    """What is owned per node and not bound: by pods that are expected, and by claims beyond their victims."""
    return _charges(snapshot)[1]


def bound_on_nodes(snapshot: model.Snapshot) -> dict[str, Amounts]:
    """What bound pods of ours use per node."""
    return _charges(snapshot)[0]


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


def claimed_on_nodes(snapshot: model.Snapshot, job: model.Job) -> dict[str, Amounts]:
    """What a job's claim owns on each node beyond what its victims, in their attempt, still hold there."""
    found: dict[str, Amounts] = {}
    for index, name, _, count in _places(job):
        _add(found.setdefault(name, {}), job.groups[index].shape.requests, count)
    for victim in victims_of(snapshot, job):
        for part in victim.assigned:
            if part.node in found:
                _add(found[part.node], victim.groups[part.group].shape.requests, -part.bound - part.held)
    return {name: {key: max(0, amount) for key, amount in here.items()} for name, here in found.items()}


def victims_of(snapshot: model.Snapshot, job: model.Job) -> list[model.Job]:
    """The victims of a job's claim that are still known in the attempt it names."""
    if job.state is not model.State.CLAIMING or job.claim is None:
        return []
    attempts = {victim.uid: victim.attempt for victim in job.claim.victims}
    return [one for one in snapshot.jobs if attempts.get(one.uid) == one.attempt]


def _places(job: model.Job) -> list[tuple[int, str, str, int]]:
    """(group, node, pool, pods) of everything a claiming job owns."""
    if job.state is not model.State.CLAIMING or job.claim is None:
        return []
    found: list[tuple[int, str, str, int]] = []
    for index, group in enumerate(job.claim.groups[: len(job.groups)]):
        found += [(index, name, group.pool, count) for name, count in group.nodes]
    return found


@dataclass(frozen=True, slots=True)
class Usage:
    """Who uses what: members that are there or expected by (queue, pool), and claims with their victims.

    A claim is (queue, what it owns by pool, what its victims hold by (queue, pool)).
    """

    members: dict[tuple[str, str], Amounts]
    claims: list[tuple[str, dict[str, Amounts], dict[tuple[str, str], Amounts]]]


def _usage(snapshot: model.Snapshot) -> Usage:
    usage = Usage({}, [])
    for job in snapshot.jobs:
        _add_members(usage.members, job)
        owned: dict[str, Amounts] = {}
        for index, _, pool, count in _places(job):
            _add(owned.setdefault(pool, {}), job.groups[index].shape.requests, count)
        if owned:
            held: dict[tuple[str, str], Amounts] = {}
            for victim in victims_of(snapshot, job):
                _add_members(held, victim)
            usage.claims.append((job.queue, owned, held))
    return usage


def _add_members(sums: dict[tuple[str, str], Amounts], job: model.Job) -> None:
    for part in job.assigned:
        here = sums.setdefault((job.queue, part.pool), {})
        _add(here, job.groups[part.group].shape.requests, part.bound + part.held)


@dataclass(frozen=True, slots=True)
class Account:
    """How much of one resource of a pool some `queues` may use together; `subject` is the queue or cohort."""

    subject: str
    queues: tuple[str, ...]
    pool: str
    resource: str
    most: int

    def used(self, usage: Usage) -> int:
        """What they use; of a claim what it owns beyond what its victims among them still hold."""
        total = self._held(usage.members)
        for queue, owned, held in usage.claims:
            if queue in self.queues:
                claimed = owned.get(self.pool, {}).get(self.resource, 0)
                total += max(0, claimed - self._held(held))
        return total

    def _held(self, sums: Mapping[tuple[str, str], Amounts]) -> int:
        return sum(sums.get((name, self.pool), {}).get(self.resource, 0) for name in self.queues)


def accounts(snapshot: model.Snapshot) -> list[Account]:
    """All that quotas say: of every queue what it has and may borrow, of every cohort what it has."""
    settled = cohorts.settle({queue.name: queue for queue in snapshot.queues}, snapshot.nodes)
    found: list[Account] = []
    sums: dict[tuple[str, str, str], int] = {}
    for queue in settled.values():
        cohort = "" if queue.conflict else queue.cohort
        for pool in queue.pools:
            for name, nominal in pool.nominal:
                limit = dict(pool.limits).get(name) if cohort else 0
                if limit is not None:
                    found.append(Account(queue.name, (queue.name,), pool.name, name, nominal + limit))
                if cohort:
                    sums[cohort, pool.name, name] = sums.get((cohort, pool.name, name), 0) + nominal
    for (cohort, pool_name, name), total in sums.items():
        members = [one for one in settled.values() if one.cohort == cohort and not one.conflict]
        # Only who lists a resource has a quota of it; of cpu and memory others use what the nodes have.
        listing = tuple(
            one.name
            for one in members
            if any(pool.name == pool_name and name in dict(pool.nominal) for pool in one.pools)
        )
        found.append(Account(cohort, listing, pool_name, name, total))
    return found


def _quota_violations(snapshot: model.Snapshot) -> list[Violation]:
    usage = _usage(snapshot)
    found: list[Violation] = []
    for account in accounts(snapshot):
        used = account.used(usage)
        if used > account.most:
            detail = f"pool {account.pool}, {account.resource}: uses {used} of {account.most}"
            found.append(Violation(Rule.QUOTA, account.subject, detail))
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


def admission_problems(
    snapshot: model.Snapshot,
    job: model.Job,
    queue: model.Queue | None,
    admission: model.Admission,
    now: int,
) -> list[str]:
    """Why a job may not be given this place now."""
    if queue is None or admission.queue != job.queue:
        return ["its queue is not there"]
    problems = _turn_problems(job, queue, admission, now)
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
    return [*problems, *proximity.problems(snapshot.domains, job, admission.groups)]


def _turn_problems(job: model.Job, queue: model.Queue, admission: model.Admission, now: int) -> list[str]:
    """Why a job may not start now, wherever; the owner of a claim may in a queue that is only held."""
    problems: list[str] = []
    waits = job.state is model.State.WAITING
    claims = job.state is model.State.CLAIMING and job.claim is not None
    if not waits and not claims:
        problems.append(f"it is {job.state.value}")
    if job.claim is not None and job.claim.groups != admission.groups:
        problems.append("it goes elsewhere than it claimed")
    if queue.drained or queue.observed or queue.conflict or (waits and queue.held):
        problems.append("its queue admits nobody")
    if job.not_before > now:
        problems.append("it backs off")
    if queue.max_importance is not None and job.importance > queue.max_importance:
        problems.append("its importance is too high")
    return problems


def after(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The world once a plan's admissions, claims and reservations are written and nothing else happened."""
    reserved = {made.uid: made.reservation for made in plan.reserve}
    lost = {one.uid for one in plan.unreserve}
    admitted = {admission.uid: admission for admission in plan.admit}
    claimed = {claiming.uid: claiming for claiming in plan.claim}
    jobs: list[model.Job] = []
    for job in snapshot.jobs:
        if job.uid in reserved:
            job = replace(job, reservation=reserved[job.uid])
        elif job.reservation is not None and job.uid in lost | admitted.keys() | claimed.keys():
            job = replace(job, reservation=None)
        if (admission := admitted.get(job.uid)) is not None:
            parts: list[model.Assigned] = []
            for index, group in enumerate(admission.groups[: len(job.groups)]):
                parts += [model.Assigned(index, group.pool, name, 0, count) for name, count in group.nodes]
            job = replace(job, state=model.State.ADMITTED, assigned=tuple(parts), claim=None, since=plan.now)
            job = replace(job, slowdown=admission.slowdown)
        elif (claiming := claimed.get(job.uid)) is not None:
            job = replace(job, state=model.State.CLAIMING, claim=claiming.claim)
        jobs.append(job)
    return replace(snapshot, jobs=tuple(jobs))


def _room_violations(snapshot: model.Snapshot, plan: model.Plan) -> list[Violation]:
    """Nodes and quotas that the plan adds to must hold everything that is there and everything it adds."""
    found: list[Violation] = []
    later = after(snapshot, plan)
    _, held = _charges(snapshot)
    _, expected = _charges(later)
    for node in snapshot.nodes:
        has, used, before = dict(node.allocatable), dict(node.used), held.get(node.name, {})
        for name, amount in expected.get(node.name, {}).items():
            added, total = amount - before.get(name, 0), used.get(name, 0) + amount
            if added > 0 and total > has.get(name, 0):
                detail = f"{name}: {total} of {has.get(name, 0)}, {added} of it added by the plan"
                found.append(Violation(Rule.OVERCOMMIT, node.name, detail))
    usage, used_later = _usage(snapshot), _usage(later)
    for account in accounts(snapshot):
        total, before_it = account.used(used_later), account.used(usage)
        if total > max(before_it, account.most):
            detail = f"pool {account.pool}, {account.resource}: {total} of {account.most}"
            more = f"{detail}, {total - before_it} added by the plan"
            found.append(Violation(Rule.QUOTA, account.subject, more))
    return found
