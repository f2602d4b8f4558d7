"""Why a job waits, in one sentence with the numbers in it, then what to do."""

from __future__ import annotations

from typing import NamedTuple

from lstqueue.engine import gangs, model, obstacles, room, vicinity, windows, words
from lstqueue.engine.kept import Kept
from lstqueue.topology.table import natural


def message(kept: Kept, job: model.Job, code: model.Code | None) -> str:
    """The sentence for a code; empty for a job that does not wait."""
    if code is None:
        return ""
    if code not in _OF_GANGS:
        return _SENTENCES[code](kept, job)
    key = (id(kept.gangs[job.uid]), code, kept.standings[job.uid].hopeless)
    if key not in kept.wording.sentences:
        kept.wording.sentences[key] = _SENTENCES[code](kept, job)
    return kept.wording.sentences[key]


def short_member(free: room.Room, gang: gangs.Gang) -> gangs.Member:
    """The group to speak of: the first that does not fit by itself, else the one with the largest pods."""
    for member in gang.members:
        if fitting(free, member) < member.count:
            return member
    return gang.members[0]


def fitting(free: room.Room, member: gangs.Member) -> int:
    """How many of a group's pods fit on the nodes of the pool where most do, quota left aside."""
    return max((int(free.ledger.total[option.row]) for option in member.options), default=0)


def matching(free: room.Room, member: gangs.Member) -> int:
    """How many nodes a group may use, readiness and cordons left aside."""
    rows = free.ledger.rows.rows
    return max((int(rows[option.row].lasting.sum()) for option in member.options), default=0)


def largest_node(empty: room.Room, member: gangs.Member) -> tuple[str, str, int]:
    """Which resource one pod asks more of than any matching node has, in the pool that comes closest.

    Returns:
        (pool, resource, the most that a node there has); no resource when a node has enough of each, but
        none of all together.
    """
    rows = empty.ledger.rows
    best, closest = ("", "", 0), -1.0
    for option in member.options:
        lasting = rows.rows[option.row].lasting
        if not lasting.any():
            continue
        most = rows.allocatable[:, lasting].max(axis=1).tolist()
        needs = rows.amounts[:, option.row].tolist()
        short = [i for i, (need, has) in enumerate(zip(needs, most, strict=True)) if need > has]
        if not short:
            return option.pool, "", 0
        # Enough of the scarce resource would help most; without it, of what the nodes have least of.
        scarce = rows.scarce[option.row]
        which = scarce if scarce in short else min(short, key=lambda i: most[i] / needs[i])
        if most[which] / needs[which] > closest:
            closest = most[which] / needs[which]
            best = (option.pool, rows.resources[which], most[which])
    return best


class Tightest(NamedTuple):
    """The quota that a gang lacks most of, in the resource's units.

    `whose` names the queue or cohort; of `most`, all it may hold, others lend `borrows`.
    """

    pool: str
    resource: str
    needed: int
    free: int
    most: int
    borrows: int
    whose: str
    slot: int

    def has(self) -> str:
        """How much there is in all: `12 of pool "a" in queue "q" (4 of them borrowed)`."""
        most = words.quantity(self.resource, self.most)
        more = f" ({words.quantity(self.resource, self.borrows)} of them borrowed)" if self.borrows else ""
        return f'{most} of pool "{self.pool}" in {self.whose}{more}'


def tightest_quota(free: room.Room, gang: gangs.Gang, *, unused: bool) -> Tightest:
    """The quota that lacks most of what the gang asks of it, over the pools each group could use.

    `unused` takes all that may be held as free.
    """
    quota = free.quota
    needs: dict[int, int] = {}
    for member in gang.members:
        for slot, amount in member.options[0].charges:
            needs[slot] = needs.get(slot, 0) + amount
    worst = Tightest("", "", 0, 0, 0, 0, "", -1)
    lacking = 0.0
    for slot, needed in sorted(needs.items()):
        most = quota.most[slot]
        left = most if unused else max(quota.free[slot], 0)
        lacks = (needed - left) / needed
        # Of a queue that may hold all of its cohort it is the cohort that lacks something.
        if not worst.resource or lacks > lacking or (lacks == lacking and quota.is_cohorts(slot)):
            lacking = lacks
            name, pool, resource = quota.names[slot]
            kind = "cohort" if quota.is_cohorts(slot) else "queue"
            borrows = most - quota.nominal[slot]
            worst = Tightest(pool, resource, needed, left, most, borrows, f'{kind} "{name}"', slot)
    return worst


