"""Which nodes of the chosen domains pods go to: the fewest, and of these the most used that still do.

A pod that is smaller than a node goes where others are already, so that whole nodes stay whole. Where links
of nodes are known to differ, nodes with a worse one than need be are left alone.
"""

from __future__ import annotations

import numpy as np

from lstqueue.topology import counted, sets, tree
from lstqueue.topology.table import Ints, Mask


def fill(
    count: counted.Counted, elements: Ints, *, tier: int, pods: int, opened: Mask
) -> tuple[Ints, Ints] | None:
    """Choose nodes for `pods` pods in some elements of a tier.

    Args:
        count: What nodes take.
        elements: Which of them, of `tier`.
        tier: Theirs.
        pods: How many pods.
        opened: Nodes on which something runs.

    Returns:
        (nodes, pods on each) in node order; None when they do not hold the pods.
    """
    fabric = count.fabric
    at = fabric.tiers[tier]
    elements = np.sort(elements)
    inside = tree.ranges(at.starts[elements], at.ends[elements])
    counts = count.nodes[inside]
    some = counts.nonzero()[0]
    inside, counts = inside[some], counts[some]
    total = int(counts.sum())
    if total <= pods:
        return (inside, counts) if total == pods else None
    if fabric.links_vary:
        kept = _well_linked(count, elements, tier, inside, counts, pods)
        inside, counts = inside[kept], counts[kept]
    order = np.lexsort((inside, count.alike[-1][inside], ~opened[inside], counts))
    return _tightest(inside[order], counts[order], pods)


def shares(caps: Ints, pods: int, unit: int, *, equal: bool) -> Ints:
    """Pods for each of several domains that together hold them, in multiples of `unit`.

    Equal shares make the smallest as large as can be; else the largest domains are filled first.
    """
    given: Ints = np.zeros(len(caps), dtype=np.int64)
    left = pods // unit
    order = np.argsort(caps if equal else -caps, kind="stable").tolist()
    for number, one in enumerate(order):
        part = left // (len(order) - number) if equal else left
        given[one] = min(int(caps[one]) // unit, part)
        left -= int(given[one])
    return given * unit


def _tightest(nodes: Ints, counts: Ints, pods: int) -> tuple[Ints, Ints]:
    """As few nodes as can be; of these the run in ascending order that leaves least, its least one exchanged.

    None of them can be spared, so less is left over than any of them takes: the largest keeps it.
    """
    size = int(counts[::-1].cumsum().searchsorted(pods)) + 1
    reach: Ints = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=reach[1:])
    held = reach[size:] - reach[:-size]
    start = int((held >= pods).argmax())
    over = int(held[start]) - pods
    chosen = np.arange(start, start + size)
    chosen[0] = counts.searchsorted(counts[start] - over)
    took = counts[chosen]
    took[-1] -= int(took.sum()) - pods
    order = nodes[chosen].argsort()
    return nodes[chosen][order], took[order]


def _well_linked(
    count: counted.Counted, elements: Ints, tier: int, nodes: Ints, counts: Ints, pods: int
) -> Mask:
    """Nodes whose link is no worse than need be; better than the narrowest uplink helps nobody."""
    bound = int(sets.uplinks(count.fabric, elements[None, :], tier)[0])
    grades = sets.bucket(np.minimum(count.fabric.link[nodes], bound))
    for grade in sorted(set(grades.tolist()), reverse=True):
        good: Mask = grades >= grade
        if int(counts[good].sum()) >= pods:
            return good
    return np.ones(len(nodes), dtype=np.bool_)
