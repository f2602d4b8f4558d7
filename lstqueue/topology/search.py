"""Where a gang goes on an interconnect: whole, in as few domains of every level as can be, outermost first.

Pure and without memory: the same tree, room and gang give the same place. For one group without slices the
number of domains of each level is the least there is up to the bounds of `sets`; a gang of several groups
is placed largest pod first, the others as near as they fit, and earlier groups try their next places when a
later one does not fit (`TRIES`). A place that breaks `required` is never returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lstqueue.topology import bandwidth, counted, sets, spread, tree, wanted
from lstqueue.topology.spread import Part
from lstqueue.topology.table import Ints, Mask

STARTS = 4
"""Domains of one tier in which a gang of several groups is placed, to take the best."""
TRIES = 64
"""Places of groups tried for one gang."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a gang goes: parts parallel to `Wanted.groups`, and the key by which it was chosen.

    The key has the domains used of each level, outermost first, then minus the ring's bandwidth in steps of
    `sets.FINE`, nodes, nodes opened that were empty, gangs that what is left over no longer holds
    (`_fragments`), and pods that would still fit in the innermost domains used. Less is better. `ring` is
    what a ring gets there in MB/s, 0 where nobody knows.
    """

    parts: tuple[Part, ...]
    key: tuple[int, ...]
    ring: int = 0


def find(fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted) -> Place | None:
    """Choose a place for the whole gang; None when the search finds none.

    Raises:
        ValueError: The gang cannot be asked for (`wanted.check`).
    """
    wanted.check(asked, free, fabric)
    search = _Search(fabric, free, asked)
    if any(
        int(count.caps[0][0]) < group.pods for count, group in zip(search.counts, search.groups, strict=True)
    ):
        return None
    found = [place for place in search.places() if not 0 < place.ring < asked.least]
    return min(found, key=_order) if found else None


def _order(place: Place) -> tuple[tuple[int, ...], list[list[int]]]:
    return place.key, [part.nodes.tolist() for part in place.parts]


class _Search:
    """One search: groups alike in pods and nodes are one, `order` has them largest pod first."""

    def __init__(self, fabric: tree.Tree, free: wanted.Free, asked: wanted.Wanted) -> None:
        self.fabric, self.free, self.asked = fabric, free, asked
        self.groups, self.members = _merged(asked.groups)
        self.opened: Mask = np.any(free.free < free.whole, axis=0)
        self.fits = [
            wanted.fitting(group, free.free) if group.counts is None else group.counts
            for group in self.groups
        ]
        several = list(free.free) if len(self.groups) > 1 else []
        columns = [*self.fits, *several, *free.whole, self.opened, fabric.link]
        self.alike = fabric.signatures(tree.alike(columns))
        self.counts = [self._count(number, fit) for number, fit in enumerate(self.fits)]
        most = free.whole.max(axis=1).tolist()
        sizes = [_share(group.amounts, most) for group in self.groups]
        self.order = sorted(range(len(sizes)), key=lambda g: (-sizes[g], -self.groups[g].pods, g))
        self.tries = TRIES

    def places(self) -> list[Place]:
        """Places of the whole gang in the tightest domains that hold it."""
        first, outermost = self.order[0], self.asked.required or 0
        if len(self.groups) == 1:
            starts = self._starts(outermost)
            return [self._scored({first: part}) for part in self._spread(first, starts, outermost)]
        for tier in range(self.fabric.depth, outermost - 1, -1):
            found: list[Place] = []
            for start in self._starts(tier):
                parts = self._together({}, {}, start, tier)
                if parts is not None:
                    found.append(self._scored(parts))
                if len(found) >= STARTS or self.tries <= 0:
                    break
            if found:
                return found
        return []

    def _starts(self, tier: int) -> Ints:
        """Single domains of a tier in each of which every group would fit, best first."""
        holds: Mask = np.ones(len(self.fabric.tiers[tier].starts), dtype=np.bool_)
        if self.asked.required:
            around = self.fabric.tiers[self.asked.required]
            holds = tree.real(around)[around.within[self.fabric.tiers[tier].starts]]
        for count, group in zip(self.counts, self.groups, strict=True):
            holds = holds & (count.caps[tier] >= group.pods)
        starts = holds.nonzero()[0][:, None]
        if not len(starts):
            return starts
        first = self.order[0]
        return sets.best(self.counts[first], starts, tier=tier, pods=self.groups[first].pods)[0]

    def _together(
        self, parts: dict[int, Part], taken: dict[int, list[int]], start: Ints, tier: int
    ) -> dict[int, Part] | None:
        """The first place of all groups within one domain; `taken` is what those placed use of nodes."""
        if len(parts) == len(self.groups):
            return parts
        number = self.order[len(parts)]
        for part in self._near(number, parts, taken, start, tier):
            if self.tries <= 0:
                return None
            self.tries -= 1
            more = {node: list(amounts) for node, amounts in taken.items()}
            for node, pods in zip(part.nodes.tolist(), part.pods.tolist(), strict=True):
                used = more.setdefault(node, [0] * len(self.groups[number].amounts))
                for r, amount in enumerate(self.groups[number].amounts):
                    used[r] += amount * pods
            whole = self._together({**parts, number: part}, more, start, tier)
            if whole is not None:
                return whole
        return None

    def _near(
        self, number: int, parts: dict[int, Part], taken: dict[int, list[int]], start: Ints, tier: int
    ) -> Iterator[Part]:
        """Places of one group: on the nodes that the gang has, else in its innermost domains, and so on."""
        if not parts:
            yield from self._spread(number, start[None, :], tier)
            return
        group = self.groups[number]
        nodes: Ints = np.array(sorted(taken), dtype=np.int64)
        left = self.free.free[:, nodes] - np.array([taken[node] for node in nodes.tolist()]).T
        counts = self.fits[number].copy()
        mask = None if group.mask is None else group.mask[nodes]
        counts[nodes] = wanted.fitting(wanted.Group(group.pods, group.amounts, mask), left)
        count = self._count(number, counts)
        innermost = len(self.fabric.tiers) - 1
        if group.slice > 1 and group.slice_tier is not None:
            innermost = group.slice_tier
        for near in range(max(innermost, tier), tier, -1):
            elements = np.unique(self.fabric.tiers[near].within[nodes])
            caps = count.nodes if near == len(self.fabric.tiers) - 1 else count.caps[near]
            if int(caps[elements].sum()) >= group.pods:
                yield from self._spread(number, elements[None, :], near, count)
                return
        if int(count.caps[tier][start[0]]) >= group.pods:
            yield from self._spread(number, start[None, :], tier, count)

    def _spread(
        self, number: int, starts: Ints, tier: int, count: counted.Counted | None = None
    ) -> Iterator[Part]:
        """Places of one group in any one of some sets of domains."""
        if not len(starts):
            return iter(())
        group = self.groups[number]
        stops = {self.asked.balance} if self.asked.balance else set()
        if group.slice > 1 and group.slice_tier is not None:
            stops.add(group.slice_tier)
        later = tuple(sorted(stop for stop in stops if stop is not None and stop >= tier))
        one = spread.Spread(count or self.counts[number], self.opened, self.asked.balance)
        return one.inside(starts, tier=tier, pods=group.pods, stops=later)

    def _count(self, number: int, counts: Ints) -> counted.Counted:
        group = self.groups[number]
        return counted.Counted(
            self.fabric,
            counts,
            pods=group.pods,
            alike=self.alike,
            unit=group.slice,
            slice_tier=group.slice_tier,
        )

    def _scored(self, parts: dict[int, Part]) -> Place:
        everywhere = spread.joined(list(parts.values()))
        fabric, nodes = self.fabric, everywhere.nodes
        used = [bandwidth.used(fabric, tier, nodes) for tier in range(1, fabric.depth + 1)]
        ring = 0
        if fabric.told:
            amounts = self.groups[self.order[0]].amounts
            gang = bandwidth.rates(fabric, self.free, nodes, everywhere.pods, amounts)
            ring = bandwidth.ring(fabric, nodes, gang)
        opened = int((~self.opened[nodes]).sum())
        left, fragments = self._left(parts)
        key = (*used, -int(sets.bucket(np.array(ring))), len(nodes), opened, fragments, left)
        return Place(self._parted(parts), key, ring)

    def _left(self, parts: dict[int, Part]) -> tuple[int, int]:
        """(pods of the largest that still fit in the innermost domains used, change of their fragments)."""
        first = self.order[0]
        part, tier = parts[first], self.fabric.tiers[self.fabric.depth]
        at, inverse = np.unique(tier.within[part.nodes], return_inverse=True)
        before = self.counts[first].caps[self.fabric.depth][at]
        after = before - np.bincount(inverse, weights=part.pods).astype(np.int64)
        largest = int(before.max())
        return int(after.sum()), int((_fragments(after, largest) - _fragments(before, largest)).sum())

    def _parted(self, parts: dict[int, Part]) -> tuple[Part, ...]:
        """Parts of the groups as they were asked for: those placed as one take theirs in rank order."""
        result: dict[int, Part] = {}
        for number, members in enumerate(self.members):
            nodes, pods = parts[number].nodes, parts[number].pods
            reach, begin = pods.cumsum(), 0
            for member in members:
                end = begin + self.asked.groups[member].pods
                took = np.minimum(reach, end) - np.maximum(reach - pods, begin)
                result[member] = Part(nodes[took > 0], took[took > 0])
                begin = end
        return tuple(result[member] for member in range(len(self.asked.groups)))


def _fragments(free: Ints, largest: int) -> Ints:
    """Pods of each domain that gangs of 1, 2, 4, ... pods cannot use, summed over these sizes.

    After FGD's measure (Weng et al., ATC'23), with domains for nodes and every size as likely as another.
    """
    sizes = 2 ** np.arange(max(largest, 1).bit_length(), dtype=np.int64)
    unusable: Ints = (free[:, None] % sizes).sum(axis=1)  # all of it where it is less than a size
    return unusable


def _share(amounts: tuple[int, ...], most: list[int]) -> float:
    """The part of the largest node that one pod takes of what it takes most of."""
    return max((amount / (has or 1) for amount, has in zip(amounts, most, strict=True)), default=0.0)


def _merged(groups: tuple[wanted.Group, ...]) -> tuple[list[wanted.Group], list[list[int]]]:
    """Groups of the same pods on the same nodes as one, and which they were."""
    known: dict[object, int] = {}
    merged: list[wanted.Group] = []
    members: list[list[int]] = []
    for number, group in enumerate(groups):
        mask = None if group.mask is None else group.mask.tobytes()
        key = (group.amounts, mask) if group.slice == 1 else number
        at = known.setdefault(key, len(merged))
        if at == len(merged):
            merged.append(group)
            members.append([number])
        else:
            members[at].append(number)
            pods = merged[at].pods + group.pods
            merged[at] = wanted.Group(pods, group.amounts, group.mask, counts=group.counts)
    return merged, members
