"""What each queue may still take of each pool: nominal quota, and what others lend, less what its jobs hold.

Charged are the members of every job of the queue that are bound or expected, of jobs that end as well: quota
is free when pods are gone, not when somebody decided that they should go.

A queue of a cohort may hold its nominal quota and what it may borrow, and all queues of the cohort together
what they have nominally: so whatever it takes is charged twice, to itself and to its cohort. A fit asks both
like any two resources, and nobody who moves charges about has to know of cohorts.
"""

from __future__ import annotations

from collections.abc import Iterable

from lstqueue.engine import model
from lstqueue.topology import eligibility

Charges = tuple[tuple[int, int], ...]
"""(slot, amount) pairs; a slot is one resource of one pool of one queue, or of one cohort."""


class Quota:
    """Free quota per slot, changed only by `take` and `give`; negative when a nominal figure was lowered.

    `slots` are those of queues by (queue, pool, resource). `names` says of every slot (queue or cohort, pool,
    resource), `shared` of a queue's slot which is its cohort's. `nominal` is what a queue has, or a cohort in
    sum, `most` what may be held; a queue that may borrow without limit may hold all of its cohort.
    """

    __slots__ = ("accounts", "free", "most", "names", "nominal", "shared", "slots")

    def __init__(self, queues: Iterable[model.Queue], jobs: Iterable[model.Job]) -> None:
        self.slots: dict[tuple[str, str, str], int] = {}
        self.nominal: list[int] = []
        self.names: list[tuple[str, str, str]] = []
        self.shared: dict[int, int] = {}
        known = list(queues)
        self.accounts = {queue.name: queue.account for queue in known}
        for queue in known:
            for pool in queue.pools:
                for resource, amount in pool.nominal:
                    slot = self._add(queue.name, pool, resource, amount)
                    self.slots[queue.name, pool.name, resource] = slot
        self.most = list(self.nominal)
        self._lend([queue for queue in known if queue.account != queue.name])
        self.free: list[int] = list(self.most)
        for job in jobs:
            self.take(self.held(job))

    def _add(self, name: str, pool: model.Pool, resource: str, amount: int) -> int:
        self.nominal.append(amount)
        self.names.append((name, pool.name, resource))
        return len(self.nominal) - 1

    def _lend(self, queues: list[model.Queue]) -> None:
        """Make the slots of cohorts, and let their queues hold more than they have."""
        sums: dict[tuple[str, str, str], int] = {}
        for queue in queues:
            for pool in queue.pools:
                for resource, amount in pool.nominal:
                    key = queue.cohort, pool.name, resource
                    slot = sums.get(key)
                    if slot is None:
                        slot = sums[key] = self._add(queue.cohort, pool, resource, 0)
                    self.nominal[slot] += amount
                    self.shared[self.slots[queue.name, pool.name, resource]] = slot
        self.most += self.nominal[len(self.most) :]
        for queue in queues:
            for pool in queue.pools:
                limits = dict(pool.limits)
                for resource, amount in pool.nominal:
                    own = self.slots[queue.name, pool.name, resource]
                    together = self.nominal[self.shared[own]]
                    self.most[own] = min(amount + limits.get(resource, together), together)

    def is_cohorts(self, slot: int) -> bool:
        """Whether a slot is one of a cohort, and no queue's own."""
        return slot >= len(self.slots)

    def copy(self, *, unused: bool = False) -> Quota:
        """An independent copy; `unused` gives the one of a queue in which nothing runs."""
        other = object.__new__(Quota)
        other.slots, other.nominal, other.most = self.slots, self.nominal, self.most
        other.names, other.shared, other.accounts = self.names, self.shared, self.accounts
        other.free = list(self.most if unused else self.free)
        return other

    def charges(self, queue: str, pool: str, group: model.Group, count: int) -> Charges:
        """What `count` members of a group cost in a pool; resources the pool does not list cost nothing."""
        found: list[tuple[int, int]] = []
        for resource, amount in group.shape.requests:
            slot = self.slots.get((queue, pool, resource))
            if slot is not None and amount > 0:
                found.append((slot, amount * count))
        return self.twice(tuple(found))

    def twice(self, charges: Charges) -> Charges:
        """What a queue is charged, with what its cohort is."""
        shared = self.shared
        if not shared:
            return charges
        return charges + tuple([(shared[slot], amount) for slot, amount in charges if slot in shared])

    def held(self, job: model.Job, parts: Iterable[model.Assigned] | None = None) -> Charges:
        """What a job costs now by its assigned members, bound or expected; or by such `parts`."""
        found: list[tuple[int, int]] = []
        for part in job.assigned if parts is None else parts:
            found += self.charges(job.queue, part.pool, job.groups[part.group], part.bound + part.held)
        return tuple(found)

    def fits(self, charges: Charges) -> bool:
        """Whether all charges can be taken. Each slot must appear once."""
        return all([self.free[slot] >= amount for slot, amount in charges])

    def take(self, charges: Charges) -> None:
        """Charge; the caller has asked `fits`, or records what is a fact already."""
        for slot, amount in charges:
            self.free[slot] -= amount

    def give(self, charges: Charges) -> None:
        """Take back a charge."""
        for slot, amount in charges:
            self.free[slot] += amount


def listing(pools: Iterable[model.Pool], group: model.Group) -> tuple[model.Pool, ...]:
    """The pools that list every extended resource a group asks for, in the order given."""
    wanted = {name for name, amount in group.shape.requests if amount > 0 and eligibility.is_extended(name)}
    return tuple(pool for pool in pools if wanted <= {name for name, _ in pool.nominal})
