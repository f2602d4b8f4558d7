"""How much of what is free in the domains of an interconnect gangs can use: figures for Prometheus.

Looked at when somebody scrapes, so that it costs nothing else. Of a domain with `f` free pieces a gang of `s`
can use `f - f % s`; what is left over is fragmented for it. The figure is its share of all that is free, in
the mean over the gangs that wait or run (after Weng et al.'s fragmentation of nodes, ATC 2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import model
from lstqueue.topology import eligibility
from lstqueue.topology.domains import Domains
from lstqueue.topology.table import Ints


@dataclass(frozen=True, slots=True)
class Figure:
    """Of a level and a resource: what is free in the domain with most, and the share that is fragmented."""

    level: str
    resource: str
    largest: int
    fragmented: float


def figures(domains: Domains, snapshot: model.Snapshot) -> list[Figure]:
    """Return the figures of every level, for each extended resource that jobs ask for."""
    sizes = _sizes(snapshot.jobs)
    place = {name: index for index, name in enumerate(domains.nodes)}
    found = []
    for resource, gangs in sorted(sizes.items()):
        free: Ints = np.zeros(len(domains.nodes), dtype=np.int64)
        for node in snapshot.nodes:
            if node.name in place and node.ready and not node.unschedulable:
                left = dict(node.allocatable).get(resource, 0) - dict(node.used).get(resource, 0)
                free[place[node.name]] = max(left, 0)
        before = np.concatenate([np.zeros(1, dtype=np.int64), free.cumsum()])
        for level in domains.levels:
            held = before[level.ends] - before[level.starts]
            largest = int(held.max(initial=0))
            found.append(Figure(level.name, resource, largest, _fragmented(held, gangs)))
    return found


def _sizes(jobs: Iterable[model.Job]) -> dict[str, Counter[int]]:
    """By resource, how many gangs ask for how much of it in all."""
    found: dict[str, Counter[int]] = {}
    for job in jobs:
        asked: Counter[str] = Counter()
        for group in job.groups:
            for name, amount in group.shape.requests:
                if eligibility.is_extended(name):
                    asked[name] += amount * group.count
        for name, size in asked.items():
            if size:
                found.setdefault(name, Counter())[size] += 1
    return found


def _fragmented(held: Ints, gangs: Counter[int]) -> float:
    total = int(held.sum())
    if not total:
        return 0.0
    lost = sum(int((held % size).sum()) * count for size, count in gangs.items())
    return lost / total / gangs.total()
