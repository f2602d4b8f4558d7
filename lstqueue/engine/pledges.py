"""What must hold of slots: they end by their deadlines, and whatever is done leaves all of them their room.

The slow and obvious reading of promises, from the models alone, as `invariants` is of the steps before: at
every begin of a slot, the slots and the jobs that cannot leave in time take no more of a node or a quota than
there is, and when a window begins, no more than it leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lstqueue.engine import estimate, invariants, means, model, quota
from lstqueue.engine.invariants import Amounts, Rule, Violation
from lstqueue.topology import eligibility

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class _Held:
    """Room that is not given back before `until` (ms since the epoch), per (group, pool, node, pods)."""

    job: model.Job
    since: int
    until: int
    parts: tuple[tuple[int, str, str, int], ...]


def of_plan(snapshot: model.Snapshot, plan: model.Plan, config: model.Config) -> tuple[Violation, ...]:
    """Check what a plan promises and takes back, and that nothing it starts is in the way of a slot."""
    if not config.promising:
        odd = [one.uid for one in plan.promise] + [one.uid for one in plan.revoke]
        return tuple(Violation(Rule.PROMISE, uid, "nothing is promised") for uid in odd)
    jobs = {job.uid: job for job in snapshot.jobs}
    without = [one.uid for one in plan.revoke if one.uid not in jobs or jobs[one.uid].slot is None]
    found = [Violation(Rule.PROMISE, uid, "it loses a promise that it has not") for uid in without]
    for promise in plan.promise:
        job = jobs.get(promise.uid)
        problems = ["unknown"] if job is None else _problems(snapshot, job, promise.slot, config)
        found += [Violation(Rule.PROMISE, promise.uid, problem) for problem in problems]
    for suspend in plan.suspend:
        job = jobs.get(suspend.uid)
        if suspend.why is model.Why.PROMISED and (job is None or job.slot is None):
            found.append(Violation(Rule.PROMISE, suspend.uid, "it leaves for a slot that it has not"))
    found += [Violation(Rule.PROMISE, uid, "beyond the budget") for uid in _beyond(snapshot, plan, config)]
    before = {(one.subject, one.detail) for one in _crowded(snapshot, {}, (), plan.now, config)}
    slots = {promise.uid: promise.slot for promise in plan.promise}
    given = [*plan.admit, *_claimed(jobs, plan)]
    leave = {victim.uid for one in plan.claim for victim in one.claim.victims}
    after = _crowded(snapshot, slots, given, plan.now, config, leave)
    return (*found, *(one for one in after if (one.subject, one.detail) not in before))


def _claimed(jobs: Mapping[str, model.Job], plan: model.Plan) -> Iterator[model.Admission]:
    """What is claimed, but for slots, as if it were given already."""
    for one in plan.claim:
        slot = jobs[one.uid].slot if one.uid in jobs else None
        if slot is None or slot.groups != one.claim.groups:
            yield model.Admission(one.uid, one.queue, one.claim.groups)


def _problems(
    snapshot: model.Snapshot, job: model.Job, slot: model.Slot, config: model.Config
) -> Iterator[str]:
    """What is wrong with a slot by itself."""
    if job.deadline is None or slot.finish > job.deadline:
        yield "its slot ends after its deadline"
    if slot.finish < slot.start + slot.hi:
        yield "its slot is shorter than its run may be"
    if len(slot.groups) != len(job.groups):
        yield "not all groups have a slot"
        return
    queue = next((one for one in snapshot.queues if one.name == job.queue), None)
    pools = {} if queue is None else {pool.name: pool for pool in queue.pools}
    nodes = {node.name: node for node in snapshot.nodes}
    runs = estimate.is_placed(job)
    for group, place in zip(job.groups, slot.groups, strict=True):
        pool = pools.get(place.pool)
        if pool is None or sum(count for _, count in place.nodes) != group.count:
            yield f"group {group.name} is not whole, or in no pool of its queue"
            continue
        if pool.spot:
            yield f"group {group.name} is in a spot pool"
        for name, _ in place.nodes:
            fine = name in nodes and eligibility.eligible(
                nodes[name], group.shape, selector=pool.selector, tolerations=pool.tolerations
            )
            if not fine and not runs:
                yield f"group {group.name} may not run on {name}"


def _beyond(snapshot: model.Snapshot, plan: model.Plan, config: model.Config) -> Iterator[str]:
    """Whose new promise is neither small nor, with those before it in the plan, within its queue's budget."""
    at, now = snapshot.shed_at, plan.now
    quiet = not plan.sheds and (not at or now - at >= config.promise_quiet)
    calm = int(config.promise_calm * means.PPM) if quiet else 0
    lost = {one.uid for one in plan.revoke}
    standing = [one for one in _slots(snapshot, {}, now, config) if one.job.uid not in lost]
    held = {one.job.uid: one for one in standing}
    made = {one.job.uid: one for one in _slots(snapshot, dict(_new(plan)), now, config)}
    queues = {queue.name: queue for queue in snapshot.queues}
    for uid, _ in _new(plan):
        held[uid], queue, job = made[uid], queues[made[uid].job.queue], made[uid].job
        if job.slot is not None or _area(snapshot, queue, job, config) <= config.promise_area * model.HOUR:
            continue
        parts = means.Means(queue, snapshot.nodes)
        mine = sorted(
            (one for one in held.values() if one.job.queue == queue.name), key=lambda one: one.until
        )
        total = 0
        for one in mine:
            total += parts.whole(one.job) * (one.until - max(one.since, now))
            if one.until >= made[uid].until and total > max(queue.promise_budget, calm) * (one.until - now):
                yield uid
                break


