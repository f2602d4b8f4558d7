"""Which gangs of a trace a cluster could ever hold, whatever the policy; the others are counted."""

from __future__ import annotations

import collections

from lstqueue.evaluate import workload, world

TOO_WIDE = "wider than the cluster"
NO_NODES = "asks for more than its nodes could ever have"


def fitting(load: workload.Workload, nodes: world.Shape) -> workload.Workload:
    """Leave out gangs that no policy could run there, and count them by why."""
    left: collections.Counter[str] = collections.Counter()
    known: dict[tuple[workload.Pods, ...], bool] = {}
    works = []
    for work in load.works:
        if work.pods not in known:
            known[work.pods] = _holds(nodes, work.pods)
        if work.gpus > nodes.gpus:
            left[TOO_WIDE] += 1
        elif not known[work.pods]:
            left[NO_NODES] += 1
        else:
            works.append(work)
    dropped = (*load.dropped, *left.items())
    return workload.Workload(load.name, tuple(works), dropped, load.completed, load.rows)


def _holds(nodes: world.Shape, pods: tuple[workload.Pods, ...]) -> bool:
    """Whether each group of a gang by itself finds room in an empty cluster."""
    offers = [dict(machine.allocatable(machine.gpus)) for machine in nodes.machines]
    return all(
        sum(min(offer.get(name, 0) // amount for name, amount in group.requests) for offer in offers)
        >= group.count
        for group in pods
    )
