"""Which jobs of a cohort run on their queue's nominal quota, and which on quota that others lend.

Per queue its admitted jobs are walked in their order, owners of claims among them: who fits wholly inside
what is left of the nominal quota, in every resource of its pools, is *nominal*; who does not is passed over,
and *borrowed*. So which of a queue's jobs are borrowed follows from its order alone, not from who came first,
and they are those that it needs least. Work that the best-effort share protects comes first: the share is a
part of the nominal quota.

The order is that of the line, in which time moves nobody, and the same for a job that waits and one that
runs. So a borrowed job that was suspended for another queue would be borrowed again, as long as the jobs of
its own queue stay, and cannot take back what was taken from it (`reclaim`). Nothing is decided here.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lstqueue.engine import kept, model, order, quota, room
from lstqueue.engine.standing import Standing

Place = tuple[int, order.Rank]
"""(1 but for what the best-effort share favours, the rank): the order of the walk."""


@dataclass(frozen=True, slots=True)
class _Walked:
    """The walk of one queue: the `places` of nominal jobs, what is `left` by slot after so many of them."""

    places: list[Place]
    left: list[dict[int, int]]
    borrowed: frozenset[str]


class Lending:
    """Who of a cohort is nominal, and what each of its queues has left for whom."""

    def __init__(self, known: kept.Kept, account: str) -> None:
        self._known = known
        self._policy = {one.name: order.policy(one, known.config) for one in known.queues.values()}
        self._members: dict[str, list[tuple[Place, str, quota.Charges]]] = {
            queue.name: [] for queue in known.queues.values() if queue.account == account
        }
        self.queues = tuple(self._members)
        for here, charges in _holding(known, self._members):
            self._members[here.job.queue].append((self.place(here), here.job.uid, self._own(charges)))
        self._walks: dict[str, _Walked] = {}

    def place(self, here: Standing) -> Place:
        """Where a job stands in the walk of its queue, be it admitted or not."""
        favoured = here.job.uid in self._known.sharing.safe or here.job.uid in self._known.sharing.heads
        # Best-effort work that claims was a head when it did, and is in no line any more that would say so.
        favoured = favoured or (here.job.claim is not None and here.band is model.Band.REST)
        rank = order.rank(self._policy[here.job.queue], here, 0, self._known.config)
        return 0 if favoured else 1, rank

    def add(self, here: Standing, charges: quota.Charges) -> None:
        """Count a job that claims a place."""
        self._members[here.job.queue].append((self.place(here), here.job.uid, self._own(charges)))
        self._walks.pop(here.job.queue, None)

    def borrowed(self, queue: str) -> frozenset[str]:
        """The jobs (uids) of a queue that run on what others lend."""
        return self._walked(queue).borrowed

    def left(self, here: Standing, without: frozenset[str] = frozenset()) -> Mapping[int, int]:
        """What of its queue's nominal quota is left for a job, by slot, beside those that go before it.

        Args:
            here: It; its own claim is not counted.
            without: Jobs (uids) that are to leave for it.
        """
        if without or here.job.uid in self._known.staked:
            walked = self._walk(here.job.queue, without | {here.job.uid})
        else:
            walked = self._walked(here.job.queue)
        return walked.left[bisect.bisect(walked.places, self.place(here))]

    def _walked(self, queue: str) -> _Walked:
        found = self._walks.get(queue)
        if found is None:
            found = self._walks[queue] = self._walk(queue)
        return found

    def _walk(self, queue: str, without: frozenset[str] = frozenset()) -> _Walked:
        quotas = self._known.free.quota
        left = {slot: quotas.nominal[slot] for (name, _, _), slot in quotas.slots.items() if name == queue}
        places: list[Place] = []
        after, borrowed = [left], set[str]()
        for place, uid, charges in sorted(self._members[queue]):
            if uid in without:
                continue
            if not fits(charges, left):
                borrowed.add(uid)
                continue
            left = left | {slot: left[slot] - amount for slot, amount in charges}
            places.append(place)
            after.append(left)
        return _Walked(places, after, frozenset(borrowed))

    def _own(self, charges: quota.Charges) -> quota.Charges:
        """What of charges is the queue's own, each slot once."""
        quotas, sums = self._known.free.quota, dict[int, int]()
        for slot, amount in charges:
            if not quotas.is_cohorts(slot):
                sums[slot] = sums.get(slot, 0) + amount
        return tuple(sorted(sums.items()))


def started(known: kept.Kept, turn: order.Turn, taken: room.Placement) -> None:
    """Count a job of a cohort that starts, as soon as it does."""
    found = known.lendings.get(known.queues[turn.gang.queue].account)
    if found is not None:
        found.add(known.here(turn), tuple(pair for part in taken for pair in part.option.charges))


def fits(charges: quota.Charges, left: Mapping[int, int]) -> bool:
    """Whether charges fit in what is left of a queue's slots; those of its cohort are not asked."""
    return all(amount <= left[slot] for slot, amount in charges if slot in left)


def of(known: kept.Kept, queue: str) -> Lending:
    """The lending of a queue's cohort as the pass stands; made when needed."""
    account = known.queues[queue].account
    found = known.lendings.get(account)
    if found is None:
        found = known.lendings[account] = Lending(known, account)
    return found


def _holding(known: kept.Kept, queues: Mapping[str, object]) -> Iterable[tuple[Standing, quota.Charges]]:
    """Who is admitted, from this pass on too, or claims a place, with what that takes."""
    for here in known.placed:
        if here.job.queue in queues:
            yield here, known.free.quota.held(here.job)
    for stake in known.staked.values():
        if stake.here.job.queue in queues and stake.here.job.uid not in known.claims.drop:
            yield stake.here, stake.whole.charges
    for uid, taken in known.fitted.placed.items():
        here = known.standings[uid]
        if here.job.queue in queues:
            yield here, tuple(pair for part in taken for pair in part.option.charges)