def _held_back(kept: Kept, job: model.Job) -> str:
    return words.sentence(job.held_back or "is held back")


def _queue_not_found(kept: Kept, job: model.Job) -> str:
    where = words.field("spec.queue", labelled=job.labelled)
    return f'There is no queue "{job.queue}"; create that GPUQueue or name one that exists in {where}.'


def _importance(kept: Kept, job: model.Job) -> str:
    most = kept.queues[job.queue].max_importance
    # A labelled Job has none of its own to lower.
    do = "use another queue" if job.labelled else "lower it"
    return f'Importance {job.importance} is above the {most} that queue "{job.queue}" allows; {do}.'


def _unlisted(kept: Kept, job: model.Job) -> str:
    group = job.groups[kept.gangs[job.uid].unlisted or 0]
    asked = " and ".join(name for name, amount in group.shape.requests if amount > 0 and "/" in name)
    return (
        f'Group "{group.name}" asks for {asked or "a pool"}, and no pool of queue "{job.queue}" lists that;'
        " add it to a pool or use another queue."
    )


def _quota_too_small(kept: Kept, job: model.Job) -> str:
    least = tightest_quota(kept.free, kept.gangs[job.uid], unused=True)
    return (
        f"It asks for {words.amount(least.resource, least.needed)}, more than the {least.has()}; ask for less"
        " or raise the nominal quota."
    )


def _no_matching_nodes(kept: Kept, job: model.Job) -> str:
    empty = kept.possible.empty()
    if said := vicinity.never(kept, job, kept.gangs[job.uid]):
        return said
    member = short_member(empty, kept.gangs[job.uid])
    group = job.groups[member.group]
    nodes, fits = matching(empty, member), fitting(empty, member)
    if nodes == 0:
        return (
            f'No node matches group "{group.name}" (pool labels, node selector, affinity, taints);'
            " correct them or add such nodes."
        )
    if fits == 0:
        return _too_large(group, kept, member)
    if fits >= group.count:
        return (
            f"No placement of all its groups together was found on {words.count(nodes, 'matching node')},"
            " even when empty; ask for less or add nodes."
        )
    return (
        f'Group "{group.name}" is {words.pods(group)}, and {words.count(nodes, "matching node")} could hold'
        f" {fits} of them even when empty; ask for less or add nodes."
    )


def _too_large(group: model.Group, kept: Kept, member: gangs.Member) -> str:
    """For pods that no matching node could hold, even when empty."""
    pool, resource, largest = largest_node(kept.possible.empty(), member)
    if not resource:
        return (
            f'Group "{group.name}" is {words.pods(group)}, and no matching node has all that one asks for'
            " together; ask for less per pod or add such nodes."
        )
    if not largest:
        return (
            f'Group "{group.name}" is {words.pods(group)}, and no matching node of pool "{pool}" has'
            f" {resource}; correct the request or add such nodes."
        )
    asked = words.amount(resource, dict(group.shape.requests)[resource])
    return (
        f'One pod of group "{group.name}" asks for {asked}, and the largest node of pool "{pool}" has'
        f" {words.amount(resource, largest)}; ask for at most that per pod."
    )


