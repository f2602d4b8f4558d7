"""The domains of an interconnect without gaps: every node in one element of every tier.

`domains` says what exists, gaps included. A search that walks from outside in wants a partition at each tier:
tier 0 is all nodes, tiers 1 to K are the K levels, tier K + 1 is the nodes. Where a node has no domain at a
level, the next inner domain that it has, or the node itself, *stands in* there; a stand-in is never a domain
that `required` could mean.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lstqueue.topology import domains
from lstqueue.topology.table import Ints, Mask

UNKNOWN = 1 << 60
"""Bandwidth nobody knows, which limits nothing."""
ACCELERATOR = "nvl"
"""Levels of this name, and of names that begin with it, are NVLink domains."""

Words = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Tier:
    """Elements in node order: element i has the nodes starts[i]:ends[i], its children begin at first[i].

    `first` has one entry more than there are elements and counts in the next inner tier; `parents` counts
    in the next outer one. `domain` is the index in the level of `Domains`, -1 for a stand-in. `uplink` is
    MB/s one way towards the parent, `UNKNOWN` where it is not known; `within` has the element of every
    node.
    """

    starts: Ints
    ends: Ints
    first: Ints
    parents: Ints
    domain: Ints
    uplink: Ints
    within: Ints


class Tree:
    """The tiers of `Domains`; make it once per topology."""

    def __init__(self, found: domains.Domains) -> None:
        self.domains = found
        self.size = len(found.nodes)
        if not self.size:
            raise ValueError("nodes: a topology without nodes; name at least one")
        self.depth = len(found.levels)
        self.link = np.where(found.link > 0, found.link, UNKNOWN)
        self.tiers = _tiers(found, self.size)
        self.told_at = [bool((tier.uplink < UNKNOWN).any()) for tier in self.tiers]
        self.told = any(self.told_at)
        self.links_vary = bool((self.link != self.link[0]).any())

    def level(self, name: str) -> int:
        """The tier of a level.

        Raises:
            ValueError: There is no such level.
        """
        names = [level.name for level in self.domains.levels]
        if name not in names:
            known = ", ".join(names) or "none"
            raise ValueError(f"level {name}: not in this topology; its levels are {known}, outermost first")
        return names.index(name) + 1

    @functools.cached_property
    def accelerators(self) -> tuple[int, ...]:
        """Tiers of NVLink domains, the outermost first."""
        levels = enumerate(self.domains.levels, start=1)
        return tuple(number for number, level in levels if level.name.startswith(ACCELERATOR))

    def signatures(self, nodes: Words) -> list[Words]:
        """By tier, a number per element, equal for elements that differ in names and order only.

        `nodes` has a number per node, equal for nodes that are alike. It is what makes a search depend on
        what the domains are and not on how they are called: ties are broken by it first.
        """
        upward = [_mixed(nodes)]
        for tier in reversed(self.tiers[:-1]):
            sums: Words = np.add.reduceat(upward[-1], tier.first[:-1])
            upward.append(_mixed(sums + tier.uplink.astype(np.uint64)))
        upward.reverse()
        for number in range(1, len(upward)):
            outer = upward[number - 1][self.tiers[number].parents]
            upward[number] = _mixed(upward[number] + (outer << np.uint64(1)))
        return upward


def alike(columns: Sequence[npt.NDArray[np.generic]]) -> Words:
    """A number per node from what is known of each, equal where all columns are."""
    found: Words = columns[0].astype(np.uint64)
    for column in columns[1:]:
        found = found * _ODD + column.astype(np.uint64)
    return _mixed(found)


def ranges(starts: Ints, ends: Ints) -> Ints:
    """The numbers of all starts[i]:ends[i], one after the other."""
    if len(starts) == 1:
        return np.arange(starts[0], ends[0], dtype=np.int64)
    sizes = ends - starts
    before = sizes.cumsum() - sizes
    found: Ints = np.arange(int(sizes.sum()), dtype=np.int64)
    found += np.repeat(starts - before, sizes)
    return found


def _tiers(found: domains.Domains, size: int) -> tuple[Tier, ...]:
    everyone: Ints = np.arange(size, dtype=np.int64)
    none: Ints = np.full(size, -1, dtype=np.int64)
    inner = [(everyone, everyone + 1, none, np.where(found.link > 0, found.link, UNKNOWN))]
    for level in reversed(found.levels):
        marks: Ints = np.zeros(size + 1, dtype=np.int64)
        np.add.at(marks, level.starts, 1)
        np.add.at(marks, level.ends, -1)
        below_starts, below_ends = inner[-1][0], inner[-1][1]
        lone = marks.cumsum()[below_starts] == 0
        starts = np.concatenate([level.starts, below_starts[lone]])
        order = starts.argsort(kind="stable")
        count, more = len(level.starts), int(lone.sum())
        ends = np.concatenate([level.ends, below_ends[lone]])
        index = np.concatenate([np.arange(count), np.full(more, -1)])
        uplink = np.concatenate([np.where(level.uplink > 0, level.uplink, UNKNOWN), np.full(more, UNKNOWN)])
        inner.append((starts[order], ends[order], index[order], uplink[order]))
    inner.append((np.zeros(1, dtype=np.int64), np.array([size]), np.array([-1]), np.array([UNKNOWN])))
    inner.reverse()
    return tuple(_tier(inner, number) for number in range(len(inner)))


def _tier(parts: list[tuple[Ints, Ints, Ints, Ints]], number: int) -> Tier:
    starts, ends, index, uplink = parts[number]
    children = parts[number + 1][0] if number + 1 < len(parts) else starts
    outer = parts[number - 1][0] if number else starts
    within: Ints = np.repeat(np.arange(len(starts), dtype=np.int64), ends - starts)
    return Tier(
        starts=starts,
        ends=ends,
        first=np.append(children.searchsorted(starts), len(children)),
        parents=outer.searchsorted(starts, side="right") - 1,
        domain=index,
        uplink=uplink,
        within=within,
    )


def _mixed(words: Words) -> Words:
    """Steele, Lea and Flood's SplitMix64 finaliser (OOPSLA 2014), wrapping around at 64 bits."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) + _ODD


def real(tier: Tier) -> Mask:
    """Elements that are domains and no stand-ins."""
    mask: Mask = tier.domain >= 0
    return mask
