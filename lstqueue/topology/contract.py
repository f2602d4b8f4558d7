"""From what a reader found to domains: cabled levels and said ones in one order, nodes as slices.

Cables give network levels and NVLink domains (`cabled`); what is said comes as it is. `nesting` finds the
order of all of them, `domains.arrange` the slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lstqueue.topology import domains, levels, nesting
from lstqueue.topology.domains import Domains, LeftOut, Merged
from lstqueue.topology.found import Cabled, Found, Said
from lstqueue.topology.table import natural


def contract(found: Found) -> Domains:
    """Find the domains of all nodes of a source."""
    cabled = _cabled(found)
    told, joined = levels.one_each([*cabled.said, *found.said])
    nodes = sorted(found.nodes, key=natural)
    order = nesting.nested(told, nodes)
    paths = {node: tuple(said.domain.get(node) for said in order) for node in nodes}
    return domains.arrange(
        [said.level for said in order],
        paths,
        uplinks=_uplinks(order, paths, links=cabled.links),
        links={**cabled.links, **cabled.nvlinks},
        left_out=(*found.left_out, *cabled.left_out, *_unplaced(found, paths)),
        merged=(*found.merged, *cabled.merged, *joined, *_split(order, paths)),
        notes=_repeated(order, paths),
    )


def _cabled(found: Found) -> Cabled:
    if found.graph is None:
        return Cabled()
    # Importing networkx takes longer than all else that who reads labels alone has to wait for.
    from lstqueue.topology import cabled

    return cabled.cabled(found.graph)


def _uplinks(
    order: Sequence[Said], paths: Mapping[str, domains.Path], *, links: Mapping[str, int]
) -> dict[domains.Path, int]:
    """By path, what leads out of a domain: of an NVLink domain the NICs of its nodes."""
    found: Counter[domains.Path] = Counter()
    for depth, said in enumerate(order, start=1):
        for node, path in paths.items():
            name = path[depth - 1]
            if name is None:
                continue
            if said.accelerator:
                found[path[:depth]] += links.get(node, 0)
            elif name in said.uplinks:
                found[path[:depth]] = said.uplinks[name]
    return dict(found)


def _unplaced(found: Found, paths: Mapping[str, domains.Path]) -> list[LeftOut]:
    told = {item.name for item in found.left_out}
    bare = [node for node, path in paths.items() if node not in told and not any(path)]
    return [LeftOut(node, "is in no domain, as nothing says what it is connected to") for node in bare]


def _split(order: Sequence[Said], paths: Mapping[str, domains.Path]) -> list[Merged]:
    """NVLink domains that lie across domains of an outer level; their names are unique, so it is odd."""
    found = []
    for depth, said in enumerate(order, start=1):
        for name, places in _places(paths, depth).items() if said.accelerator else ():
            if len(places) > 1:
                why = f"lies in {len(places)} domains of the levels around it, and counts as one in each"
                found.append(Merged(name, why))
    return found


def _repeated(order: Sequence[Said], paths: Mapping[str, domains.Path]) -> tuple[str, ...]:
    """Names of domains that are there in several outer ones: in many sources that is how names are given.

    Where a level was meant to lie in another, and does not, it looks the same.
    """
    found = []
    for depth, said in enumerate(order, start=1):
        names = [name for name, places in _places(paths, depth).items() if len(places) > 1]
        if names and not said.accelerator:
            outer = " and ".join(one.level for one in order[: depth - 1])
            some = ", ".join(sorted(names, key=natural)[:3])
            found.append(
                f"of {said.level} {len(names)} {'name is' if len(names) == 1 else 'names are'} in several"
                f" domains of {outer}, and a domain in each of these ({some})"
            )
    return tuple(found)


def _places(paths: Mapping[str, domains.Path], depth: int) -> dict[str, set[domains.Path]]:
    """By name of a domain of a level, the paths down to it."""
    found: dict[str, set[domains.Path]] = {}
    for path in paths.values():
        name = path[depth - 1]
        if name is not None:
            found.setdefault(name, set()).add(path[:depth])
    return found
