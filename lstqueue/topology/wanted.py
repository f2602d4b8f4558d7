"""What a gang asks of an interconnect, and what is free there: values only, in node order of `Domains`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lstqueue.topology import tree
from lstqueue.topology.table import Ints, Mask

MANY = 1 << 20
"""More pods than any node takes; what pods that ask for nothing are limited by."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that are alike: `pods` of them, each asking `amounts[r]` of resource r.

    `mask` are the nodes they may run on, all when None. With `slice` > 1 every `slice` pods in rank order
    share a domain of the tier `slice_tier` (of `tree.Tree`; the node when None); `pods` is a multiple of
    it. `counts` is how many of them each node takes now, within the mask, where that is known.
    """

    pods: int
    amounts: tuple[int, ...]
    mask: Mask | None = None
    slice: int = 1
    slice_tier: int | None = None
    counts: Ints | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A gang: groups in rank order, the leader's first.

    All of it goes into one domain of the tier `required` when that is given. A preferred level needs no
    field: of all places the search takes one in the fewest domains of every level, outermost first, and
    `Quality` says which level that was. `balance` is a tier whose domains get equal shares when the gang
    spans several. `least` is the ring's bandwidth in MB/s that it needs, 0 for any; where nobody knows what a
    ring would get, it is taken to be enough.
    """

    groups: tuple[Group, ...]
    required: int | None = None
    balance: int | None = None
    least: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """`free[r, node]` of resource r is left, of `whole[r, node]` that an empty node has."""

    free: Ints
    whole: Ints

    def less(self, group: Group, nodes: Ints, pods: Ints) -> Free:
        """What is left with `pods[i]` pods of a group on `nodes[i]`; each node at most once."""
        left = self.free.copy()
        left[:, nodes] -= np.array(group.amounts, dtype=np.int64)[:, None] * pods
        return Free(left, self.whole)


def check(asked: Wanted, free: Free, fabric: tree.Tree) -> None:
    """Refuse what cannot be asked.

    Raises:
        ValueError: Naming the field and what would be right.
    """
    if not asked.groups:
        raise ValueError("groups: a gang has at least one")
    if free.free.shape != free.whole.shape or free.free.shape[1] != fabric.size:
        raise ValueError(
            f"free: {free.free.shape[1]} nodes, but the topology has {fabric.size}; give all of them"
        )
    for number, group in enumerate(asked.groups):
        if group.pods < 1 or group.slice < 1 or group.pods % group.slice:
            raise ValueError(
                f"groups[{number}]: {group.pods} pods in slices of {group.slice}; "
                "give a positive number of pods that is a multiple of the slice"
            )
        if len(group.amounts) != len(free.free) or min(group.amounts, default=0) < 0:
            raise ValueError(f"groups[{number}].amounts: give one of at least 0 for each resource")


def fitting(group: Group, amounts: Ints) -> Ints:
    """Pods of a group that `amounts[r, node]` take on each node, wherever the group may run."""
    most: npt.NDArray[np.float64] = np.full(amounts.shape[1], float(MANY))
    for r, amount in enumerate(group.amounts):
        if amount:  # floats divide faster, and exactly so below 2**53: see `table.LIMIT`
            np.minimum(most, amounts[r] / amount, out=most)
    counts: Ints = np.maximum(most, 0).astype(np.int64)
    if group.mask is not None:
        counts *= group.mask
    return counts
