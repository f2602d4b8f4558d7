"""A place on an interconnect for a forecast: in one of the tightest domains that hold a group, quickly.

A forecast places thousands of gangs in times to come that nobody knows exactly, so it asks for a place that
the search could have chosen as well, and not for the best. What is required is kept, and whether a group fits
at all is exact. Nodes are taken as `placement` does within the domain: the fewest free first.
"""

from __future__ import annotations

import numpy as np

from lstqueue.topology import together, tree
from lstqueue.topology.capacity import Ledger
from lstqueue.topology.table import Ints


def choose(ledger: Ledger, fabric: tree.Tree, row: int, count: int) -> tuple[Ints, Ints] | None:
    """Choose nodes for `count` pods of a row, without charging them; None when they do not fit together."""
    if ledger.total[row] < count:
        return None
    bound, counts = ledger.rows.rows[row].bound, ledger.counts[row]
    start, end = _tightest(ledger, fabric, row, count, bound)
    if bound.unit > 1:
        return _sliced(ledger, fabric, row, count, (start, end))
    return _filled(ledger, row, count, start + counts[start:end].nonzero()[0])


def _tightest(
    ledger: Ledger, fabric: tree.Tree, row: int, count: int, bound: together.Bound
) -> tuple[int, int]:
    """The nodes of the smallest domain, from inner levels outwards, that holds the pods; all of them last."""
    if bound.unit > 1 and not bound.required:
        return 0, fabric.size
    for tier in range(fabric.depth, bound.required, -1):
        at = fabric.tiers[tier]
        caps = np.add.reduceat(ledger.counts[row], at.starts) if bound.unit == 1 else np.zeros(1)
        enough = (caps >= count).nonzero()[0]
        if len(enough):
            best = enough[caps[enough].argmin()]
            return int(at.starts[best]), int(at.ends[best])
    if not bound.required:
        return 0, fabric.size
    at, caps = fabric.tiers[bound.required], ledger.by_domain(row)
    enough = (caps >= count).nonzero()[0]
    best = enough[caps[enough].argmin()]
    return int(at.starts[best]), int(at.ends[best])


def _sliced(
    ledger: Ledger, fabric: tree.Tree, row: int, count: int, span: tuple[int, int]
) -> tuple[Ints, Ints]:
    """Whole slices, in the domains that take most of them first."""
    bound = ledger.rows.rows[row].bound
    at, counts = fabric.tiers[bound.slice_tier], ledger.counts[row]
    inside = ((at.starts >= span[0]) & (at.ends <= span[1])).nonzero()[0]
    sums = np.add.reduceat(counts, at.starts)[inside]
    nodes, pods, left = [], [], count
    for place in np.argsort(-sums, kind="stable").tolist():
        took = min(left, int(sums[place]) // bound.unit * bound.unit)
        if took:
            start, end = int(at.starts[inside[place]]), int(at.ends[inside[place]])
            part = _filled(ledger, row, took, start + counts[start:end].nonzero()[0])
            nodes.append(part[0])
            pods.append(part[1])
            left -= took
    found, many = np.concatenate(nodes), np.concatenate(pods)
    order = found.argsort()
    return found[order], many[order]


def _filled(ledger: Ledger, row: int, count: int, some: Ints) -> tuple[Ints, Ints]:
    """Nodes of `some`, which hold the pods, each filled as far as they go."""
    rows, counts = ledger.rows, ledger.counts[row][some]
    order = np.lexsort((some, -counts, ledger.free[rows.scarce[row]][some]))
    nodes, pods = some[order], counts[order]
    reached = pods.cumsum()
    last = int(reached.searchsorted(count))
    nodes, pods = nodes[: last + 1], pods[: last + 1]
    pods[last] -= int(reached[last]) - count
    ranks = nodes.argsort()
    return nodes[ranks], pods[ranks]