def _new(plan: model.Plan) -> list[tuple[str, model.Slot]]:
    return [(promise.uid, promise.slot) for promise in plan.promise]


def _area(snapshot: model.Snapshot, queue: model.Queue, job: model.Job, config: model.Config) -> float:
    """What a job asks for at most, in ms of all of the first pool that each group may use."""
    left = estimate.remaining(job, config)
    wanted: dict[model.Pool, Amounts] = {}
    for group in job.groups:
        pool = quota.listing(queue.pools, group)[0]
        for name, amount in group.shape.requests:
            there = wanted.setdefault(pool, {})
            there[name] = there.get(name, 0) + amount * group.count
    share = 0  # in whole ppm, as everywhere
    for pool, amounts in wanted.items():
        some = [node for node in snapshot.nodes if set(pool.selector) <= set(node.labels)]
        for name, amount in amounts.items():
            has = sum(dict(node.allocatable).get(name, 0) for node in some)
            share = max(share, amount * means.PPM // max(has, 1))
    return 0.0 if left is None else share * left.hi / means.PPM


def _crowded(
    snapshot: model.Snapshot,
    moved: Mapping[str, model.Slot],
    admitted: Iterable[model.Admission],
    now: int,
    config: model.Config,
    leave: Collection[str] = (),
) -> list[Violation]:
    """Where more is owed at the begin of a slot than there is; those (uids) who `leave` are told to."""
    staying = [one for one in _staying(snapshot, admitted, now, config) if one.job.uid not in leave]
    settled = {one.job.uid for one in staying}  # they do not leave for their slots
    slots = [one for one in _slots(snapshot, moved, now, config) if one.job.uid not in settled]
    held = [*slots, *staying]
    opens = {window.start for queue in snapshot.queues for window in queue.windows if window.end > now}
    times = sorted({max(now, one.since) for one in held} | {max(now, start) for start in opens})
    found: list[Violation] = []
    for time in times:
        nodes: dict[str, Amounts] = {}
        pools: dict[tuple[str, str], Amounts] = {}
        begun = [one for one in held if one.since <= time < one.until]
        for one in begun:
            for group, pool, node, pods in one.parts:
                for name, amount in one.job.groups[group].shape.requests:
                    there = nodes.setdefault(node, {})
                    there[name] = there.get(name, 0) + amount * pods
                    used = pools.setdefault((one.job.queue, pool), {})
                    used[name] = used.get(name, 0) + amount * pods
        found += _too_much(snapshot, nodes, pools)
        slotted = {(one.job.queue, pool) for one in begun if one in slots for _, pool, _, _ in one.parts}
        found += _kept_free(snapshot, {key: pools[key] for key in slotted}, time)
    return found


def _kept_free(
    snapshot: model.Snapshot, pools: Mapping[tuple[str, str], Amounts], time: int
) -> Iterator[Violation]:
    """Where slots, with whoever stays, are in what a window keeps free at a time."""
    for queue in snapshot.queues:
        shares = [one.keep_free for one in queue.windows if one.start <= time < one.end]
        for pool in queue.pools:
            owed = pools.get((queue.name, pool.name), {})
            for name, nominal in pool.nominal:
                kept = sum(-(-nominal * share // 1_000_000) for share in shares)
                if kept and owed.get(name, 0) > nominal - kept:
                    yield Violation(Rule.PROMISE, queue.name, f"pool {pool.name}, {name}: in a window")


def _too_much(
    snapshot: model.Snapshot, nodes: Mapping[str, Amounts], pools: Mapping[tuple[str, str], Amounts]
) -> Iterator[Violation]:
    mine = invariants.bound_on_nodes(snapshot)
    for node in snapshot.nodes:
        used, has = dict(node.used), dict(node.allocatable)
        for name, amount in nodes.get(node.name, {}).items():
            others = max(used.get(name, 0) - mine.get(node.name, {}).get(name, 0), 0)
            if amount > has.get(name, 0) - others:
                yield Violation(Rule.PROMISE, node.name, f"{name}: {amount} owed")
    for queue in snapshot.queues:
        for pool in queue.pools:
            for name, nominal in pool.nominal:
                owed = pools.get((queue.name, pool.name), {}).get(name, 0)
                if owed > nominal:
                    yield Violation(Rule.PROMISE, queue.name, f"pool {pool.name}, {name}: {owed} owed")


def _slots(
    snapshot: model.Snapshot, moved: Mapping[str, model.Slot], now: int, config: model.Config
) -> Iterator[_Held]:
    for job in snapshot.jobs:
        slot = moved.get(job.uid, job.slot)
        if slot is None:
            continue
        parts = [
            (index, place.pool, name, count)
            for index, place in enumerate(slot.groups[: len(job.groups)])
            for name, count in place.nodes
        ]
        finish = estimate.finish(job, now, config)
        since, ends = slot.start, slot.finish
        holds = {(one.group, one.pool, one.node, one.bound + one.held) for one in job.assigned}
        leaves = _leaves(snapshot, job, config)
        due = now >= slot.start - config.slot_grace - job.grace
        if estimate.is_placed(job) and finish is not None and holds <= set(parts) and (due or not leaves):
            last = _last(job, finish, now, config) + config.slot_grace
            since, ends = now, min(ends, last)  # it stays there until its end
        yield _Held(job, since, ends, tuple(parts))


def _leaves(snapshot: model.Snapshot, job: model.Job, config: model.Config) -> bool:
    """Whether a job may be told to leave a slot, and does so in time."""
    queue = next((one for one in snapshot.queues if one.name == job.queue), None)
    allowed = queue is None or queue.preemption is not model.Preemption.NEVER
    return allowed and job.movable and job.grace <= config.slot_grace


def _staying(
    snapshot: model.Snapshot, admitted: Iterable[model.Admission], now: int, config: model.Config
) -> Iterator[_Held]:
    """Jobs that have room, or are given some, and cannot leave in time for a slot."""
    coming = {admission.uid: admission for admission in admitted}
    for job in snapshot.jobs:
        if _leaves(snapshot, job, config):
            continue
        parts = [(one.group, one.pool, one.node, one.bound + one.held) for one in job.assigned]
        if (admission := coming.get(job.uid)) is not None:
            parts = [
                (index, place.pool, name, count)
                for index, place in enumerate(admission.groups)
                for name, count in place.nodes
            ]
        elif not estimate.is_placed(job):
            continue
        finish = estimate.finish(job, now, config)
        until = NEVER if finish is None else _last(job, finish, now, config)
        yield _Held(job, now, until, tuple(parts))


def _last(job: model.Job, finish: estimate.Finish, now: int, config: model.Config) -> int:
    """When a job has ended at the latest: of one whose end is just over nobody knows yet.

    A start that is still to come, or not known to be over, takes a while besides.
    """
    launch = 0 if job.state is model.State.RUNNING else config.launch_margin
    left = estimate.remaining(job, config)
    if estimate.is_placed(job) and left is not None:
        thought = estimate.start(job) + left.hi + launch
        if now <= thought + config.slot_grace:
            return thought
    return finish.hi + launch
