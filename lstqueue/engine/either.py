"""What is owed to a job that will be in one of several places, of which nobody knows yet in which.

A slot that moves is where it was until the move is written, and may be where it goes from then on. It is in
one of the two, so at any time a node owes it the larger of what either takes there, and no sum: a sum would
count the room that both share twice, and crowd out a neighbour who has all it was promised.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from lstqueue.engine import calendar, room


def of(entries: Sequence[calendar.Entry]) -> list[calendar.Entry]:
    """What is owed at most, whichever of some entries of one job turns out to be the one."""
    edges = sorted({edge for one in entries for edge in (one.begins, one.ends)})
    found: list[calendar.Entry] = []
    for begins, ends in itertools.pairwise(edges):
        parts = [one.part for one in entries if one.begins <= begins and ends <= one.ends]
        if not parts:
            continue
        part = parts[0] if len(parts) == 1 else _larger(parts)
        found.append(calendar.Entry(entries[0].uid, begins, ends, part))
    return found


def _larger(parts: Sequence[room.Release]) -> room.Release:
    """The larger of several amounts, per node and resource and per slot of quota."""
    nodes = np.unique(np.concatenate([part.nodes for part in parts]))
    amounts = np.zeros((parts[0].amounts.shape[0], len(nodes)), dtype=np.int64)
    charges: dict[int, int] = {}
    for part in parts:
        there = np.zeros_like(amounts)
        there[:, np.searchsorted(nodes, part.nodes)] = part.amounts
        amounts = np.maximum(amounts, there)
        own: dict[int, int] = {}
        for slot, amount in part.charges:
            own[slot] = own.get(slot, 0) + amount
        for slot, amount in own.items():
            charges[slot] = max(amount, charges.get(slot, 0))
    return room.Release(parts[0].queue, nodes, amounts, tuple(sorted(charges.items())))
