"""Step 8, explain: why a job waits, who stands before it, what would help. On demand, from what a pass kept.

Nothing is decided here: the codes, the order, the room and the forecasts are those of the pass itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from lstqueue.engine import (
    cohorts,
    fit,
    gangs,
    guests,
    model,
    obstacles,
    pleas,
    reasons,
    room,
    shed,
    slots,
    standing,
    words,
)
from lstqueue.engine.kept import Kept
from lstqueue.topology.model import PODS
from lstqueue.topology.table import Mask

MOST = 5
"""Blockers named of either kind; a list that nobody reads to its end explains nothing."""


def explain(snapshot: model.Snapshot, plan: model.Plan, uid: str) -> model.Explanation:
    """Explain where one job stands after a pass.

    Args:
        snapshot: The snapshot the plan was made of.
        plan: The plan, as `decide` returned it.
        uid: The job.

    Raises:
        ValueError: The plan is of another snapshot or carries no working state, or there is no such job.
    """
    kept = plan.kept
    if not isinstance(kept, Kept) or kept.snapshot is not snapshot:
        raise ValueError(
            "plan: decide() did not make it of this snapshot; decide again and explain that plan"
        )
    job = next((one for one in snapshot.jobs if one.uid == uid), None)
    if job is None:
        raise ValueError(f"uid: the snapshot has no job {uid}; look its uid up again")
    code = kept.codes.get(uid)
    if code is None:
        message, suspended = _not_waiting(kept, job) + _given_up(kept, job), pleas.suspended(kept, uid)
        return model.Explanation(uid, None, message, needed=_needed(job), preemption=suspended)
    message = _message(kept, job, code)
    gang = kept.gangs.get(uid)
    if gang is None or gang.unlisted is not None:
        return model.Explanation(uid, code, message, needed=_needed(job), change=_advice(code))
    member = reasons.short_member(kept.free, gang)
    return model.Explanation(
        uid=uid,
        code=code,
        message=message,
        needed=_needed(job),
        free=_free(kept, gang),
        largest=reasons.fitting(kept.free, member),
        blockers=_blockers(kept, job, gang, code),
        start=_start(kept, job),
        change=_change(kept, job, gang, code),
        preemption=pleas.waiting(kept, kept.standings[uid], code),
    )


def _message(kept: Kept, job: model.Job, code: model.Code) -> str:
    return reasons.message(kept, job, code) + _given_up(kept, job)


def _given_up(kept: Kept, job: model.Job) -> str:
    given = kept.shedding.given.get(job.uid)
    return "" if given is None else " " + shed.sentence(given, job, kept.now)


def _not_waiting(kept: Kept, job: model.Job) -> str:
    if job.uid in kept.fitted.placed or job.uid in kept.claims.admit:
        return "It is admitted by this pass."
    if job.state is model.State.ENDING:
        return "It has ended or was suspended, and its pods still leave."
    elapsed = words.duration(max(0, kept.now - job.since))
    if job.state is model.State.RUNNING:
        return f"It has been running for {elapsed}."
    return f"It was admitted {elapsed} ago and starts."


def _needed(job: model.Job) -> tuple[tuple[str, int], ...]:
    sums: dict[str, int] = {}
    for group in job.groups:
        for name, amount in group.shape.requests:
            sums[name] = sums.get(name, 0) + amount * group.count
    return tuple(sorted(sums.items()))


def _nodes(kept: Kept, gang: gangs.Gang, *, lasting: bool) -> Mask:
    rows = kept.free.ledger.rows.rows
    mask: Mask = np.zeros(len(kept.nodes), dtype=np.bool_)
    for member in gang.members:
        for option in member.options:
            mask |= rows[option.row].lasting if lasting else rows[option.row].mask
    return mask


def _free(kept: Kept, gang: gangs.Gang) -> tuple[tuple[str, int], ...]:
    """What is free now on the nodes the gang may use, of the resources it asks for."""
    rows = kept.free.ledger.rows
    asked: set[str] = set()
    for member in gang.members:
        asked |= {name for name, _ in rows.rows[member.options[0].row].requests}
    sums = np.maximum(kept.free.ledger.free[:, _nodes(kept, gang, lasting=False)], 0).sum(axis=1)
    pairs = zip(rows.resources, sums.tolist(), strict=True)
    return tuple((name, amount) for name, amount in pairs if name in asked)


def _blockers(kept: Kept, job: model.Job, gang: gangs.Gang, code: model.Code) -> tuple[model.Blocker, ...]:
    if code in (model.Code.QUEUE_HELD, model.Code.QUEUE_CONFLICT):
        return ()
    if (stake := kept.staked.get(job.uid)) is not None:
        there = [one for one in stake.victims if one.assigned]
        return tuple(model.Blocker(one.uid, one.namespace, one.name, "holding") for one in there[:MOST])
    return (*_ahead(kept, job, gang), *_holding(kept, gang, code), *_foreign(kept, gang, code))


def _ahead(kept: Kept, job: model.Job, gang: gangs.Gang) -> Iterator[model.Blocker]:
    """Those before it in line who still wait for room or quota it could use as well, first ones first."""
    mine = _nodes(kept, gang, lasting=True)
    named = 0
    for turn in kept.line:
        other = turn.job
        if other.uid == job.uid or named == MOST:
            return
        code = kept.codes.get(other.uid)
        if code is None or code in fit.NEVER_FITS or code in _ASIDE:
            continue
        if other.queue == job.queue or bool((mine & _nodes(kept, turn.gang, lasting=True)).any()):
            named += 1
            yield model.Blocker(other.uid, other.namespace, other.name, "ahead")


def _holding(kept: Kept, gang: gangs.Gang, code: model.Code) -> list[model.Blocker]:
    """Those whose room or quota it could use, the first to end first; unknown ends last."""
    mine = _nodes(kept, gang, lasting=True)
    found: list[tuple[int, str, model.Job]] = []
    for job in kept.snapshot.jobs:
        if code is model.Code.QUOTA_EXCEEDED and not _shares(kept, job.queue, gang.queue):
            continue
        columns = [kept.nodes.index[part.node] for part in job.assigned if part.node in kept.nodes.index]
        if columns and bool(mine[columns].any()):
            here = kept.standings.get(job.uid)
            end = kept.now if here is None else standing.NEVER
            if here is not None and here.finish is not None:
                end = here.finish.mid
            found.append((end, job.uid, job))
    for uid, stake in kept.staked.items():
        other = code is model.Code.QUOTA_EXCEEDED and not _shares(kept, stake.whole.queue, gang.queue)
        if uid not in kept.claims.admit and not other and bool(mine[stake.whole.nodes].any()):
            found.append((standing.NEVER - 1, uid, stake.here.job))
    found.sort(key=lambda entry: entry[:2])
    return [model.Blocker(job.uid, job.namespace, job.name, "holding") for _, _, job in found[:MOST]]


def _shares(kept: Kept, one: str, other: str) -> bool:
    return cohorts.together(kept.queues.get(one), kept.queues.get(other))


def _foreign(kept: Kept, gang: gangs.Gang, code: model.Code) -> Iterator[model.Blocker]:
    """Pods that are no job's, on nodes where more of it would fit without them, the largest first."""
    if code is not model.Code.NO_ROOM:
        return
    pods = [held for member in gang.members for held in obstacles.foreign_pods(kept, member) if held.name]
    for held in list(dict.fromkeys(pods))[:MOST]:
        yield model.Blocker("", held.namespace, held.name, "holding", held.node)


