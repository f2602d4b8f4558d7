"""Interconnects drawn at random, and how few domains and nodes a gang could do with on them, by CP-SAT."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from lstqueue.topology import domains, tree, wanted

LEVELS = ("block", "leafgroup", "nvl")


@dataclass(frozen=True)
class Fabric:
    """A tree, what is free on it in GPUs, and the names of its levels."""

    fabric: tree.Tree
    free: wanted.Free


def clos(rng: random.Random, *, nodes: int, levels: int, ragged: float = 0.0) -> dict[str, domains.Path]:
    """Paths of up to `nodes` nodes; of a `ragged` share one of the levels is not known."""
    paths: dict[str, domains.Path] = {}
    while len(paths) < nodes:
        block = f"b{rng.randrange(1 + nodes // 24)}"
        leaf = f"l{rng.randrange(1 + nodes // 30)}"
        nvl = f"n{rng.randrange(3)}"
        for _ in range(rng.randint(1, 8)):
            path: list[str | None] = [block, leaf, nvl][:levels]
            if path and rng.random() < ragged:
                path[rng.randrange(levels)] = None
            if len(paths) < nodes:
                paths[f"node-{len(paths)}"] = tuple(path)
    return paths


def drawn(
    rng: random.Random, *, nodes: int, levels: int = 2, load: float | None = None, ragged: float = 0.0
) -> Fabric:
    """A fabric of nodes with 8 GPUs of which about `load` are in use."""
    found = domains.arrange(LEVELS[:levels], clos(rng, nodes=nodes, levels=levels, ragged=ragged))
    return Fabric(tree.Tree(found), room(rng, len(found.nodes), load))


def room(rng: random.Random, nodes: int, load: float | None = None) -> wanted.Free:
    """Nodes of 8 GPUs each, most of those in use being used whole."""
    load = rng.choice([0.0, 0.3, 0.5, 0.7]) if load is None else load
    free = [8 if rng.random() > load else rng.choice([0, 0, 0, rng.randint(1, 7)]) for _ in range(nodes)]
    return wanted.Free(np.array([free], dtype=np.int64), np.full((1, nodes), 8, dtype=np.int64))


def best(world: Fabric, group: wanted.Group, required: int | None) -> tuple[int, ...] | None:
    """The fewest (domains of each level, outermost first, and nodes), or () when that is not proven in time.

    None when nothing holds the group.
    """
    fabric, counts = world.fabric, wanted.fitting(group, world.free.free)
    model = cp_model.CpModel()
    pods = [model.new_int_var(0, int(count), "") for count in counts]
    model.add(sum(pods) == group.pods)
    objective: list[cp_model.LinearExprT] = []
    scale = 1
    inside = [model.new_bool_var("") for _ in counts]
    for count, pod, used in zip(counts, pods, inside, strict=True):
        model.add(pod <= int(count) * used)
    for number in range(len(fabric.tiers) - 1, 0, -1):
        at = fabric.tiers[number]
        some = inside if number == len(fabric.tiers) - 1 else [model.new_bool_var("") for _ in at.starts]
        for node, used in enumerate(inside):
            if some is not inside:
                model.add_implication(used, some[at.within[node]])
        if number == required:
            model.add(sum(one for one, domain in zip(some, at.domain, strict=True) if domain >= 0) == 1)
            model.add(sum(one for one, domain in zip(some, at.domain, strict=True) if domain < 0) == 0)
        objective.append(scale * sum(some))
        scale *= len(counts) + 1
    model.minimize(sum(objective))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = 10
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        return ()
    value, result = round(solver.objective_value), []
    for _ in range(1, len(fabric.tiers)):
        result.append(value % (len(counts) + 1))
        value //= len(counts) + 1
    return tuple(reversed(result))
