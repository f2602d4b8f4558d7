"""Placements that look at no interconnect, for comparisons with the search that does.

Each fills nodes one after the other, as far as the group goes, in another order; ranks follow the order of
the nodes in any case. The operator uses none of them.
"""

from __future__ import annotations

import numpy as np

from lstqueue.topology import placement
from lstqueue.topology.capacity import Ledger
from lstqueue.topology.rules import Rule
from lstqueue.topology.table import Ints

_ODD = np.uint64(0x9E3779B97F4A7C15)


def choose(ledger: Ledger, row: int, count: int, rule: Rule) -> tuple[Ints, Ints] | None:
    """Choose nodes for `count` pods of a row by a rule, as `placement.choose` does."""
    if rule is Rule.TIGHTEST or ledger.total[row] < count:
        return placement.choose(ledger, row, count)
    counts = ledger.counts[row]
    some = (counts > 0).nonzero()[0]
    if rule is Rule.MOST_FREE:
        order = np.lexsort((some, -ledger.free[ledger.rows.scarce[row]][some]))
    else:
        seed = np.uint64(int(ledger.free.sum()) & ((1 << 63) - 1)) + np.uint64(1)
        words = (some.astype(np.uint64) + seed) * _ODD
        words = (words ^ (words >> np.uint64(29))) * (_ODD + seed * np.uint64(2))
        order = np.argsort(words ^ (words >> np.uint64(32)), kind="stable")
    nodes = some[order]
    pods = counts[nodes]
    reached = pods.cumsum()
    last = int(reached.searchsorted(count))
    nodes, pods = nodes[: last + 1], pods[: last + 1].copy()
    pods[last] -= int(reached[last]) - count
    ranks = nodes.argsort()
    return nodes[ranks], pods[ranks]
