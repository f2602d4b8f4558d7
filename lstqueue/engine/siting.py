"""Where a gang goes on an interconnect, in what a ledger has free: all of its groups together.

How places are searched is in `topology.search`; nothing is charged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import gangs, model
from lstqueue.topology import bandwidth, capacity, described, search, slowdown, table, tree, wanted
from lstqueue.topology.table import Ints, Mask


@dataclass(frozen=True, slots=True)
class Stage:
    """The nodes as columns, what they have of some resources, and the interconnect; None: none is known."""

    nodes: table.NodeTable
    resources: tuple[str, ...]
    allocatable: Ints
    fabric: tree.Tree | None


def holds(stage: Stage, gang: gangs.Gang, groups: Sequence[model.GroupPlacement]) -> bool:
    """Whether a place that was found before is still of one domain, and its slices, as the gang asks.

    What its ring gets is not looked at again. Nodes that are not there are the business of others.
    """
    fabric, index = stage.fabric, stage.nodes.index
    if fabric is None:
        return True
    for member in gang.members:
        bound = member.bound
        places = [
            index[node] for node, count in groups[member.group].nodes if node in index for _ in range(count)
        ]
        if bound.unit > 1:
            slices = fabric.tiers[bound.slice_tier].within[places]
            parts = [slices[first : first + bound.unit] for first in range(0, len(places), bound.unit)]
            if any((part != part[0]).any() for part in parts):
                return False
    everywhere = [index[node] for group in groups for node, _ in group.nodes if node in index]
    required = max((member.bound.required for member in gang.members), default=0)
    if not required or not everywhere:
        return True
    return len(np.unique(fabric.tiers[required].within[everywhere])) == 1


def slowdown_of(stage: Stage, job: model.Job, groups: Sequence[model.GroupPlacement]) -> int:
    """By how much a place makes a job slower than the best would, in ppm."""
    fabric, share = stage.fabric, job.locality.communication
    found = None if fabric is None or share <= 0 else _parts(stage, job, groups)
    if fabric is None or found is None:
        return slowdown.PPM
    asked, parts = found
    return slowdown.of(fabric, stage.allocatable, largest(asked), parts, share)


def varies(stage: Stage, job: model.Job) -> bool:
    """Whether how long a job takes depends on its place."""
    return stage.fabric is not None and job.locality.communication > 0


def largest(groups: Sequence[wanted.Group]) -> tuple[int, ...]:
    """What a pod of the gang's largest asks for."""
    return max(groups, key=lambda group: (max(group.amounts, default=0), group.pods)).amounts


def told(stage: Stage, job: model.Job, groups: Sequence[model.GroupPlacement]) -> tuple[str, str]:
    """(how good a place is in words, the domain that holds it); empty where nothing is known of it."""
    found = quality(stage, job, groups)
    if found is None or stage.fabric is None:
        return "", ""
    return described.place(stage.fabric, *found), described.domain(stage.fabric, *found) or ""


def around(stage: Stage, groups: Sequence[model.GroupPlacement]) -> str:
    """The full path of the innermost domain of a place, of those of its nodes that are there; "" for none."""
    fabric, index = stage.fabric, stage.nodes.index
    places = [index[node] for group in groups for node, _ in group.nodes if node in index]
    if fabric is None or not places:
        return ""
    for tier in range(fabric.depth, 0, -1):
        at = fabric.tiers[tier]
        elements = np.unique(at.within[places])
        if len(elements) == 1 and (found := int(at.domain[elements[0]])) >= 0:
            return fabric.domains.levels[tier - 1].names[found]
    return ""


def quality(
    stage: Stage, job: model.Job, groups: Sequence[model.GroupPlacement]
) -> tuple[bandwidth.Quality, Ints] | None:
    """How good a place is, and its nodes; None where nothing is known of the interconnect, or of a node."""
    fabric = stage.fabric
    made = None if fabric is None else _parts(stage, job, groups)
    if fabric is None or made is None:
        return None
    asked, parts = made
    free = wanted.Free(stage.allocatable, stage.allocatable)
    found = bandwidth.judge(fabric, free, wanted.Wanted(tuple(asked)), parts)
    return found, np.unique(np.concatenate([nodes for nodes, _ in parts]))


def _parts(
    stage: Stage, job: model.Job, groups: Sequence[model.GroupPlacement]
) -> tuple[list[wanted.Group], Pieces] | None:
    """A place in columns; None where a node of it is not there."""
    index = stage.nodes.index
    if any(node not in index for group in groups for node, _ in group.nodes):
        return None
    asked: list[wanted.Group] = []
    parts: Pieces = []
    for group, place in zip(job.groups, groups, strict=True):
        requests = dict(group.shape.requests)
        asked.append(wanted.Group(group.count, tuple(requests.get(name, 0) for name in stage.resources)))
        nodes = np.array([index[node] for node, _ in place.nodes], dtype=np.int64)
        parts.append((nodes, np.array([count for _, count in place.nodes], dtype=np.int64)))
    return asked, parts


Pieces = list[tuple[Ints, Ints]]
"""(nodes, pods on each) by group, in the order of the groups asked about."""


def find(
    ledger: capacity.Ledger, fabric: tree.Tree, gang: gangs.Gang, chosen: Sequence[gangs.Choice]
) -> Pieces | None:
    """Where a gang goes, each group in the pool chosen for it; None: the search finds no place.

    The domain of its last place is tried first, where it is not suspect as a whole. Nodes that offer what its
    pods do not ask for, and suspects, are used only where the others will not do.
    """
    rows = ledger.rows.rows
    if gang.home is not None:
        at_home: Mask = np.zeros(fabric.size, dtype=np.bool_)
        at_home[gang.home[0] : gang.home[1]] = True
        rather = [at_home & ~rows[option.row].spare for _, option in chosen]
        for there in (rather, [at_home] * len(chosen)):
            place = _search(ledger, fabric, gang, chosen, there)
            if place is not None:
                return place
    spare = [rows[option.row].spare if rows[option.row].spare.any() else None for _, option in chosen]
    if any(mask is not None for mask in spare):
        place = _search(ledger, fabric, gang, chosen, [None if mask is None else ~mask for mask in spare])
        if place is not None:
            return place
    return _search(ledger, fabric, gang, chosen, [None] * len(spare))


def _search(
    ledger: capacity.Ledger,
    fabric: tree.Tree,
    gang: gangs.Gang,
    chosen: Sequence[gangs.Choice],
    only: Sequence[Mask | None],
) -> Pieces | None:
    rows, groups = ledger.rows, []
    for (member, option), mask in zip(chosen, only, strict=True):
        where, counts = ledger.limit[option.row] > 0, ledger.counts[option.row]
        if mask is not None:
            where, counts = where & mask, counts * mask
        bounds = member.bound
        groups.append(
            wanted.Group(
                pods=member.count,
                amounts=tuple(rows.amounts[:, option.row].tolist()),
                mask=where,
                slice=bounds.unit,
                slice_tier=bounds.slice_tier or None,
                counts=counts,
            )
        )
    asked = wanted.Wanted(
        groups=tuple(groups),
        required=max(member.bound.required for member, _ in chosen) or None,
        balance=next(iter(fabric.accelerators), None),
        least=gang.least,
    )
    found = search.find(fabric, wanted.Free(ledger.free, rows.allocatable), asked)
    return None if found is None else [(part.nodes, part.pods) for part in found.parts]
