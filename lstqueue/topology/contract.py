"""From what a reader found to domains: cabled levels and said ones in one order, nodes as slices.

Cables give network levels (`fabric`) and NVLink domains; what is said comes as it is. `nesting` finds the
order of all of them, `domains.arrange` the slices.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from lstqueue.topology import domains, fabric, nesting, titles
from lstqueue.topology.domains import Domains, LeftOut, Merged
from lstqueue.topology.found import Found, Graph, Said
from lstqueue.topology.table import natural

NVL = "nvl"


def contract(found: Found) -> Domains:
    """Find the domains of all nodes of a source."""
    climbed = fabric.climb(found.graph)
    nvl, speeds, twice = _nvlink(found.graph)
    told = [*climbed.said, *found.said, *([nvl] if nvl.domain else [])]
    nodes = sorted(found.nodes, key=natural)
    order = nesting.nested(told, nodes)
    paths = {node: tuple(said.domain.get(node) for said in order) for node in nodes}
    return domains.arrange(
        [said.level for said in order],
        paths,
        uplinks=_uplinks(order, paths, links=climbed.links),
        links={**climbed.links, **speeds},
        left_out=(*found.left_out, *climbed.left_out, *twice, *_unplaced(found, paths)),
        merged=(*found.merged, *climbed.merged, *_split(order, paths)),
    )


def _nvlink(graph: Graph) -> tuple[Said, dict[str, int], list[LeftOut]]:
    """NVLink domains: what NVLink switches connect, and what each node can send into its own."""
    of: dict[str, str] = {}
    for start in sorted(graph.of(NVL), key=natural):
        if start in of:
            continue
        reached, waiting = [start], deque([start])
        of[start] = start
        while waiting:
            for other in graph.links[waiting.popleft()]:
                if graph.kinds[other] == NVL and other not in of:
                    of[other] = start
                    reached.append(other)
                    waiting.append(other)
        name = titles.common(reached)
        of.update(dict.fromkeys(reached, name))
    domain: dict[str, str] = {}
    speeds: dict[str, int] = {}
    twice = []
    for node in graph.of("node"):
        its = sorted({of[other] for other in graph.links[node] if other in of}, key=natural)
        if its:
            domain[node] = its[0]
            speeds[node] = sum(speed for other, speed in graph.links[node].items() if of.get(other) == its[0])
        if len(its) > 1:
            why = f"is in NVLink domains {', '.join(its)}; it is taken for one of {its[0]}"
            twice.append(LeftOut(node, why))
    return (
        Said(NVL, domain, accelerator=True),
        {node: speed for node, speed in speeds.items() if speed},
        twice,
    )


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
        if not said.accelerator:
            continue
        places: dict[str, set[domains.Path]] = {}
        for path in paths.values():
            name = path[depth - 1]
            if name is not None:
                places.setdefault(name, set()).add(path[:depth])
        for name, its in places.items():
            if len(its) > 1:
                why = f"lies in {len(its)} domains of the levels around it, and counts as one in each"
                found.append(Merged(name, why))
    return found