def _quota_exceeded(kept: Kept, job: model.Job) -> str:
    if withheld := _withheld(kept, job):
        return withheld
    least = tightest_quota(kept.free, kept.gangs[job.uid], unused=False)
    closed, starts = "", _STARTS
    if (edge := kept.windows.kept(job.queue, least.slot)) is not None:
        held = words.quantity(least.resource, dict(edge.charges)[least.slot])
        left = words.duration(edge.time - kept.now)
        closed, starts = (
            f", since a window keeps {held} free",
            f"{_STARTS}, or when the window ends in {left}",
        )
    for member in kept.gangs[job.uid].members:
        columns, lacking = obstacles.closed_nodes(kept, member, member.count)
        if lacking:
            # More quota alone would not help it.
            why, opened = obstacles.closed_words(kept, columns)
            closed, starts = f"{closed}, and {why}", f"{starts} and {opened}"
            break
    return (
        f"It needs {words.amount(least.resource, least.needed)}, and"
        f" {words.quantity(least.resource, least.free)} of the {least.has()} are free{closed};"
        f" {_promise(kept, job, starts)}."
    )


def _reserved(kept: Kept, job: model.Job) -> str:
    binding = kept.fitted.bound[job.uid]
    if not binding.keepings:
        return "It would fit now, but only in room that is promised to another before it would leave."
    keepings = [kept.keepings[index] for index in binding.keepings]
    who = words.names([words.job(one.turn.job) for one in keepings])
    waits = "waits" if len(keepings) == 1 else "wait"
    return f"It would fit now, on room that is kept for {who}, which {waits}, and not leave it in time."


def _window(kept: Kept, job: model.Job) -> str:
    gang, until = kept.gangs[job.uid], windows.until(kept.standings[job.uid])
    begins = words.duration(kept.windows.first(gang.queue, until) - kept.now)
    cohort = kept.queues[job.queue].cohort
    whose = f'cohort "{cohort}"' if cohort else f'queue "{job.queue}"'
    runs = "has no estimate" if until is None else f"may run for {words.duration(until - kept.now)}"
    return (
        f"It {runs}, and in {begins} a window of {whose} begins that leaves too little quota for"
        " it beside those that are expected to run then; it starts when it fits between windows, or in them."
    )


def _withheld(kept: Kept, job: model.Job) -> str:
    """For one that would find what it lacks, if that were not kept for an overdue head; else empty."""
    withheld = kept.sharing.withheld
    if not withheld or job.uid in withheld or not kept.free.could_place(kept.gangs[job.uid]):
        return ""
    who = words.names([words.job(kept.standings[uid].job) for uid in withheld])
    return f"It would fit now, on room that is kept for {who}: the oldest best-effort work, and overdue."


def _no_room(kept: Kept, job: model.Job) -> str:
    if withheld := _withheld(kept, job):
        return withheld
    if said := vicinity.no_room(kept, job, kept.gangs[job.uid], _promise(kept, job)):
        return said
    member = short_member(kept.free, kept.gangs[job.uid])
    group = job.groups[member.group]
    fits = min(fitting(kept.free, member), group.count)
    avoided = f" (avoiding {words.count(len(job.avoid), 'node')} that failed it)" if job.avoid else ""
    if fits == group.count:
        return f"Its groups fit one by one but not together{avoided}; {_promise(kept, job)}."
    closed, lacking = obstacles.closed_nodes(kept, member, group.count)
    enough = lacking and obstacles.suffice(kept, member, group.count, closed)
    of_these, starts = _closed(kept, closed, lacking=lacking, enough=enough) if closed else ("", _STARTS)
    foreign = _foreign(kept, member)
    return (
        f'Group "{group.name}" is {words.pods(group)}, and {fits} of them fit now on'
        f" {words.count(matching(kept.free, member), 'matching node')}{of_these}{avoided}{foreign};"
        f" {_promise(kept, job, starts)}."
    )


def _foreign(kept: Kept, member: gangs.Member) -> str:
    """Who is there of whom no queue knows."""
    pods = obstacles.foreign_pods(kept, member)
    return f", where {obstacles.foreign_words(pods, one='takes room', several='take room')}" if pods else ""


_STARTS = "it starts when others leave"


