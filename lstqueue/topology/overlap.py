"""Which things belong together, being attached to nearly the same others: hosts by leaves, and so on.

In a rail-optimised fabric a host is on as many leaf switches as it has NICs, and no leaf is a partition of
the hosts. What is one is the set of leaves that they share, as far as cables live and are where they belong.
Grouping by equal sets breaks at every dead cable, and connected components are joined by a single wrong one.
So sets belong together where they overlap by `ENOUGH` of the smaller, and are compared with a *seed*, never
with one another in a chain: a host with one cable in another's group cannot join the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Set = tuple[str, ...]

ENOUGH = 75
"""Percent of the smaller set that two must share. Of four rails that is three: one cable may be wrong."""
CORE = 25
"""Percent of a group's best attached switch that another needs to count as the group's, too."""
WIDEST = 64
"""Switches of one host, at most; a name with more is not one machine."""
_PAIRED = 16
"""Switches of a set up to which it is looked at in pairs, which grow with the square."""
_SHARED = 64
"""Groups that a switch may tell apart; one that more share, as of a storage network, says nothing."""


def group(attached: Mapping[T, frozenset[str]]) -> list[list[T]]:
    """Group things by what they are attached to.

    Args:
        attached: By thing, its switches, at least one and at most `WIDEST`.

    Returns:
        The groups, and in them the things, in the order of `attached`.
    """
    alike: dict[Set, list[T]] = {}
    for thing, switches in attached.items():
        alike.setdefault(tuple(sorted(switches)), []).append(thing)
    seeds = _Seeds({found: len(things) for found, things in alike.items()})
    homes: dict[Set, int] = {}
    for found in _typical_first(alike):
        home = seeds.best(found)
        homes[found] = seeds.add(found) if home is None else home
        seeds.count(found, homes[found])
    joined = _join([seeds.core(index) for index in range(len(seeds.support))])
    groups: dict[int, list[T]] = {}
    for thing, switches in attached.items():
        groups.setdefault(joined[homes[tuple(sorted(switches))]], []).append(thing)
    return list(groups.values())


class _Seeds:
    """The groups so far: the set that began each, and how many things of it are on which switch."""

    def __init__(self, counts: Mapping[Set, int]) -> None:
        self.counts = counts
        self.sizes: list[int] = []
        self.support: list[Counter[str]] = []
        self._of: dict[str, list[int]] = {}

    def best(self, found: Set) -> int | None:
        """The group whose seed shares most with a set, and enough; of equals the one with more there."""
        shared: Counter[int] = Counter()
        for switch in found:
            shared.update(self._of.get(switch, ()))
        fitting: list[tuple[int, int, int]] = []
        for seed, common in shared.items():
            if common * 100 >= ENOUGH * min(len(found), self.sizes[seed]):
                there = sum(self.support[seed][switch] for switch in found)
                fitting.append((common, there, -seed))
        return -max(fitting)[2] if fitting else None

    def add(self, found: Set) -> int:
        """Begin a group."""
        self.sizes.append(len(found))
        self.support.append(Counter())
        for switch in found:
            seeds = self._of.setdefault(switch, [])
            if len(seeds) < _SHARED:
                seeds.append(len(self.sizes) - 1)
        return len(self.sizes) - 1

    def count(self, found: Set, home: int) -> None:
        """Count the things of a set for its group."""
        self.support[home].update(dict.fromkeys(found, self.counts[found]))

    def core(self, home: int) -> frozenset[str]:
        """The switches that are the group's own, and not those of a wrong cable."""
        most = max(self.support[home].values())
        return frozenset(switch for switch, count in self.support[home].items() if count * 100 >= CORE * most)


def _typical_first(alike: Mapping[Set, Sequence[object]]) -> list[Set]:
    """Order sets so that those come first which show a group best.

    These are the full ones, the frequent before the rare; of equals, those whose switches are often seen
    together elsewhere. A set with more switches than usual comes last if nothing else has it: two machines of
    one name.
    """
    links: Counter[int] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for found, things in alike.items():
        links[len(found)] += len(found) * len(things)
        together.update(dict.fromkeys(_pairs(found), len(things)))
    usual = max(links, key=lambda size: (links[size], size), default=0)

    def key(found: Set) -> tuple[bool, int, int, int, Set]:
        count = len(alike[found])
        odd = len(found) > usual and count == 1
        return odd, -len(found), -count, -sum(together[pair] for pair in _pairs(found)), found

    return sorted(alike, key=key)


def _pairs(found: Set) -> Iterator[tuple[str, str]]:
    return combinations(found, 2) if len(found) <= _PAIRED else iter(())


def _join(cores: Sequence[frozenset[str]]) -> list[int]:
    """By group, the first of those whose cores overlap enough to be one after all."""
    roots = list(range(len(cores)))

    def root(index: int) -> int:
        while roots[index] != index:
            roots[index] = roots[roots[index]]
            index = roots[index]
        return index

    on: dict[str, list[int]] = {}
    for index, core in enumerate(cores):
        shared: Counter[int] = Counter()
        for switch in core:
            others = on.setdefault(switch, [])
            shared.update(others)
            if len(others) < _SHARED:
                others.append(index)
        for other, common in shared.items():
            if common * 100 >= ENOUGH * min(len(core), len(cores[other])):
                one, two = sorted((root(index), root(other)))
                roots[two] = one
    return [root(index) for index in range(len(cores))]
