"""The best-effort share: what keeps work without deadlines from waiting for ever, however many of those come.

A queue keeps a part U of what it has for best-effort work (`Queue.best_effort_share`): jobs of band REST that
have no deadline, or nothing to judge it by. Who has missed a deadline is not among them unless
`Config.share_late` says so: in an overload that work is wide and long and costs others theirs (ADR 0014).
The share does three things, all found from the snapshot alone, so that a restart forgets nothing:

- *safe* (step 5): of the running best-effort jobs the oldest, as many as fit in U together, are no victims;
- *head* (step 3): the oldest that waits stands among the deadline jobs, as if it were due at D = max(arrival,
  D of the one before) + work / U, work being its part of the queue × its run time; as long as those that came
  before it hold no more than U. That is the deadline of a total bandwidth server (Spuri and Buttazzo). Those
  before it run, since it is the oldest that waits; what is over is left out, which only makes D earlier;
- *kept room* (step 4): once D is past the head goes before everybody, and where it still lacks room or quota,
  what comes free in the place where it fits first is kept for it, or small gangs would pass it for ever.

Nobody is suspended for the head, and its band stays REST. Between them the three bound its wait by the work
ahead of it over U and the runs that have to end (docs/engine.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

from lstqueue.engine import departures, kept, leavers, model, order, room, standing
from lstqueue.engine.fit import NEVER_FITS
from lstqueue.engine.means import PPM
from lstqueue.engine.standing import Standing

Age = tuple[int, str]
"""(arrival, uid): the order of best-effort work, the older first."""


def arrival(job: model.Job) -> int:
    """When a job became best-effort work, in ms since the epoch: submitted, or at the latest its deadline.

    Where those who are late take part: one may have been given up before, so counting from the deadline keeps
    its place still, and nobody who becomes late later comes before it.
    """
    return job.submit if job.deadline is None else max(job.submit, job.deadline)


def age(job: model.Job) -> Age:
    """The place of a job among best-effort work."""
    return arrival(job), job.uid


def protect(known: kept.Kept) -> frozenset[str]:
    """The running jobs (uids) that are no victims: the oldest that fit in the share together.

    One that does not fit is passed over, so those behind it may be safe. To suspend somebody who is not makes
    nobody unsafe.
    """
    if not known.config.share_protects:
        return frozenset()
    left: dict[str, int] = {}
    safe: set[str] = set()
    for one in _running(known):
        job = one.job
        left.setdefault(job.queue, _share(known.queues[job.queue], known.config))
        part = known.world.held_part(job)
        if part <= left[job.queue]:
            left[job.queue] -= part
            safe.add(job.uid)
    return frozenset(safe)


def find(known: kept.Kept, waiting: Collection[str]) -> dict[str, kept.Head]:
    """The heads by uid: of each queue the oldest that waits and could start, if its elders leave it a part.

    Args:
        known: The pass after steps 1 and 2.
        waiting: Those (uids) who stand in line and take part.
    """
    oldest: dict[str, list[tuple[Age, str]]] = {}
    shares = {name: _share(queue, known.config) for name, queue in known.queues.items()} if waiting else {}
    for uid in waiting:
        job = known.jobs[uid]
        if shares[job.queue] and job.not_before <= known.now:
            oldest.setdefault(job.queue, []).append((age(job), job.uid))
    found: dict[str, kept.Head] = {}
    if oldest:
        running: dict[str, list[Standing]] = {}
        for one in _running(known):
            running.setdefault(one.job.queue, []).append(one)
        for queue, several in oldest.items():
            first = _first(known, several)
            if first is not None and (head := _head(known, running.get(queue, []), first, shares[queue])):
                found[first] = head
                known.rouse(head.due)
    return found


class Keeper:
    """Keeps room for the overdue heads of one pass, as they come up in line.

    Running jobs are taken to end as expected, the unknown ones last, and nobody else to start: so as long as
    that holds, the place found now is as good in the next pass, and the time at which the head fits comes
    closer.
    """

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._leaving: departures.Departures | None = None

    def keep(self, turn: order.Turn) -> None:
        """Charge the place where a head that lacks room or quota fits first, beyond what is free."""
        known, uid = self._known, turn.job.uid
        head = known.sharing.heads.get(uid)
        if head is None or not head.overdue or not known.config.share_keeps:
            return
        if self._leaving is None:
            self._leaving = _ends(known)
        alone = known.world.alone(turn.gang)
        first = self._leaving.first(known.free.alone(alone), lambda then: then.could_place(alone.gang))
        if first is None:
            return  # on nodes that are closed, or of quota that was lowered
        _, there = first
        taken = there.place(alone.gang)
        if taken is None:
            return  # several groups: could_place tried another order of pools than place would now
        place = room.release_after(turn.gang.queue, taken, there)
        known.free.charge_all(place)
        known.sharing.withheld[uid] = place


def let_go(known: kept.Kept) -> None:
    """Take the charges of kept room back, once nobody is admitted or claims any more."""
    for place in known.sharing.withheld.values():
        known.free.release_all(place)


def favoured(known: kept.Kept) -> dict[str, order.Rank]:
    """Where the heads stand in line, by uid."""
    return {uid: _rank(known, uid, head) for uid, head in known.sharing.heads.items()}


def _rank(known: kept.Kept, uid: str, head: kept.Head) -> order.Rank:
    """The place in the line of its D, and before everybody once that is past."""
    here, gang_share, config = known.standings[uid], known.gangs[uid].share, known.config
    job, key = here.job, head.due
    how = order.policy(known.queues[job.queue], config)
    if head.overdue:
        return -standing.NEVER, model.Band.DEADLINE, key, head.due, -gang_share, job.submit, job.uid
    if how is model.Order.LST and here.left is not None:
        weight = PPM - round(config.overhead_share * PPM)
        key = (head.due - weight * (job.overhead + here.left.mid) // PPM) // config.quantum * config.quantum
    return -order.tier(here), model.Band.DEADLINE, key, head.due, -gang_share, job.submit, job.uid


def _share(queue: model.Queue, config: model.Config) -> int:
    """The share of a queue in ppm; 0 where deadlines do not order it, or it starts nobody."""
    blind = order.policy(queue, config) not in (model.Order.LST, model.Order.EDF)
    return 0 if blind or queue.observed or not config.sharing else queue.best_effort_share


def _running(known: kept.Kept) -> list[Standing]:
    """Best-effort work that owns room in a queue that is there, the oldest first."""
    if not known.config.sharing:
        return []
    config, queues = known.config, known.queues
    rest = [known.lasting[uid].here for uid in known.world.roster.resting]
    some = [here for here in rest if standing.is_best_effort(here, config) and here.job.queue in queues]
    return sorted(some, key=_age)


def _first(known: kept.Kept, several: list[tuple[Age, str]]) -> str | None:
    """The oldest that could fit some day."""
    heapq.heapify(several)
    while several:
        _, uid = heapq.heappop(several)
        gang = known.gangs[uid]
        if gang.unlisted is None and known.possible.code(gang) not in NEVER_FITS:
            return uid
    return None


def _head(known: kept.Kept, running: list[Standing], uid: str, share: int) -> kept.Head | None:
    """The head with its D, unless those before it, `running` in its queue, hold more than the share."""
    job = known.standings[uid].job
    held, due = 0, 0
    for one in running:
        if age(one.job) > age(job):
            break
        held += known.world.held_part(one.job)
        due = _due(known, one.job, due, share)
    if held > share:
        return None
    due = _due(known, job, due, share)
    return kept.Head(due, known.now >= due, share)


def _due(known: kept.Kept, job: model.Job, before: int, share: int) -> int:
    """D = max(arrival, D of the one before) + work / U; an unknown run time is taken to be long."""
    mid = known.config.share_unknown if job.estimate is None else job.estimate.mid
    return max(arrival(job), before) + known.world.whole_part(job) * mid // share


def _ends(known: kept.Kept) -> departures.Departures:
    """What comes free when, as expected."""
    leaving = {job.uid for stake in known.going() for job in stake.victims}
    leaving |= {suspend.uid for suspend in known.drained}
    more: list[leavers.End] = []
    for stake in known.going():
        more.append((known.now, "", _opposite(stake.rest)))
        more.append((_end(stake.here), stake.here.job.uid, stake.whole))
    gone = [known.jobs[uid] for uid in sorted(leaving.union(known.ending))]
    more += [(known.now, job.uid, known.world.release(job)) for job in gone if job.assigned]
    return known.world.expected.read_with(known.lasting, leaving, more)


def _opposite(part: room.Release) -> room.Release:
    charges = tuple((slot, -amount) for slot, amount in part.charges)
    return room.Release(part.queue, part.nodes, -part.amounts, charges)


def _end(here: Standing) -> int:
    return standing.NEVER if here.finish is None else here.finish.mid


def _age(here: Standing) -> Age:
    return age(here.job)
