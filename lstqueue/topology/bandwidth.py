"""What the traffic of a gang gets where it was placed: hops, ring all-reduce, all-to-all, domains used.

Of the links that the topology names, and of this gang alone: nothing of what others send, of protocols or
of switches that are blocked. A GPU sends by its own NIC, so a gang with half of a node's GPUs has half of its
link. A bandwidth that nobody told limits nothing; where none limits, 0 is returned, which means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lstqueue.topology import tree, wanted
from lstqueue.topology.table import Ints, Mask


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


def judge(
    fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted, parts: list[tuple[Ints, Ints]]
) -> Quality:
    """Judge a place: (nodes, pods on each) by group of `asked`, in rank order."""
    nodes, inverse = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    pods: Ints = np.bincount(inverse, weights=np.concatenate([part[1] for part in parts])).astype(np.int64)
    largest = max(asked.groups, key=lambda group: (max(group.amounts, default=0), group.pods))
    link = link_shares(fabric, free, nodes, pods, largest.amounts)
    tiers = range(1, fabric.depth + 1)
    one = [
        tier - 1
        for tier in tiers
        if used(fabric, tier, nodes) == 1
        and fabric.tiers[tier].domain[fabric.tiers[tier].within[nodes[0]]] >= 0
    ]
    return Quality(
        level=one[-1] if one else None,
        used=tuple(used(fabric, tier, nodes) for tier in tiers),
        fewest=tuple(_fewest(fabric, free, asked, tier) for tier in tiers),
        hops=hops(fabric, nodes),
        ring=ring(fabric, nodes, link),
        best=_best(fabric, nodes, link),
        all_to_all=all_to_all(fabric, nodes, pods, link),
    )


def used(fabric: tree.Tree, tier: int, nodes: Ints) -> int:
    """Elements of a tier in which some nodes, in node order, lie."""
    return 1 + int(np.count_nonzero(np.diff(fabric.tiers[tier].within[nodes])))


def link_shares(
    fabric: tree.Tree, free: wanted.Free, nodes: Ints, pods: Ints, amounts: tuple[int, ...]
) -> Ints:
    """MB/s that the NICs of a gang's GPUs have on each of its nodes, of which its pods may fill a part."""
    link = fabric.link[nodes]
    room = wanted.fitting(wanted.Group(1, amounts), free.whole[:, nodes])
    share = link * np.minimum(pods, room) // np.maximum(room, 1)
    found: Ints = np.where(link < tree.UNKNOWN, share, tree.UNKNOWN)
    return found


def crossings(fabric: tree.Tree, tier: int, order: Ints) -> Ints:
    """By element of a tier, edges of a ring over the nodes of `order` that leave it."""
    at = fabric.tiers[tier].within[order]
    leaving = at[at != np.roll(at, -1)]
    counts: Ints = np.bincount(leaving, minlength=len(fabric.tiers[tier].starts))
    return counts


def ring(fabric: tree.Tree, order: Ints, link: Ints) -> int:
    """Bandwidth in MB/s of a ring all-reduce in rank order, 0 unknown.

    The edges of the ring that leave a domain share its uplink, so it gets the least of uplink / edges
    (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009, give the ring; every edge of it
    carries the same). In node order one edge leaves each domain. NVLink domains send by all NICs of the
    gang's GPUs in them, so the one with the fewest GPUs sets the speed (NCCL issue 1801: 49 GB/s for each
    of its GPUs).

    Args:
        fabric: The tree.
        order: The gang's nodes in rank order, none twice.
        link: MB/s of each of them (`link_shares`).
    """
    return _known(np.array([tree.UNKNOWN, *_ring(fabric, order, link)]))