def _start(kept: Kept, job: model.Job) -> tuple[int, int] | None:
    outlook = kept.outlooks.get(job.uid)
    if outlook is not None:
        return outlook.start
    return None if job.published.verdict is None else job.published.verdict.start


def _change(kept: Kept, job: model.Job, gang: gangs.Gang, code: model.Code) -> str:
    if code is model.Code.QUOTA_EXCEEDED:
        least = reasons.tightest_quota(kept.free, gang, unused=False)
        missing = words.amount(least.resource, least.needed - least.free)
        if kept.windows.kept(job.queue, least.slot) is not None:
            return "Ask for less, wait for the end of the window, or change the windows of the queue."
        then = "it would start now" if _nodes_fit(kept.free, gang) else "it would wait for room on nodes only"
        return f'With {missing} more of nominal quota in pool "{least.pool}" of queue "{job.queue}" {then}.'
    if code is model.Code.NO_ROOM:
        return _reopen(kept, job, gang) or _smaller(kept, job, gang)
    if code is model.Code.RESERVED:
        ask = functools.partial(slots.Respect, kept)
        starts = guests.earliest(kept.keepings, kept.fitted.bound[job.uid], ask)
        left = starts - kept.now - job.overhead
        return f"With an estimate of at most {words.duration(left)} it would start now." if left > 0 else ""
    if code is model.Code.HEAD_OF_LINE:
        then = (
            "it would start now" if kept.free.could_place(gang) else "it would still wait for room or quota"
        )
        return f'With order lst or edf in queue "{job.queue}" {then}.'
    if code is model.Code.NO_MATCHING_NODES:
        return _smaller_pods(kept, gang) or _advice(code)
    return _advice(code)


