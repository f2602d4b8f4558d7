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
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

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


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Things that belong together, and the switches that are theirs rather than those of a wrong cable."""

    members: tuple[T, ...]
    core: frozenset[str]


def group(attached: Mapping[T, frozenset[str]], weights: Mapping[T, int] | None = None) -> list[Group[T]]:
    """Group things by what they are attached to.

    Args:
        attached: By thing, its switches, at least one and at most `WIDEST`.
        weights: By thing, how many hosts it stands for; each for one, where there are none.

    Returns:
        The groups, and in them the things, in the order of `attached`.
    """
    alike: dict[Set, list[T]] = {}
    for thing, switches in attached.items():
        alike.setdefault(tuple(sorted(switches)), []).append(thing)
    counts = {
        found: len(things) if weights is None else sum(weights[thing] for thing in things)
        for found, things in alike.items()
    }
    seeds = _Seeds(counts)
    homes: dict[Set, int] = {}
    for found in _typical_first(counts):
        home = seeds.best(found)
        homes[found] = seeds.add(found) if home is None else home
        seeds.count(found, homes[found])
    cores = seeds.cores()
    joined = _join(cores)
    members: dict[int, list[T]] = {}
    whole: dict[int, frozenset[str]] = {}
    for index, home in enumerate(joined):
        whole[home] = whole.get(home, frozenset()) | cores[index]
    for found, things in alike.items():
        members.setdefault(joined[homes[found]], []).extend(things)
    place = {thing: index for index, thing in enumerate(attached)}
    groups = [Group(tuple(sorted(its, key=place.__getitem__)), whole[home]) for home, its in members.items()]
    return sorted(groups, key=lambda one: place[one.members[0]])


class _Seeds:
    """The groups so far: the set that began each, and how many hosts of it are on which switch."""

    def __init__(self, counts: Mapping[Set, int]) -> None:
        self.counts = counts
        self.sets: list[Set] = []
        self.support: list[Counter[str]] = []
        self._of: dict[str, list[int]] = {}

    def best(self, found: Set) -> int | None:
        """The group whose seed shares most with a set, and enough; of equals the one with more there."""
        shared: Counter[int] = Counter()
        for switch in found:
            shared.update(self._of.get(switch, ()))
        fitting: list[tuple[int, int, int]] = []
        for seed, common in shared.items():
            if common * 100 >= ENOUGH * min(len(found), len(self.sets[seed])):
                there = sum(self.support[seed][switch] for switch in found)
                fitting.append((common, there, -seed))
        return -max(fitting)[2] if fitting else None

    def add(self, found: Set) -> int:
        """Begin a group."""
        self.sets.append(found)
        self.support.append(Counter())
        for switch in found:
            seeds = self._of.setdefault(switch, [])
            if len(seeds) < _SHARED:
                seeds.append(len(self.sets) - 1)
        return len(self.sets) - 1

    def count(self, found: Set, home: int) -> None:
        """Count the things of a set for its group."""
        self.support[home].update(dict.fromkeys(found, self.counts[found]))

    def cores(self) -> list[frozenset[str]]:
        """By group, the switches that are its own: many are on them, and more than of any other group."""
        most: Counter[str] = Counter()
        holders: Counter[tuple[str, int]] = Counter()
        for support in self.support:
            for switch, count in support.items():
                holders[switch, count] += 1
                most[switch] = max(most[switch], count)
        found = []
        for seed, support in zip(self.sets, self.support, strict=True):
            least = CORE * max(support.values())
            best = {switch for switch, count in support.items() if count == most[switch]}
            # Of a switch on which two groups have equally many, neither has it that did not begin with it.
            own = {switch for switch in best if switch in seed or holders[switch, support[switch]] == 1}
            core = frozenset(switch for switch in own if support[switch] * 100 >= least)
            found.append(core or frozenset(seed))
        return found


def _typical_first(counts: Mapping[Set, int]) -> list[Set]:
    """Order sets so that those come first which show a group best.

    These are the full ones, the frequent before the rare; of equals, those whose switches are often seen
    together elsewhere. A set with more switches than usual comes last if nothing else has it: two machines of
    one name.
    """
    links: Counter[int] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for found, count in counts.items():
        links[len(found)] += len(found) * count
        together.update(dict.fromkeys(_pairs(found), count))
    usual = max(links, key=lambda size: (links[size], size), default=0)

    def key(found: Set) -> tuple[bool, int, int, int, Set]:
        count = counts[found]
        odd = len(found) > usual and count == 1
        return odd, -len(found), -count, -sum(together[pair] for pair in _pairs(found)), found

    return sorted(counts, key=key)


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
