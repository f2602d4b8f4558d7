"""What a queue has in all, and which part of it a job is: the measure of the best-effort share.

Per resource, of every pool the smaller of its nominal quota and what its nodes have, whoever uses that now
and whether or not they are ready: so the measure moves with the cluster and the queue alone. Nothing is
decided here (`share` does).
"""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.engine import model
from lstqueue.topology import eligibility
from lstqueue.topology.model import Node

PPM = 1_000_000


class Means:
    """What one queue has; resources that none of its pools offers count as one unit."""

    def __init__(self, queue: model.Queue, nodes: Sequence[Node]) -> None:
        self._totals: dict[str, int] = {}
        for pool in queue.pools:
            there: dict[str, int] = {}
            for node in nodes:
                labels = dict(node.labels)
                if all(labels.get(key) == value for key, value in pool.selector):
                    for name, amount in node.allocatable:
                        there[name] = there.get(name, 0) + amount
            nominal = dict(pool.nominal)
            for name, amount in there.items():
                if name in nominal or not eligibility.is_extended(name):
                    more = min(amount, nominal.get(name, amount))
                    self._totals[name] = self._totals.get(name, 0) + more

    def held(self, job: model.Job) -> int:
        """The part that a job holds now, by its dominant resource, in ppm."""
        held: dict[str, int] = {}
        for part in job.assigned:
            for name, amount in job.groups[part.group].shape.requests:
                held[name] = held.get(name, 0) + amount * (part.bound + part.held)
        return self._dominant(held)

    def whole(self, job: model.Job) -> int:
        """The part that its whole gang is, in ppm."""
        asked: dict[str, int] = {}
        for group in job.groups:
            for name, amount in group.shape.requests:
                asked[name] = asked.get(name, 0) + amount * group.count
        return self._dominant(asked)

    def _dominant(self, amounts: dict[str, int]) -> int:
        """The largest part that amounts are of any resource, in ppm."""
        totals = self._totals
        return max((n * PPM // max(totals.get(name, 0), 1) for name, n in amounts.items()), default=0)
