"""In which order levels lie within each other: by containment, whatever they are called.

Vendors number levels from the top and from the bottom, and an NVLink domain is a part of a leaf group in one
fabric and spans racks in another. The right order is the one that splits least: where every domain of one
level lies in one of another, no other order has as few domains in all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstqueue.topology.found import Said
from lstqueue.topology.table import Ints


def nested(told: Sequence[Said], nodes: Sequence[str]) -> list[Said]:
    """Order levels from outer to inner; the order told stays where nothing speaks against it.

    Levels that say nothing are dropped, and so are those whose every domain is a single node, as the node
    itself is no level.
    """
    order: list[Said] = []
    columns: list[Ints] = []
    for said in told:
        column = _column(said, nodes)
        if not _tells(column):
            continue
        places = range(len(order), -1, -1)
        best = min(places, key=lambda at: _domains([*columns[:at], column, *columns[at:]]))
        order.insert(best, said)
        columns.insert(best, column)
    return order


def _column(said: Said, nodes: Sequence[str]) -> Ints:
    codes: dict[str, int] = {}
    found = [said.domain.get(node) for node in nodes]
    return np.array(
        [-1 if name is None else codes.setdefault(name, len(codes)) for name in found], dtype=np.int64
    )


def _tells(column: Ints) -> bool:
    names = column[column >= 0]
    return bool(len(names)) and (len(names) == 1 or len(np.unique(names)) < len(names))


def _domains(columns: Sequence[Ints]) -> int:
    """How many domains all levels have together in this order, counting each by its path."""
    prefix: Ints = np.zeros(len(columns[0]), dtype=np.int64)
    total = 0
    for column in columns:
        width = int(column.max(initial=0)) + 2
        _, prefix = np.unique(prefix * width + column + 1, return_inverse=True)
        total += len(np.unique(prefix[column >= 0]))
    return total
