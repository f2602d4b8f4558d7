"""In which domains of an interconnect victims are looked for, for a gang that has to be in one of them.

Who makes room in several domains makes none for it. So each domain that could hold it is tried by itself,
those first in which least is missing, and the cheapest is taken (`searches`).
"""

from __future__ import annotations

import numpy as np

from lstqueue.engine import gangs, kept, victims
from lstqueue.topology import tree
from lstqueue.topology.table import Mask

MOST = 16
"""Domains tried for one gang."""


def of(known: kept.Kept, gang: gangs.Gang) -> list[Mask]:
    """Nodes of the domains to try, those first that lack fewest pods of the gang's largest; none: all nodes.

    A domain that could not hold that group even when empty is none.
    """
    fabric, member = known.world.fabric, gang.members[0]
    if fabric is None or not member.bound.required:
        return []
    at = fabric.tiers[member.bound.required]
    now, empty = known.free.ledger, known.possible.empty().ledger
    lacks = np.full(len(at.starts), member.count)
    able = np.zeros(len(at.starts), dtype=np.bool_)
    for option in member.options:
        lacks = np.minimum(lacks, member.count - now.by_domain(option.row))
        able |= empty.by_domain(option.row) >= member.count
    able &= tree.real(at)
    order = [int(element) for element in np.argsort(lacks, kind="stable") if able[element]]
    return [at.within == element for element in order[:MOST]]


def holding(herd: victims.Herd, nodes: Mask) -> Mask:
    """Which of a herd hold something on some nodes."""
    found: Mask = np.zeros(len(herd.here), dtype=np.bool_)
    found[herd.flock.owner[nodes[herd.flock.columns]]] = True
    return found
