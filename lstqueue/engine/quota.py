"""What each queue may still take of each pool: nominal quota less what its jobs hold.

Charged are the members of every job of the queue that are bound or expected, of jobs that end as well: quota
is free when pods are gone, not when somebody decided that they should go.
"""

from __future__ import annotations

from collections.abc import Iterable

from lstqueue.engine import model
from lstqueue.topology import eligibility

Charges = tuple[tuple[int, int], ...]
"""(slot, amount) pairs; a slot is one resource of one pool of one queue."""


class Quota:
    """Free quota per slot, changed only by `take` and `give`; negative when a nominal figure was lowered."""

    __slots__ = ("free", "nominal", "slots")

    def __init__(self, queues: Iterable[model.Queue], jobs: Iterable[model.Job]) -> None:
        self.slots: dict[tuple[str, str, str], int] = {}
        self.nominal: list[int] = []
        for queue in queues:
            for pool in queue.pools:
                for resource, amount in pool.nominal:
                    self.slots[queue.name, pool.name, resource] = len(self.nominal)
                    self.nominal.append(amount)
        self.free: list[int] = list(self.nominal)
        for job in jobs:
            self.take(self.held(job))

    def copy(self, *, unused: bool = False) -> Quota:
        """An independent copy; `unused` gives the one of a queue in which nothing runs."""
        other = object.__new__(Quota)
        other.slots, other.nominal = self.slots, self.nominal
        other.free = list(self.nominal if unused else self.free)
        return other

    def charges(self, queue: str, pool: str, group: model.Group, count: int) -> Charges:
        """What `count` members of a group cost in a pool; resources the pool does not list cost nothing."""
        found: list[tuple[int, int]] = []
        for resource, amount in group.shape.requests:
            slot = self.slots.get((queue, pool, resource))
            if slot is not None and amount > 0:
                found.append((slot, amount * count))
        return tuple(found)

    def held(self, job: model.Job) -> Charges:
        """What a job costs now by its assigned members, bound or expected."""
        found: list[tuple[int, int]] = []
        for part in job.assigned:
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