def _ring(fabric: tree.Tree, order: Ints, link: Ints) -> list[int]:
    limits: list[int] = []
    for tier in range(1, fabric.depth + 1):
        at = fabric.tiers[tier]
        if used(fabric, tier, np.sort(order)) == 1:
            continue
        edges = crossings(fabric, tier, order)
        some = edges.nonzero()[0]
        bandwidth = at.uplink[some]
        if tier == fabric.accelerator:
            bandwidth = np.minimum(bandwidth, _nics(at, order, link)[some])
        limits.append(int(np.where(bandwidth < tree.UNKNOWN, bandwidth // edges[some], tree.UNKNOWN).min()))
    return [*limits, *link[_alone(fabric, order)].tolist()]


def all_to_all(fabric: tree.Tree, nodes: Ints, pods: Ints, link: Ints) -> int:
    """Bandwidth in MB/s that each pod sends with when each sends as much to every other, 0 unknown.

    Of n pods g in a domain send g (n - g) / (n - 1) of that through its uplink: each sends 1 / (n - 1) to
    each of the n - g outside. The least over all domains and nodes is what all can have.
    """
    total = int(pods.sum())
    limits = [tree.UNKNOWN]
    last = len(fabric.tiers) - 1
    for tier in range(1, last + 1):
        at = fabric.tiers[tier]
        inside: Ints = np.bincount(at.within[nodes], weights=pods, minlength=len(at.starts)).astype(np.int64)
        bandwidth = at.uplink
        if tier == last:
            bandwidth = np.full(len(at.starts), tree.UNKNOWN, dtype=np.int64)
            bandwidth[nodes] = np.where(_alone(fabric, nodes), link, tree.UNKNOWN)
        elif tier == fabric.accelerator:
            bandwidth = np.minimum(bandwidth, _nics(at, nodes, link))
        some = ((inside > 0) & (inside < total) & (bandwidth < tree.UNKNOWN)).nonzero()[0]
        flows = inside[some] * (total - inside[some])
        limits += (bandwidth[some] * (total - 1) // flows).tolist()
    return _known(np.array(limits))


def hops(fabric: tree.Tree, nodes: Ints) -> int:
    """Links on the longest way between two nodes, 0 for a single one; the way goes through the common domain.

    An NVLink domain is no part of the way out of it: a node's NICs lead past it.
    """
    if len(nodes) == 1:
        return 0
    inner = fabric.accelerator
    if inner is not None and used(fabric, inner, nodes) == 1 and _domain(fabric, inner, int(nodes[0])) >= 0:
        return 2
    deepest = dict.fromkeys(nodes.tolist(), 0)  # by element: links down to the node that is furthest in
    longest = 0
    for tier in range(len(fabric.tiers) - 1, 0, -1):
        at = fabric.tiers[tier]
        outer: dict[int, int] = {}
        for element, down in deepest.items():
            link = tier == len(fabric.tiers) - 1 or (
                at.domain[element] >= 0
                and not fabric.domains.levels[tier - 1].name.startswith(tree.ACCELERATOR)
            )
            parent, down = int(at.parents[element]), down + link
            if parent in outer:
                longest = max(longest, outer[parent] + down)
            outer[parent] = max(outer.get(parent, 0), down)
        deepest = outer
    return longest


def _best(fabric: tree.Tree, nodes: Ints, link: Ints) -> int:
    """The ring's bandwidth if uplinks did not limit it."""
    limits = link[_alone(fabric, nodes)].tolist()
    tier = fabric.accelerator
    if tier is not None and used(fabric, tier, nodes) > 1:
        sums = _nics(fabric.tiers[tier], nodes, link)
        limits += sums[fabric.tiers[tier].within[nodes]].tolist()
    return _known(np.array(limits))


def _domain(fabric: tree.Tree, tier: int, node: int) -> int:
    at = fabric.tiers[tier]
    return int(at.domain[at.within[node]])


def _nics(at: tree.Tier, nodes: Ints, link: Ints) -> Ints:
    """By element, what the NICs of the gang's GPUs in it have together."""
    sums: Ints = np.zeros(len(at.starts), dtype=np.int64)
    np.add.at(sums, at.within[nodes], np.minimum(link, tree.UNKNOWN >> 20))
    found: Ints = np.where(sums < tree.UNKNOWN >> 20, sums, tree.UNKNOWN)
    return found


def _alone(fabric: tree.Tree, nodes: Ints) -> Mask:
    """Nodes that send to others by their own NICs only, as those within NVLink domains do not."""
    if len(nodes) == 1 or fabric.accelerator is None:
        return np.full(len(nodes), len(nodes) > 1)
    at = fabric.tiers[fabric.accelerator]
    alone: Mask = at.domain[at.within[nodes]] < 0
    return alone


def _known(limits: Ints) -> int:
    least = int(limits.min()) if len(limits) else tree.UNKNOWN
    return 0 if least >= tree.UNKNOWN >> 20 else least


def _fewest(fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted, tier: int) -> int:
    """Domains of a tier that would hold the group that needs most of them if nothing ran anywhere."""
    most = 1
    for group in asked.groups:
        room = wanted.fitting(group, free.whole)
        caps = np.sort(np.add.reduceat(room, fabric.tiers[tier].starts))[::-1]
        most = max(most, int(caps.cumsum().searchsorted(group.pods)) + 1)
    return most
