"""What the traffic of a gang gets where it was placed: hops, ring all-reduce, all-to-all, domains used.

Of the links that the topology names, and of this gang alone: nothing of what others send, of protocols or
of switches that are blocked. A GPU sends by its own NIC, so a gang with half of a node's GPUs has half of
its link, and with a quarter of an NVLink domain's a quarter of what leads out of that. A bandwidth that
nobody told limits nothing; where none limits, 0 is returned, which means unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.topology import tree, wanted
from lstqueue.topology.table import Ints


@dataclass(frozen=True, slots=True)
class Quality:
    """How good a place is.

    `used[i]` domains of level i (`Domains.levels`, outermost first) of `fewest[i]` that would do if nothing
    ran. `level` is the innermost level of which one domain holds the gang, None when none does. `hops` is
    links on the longest way between two of its nodes. `ring` and `all_to_all` are MB/s, `best` the ring's
    if only the links of nodes limited it; 0 is unknown.
    """

    level: int | None
    used: tuple[int, ...]
    fewest: tuple[int, ...]
    hops: int
    ring: int
    best: int
    all_to_all: int


@dataclass(frozen=True, slots=True)
class Rates:
    """MB/s one way that a gang has: `link[i]` on its node i, `exits[tier][element]` out of elements."""

    link: Ints
    exits: dict[int, Ints]


def judge(
    fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted, parts: list[tuple[Ints, Ints]]
) -> Quality:
    """Judge a place: (nodes, pods on each) by group of `asked`, in rank order."""
    nodes, inverse = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    pods: Ints = np.bincount(inverse, weights=np.concatenate([part[1] for part in parts])).astype(np.int64)
    largest = max(asked.groups, key=lambda group: (max(group.amounts, default=0), group.pods))
    gang = rates(fabric, free, nodes, pods, largest.amounts)
    tiers = range(1, fabric.depth + 1)
    one = [t - 1 for t in tiers if used(fabric, t, nodes) == 1 and _domain(fabric, t, int(nodes[0])) >= 0]
    return Quality(
        level=one[-1] if one else None,
        used=tuple(used(fabric, tier, nodes) for tier in tiers),
        fewest=tuple(_fewest(fabric, free, asked, tier) for tier in tiers),
        hops=hops(fabric, nodes),
        ring=ring(fabric, nodes, gang),
        best=least(gang.link.tolist()) if len(nodes) > 1 else 0,
        all_to_all=all_to_all(fabric, nodes, pods, gang),
    )


def used(fabric: tree.Tree, tier: int, nodes: Ints) -> int:
    """Elements of a tier in which some nodes, in node order, lie."""
    return 1 + int(np.count_nonzero(np.diff(fabric.tiers[tier].within[nodes])))


def rates(
    fabric: tree.Tree,
    free: wanted.Free,
    nodes: Ints,
    pods: Ints,
    amounts: tuple[int, ...],
    *,
    tiers: Sequence[int] | None = None,
) -> Rates:
    """What a gang has with `pods[i]` pods that ask `amounts` on `nodes[i]`: its GPUs' part of links.

    Of the domains of `tiers` it has such a part of what leads out as well, of others all of it. When None
    these are the NVLink domains, of which every GPU has its own links.
    """
    kind = wanted.Group(1, amounts)
    room = wanted.fitting(kind, free.whole[:, nodes])
    exits: dict[int, Ints] = {}
    for tier in fabric.accelerators if tiers is None else tiers:
        at = fabric.tiers[tier]
        exits[tier] = at.uplink.copy()
        some, inverse = np.unique(at.within[nodes], return_inverse=True)
        mine = np.bincount(inverse, weights=pods).astype(np.int64)
        starts, ends = at.starts[some], at.ends[some]
        each = wanted.fitting(kind, free.whole[:, tree.ranges(starts, ends)])
        whole = np.add.reduceat(each, (ends - starts).cumsum() - (ends - starts))
        told = at.uplink[some] < tree.UNKNOWN
        share = at.uplink[some] * np.minimum(mine, whole) // np.maximum(whole, 1)
        exits[tier][some[told]] = share[told]
    link = fabric.link[nodes]
    share = link * np.minimum(pods, room) // np.maximum(room, 1)
    return Rates(np.where(link < tree.UNKNOWN, share, tree.UNKNOWN), exits)


def crossings(fabric: tree.Tree, tier: int, order: Ints) -> Ints:
    """By element of a tier, edges of a ring over the nodes of `order` that leave it."""
    at = fabric.tiers[tier].within[order]
    leaving = at[at != np.concatenate([at[1:], at[:1]])]
    counts: Ints = np.bincount(leaving, minlength=len(fabric.tiers[tier].starts))
    return counts


def ring(fabric: tree.Tree, order: Ints, gang: Rates) -> int:
    """Bandwidth in MB/s of a ring all-reduce in rank order, 0 unknown.

    Every edge of the ring carries the same (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms",
    2009), and those that leave a domain share its uplink: the least of uplink / edges is what all get. In
    node order one edge leaves each domain. An NVLink domain sends by the NICs of the gang's GPUs in it, so
    the one with the fewest of these sets the speed (NCCL issue 1801: about 49 GB/s for each).

    Args:
        fabric: The tree.
        order: The gang's nodes in rank order, none twice.
        gang: What it has of links, nodes in the same order.
    """
    if len(order) == 1:
        return 0
    limits = gang.link.tolist()
    for tier in range(1, fabric.depth + 1):
        if fabric.told_at[tier]:
            edges = crossings(fabric, tier, order)
            some = edges.nonzero()[0]
            bandwidth = gang.exits.get(tier, fabric.tiers[tier].uplink)[some]
            known = bandwidth < tree.UNKNOWN
            limits += (bandwidth[known] // edges[some[known]]).tolist()
    return least(limits)


def all_to_all(fabric: tree.Tree, nodes: Ints, pods: Ints, gang: Rates) -> int:
    """Bandwidth in MB/s that each pod sends with when each sends as much to every other, 0 unknown.

    Of n pods the g in a domain send g (n - g) / (n - 1) of that through its uplink, for each sends 1 / (n -
    1) to each of the n - g outside. The least over all domains and nodes is what all can have.
    """
    total = int(pods.sum())
    limits: list[int] = []
    for tier in range(1, len(fabric.tiers)):
        at = fabric.tiers[tier]
        if tier == len(fabric.tiers) - 1:
            inside, bandwidth = pods, gang.link
        else:
            some, inverse = np.unique(at.within[nodes], return_inverse=True)
            inside = np.bincount(inverse, weights=pods).astype(np.int64)
            bandwidth = gang.exits.get(tier, at.uplink)[some]
        for mine, rate in zip(inside.tolist(), bandwidth.tolist(), strict=True):
            if mine < total and rate < tree.UNKNOWN:
                limits.append(rate * (total - 1) // (mine * (total - mine)))
    return least(limits)


def hops(fabric: tree.Tree, nodes: Ints) -> int:
    """Links on the longest way between two nodes, 0 for a single one; the way goes through the common domain.

    An NVLink domain is no part of the way out of it: a node's NICs lead past it.
    """
    if len(nodes) == 1:
        return 0
    for tier in fabric.accelerators:
        if used(fabric, tier, nodes) == 1 and _domain(fabric, tier, int(nodes[0])) >= 0:
            return 2
    last = len(fabric.tiers) - 1
    deepest = dict.fromkeys(nodes.tolist(), 0)  # by element: links down to the node that is furthest in
    longest = 0
    for tier in range(last, 0, -1):
        at = fabric.tiers[tier]
        outer: dict[int, int] = {}
        for element, down in deepest.items():
            switch = at.domain[element] >= 0 and tier not in fabric.accelerators
            below = down + (switch or tier == last)
            parent = int(at.parents[element])
            if parent in outer:
                longest = max(longest, outer[parent] + below)
            outer[parent] = max(outer.get(parent, 0), below)
        deepest = outer
    return longest


def _domain(fabric: tree.Tree, tier: int, node: int) -> int:
    at = fabric.tiers[tier]
    return int(at.domain[at.within[node]])


def least(limits: list[int]) -> int:
    """The least of some bandwidths, 0 where none is known."""
    lowest = min(limits, default=tree.UNKNOWN)
    return 0 if lowest >= tree.UNKNOWN else lowest


def _fewest(fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted, tier: int) -> int:
    """Domains of a tier that would hold the group that needs most of them if nothing ran anywhere."""
    most = 1
    for group in asked.groups:
        room = wanted.fitting(group, free.whole)
        caps = np.sort(np.add.reduceat(room, fabric.tiers[tier].starts))[::-1]
        most = max(most, int(caps.cumsum().searchsorted(group.pods)) + 1)
    return most
