"""Where a gang goes on an interconnect, in what a ledger has free: all of its groups together.

How places are searched is in `topology.search`; nothing is charged here.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.engine import gangs
from lstqueue.topology import capacity, search, tree, wanted
from lstqueue.topology.table import Ints, Mask

Pieces = list[tuple[Ints, Ints]]
"""(nodes, pods on each) by group, in the order of the groups asked about."""


def find(
    ledger: capacity.Ledger, fabric: tree.Tree, gang: gangs.Gang, chosen: Sequence[gangs.Choice]
) -> Pieces | None:
    """Where a gang goes, each group in the pool chosen for it; None: the search finds no place.

    Nodes that offer what its pods do not ask for are used only where the others will not do.
    """
    rows = ledger.rows.rows
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
