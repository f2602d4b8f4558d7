"""Domains that are said as a tree: who lies directly in whom. Shared by the formats that say it so.

A domain's level is its height: that of nodes is below 0, and a domain lies above the highest of what is in
it. So a switch with nodes of its own beside switches keeps the level of its peers, and its nodes have none
below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import MOST_LEVELS, MOST_NODES, Found, Said, TopologyError, within

MOST_TOLD = 2 * MOST_NODES
"""Names of a file, repeated ones counted, so that no short file takes long."""


@dataclass(slots=True)
class Tree:
    """What a source says so far. `parents` of domains and `homes` of nodes are names of domains.

    `told` counts the names that `fill` was given.
    """

    what: str
    wheres: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    told: int = 0

    def fill(self, name: str, nodes: Sequence[str], children: Sequence[str], where: str) -> None:
        """Put all of these directly into a domain.

        Raises:
            TopologyError: More names are told by now than any cluster has.
        """
        self.told += len(nodes) + len(children)
        if self.told > MOST_TOLD:
            raise TopologyError(
                where, f"is where more than {MOST_TOLD:,} names are reached; check the ranges"
            )
        for node in nodes:
            self.put(node, name)
        for child in children:
            self.nest(child, name)

    def add(self, name: str, where: str) -> bool:
        """Note that there is a domain; False where it is there a second time, which does not count."""
        if name in self.wheres:
            why = f"is given again; what {self.wheres[name]} says counts, so remove one"
            self.left_out.append(LeftOut(f"{self.what} {name} ({where})", why))
            return False
        self.wheres[name] = where
        return True

    def put(self, node: str, domain: str) -> None:
        """Put a node directly into a domain; it stays in the first."""
        first = self.homes.setdefault(node, domain)
        if first != domain:
            why = f"is in {self.what} {first} and in {domain}; it is taken for one of {first}"
            self.left_out.append(LeftOut(node, why))

    def nest(self, child: str, parent: str) -> None:
        """Put a domain directly into another; it stays in the first."""
        first = self.parents.setdefault(child, parent)
        if first != parent:
            why = f"is in {self.what} {first} and in {parent}; it is taken for a part of {first}"
            self.left_out.append(LeftOut(f"{self.what} {child}", why))


def found(
    tree: Tree,
    level: Callable[[int], str],
    *,
    heights: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
) -> Found:
    """Make levels of a tree; `heights` where the source says them, else they follow from what is in what.

    Raises:
        TopologyError: A domain lies in itself, there are too many levels or nodes, or no node at all.
    """
    within(tree.homes)
    for child in [child for child in tree.parents if child not in tree.wheres]:
        why = f"is part of {tree.parents.pop(child)} and described nowhere; it is taken to be empty"
        tree.left_out.append(LeftOut(f"{tree.what} {child}", why))
    counted = _heights(tree)
    height = counted if heights is None else heights
    if not tree.homes:
        odd = f" ({tree.left_out[0].name} {tree.left_out[0].reason})" if tree.left_out else ""
        raise TopologyError("", f"has no node in any {tree.what}{odd}; list the nodes of each")
    columns: dict[int, dict[str, str]] = {}
    above: dict[str, list[str]] = {}
    for node, home in tree.homes.items():
        if home not in above:
            chain = [home]
            while chain[-1] in tree.parents:
                chain.append(tree.parents[chain[-1]])
            above[home] = chain
        for domain in above[home]:
            columns.setdefault(height[domain], {})[node] = domain
    said = tuple(Said(level(tall), columns[tall]) for tall in sorted(columns, reverse=True))
    return Found(tuple(tree.homes), said=said, left_out=tuple(tree.left_out), notes=notes)


def _heights(tree: Tree) -> dict[str, int]:
    """By domain, how many levels of domains are in it; from the bottom up, as deep trees must not recurse."""
    waiting: dict[str, int] = dict.fromkeys(tree.wheres, 0)
    for parent in tree.parents.values():
        waiting[parent] += 1
    ready = [name for name, children in waiting.items() if not children]
    heights = dict.fromkeys(ready, 0)
    for name in ready:
        if name not in tree.parents:
            continue
        parent = tree.parents[name]
        heights[parent] = max(heights.get(parent, 0), heights[name] + 1)
        waiting[parent] -= 1
        if not waiting[parent]:
            ready.append(parent)
    if len(ready) < len(waiting):
        name = next(name for name, children in waiting.items() if children)
        raise TopologyError(
            tree.wheres[name], f"{tree.what} {name} lies in itself by others; break the circle"
        )
    if max(heights.values(), default=0) >= MOST_LEVELS:
        raise TopologyError(
            "", f"has more than {MOST_LEVELS} levels ({tree.what}); at most so many are known"
        )
    return heights
