"""What must hold of reservations: room is kept for few, for whole gangs, where they may run, and in time.

The slow and obvious reading of step 6, from the models alone, as `invariants` is of the steps before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lstqueue.engine import estimate, invariants, model
from lstqueue.engine.invariants import Rule, Violation


def of_plan(snapshot: model.Snapshot, plan: model.Plan, config: model.Config) -> tuple[Violation, ...]:
    """Check the reservations that a plan makes and gives up against what it was made of."""
    jobs = {job.uid: job for job in snapshot.jobs}
    found: list[Violation] = []
    lost = [one.uid for one in plan.unreserve]
    had = {job.uid for job in snapshot.jobs if job.reservation is not None}
    without = [uid for uid in lost if uid not in had]
    found += [Violation(Rule.RESERVATION, uid, "it loses a reservation that it has not") for uid in without]
    bands = {job.uid: job.published.band for job in snapshot.jobs}
    bands |= {update.uid: update.band for update in plan.updates}
    seen = set(lost)
    for made in plan.reserve:
        job = jobs.get(made.uid)
        problems = ["unknown, or planned twice"]
        if job is not None and made.uid not in seen:
            problems = list(_problems(snapshot, plan, job, made.reservation, bands))
        seen.add(made.uid)
        found += [Violation(Rule.RESERVATION, made.uid, problem) for problem in problems]
    if any(made.reservation.slips == 0 for made in plan.reserve):
        found += _too_much(invariants.after(snapshot, plan), config)
    return tuple(found)


def _problems(
    snapshot: model.Snapshot,
    plan: model.Plan,
    job: model.Job,
    reservation: model.Reservation,
    bands: Mapping[str, model.Band | None],
) -> Iterator[str]:
    queue = next((one for one in snapshot.queues if one.name == job.queue), None)
    place = model.Admission(job.uid, job.queue, reservation.groups)
    yield from invariants.admission_problems(snapshot, job, queue, place, plan.now)
    if job.uid in {one.uid for one in plan.admit} | {one.uid for one in plan.claim}:
        yield "it has room already"
    if bands[job.uid] is not model.Band.DEADLINE:
        yield "it is late, was given up, or has no deadline"
    if reservation.start < plan.now:
        yield f"it is to start {plan.now - reservation.start} ms ago"
    before = job.reservation
    slips = 0 if before is None else before.slips
    # One whose place cannot be used any more is lost, and what is kept elsewhere a new one.
    anew = reservation.slips == 0 and before is not None and before.groups != reservation.groups
    if reservation.slips not in (slips, slips + 1) and not anew:
        yield f"it was not put off {reservation.slips} times"
    if reservation.slips > slips and before is not None and before.start > plan.now:
        yield "it is put off before its time has come"


def _too_much(later: model.Snapshot, config: model.Config) -> list[Violation]:
    """Whether more is kept of the nodes of a pool than may be, or for more jobs."""
    pools = {(queue.name, pool.name): pool for queue in later.queues for pool in queue.pools}
    owners: dict[tuple[tuple[str, str], ...], set[str]] = {}
    kept: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
    for job in later.jobs:
        if job.reservation is None or estimate.is_placed(job):
            continue
        for group, place in zip(job.groups, job.reservation.groups, strict=False):
            if (pool := pools.get((job.queue, place.pool))) is None:
                continue
            owners.setdefault(pool.selector, set()).add(job.uid)
            sums = kept.setdefault(pool.selector, {})
            for name, amount in group.shape.requests:
                sums[name] = sums.get(name, 0) + amount * sum(count for _, count in place.nodes)
    found: list[Violation] = []
    for selector, sums in kept.items():
        nodes = [node for node in later.nodes if set(selector) <= set(node.labels)]
        for name, amount in sums.items():
            most = config.reserve_share * sum(dict(node.allocatable).get(name, 0) for node in nodes)
            if amount > most:
                found.append(Violation(Rule.RESERVATION, str(selector), f"{amount} {name} kept of {most}"))
        if len(owners[selector]) > config.reserve_most:
            found.append(Violation(Rule.RESERVATION, str(selector), f"kept for {len(owners[selector])}"))
    return found
