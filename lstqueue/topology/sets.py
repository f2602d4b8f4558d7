"""Which sets of domains a gang could go into: the fewest of each level, outermost first.

One step (`inward`) goes from sets of one tier to sets of the next inner one. How few elements hold the pods
is exact, for the largest first are the fewest; which of the sets that are as small leads to fewer domains
further in is searched: all of them where they are few, else the largest with one exchanged. Sets that
differ in names only are one set.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from lstqueue.topology import counted, tree
from lstqueue.topology.table import Ints

SETS = 64
"""Sets kept of a tier."""
PARENTS = 8
"""Sets whose children are combined."""
ALL = 128
"""Sets of children of which all are looked at; of more, those near the largest."""
NEXT = 4
"""How many of those that come next are exchanged for one of the largest."""
FINE = 1.05
"""Bandwidths within this factor count as equal."""


def inward(
    count: counted.Counted, sets: Ints, *, tier: int, pods: int, shared: bool = False
) -> tuple[Ints, Ints]:
    """Sets of the next inner tier, best first, that hold `pods` pods.

    Args:
        count: What elements take.
        sets: A row a set, elements of `tier`; each holds the pods.
        tier: Theirs.
        pods: How many pods.
        shared: Prefer sets in which equal shares are largest: those of a gang that is balanced over them.

    Returns:
        (sets, their keys), a row a set; the keys are compared from left to right, less is better.
    """
    fewest = count.fewest(sets, tier, tier + 1, pods)
    if count.slice > 1 or count.rounded(tier + 1):  # then that is a bound only
        fewest = np.array([_fewest(count, row, tier, pods) for row in sets])
    least = int(fewest.min())
    parents = sets[fewest == least]
    if least == 1:
        kids = children(count.fabric, parents.ravel(), tier)
        found = kids[count.caps[tier + 1][kids] >= pods][:, None]
    else:
        rows = [_children(count, parent, tier, pods, least) for parent in parents[:PARENTS]]
        found = np.concatenate(rows)
    return best(count, found, tier=tier + 1, pods=pods, shared=shared)


def best(
    count: counted.Counted, sets: Ints, *, tier: int, pods: int, shared: bool = False
) -> tuple[Ints, Ints]:
    """The best `SETS` sets of a tier, best first, one of those that differ in names only, and their keys."""
    signs: tree.Words = np.add.reduce(count.alike[tier][sets], axis=1)
    if len(sets) > 1:
        kept = np.sort(np.unique(signs, return_index=True)[1])
        sets, signs = sets[kept], signs[kept]
    last = len(count.fabric.tiers) - 1
    keys: list[Ints] = []
    if tier + 1 < last:
        fewest = count.fewest(sets, tier, tier + 1, pods)
        if count.slice == 1 and not count.rounded(tier + 1):  # else a bound: others may turn out better
            kept = (fewest == fewest.min()).nonzero()[0]
            sets, signs, fewest = sets[kept], signs[kept], fewest[kept]
        keys = [fewest, *(count.fewest(sets, tier, inner, pods) for inner in range(tier + 2, last))]
    caps = count.caps[tier][sets]
    if shared:
        unit = count.unit(tier)
        keys.append(-np.minimum(caps.min(axis=1) // unit, pods // unit // sets.shape[1]))
    keys.append(-bucket(uplinks(count.fabric, sets, tier)))
    if tier < last:
        keys.append(count.fewest(sets, tier, last, pods))
    keys.append(caps.sum(axis=1))
    order = np.lexsort((signs, *reversed(keys)))[:SETS]
    return sets[order], np.stack(keys, axis=1)[order]


def uplinks(fabric: tree.Tree, sets: Ints, tier: int) -> Ints:
    """MB/s of the narrowest uplink that a gang in all elements of each set has to use."""
    worst: Ints = np.full(len(sets), tree.UNKNOWN, dtype=np.int64)
    if not fabric.told:
        return worst
    while tier > 0:
        apart = (sets != sets[:, :1]).any(axis=1)
        found = fabric.tiers[tier].uplink[sets].min(axis=1)
        worst = np.minimum(worst, np.where(apart, found, tree.UNKNOWN))
        sets = fabric.tiers[tier].parents[sets]
        tier -= 1
    return worst


def bucket(bandwidth: Ints) -> Ints:
    """Bandwidths in steps of `FINE`."""
    steps: Ints = (np.log(np.maximum(bandwidth, 1)) / math.log(FINE)).astype(np.int64)
    return steps


def children(fabric: tree.Tree, elements: Ints, tier: int) -> Ints:
    """The elements of the next inner tier that lie in some of `tier`."""
    first = fabric.tiers[tier].first
    return tree.ranges(first[elements], first[elements + 1])


def _fewest(count: counted.Counted, parent: Ints, tier: int, pods: int) -> int:
    caps = np.sort(count.caps[tier + 1][children(count.fabric, parent, tier)])[::-1]
    return int(caps.cumsum().searchsorted(pods)) + 1


def _children(count: counted.Counted, parent: Ints, tier: int, pods: int, size: int) -> Ints:
    """Sets of `size` children that hold the pods."""
    kids = children(count.fabric, parent, tier)
    caps, alike = count.caps[tier + 1][kids], count.alike[tier + 1][kids]
    order = np.lexsort((kids, alike, -caps))
    order = order[caps[order] > 0]
    order = order[_no_more_than(alike[order], size)]
    kids, caps = kids[order], caps[order]
    if math.comb(len(kids), size) <= ALL:
        chosen = _combinations(len(kids), size)
    else:
        chosen = _near_the_largest(len(kids), size)
    found: Ints = kids[chosen[caps[chosen].sum(axis=1) >= pods]]
    return found


def _no_more_than(alike: tree.Words, size: int) -> Ints:
    """Positions of the first `size` of those that are alike; more of them make no other set."""
    order = alike.argsort(kind="stable")
    ranked = alike[order]
    place = np.arange(len(order))
    first = place.copy()
    first[1:][ranked[1:] == ranked[:-1]] = 0
    since = place - np.maximum.accumulate(first)
    kept: Ints = np.sort(order[since < size])
    return kept


@functools.lru_cache(maxsize=256)
def _combinations(count: int, size: int) -> Ints:
    every = list(itertools.combinations(range(count), size))
    return np.array(every, dtype=np.int64).reshape(len(every), size)


@functools.lru_cache(maxsize=256)
def _near_the_largest(count: int, size: int) -> Ints:
    """The `size` - 1 largest, or these with one exchanged for one of the next, and any other as the last."""
    least, end = size - 1, min(size + SETS // NEXT, count)
    changes = [(least, least, last) for last in range(least, count)]
    for out in range(max(0, least - SETS // NEXT // 2), least):
        for more in range(least, min(least + NEXT, count)):
            changes += [(out, more, last) for last in range(more + 1, end)]
    outs, mores, lasts = np.array(changes, dtype=np.int64).T
    found: Ints = np.tile(np.arange(size, dtype=np.int64), (len(changes), 1))
    found[np.arange(len(changes)), outs] = mores
    found[:, least] = lasts
    return found
