"""Where the pods of one group go within some domains: the domains further in, a share for each, the nodes.

Nothing is known here of other groups, nor of which domains may be used at all: that is `search`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lstqueue.topology import counted, filling, sets
from lstqueue.topology.table import Ints, Mask

FILLS = 4
"""Sets of domains, the best, for which nodes are chosen."""
SHARED = 2
"""The same where each domain of a set gets a share of its own, each a search of its own."""
SHARES = 64
"""And as few sets as have this many domains together, but one."""


@dataclass(frozen=True, slots=True)
class Part:
    """Where one group goes: `pods[i]` of it on `nodes[i]`, in node order, which is rank order."""

    nodes: Ints
    pods: Ints


@dataclass(frozen=True, slots=True)
class Spread:
    """One group: what nodes take of it, where something runs already, the tier balanced over (None: none)."""

    count: counted.Counted
    opened: Mask
    balance: int | None

    def inside(self, starts: Ints, *, tier: int, pods: int, stops: tuple[int, ...]) -> Iterator[Part]:
        """Places of `pods` pods in any one of some sets of domains, best first.

        Args:
            starts: A row a set, elements of `tier` that hold the pods.
            tier: Theirs.
            pods: How many pods.
            stops: Tiers, outermost first and none outside of `tier`, whose domains get shares of their own.
        """
        until = stops[0] if stops else self.count.fabric.depth
        while tier < until:
            shared = tier + 1 == until == self.balance
            starts, _ = sets.inward(self.count, starts, tier=tier, pods=pods, shared=shared)
            tier += 1
        most = max(min(SHARED, SHARES // starts.shape[1]), 1) if stops else FILLS
        for elements in starts[:most]:
            shares = self._shared(elements, tier, pods, stops) if stops else None
            part = shares if stops else self._filled(elements, tier, pods)
            if part is not None:
                yield part

    def _filled(self, elements: Ints, tier: int, pods: int) -> Part | None:
        found = filling.fill(self.count, elements, tier=tier, pods=pods, opened=self.opened)
        return None if found is None else Part(*found)

    def _shared(self, elements: Ints, tier: int, pods: int, stops: tuple[int, ...]) -> Part | None:
        """A share for each of several domains, each placed within its own."""
        count = self.count
        caps = count.caps[tier][elements]
        given = filling.shares(caps, pods, count.unit(tier), equal=tier == self.balance)
        full = given == np.add.reduceat(count.nodes, count.fabric.tiers[tier].starts)[elements]
        parts = [self._filled(elements[full], tier, int(given[full].sum()))] if full.any() else []
        for element, share in zip(elements[~full], given[~full].tolist(), strict=True):
            if share:
                one = element.reshape(1, 1)
                parts.append(next(self.inside(one, tier=tier, pods=share, stops=stops[1:]), None))
        found = [part for part in parts if part is not None]
        return joined(found) if len(found) == len(parts) else None


def joined(parts: list[Part]) -> Part:
    """All nodes of several parts with all pods on each."""
    if len(parts) == 1:
        return parts[0]
    nodes, inverse = np.unique(np.concatenate([part.nodes for part in parts]), return_inverse=True)
    pods = np.bincount(inverse, weights=np.concatenate([part.pods for part in parts]))
    return Part(nodes, pods.astype(np.int64))
