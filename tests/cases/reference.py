"""Where a gang goes: a slow and obvious reading of steps 3 and 4, pod by pod in plain Python."""

from __future__ import annotations

import dataclasses
import re

from lstqueue.engine import model
from lstqueue.topology import eligibility
from lstqueue.topology.model import Node

GPU = "nvidia.com/gpu"
LATE = 1 << 62


def pools_of(queue: model.Queue, group: model.Group) -> list[model.Pool]:
    asked = {name for name, amount in group.shape.requests if "/" in name and amount}
    return [pool for pool in queue.pools if asked <= {name for name, _ in pool.nominal}]


def natural(name: str) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def pods_that_fit(free: dict[str, int], requests: dict[str, int]) -> int:
    return max(0, min(free.get(name, 0) // amount for name, amount in requests.items()))


class Reference:
    def __init__(self, snapshot: model.Snapshot) -> None:
        self.snapshot = snapshot
        self.free: dict[str, dict[str, int]] = {}
        for node in snapshot.nodes:
            used = dict(node.used)
            self.free[node.name] = {name: has - used.get(name, 0) for name, has in node.allocatable}
        self.quota = {(q.name, p.name, r): n for q in snapshot.queues for p in q.pools for r, n in p.nominal}

    def place(self, queue: model.Queue, group: model.Group) -> model.GroupPlacement | None:
        requests = dict(group.shape.requests)
        for pool in pools_of(queue, group):
            slots = {(queue.name, pool.name, name): amount for name, amount in requests.items()}
            if any(self.quota.get(s, LATE) < amount * group.count for s, amount in slots.items()):
                continue
            chosen = self.nodes_for(pool, group)
            if chosen is None:
                continue
            for slot, amount in slots.items():
                if slot in self.quota:
                    self.quota[slot] -= amount * group.count
            for name, pods in chosen:
                for resource, amount in requests.items():
                    self.free[name][resource] -= amount * pods
            return model.GroupPlacement(pool.name, tuple(chosen))
        return None

    def nodes_for(self, pool: model.Pool, group: model.Group) -> list[tuple[str, int]] | None:
        requests = dict(group.shape.requests)
        ranked: list[tuple[object, ...]] = []
        scarce = max(
            (name for name in requests if "/" in name), default=None, key=lambda n: self.part(pool, group, n)
        )
        scarce = scarce or max((n for n in requests if n != "pods"), key=lambda n: self.part(pool, group, n))
        for node in self.snapshot.nodes:
            if eligibility.eligible(node, group.shape, selector=pool.selector, tolerations=pool.tolerations):
                fits = pods_that_fit(self.free[node.name], requests)
                others = any(
                    "/" in name and name not in requests for name, amount in node.allocatable if amount
                )
                room = self.free[node.name].get(scarce, 0)
                ranked.append((others, room, -fits, natural(node.name), node.name, fits))
        chosen: list[tuple[str, int]] = []
        left = group.count
        for *_, name, fits in sorted(ranked):
            if left and fits:
                take = min(left, int(fits))
                chosen.append((str(name), take))
                left -= take
        return None if left else sorted(chosen, key=lambda pair: natural(pair[0]))

    def part(self, pool: model.Pool, group: model.Group, resource: str) -> tuple[float, bool, str]:
        """Share of a resource that a pod takes of the nodes it may use; the first by name wins a tie."""
        total = 0
        for node in self.snapshot.nodes:
            if eligibility.eligible(
                node, group.shape, selector=pool.selector, tolerations=pool.tolerations, lasting=True
            ):
                total += dict(node.allocatable).get(resource, 0)
        return (dict(group.shape.requests)[resource] / max(total, 1), resource == GPU, resource)

    def walk(self, line: list[model.Job]) -> list[model.Admission]:
        queues = {queue.name: queue for queue in self.snapshot.queues}
        blocked: set[str] = set()
        admitted: list[model.Admission] = []
        empty = Reference(dataclasses.replace(self.snapshot, nodes=tuple(map(better, self.snapshot.nodes))))
        for job in line:
            if job.queue in blocked:
                continue
            placed = self.place(queues[job.queue], job.groups[0])
            if placed is not None:
                admitted.append(model.Admission(job.uid, job.queue, (placed,)))
            elif queues[job.queue].order is model.Order.FIFO:
                before = ({k: dict(v) for k, v in empty.free.items()}, dict(empty.quota))
                if empty.place(queues[job.queue], job.groups[0]) is not None:
                    blocked.add(job.queue)
                empty.free, empty.quota = before
        return admitted


def better(node: Node) -> Node:
    return dataclasses.replace(node, used=(), ready=True)