def _reopen(kept: Kept, job: model.Job, gang: gangs.Gang) -> str:
    """For gangs that closed nodes would have room for: how to open them. Empty for others."""
    member = reasons.short_member(kept.free, gang)
    columns, _ = obstacles.closed_nodes(kept, member, job.groups[member.group].count)
    cordoned = [node for node in (kept.nodes.nodes[column] for column in columns) if node.unschedulable]
    if not cordoned or reasons.fitting(kept.free, member) >= job.groups[member.group].count:
        return ""
    return f"Uncordon {words.names([node.name for node in cordoned])} (kubectl uncordon)."


def _smaller_pods(kept: Kept, gang: gangs.Gang) -> str:
    """For pods larger than any node: how large they may be. Empty for other gangs."""
    empty = kept.possible.empty()
    member = reasons.short_member(empty, gang)
    pool, resource, largest = reasons.largest_node(empty, member)
    if reasons.fitting(empty, member) or not largest:
        return ""
    most = words.amount(resource, largest)
    return f'Ask for at most {most} per pod, or add larger nodes to pool "{pool}".'


def _smaller(kept: Kept, job: model.Job, gang: gangs.Gang) -> str:
    """What size of the gang, or of its pods, would start now."""
    member = reasons.short_member(kept.free, gang)
    group = job.groups[member.group]
    fits = reasons.fitting(kept.free, member)
    if 0 < fits < group.count:
        return f'With {fits} instead of {group.count} pods in group "{group.name}" it would find room now.'
    if fits >= group.count:
        return "Smaller pods or fewer of them would find room sooner."
    resource, largest = _largest_piece(kept.free, member)
    if resource == PODS:
        return "No node it may use has a pod slot left; it starts when others leave."
    if largest == 0:
        return "No node it may use has room for even a smaller pod; it starts when others leave."
    return f"With pods of {words.amount(resource, largest)} one would find room now."


def _largest_piece(free: room.Room, member: gangs.Member) -> tuple[str, int]:
    """The most of its scarce resource that one node has free, where all else of one pod fits."""
    ledger, rows = free.ledger, free.ledger.rows
    best, resource = 0, ""
    for option in member.options:
        scarce = rows.scarce[option.row]
        needs = rows.amounts[:, option.row].copy()
        needs[scarce] = 0
        others = needs > 0
        fine = rows.rows[option.row].mask & (ledger.free[others] >= needs[others, None]).all(axis=0)
        most = int(ledger.free[scarce][fine].max(initial=0))
        if most > best or not resource:
            best, resource = most, rows.resources[scarce]
    return resource, best


def _nodes_fit(free: room.Room, gang: gangs.Gang) -> bool:
    return all(reasons.fitting(free, member) >= member.count for member in gang.members)


def _advice(code: model.Code) -> str:
    return _ADVICE.get(code, "")


_ASIDE = frozenset((model.Code.BACKING_OFF, model.Code.OBSERVING, model.Code.CLAIMING))
"""Codes of those in line who take nobody's turn."""

_ADVICE = {
    model.Code.QUEUE_NOT_FOUND: "Name a queue that exists.",
    model.Code.RESOURCE_NOT_IN_QUEUE: "List the resource in a pool of the queue, or use another queue.",
    model.Code.IMPORTANCE_TOO_HIGH: "Lower its importance, or raise the queue's maxImportance.",
    model.Code.NO_MATCHING_NODES: "Ask for less, loosen the constraints, or add nodes.",
    model.Code.QUOTA_TOO_SMALL: "Ask for less, or raise the nominal quota.",
    model.Code.WINDOW: "Ask for less, give a shorter estimate, or change the windows of the queue.",
    model.Code.BACKING_OFF: "Nothing: it is tried again by itself.",
    model.Code.QUEUE_CONFLICT: "Correct the queue, or use another one.",
    model.Code.QUEUE_HELD: "Set the queue's stopPolicy to None, or use another queue.",
    model.Code.OBSERVING: "Set the queue's mode to Enforce, or use another queue.",
    model.Code.CLAIMING: "Nothing: it starts by itself.",
}
