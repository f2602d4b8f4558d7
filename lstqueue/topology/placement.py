"""Which nodes a worker group gets: free-count best fit.

Nodes are taken in this order until the whole group is placed, each filled as far as the group goes:

1. nodes that offer no extended resource the pods do not ask for (a CPU gang stays off GPU nodes);
2. fewest free units of the scarce resource (`capacity.Rows`), as an absolute count and not a percentage:
   the smallest hole that serves is used first, and wide holes survive for wide pods;
3. of equal ones, the node that takes more of the group, so that a gang spans fewer nodes;
4. the natural order of names.

For one group on one pool this finds a placement whenever there is one: its pods are alike, so any order of
nodes does. Memory and storage are compared in MiB.
"""

from __future__ import annotations

import numpy as np

from lstqueue.topology.capacity import Ledger
from lstqueue.topology.table import Ints

_FEW = 4095
"""Nodes that take more pods than this count as equal in rule 3."""
_FEW_BITS = 12
_TOP = 61


def choose(ledger: Ledger, row: int, count: int) -> tuple[Ints, Ints] | None:
    """Choose nodes for `count` pods of a row, without charging them.

    Returns:
        (nodes, pods per node) in index order, which is rank order; None when the group does not fit.
    """
    if ledger.total[row] < count:
        return None
    rows = ledger.rows
    counts = ledger.counts[row]
    most = int(counts.argmax())
    if counts[most] == ledger.total[row]:  # where all is full but what has just ended, five in six are so
        return np.array([most]), np.array([count])
    some = (counts > 0).nonzero()[0]  # half the price of asking the numbers themselves
    bits = rows.bits + _FEW_BITS
    room = ledger.free[rows.scarce[row]][some] >> rows.shift[row]
    key = np.minimum(room, (1 << (_TOP - bits)) - 1) << bits
    key += (_FEW - np.minimum(counts[some], _FEW)) << rows.bits
    key += rows.base[row][some]
    first = int(key.min()) & ((1 << rows.bits) - 1)
    if counts[first] >= count:  # so it is for half of all gangs, and saves sorting a thousand nodes
        return np.array([first]), np.array([count])
    key.sort()
    nodes: Ints = key & ((1 << rows.bits) - 1)
    pods = counts[nodes]
    reached = pods.cumsum()
    last = int(reached.searchsorted(count))
    nodes, pods = nodes[: last + 1], pods[: last + 1]
    pods[last] -= int(reached[last]) - count
    order = nodes.argsort()
    return nodes[order], pods[order]
