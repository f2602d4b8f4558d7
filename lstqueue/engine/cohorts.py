"""Who shares quota with whom, and which queues may not: cohorts of GPUQueues.

The queues of a cohort lend each other what they do not use. That means something only if a pool name means
the same nodes in all of them, and if nobody outside lives on those nodes by another account. A queue that
breaks either rule against an older one admits nothing and takes no part in its cohort (`Queue.conflict`);
what runs in it goes on, charged to its own quota alone.

One order holds for all of a cohort, that of its oldest queue. Nothing is decided here about jobs; how much
anybody may take is in `quota`, who must give back what in `lending`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from lstqueue.engine.queues import Queue
from lstqueue.topology.model import Node

Selector = tuple[tuple[str, str], ...]


def settle(queues: Mapping[str, Queue], nodes: Sequence[Node]) -> Mapping[str, Queue]:
    """Every queue as it counts: with the order of its cohort, or with the conflict that keeps it out.

    Queues are taken from the oldest on; of two that cannot stand together the older one stays. Without
    cohorts this is what was given.
    """
    if not any([queue.cohort for queue in queues.values()]):
        return queues
    found: dict[str, Queue] = {}
    stay: list[Queue] = []
    there = _Nodes(nodes)
    for queue in sorted(queues.values(), key=age):
        problem = next((words for other in stay if (words := _conflict(queue, other, there))), "")
        if problem:
            queue = dataclasses.replace(queue, conflict=problem)
        else:
            stay.append(queue)
        found[queue.name] = queue
    oldest: dict[str, Queue] = {}
    for queue in stay:
        oldest.setdefault(queue.cohort, queue)
    for queue in stay:
        if queue.cohort and (order := oldest[queue.cohort].order) is not queue.order:
            found[queue.name] = dataclasses.replace(queue, order=order)
    return {name: found[name] for name in queues}


def age(queue: Queue) -> tuple[int, str]:
    """The older goes first; of queues of one moment the first by name."""
    return queue.created, queue.name


def together(one: Queue | None, other: Queue | None) -> bool:
    """Whether two settled queues lend each other quota, or are one."""
    if one is None or other is None:
        return False
    return one.name == other.name or (one.account == other.account and bool(one.cohort))


def _conflict(queue: Queue, older: Queue, there: _Nodes) -> str:
    """Why a queue cannot stand beside an older one; empty when it can."""
    if queue.cohort and queue.cohort == older.cohort:
        theirs = {pool.name: pool.selector for pool in older.pools}
        for pool in queue.pools:
            if pool.name in theirs and set(theirs[pool.name]) != set(pool.selector):
                return (
                    f'pool "{pool.name}" selects other nodes than in the older queue "{older.name}" of cohort'
                    f' "{queue.cohort}"; give it the same nodeSelector or another name'
                )
        return ""
    if not queue.cohort and not older.cohort:
        return ""
    shared = there.of(queue) & there.of(older)
    if not shared:
        return ""
    cohort = f' of cohort "{older.cohort}"' if older.cohort else ", which is not of its cohort"
    return (
        f'it shares node {min(shared)} with the older queue "{older.name}"{cohort}; select other nodes, or'
        " have both in one cohort"
    )


class _Nodes:
    """Which nodes (names) the pools of a queue select; looked up once per selector."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._labels = [(node.name, dict(node.labels)) for node in nodes]
        self._known: dict[Selector, frozenset[str]] = {}

    def of(self, queue: Queue) -> frozenset[str]:
        """Those that at least one of its pools selects."""
        return frozenset().union(*[self._selected(pool.selector) for pool in queue.pools])

    def _selected(self, selector: Selector) -> frozenset[str]:
        if selector not in self._known:
            names = [
                name
                for name, labels in self._labels
                if all(labels.get(key) == value for key, value in selector)
            ]
            self._known[selector] = frozenset(names)
        return self._known[selector]
