"""What goes together in a ledger, against counting by hand; and the quick place of a forecast within it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cases import effort, fabrics
from lstqueue.topology import capacity, roughly, together, tree
from lstqueue.topology.model import resources
from lstqueue.topology.table import Ints, Mask

GPU = "gpu"


def inside(fabric: tree.Tree, bound: together.Bound) -> Mask:
    """Nodes that have a domain of the levels that are asked for."""
    mask: Mask = np.ones(fabric.size, dtype=np.bool_)
    for tier in {bound.required, bound.slice_tier} - {0}:
        at = fabric.tiers[tier]
        mask &= tree.real(at)[at.within]
    return mask


def by_hand(fabric: tree.Tree, bound: together.Bound, counts: Ints) -> int:
    """The most pods that one domain takes, in whole slices."""
    sums: dict[int, int] = {}
    slices: dict[tuple[int, int], int] = {}
    for node, count in enumerate(counts.tolist()):
        outer = int(fabric.tiers[bound.required].within[node])
        inner = int(fabric.tiers[bound.slice_tier].within[node]) if bound.unit > 1 else 0
        slices[outer, inner] = slices.get((outer, inner), 0) + count
    for (outer, _), count in slices.items():
        sums[outer] = sums.get(outer, 0) + count // bound.unit * bound.unit
    return max(sums.values())


@pytest.mark.parametrize("seed", range(effort.examples(25)))
def test_sums_follow_every_change_and_a_quick_place_keeps_what_is_asked(seed: int) -> None:
    rng = random.Random(seed)
    world = fabrics.drawn(rng, nodes=rng.randint(4, 40), levels=3, ragged=rng.choice([0.0, 0.2]))
    fabric = world.fabric
    bounds = [
        together.FREE,
        together.Bound(1),
        together.Bound(2),
        together.Bound(1, 2, 2),
        together.Bound(0, 3, 3),
    ]
    none: Mask = np.zeros(fabric.size, dtype=np.bool_)
    rows = [
        capacity.Row(resources({GPU: rng.choice([1, 4, 8])}), inside(fabric, b), inside(fabric, b), none, b)
        for b in bounds
    ]
    ledger = capacity.Ledger(capacity.Rows(rows, [GPU], world.free.whole, fabric), world.free.free.copy())
    for _ in range(12):
        row = rng.randrange(len(rows))
        bound, most = bounds[row], int(ledger.total[row])
        assert most == by_hand(fabric, bound, ledger.counts[row])
        count = rng.randint(1, max(most, 1)) // bound.unit * bound.unit
        found = roughly.choose(ledger, fabric, row, count) if count else None
        assert (found is not None) == (0 < count <= most)
        assert roughly.choose(ledger, fabric, row, most + 1) is None
        if found is not None:
            keeps(fabric, bound, count, found)
            assert (ledger.counts[row][found[0]] >= found[1]).all()
            ledger.take(row, *found)
        node = rng.randrange(fabric.size)
        more = rng.randint(0, int(world.free.whole[0, node] - ledger.free[0, node]))
        ledger.give(np.array([node]), np.array([[more]]))


def keeps(fabric: tree.Tree, bound: together.Bound, count: int, found: tuple[Ints, Ints]) -> None:
    """Assert that a place is whole and as its pods are bound."""
    nodes, pods = found
    assert int(pods.sum()) == count
    assert (np.diff(nodes) > 0).all()
    assert len(np.unique(fabric.tiers[bound.required].within[nodes])) == 1
    if bound.unit > 1:
        ranks = np.repeat(fabric.tiers[bound.slice_tier].within[nodes], pods).reshape(-1, bound.unit)
        assert (ranks == ranks[:, :1]).all()