def _closed(kept: Kept, columns: list[int], *, lacking: bool, enough: bool) -> tuple[str, str]:
    """Which of its nodes are closed, and what to do for it to start.

    `lacking` says that it cannot start without them, `enough` that it starts as soon as they are open.
    """
    closed, opened = obstacles.closed_words(kept, columns)
    starts = f"{_STARTS} and {opened}" if lacking else f"{_STARTS}, or {opened}"
    return f", of which {closed}", f"it starts when {opened}" if enough else starts


def _promise(kept: Kept, job: model.Job, starts: str = _STARTS) -> str:
    return f"{starts}, but its deadline cannot hold" if kept.standings[job.uid].hopeless else starts


def _topology(kept: Kept, job: model.Job) -> str:
    waits = words.duration(max(kept.fitted.relaxed.get(job.uid, kept.now) - kept.now, 0))
    return (
        f"It would fit now, but not in one {job.locality.preferred}; one is expected to have room in {waits},"
        " and its slack allows it to wait for that."
    )


def _backing_off(kept: Kept, job: model.Job) -> str:
    after = "after a failed start" if job.failed_starts else "after it broke or could not be written"
    return f"It is tried again in {words.duration(job.not_before - kept.now)}, {after}."


def _head_of_line(kept: Kept, job: model.Job) -> str:
    head = kept.standings[kept.fitted.heads[job.queue]].job
    return f'Queue "{job.queue}" is strictly first in, first out, and {words.job(head)} at its head waits.'


def _queue_held(kept: Kept, job: model.Job) -> str:
    queue = kept.queues[job.queue]
    drained = " and is being emptied" if queue.drained and not queue.observed else ""
    return f'Queue "{job.queue}" admits nobody for now{drained}; set its stopPolicy to None to go on.'


def _queue_conflict(kept: Kept, job: model.Job) -> str:
    return f'Queue "{job.queue}" admits nobody: {kept.queues[job.queue].conflict}.'


def _observing(kept: Kept, job: model.Job) -> str:
    return f'Queue "{job.queue}" only observes: it forecasts and admits nobody; set its mode to Enforce.'


def _claiming(kept: Kept, job: model.Job) -> str:
    stake = kept.staked.get(job.uid)
    if stake is None:
        return "It has no claim on record."
    nodes = sorted({name for group in stake.claim.groups for name, _ in group.nodes}, key=natural)
    there = [one for one in stake.victims if one.assigned]
    who = words.names([words.job(one) for one in there]) or "others"
    leave = "leaves" if len(there) == 1 else "leave"
    return f"It starts on {words.names(nodes)} as soon as {who} {leave} its place."


_SENTENCES = {
    model.Code.HELD_BACK: _held_back,
    model.Code.QUEUE_NOT_FOUND: _queue_not_found,
    model.Code.IMPORTANCE_TOO_HIGH: _importance,
    model.Code.RESOURCE_NOT_IN_QUEUE: _unlisted,
    model.Code.QUOTA_TOO_SMALL: _quota_too_small,
    model.Code.NO_MATCHING_NODES: _no_matching_nodes,
    model.Code.QUOTA_EXCEEDED: _quota_exceeded,
    model.Code.NO_ROOM: _no_room,
    model.Code.RESERVED: _reserved,
    model.Code.WINDOW: _window,
    model.Code.BACKING_OFF: _backing_off,
    model.Code.HEAD_OF_LINE: _head_of_line,
    model.Code.QUEUE_HELD: _queue_held,
    model.Code.QUEUE_CONFLICT: _queue_conflict,
    model.Code.OBSERVING: _observing,
    model.Code.CLAIMING: _claiming,
    model.Code.TOPOLOGY: _topology,
}
_OF_GANGS = frozenset(
    (
        model.Code.RESOURCE_NOT_IN_QUEUE,
        model.Code.QUOTA_TOO_SMALL,
        model.Code.NO_MATCHING_NODES,
        model.Code.QUOTA_EXCEEDED,
        model.Code.NO_ROOM,
    )
)
"""Codes whose sentences are the same for all equal gangs that can still make their deadlines, or cannot."""
