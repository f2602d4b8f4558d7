"""How good a place is, in words that a user understands."""

from __future__ import annotations

from lstqueue.topology import bandwidth, titles, tree
from lstqueue.topology.table import Ints


def place(fabric: tree.Tree, found: bandwidth.Quality, nodes: Ints) -> str:
    """A place on nodes: `leafgroup l3 of b1, 2 hops, ring 48 GB/s of 50, 1 leafgroup used of 1 possible`.

    Of levels of which not all nodes have a domain no number is told, for one that has none counts as one.
    """
    said = [_where(fabric, found, nodes), f"{found.hops} hops"]
    if found.ring:
        said.append(f"ring {titles.rate(found.ring)} GB/s of {titles.rate(found.best or found.ring)}")
    if found.all_to_all:
        said.append(f"all-to-all {titles.rate(found.all_to_all)} GB/s a pod")
    levels = [level.name for level in fabric.domains.levels]
    all_in = everywhere(fabric, nodes)
    for level, used, fewest in zip(levels, found.used, found.fewest, strict=True):
        if level in all_in and (used > 1 or level == all_in[-1]):
            said.append(f"{used} {level} used of {fewest} possible")
    return ", ".join(said)


def everywhere(fabric: tree.Tree, nodes: Ints) -> tuple[str, ...]:
    """Levels of which every one of some nodes has a domain, outermost first."""
    tiers = zip(fabric.domains.levels, fabric.tiers[1:], strict=False)
    return tuple(level.name for level, at in tiers if (at.domain[at.within[nodes]] >= 0).all())


def domain(fabric: tree.Tree, found: bandwidth.Quality, nodes: Ints) -> str | None:
    """The full path of the innermost domain that holds a place; None: no single one does."""
    if found.level is None:
        return None
    at = fabric.tiers[found.level + 1]
    return fabric.domains.levels[found.level].names[int(at.domain[at.within[nodes[0]]])]


def _where(fabric: tree.Tree, found: bandwidth.Quality, nodes: Ints) -> str:
    path = domain(fabric, found, nodes)
    if path is None or found.level is None:
        return "no one domain"
    return titles.spoken(fabric.domains.levels[found.level].name, path)
