"""The domains of an interconnect, as slices of one order of the nodes.

Nodes stand depth-first, so that every domain of every level is a contiguous slice, and counting what is free
in each is one numpy reduction. How domains are found is not here, nor what is placed in them.
The identity of a domain is its full path: switches of one name under two parents are two domains.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lstqueue.topology.table import Ints, natural

Path = tuple[str | None, ...]
"""A node's domains, outermost first, an entry a level; None where it is in none or nobody knows in which."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a source that is in no domain, or not in the one it might be in, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Merged:
    """Things of a source that were taken for one domain, or one thing that became several, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Level:
    """One level. Domain i has the nodes `starts[i]:ends[i]` of `Domains.nodes`.

    `names` are full paths, unique within the level: parts are parted by `/`, and an empty part is a level of
    which the domain lies in none. Nodes between two slices have no domain here. `parents` is the one of the
    next outer level in which a domain lies, -1 where it lies in none of that level. `uplink` is MB/s one way
    from the domain to its parent, 0 unknown.
    """

    name: str
    names: tuple[str, ...]
    starts: Ints
    ends: Ints
    parents: Ints
    uplink: Ints


@dataclass(frozen=True, slots=True)
class Domains:
    """All levels, outermost first; the node itself is no level.

    `link` is MB/s one way from each node into its innermost domain, all its NICs summed; 0 unknown. Several
    domains in the outermost level, or nodes outside of all of them, are several roots; `spans` says whether
    a gang that asks for no level may lie in several. `notes` are what else there is to say.
    """

    nodes: tuple[str, ...]
    levels: tuple[Level, ...]
    link: Ints
    left_out: tuple[LeftOut, ...] = ()
    merged: tuple[Merged, ...] = ()
    spans: bool = True
    notes: tuple[str, ...] = ()


def arrange(
    levels: Sequence[str],
    paths: Mapping[str, Path],
    *,
    uplinks: Mapping[Path, int] | None = None,
    links: Mapping[str, int] | None = None,
    left_out: tuple[LeftOut, ...] = (),
    merged: tuple[Merged, ...] = (),
    notes: tuple[str, ...] = (),
) -> Domains:
    """Order nodes depth-first, siblings by the natural order of their names, and find every domain's slice.

    Args:
        levels: Names of the levels, outermost first.
        paths: By node, its domain at each of the levels.
        uplinks: MB/s one way from a domain to its parent, by the domain's path down to itself.
        links: MB/s one way from a node into its innermost domain.
        left_out: Kept with the result.
        merged: Likewise.
        notes: Likewise.

    Raises:
        ValueError: A path has another length than there are levels, or two levels have the same name.
    """
    if len(set(levels)) < len(levels):
        raise ValueError(f"levels: {', '.join(levels)} has a name twice; give every level its own")
    for node, path in paths.items():
        if len(path) != len(levels):
            raise ValueError(
                f"node {node}: {len(path)} domains for {len(levels)} levels; name one a level, or None"
            )
    order = sorted(paths, key=lambda node: ([_place(part) for part in paths[node]], natural(node)))
    found: list[Level] = []
    outer: dict[Path, int] = {}
    for depth, name in enumerate(levels, start=1):
        slices = dict(_slices([paths[node][:depth] for node in order]))
        bounds = np.array(list(slices.values()), dtype=np.int64).reshape(-1, 2)
        found.append(
            Level(
                name=name,
                names=tuple(written(path) for path in slices),
                starts=bounds[:, 0].copy(),
                ends=bounds[:, 1].copy(),
                parents=_ints([outer.get(path[:-1], -1) for path in slices]),
                uplink=_ints([(uplinks or {}).get(path, 0) for path in slices]),
            )
        )
        outer = {path: index for index, path in enumerate(slices)}
    link = _ints([(links or {}).get(node, 0) for node in order])
    return Domains(tuple(order), tuple(found), link, left_out, merged, notes=notes)


def among(found: Domains, names: Collection[str]) -> Domains:
    """The same of these nodes alone, in the same order; those it does not know stand behind, in no domain."""
    there = set(names)
    kept = np.fromiter((node in there for node in found.nodes), dtype=np.bool_, count=len(found.nodes))
    before = np.concatenate([np.zeros(1, dtype=np.int64), kept.cumsum(dtype=np.int64)])
    levels: list[Level] = []
    outer: Ints = np.zeros(0, dtype=np.int64)
    for level in found.levels:
        starts, ends = before[level.starts], before[level.ends]
        alive = ends > starts
        parents = level.parents[alive]
        if len(outer):
            parents = np.where(parents >= 0, outer[parents], -1)
        levels.append(
            Level(
                name=level.name,
                names=tuple(itertools.compress(level.names, alive.tolist())),
                starts=starts[alive],
                ends=ends[alive],
                parents=parents,
                uplink=level.uplink[alive],
            )
        )
        outer = alive.cumsum(dtype=np.int64) - 1
    known = tuple(itertools.compress(found.nodes, kept.tolist()))
    more = tuple(sorted(there.difference(known), key=natural))
    link = np.concatenate([found.link[kept], np.zeros(len(more), dtype=np.int64)])
    return replace(found, nodes=(*known, *more), levels=tuple(levels), link=link)


def rated(found: Domains, rates: Mapping[str, int], link: int) -> Domains:
    """The same with MB/s one way where none is known: of uplinks by level, and of each node's link."""
    levels = tuple(
        replace(level, uplink=np.where(level.uplink > 0, level.uplink, rates.get(level.name, 0)))
        for level in found.levels
    )
    return replace(found, levels=levels, link=np.where(found.link > 0, found.link, link))


def written(path: Path) -> str:
    r"""A path as text, different for different paths: a `/` within a name is written as `\/`."""
    return "/".join((part or "").replace("\\", "\\\\").replace("/", "\\/") for part in path)


def _place(part: str | None) -> tuple[bool, object]:
    # Nodes without a domain stand behind their siblings that have one.
    return (True, 0) if part is None else (False, natural(part))


def _slices(paths: Sequence[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    start = 0
    for position in range(1, len(paths) + 1):
        if position == len(paths) or paths[position] != paths[start]:
            if paths[start][-1] is not None:
                yield paths[start], (start, position)
            start = position


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)
