"""What must hold of victims that only move: each has a place of its own, once the claims are fulfilled.

The slow and obvious reading, for `justice`: all places that there are tried one after the other, pod by pod.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lstqueue.engine import invariants, model
from lstqueue.topology import eligibility
from lstqueue.topology.model import Node

Amounts = dict[str, int]
TRIES = 20_000
"""Places of pods that are tried before it is taken that there is a way: a check must not say wrongly that
there is none."""


def too_many(owner: model.Job, moving: Collection[model.Job], most: float) -> bool:
    """Whether those that move for a claim hold more than a part of what its owner takes, whatever counts."""
    takes, held = _amounts([owner]), _amounts(moving)
    return all(held.get(name, 0) > most * amount for name, amount in takes.items())


def _amounts(jobs: Collection[model.Job]) -> Amounts:
    found: Amounts = {}
    for job in jobs:
        for group in job.groups:
            for name, amount in group.shape.requests:
                found[name] = found.get(name, 0) + amount * group.count
    return found


def homeless(later: model.Snapshot, moving: Sequence[model.Job]) -> bool:
    """Whether not all of some jobs fit together in what is free in a world that they have left."""
    free: dict[str, Amounts] = {}
    held = invariants.held_on_nodes(later)
    for node in later.nodes:
        used, owned = dict(node.used), held.get(node.name, {})
        free[node.name] = {
            name: has - used.get(name, 0) - owned.get(name, 0) for name, has in node.allocatable
        }
    queues = {queue.name: queue for queue in later.queues}
    pods = [(job, group) for job in moving for group in job.groups for _ in range(group.count)]
    pods.sort(key=lambda pod: sorted(pod[1].shape.requests), reverse=True)
    nodes = {
        (job.uid, group.name): [
            node.name
            for node in later.nodes
            if node.name not in job.avoid and _suits(node, group, queues[job.queue])
        ]
        for job, group in pods
    }
    tries = 0

    def fits(at: int) -> bool:
        nonlocal tries
        if at == len(pods):
            return True
        job, group = pods[at]
        requests = group.shape.requests
        for name in nodes[job.uid, group.name]:
            left = free[name]
            if all(left.get(what, 0) >= amount for what, amount in requests):
                tries += 1
                _move(left, requests, -1)
                found = tries > TRIES or fits(at + 1)
                _move(left, requests, 1)
                if found:
                    return True
        return False

    return not fits(0)


def _move(there: Amounts, requests: Sequence[tuple[str, int]], sign: int) -> None:
    for what, amount in requests:
        there[what] = there.get(what, 0) + sign * amount


def _suits(node: Node, group: model.Group, queue: model.Queue) -> bool:
    return any(
        eligibility.eligible(node, group.shape, selector=pool.selector, tolerations=pool.tolerations)
        for pool in queue.pools
    )
