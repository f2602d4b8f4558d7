"""Small clusters on an interconnect for the engine, drawn at random, with gangs that ask something of it."""

from __future__ import annotations

import dataclasses
import random

from lstqueue.engine import model
from lstqueue.topology import domains
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
LEVELS = ("block", "leafgroup")


def fabric(blocks: int = 2, leaves: int = 2, nodes: int = 3, *, ragged: bool = False) -> domains.Domains:
    """Nodes n0, n1, ... in leaf groups of some blocks; the last is in no leaf group when `ragged`.

    They are dealt to the leaf groups in turn, so that neighbours by name are no neighbours.
    """
    paths: dict[str, domains.Path] = {}
    count = blocks * leaves
    for number in range(count * nodes):
        leaf = number % count
        paths[f"n{number}"] = (f"b{leaf % blocks}", f"l{leaf}")
    if ragged:
        last = f"n{count * nodes - 1}"
        paths[last] = (paths[last][0], None)
    links = dict.fromkeys(paths, 50_000)
    uplinks = {path: 25_000 * nodes for path in paths.values() if path[-1] is not None}
    return domains.arrange(LEVELS, paths, uplinks=uplinks, links=links)


def node(name: str, *, gpus: int = 8, used: int = 0) -> Node:
    return Node(name, resources({GPU: gpus, "pods": 110}), resources({GPU: used, "pods": bool(used)}))


def job(number: int, pods: int, *, gpus: int = 8, leader: bool = False, **more: object) -> model.Job:
    """A waiting gang due in ten hours that is expected to run for one."""
    shape = PodShape(resources({GPU: gpus, "pods": 1}))
    groups = [model.Group("worker", pods, shape)]
    if leader:
        groups.insert(0, model.Group("leader", 1, PodShape(resources({GPU: 1, "pods": 1}))))
    given = {
        "deadline": NOW + 10 * HOUR,
        "estimate": model.Estimate(HOUR, HOUR, HOUR),
        "queue": "q",
        "submit": NOW - 100 + number,
    }
    return model.Job(  # type: ignore[arg-type]  # whatever a test gives
        uid=f"u{number:03}", namespace="ns", name=f"j{number}", groups=tuple(groups), **{**given, **more}
    )


def snapshot(
    found: domains.Domains | None, jobs: list[model.Job], nodes: list[Node] | None = None, quota: int = 1000
) -> model.Snapshot:
    made = nodes if nodes is not None else [node(name) for name in found.nodes] if found else []
    queue = model.Queue("q", pools=(model.Pool("p", nominal=((GPU, quota),)),))
    return model.Snapshot(tuple(made), (queue,), tuple(jobs), domains=found)


def locality(rng: random.Random) -> model.Locality:
    """What some gang may ask for."""
    return model.Locality(
        required=rng.choice(["", "", "leafgroup", "block"]),
        slice_size=rng.choice([1, 1, 2]),
        slice_level=rng.choice(["", "leafgroup", "block"]),
        min_bandwidth=rng.choice([0, 0, 0, 40_000]),
        preferred=rng.choice(["", "leafgroup", "leafgroup", "block"]),
        max_wait=rng.choice([None, None, HOUR, 20 * HOUR]),
        communication=rng.choice([0, 150_000, 300_000]),
    )


def running(rng: random.Random, number: int, name: str) -> model.Job:
    """A job on the whole of a node that ends some time, as far as anybody knows."""
    runs = None if rng.random() < 0.1 else model.Estimate(*[rng.randint(1, 300) * MINUTE + HOUR] * 3)
    one = job(number, 1, deadline=None, estimate=runs, preemptible=rng.random() < 0.5)
    part = (model.Assigned(0, "p", name, 1, 0),)
    return dataclasses.replace(one, state=model.State.RUNNING, since=NOW - HOUR, attempt=1, assigned=part)


def nodes_of(admission: model.Admission) -> list[str]:
    """Nodes in rank order, those of all groups one after the other."""
    return [name for group in admission.groups for name, _ in group.nodes]
