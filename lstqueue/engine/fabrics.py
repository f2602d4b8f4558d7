"""The interconnect of the nodes as passes use it: its tree, kept between them, and what a gang asks of it.

Where a gang goes on it is the business of `siting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lstqueue.engine.locality import Locality
from lstqueue.topology import domains, table, together, tree
from lstqueue.topology.model import Node
from lstqueue.topology.table import Mask


class Fabrics:
    """The tree of an interconnect with just the nodes that are there, made anew when either is another."""

    def __init__(self) -> None:
        self._of: domains.Domains | None = None
        self._names: frozenset[str] = frozenset()
        self._tree: tree.Tree | None = None

    def of(self, found: domains.Domains | None, nodes: Sequence[Node]) -> tree.Tree | None:
        """The tree; None where nothing is known of an interconnect, or there are no nodes."""
        names = frozenset(node.name for node in nodes)
        if found is not self._of or names != self._names:
            self._of, self._names = found, names
            self._tree = None if found is None or not names else tree.Tree(domains.among(found, names))
        return self._tree


def columns(nodes: Iterable[Node], fabric: tree.Tree | None) -> table.NodeTable:
    """Nodes as columns, depth-first in the interconnect."""
    return table.NodeTable(nodes, None if fabric is None else fabric.domains.nodes)


def bound(fabric: tree.Tree | None, asked: Locality, count: int) -> together.Bound | None:
    """What binds the pods of a group of `count` together; None: no interconnect has what it asks for."""
    required = _tier(fabric, asked.required) if asked.required else 0
    unit = asked.slice_size if count > 1 else 1
    if unit == 1 or fabric is None:
        inner = 0 if unit == 1 else None
    else:
        inner = _tier(fabric, asked.slice_level) if asked.slice_level else fabric.depth or None
    if required is None or inner is None or count % unit:
        return None
    if inner <= required:  # then they share that as well
        return together.Bound(required)
    return together.Bound(required, unit, inner)


def _tier(fabric: tree.Tree | None, level: str) -> int | None:
    names = [] if fabric is None else [one.name for one in fabric.domains.levels]
    return names.index(level) + 1 if level in names else None


def span(fabric: tree.Tree | None, path: str) -> tuple[int, int] | None:
    """The nodes (first, last + 1) of a domain by its full path; None: there is none of that path."""
    for level in () if fabric is None or not path else fabric.domains.levels:
        if path in level.names:
            index = level.names.index(path)
            return int(level.starts[index]), int(level.ends[index])
    return None


def inside(fabric: tree.Tree | None, one: together.Bound) -> Mask | None:
    """Nodes that have a domain of every level that a bound names; None: all."""
    if fabric is None or one.free:
        return None
    mask: Mask = np.ones(fabric.size, dtype=np.bool_)
    for tier in {one.required, one.slice_tier} - {0}:
        at = fabric.tiers[tier]
        mask &= tree.real(at)[at.within]
    return mask
