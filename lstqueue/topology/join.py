"""Several sources of one interconnect as one: an earlier one counts, later ones fill in what it leaves open.

Cables of all go into one graph, where a cable of which two sources tell is as the earlier one says. What they
say of levels stands one after the other, and `levels` makes one of those of one name. Machines are called as
the cluster calls its nodes, which a file may shorten, or write in capitals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found

if TYPE_CHECKING:
    from lstqueue.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class Part:
    """One source by its name, and what its reader found."""

    source: str
    found: Found


def join(parts: Sequence[Part], nodes: Collection[str] | None = None) -> Found:
    """Join sources, those that count first before the others.

    Args:
        parts: The sources.
        nodes: The nodes of the cluster; None where the sources say which there are. Cables of other machines
            are cables all the same; such a machine is placed nowhere.
    """
    named = list(parts) if nodes is None else [_named(part, nodes) for part in parts]
    if nodes is None:
        nodes = dict.fromkeys(node for part in parts for node in part.found.nodes)
    prefix = "{source}: {what}" if len(parts) > 1 else "{what}"
    left_out = [
        LeftOut(item.name, prefix.format(source=part.source, what=item.reason))
        for part in named
        for item in part.found.left_out
    ]
    return Found(
        nodes=tuple(nodes),
        graph=_graph(named, left_out),
        said=tuple(said for part in named for said in part.found.said),
        left_out=tuple(left_out),
        merged=tuple(item for part in named for item in part.found.merged),
        notes=tuple(
            prefix.format(source=part.source, what=note) for part in named for note in part.found.notes
        ),
    )


def _graph(parts: Sequence[Part], left_out: list[LeftOut]) -> Graph | None:
    graphs = [(part.source, part.found.graph) for part in parts if part.found.graph is not None]
    if len(graphs) < 2:
        return graphs[0][1] if graphs else None
    whole: Graph = graphs[0][1].copy()
    for source, graph in graphs[1:]:
        strange = set()
        for vertex, its in graph.nodes(data=True):
            known = whole.nodes.get(vertex)
            if known is None:
                whole.add_node(vertex, **its)
            elif known["kind"] != its["kind"]:
                strange.add(vertex)
                first = f"a {known['kind']} in an earlier source, which counts"
                why = f"{source}: is a {its['kind']} here, and {first}"
                left_out.append(LeftOut(vertex, why))
        for one, other, its in graph.edges(data=True):
            if one not in strange and other not in strange and not whole.has_edge(one, other):
                whole.add_edge(one, other, **its)
    return whole


def _named(part: Part, nodes: Collection[str]) -> Part:
    """The same, with machines called as nodes of the cluster are; those that are none are left out."""
    found = part.found
    names, left_out = _names(found, nodes)
    graph = found.graph
    if graph is not None and any(host != name for host, name in names.items()):
        from networkx import relabel_nodes  # only who has cables has imported it

        graph = relabel_nodes(graph, names)
        for vertex, owner in graph.nodes(data="node"):
            graph.nodes[vertex]["node"] = names.get(owner, owner)
    said = tuple(
        replace(one, domain={names[host]: domain for host, domain in one.domain.items() if host in names})
        for one in found.said
    )
    renamed = replace(
        found,
        nodes=tuple(names.values()),
        graph=graph,
        said=said,
        left_out=(
            *(replace(item, name=names.get(item.name, item.name)) for item in found.left_out),
            *left_out,
        ),
    )
    return replace(part, found=renamed)


def _names(found: Found, nodes: Collection[str]) -> tuple[dict[str, str], list[LeftOut]]:
    """By machine of a source, the node that it is: of the same name, of any case, of the same first part."""
    exact, lower, short = set(nodes), _by(nodes, str.lower), _by(nodes, _short)
    names: dict[str, str] = {host: host for host in found.nodes if host in exact}
    taken = set(names.values()).union(found.graph or ())
    left_out = []
    for host in found.nodes:
        if host in names:
            continue
        node = lower.get(host.lower()) or short.get(_short(host))
        if node is None:
            left_out.append(LeftOut(host, "is no node of the cluster"))
        elif node in taken:
            left_out.append(LeftOut(host, f"would be node {node}, but that name is another's here"))
        else:
            names[host] = node
            taken.add(node)
    return names, left_out


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _by(nodes: Collection[str], key: Callable[[str], str]) -> Mapping[str, str]:
    """By what a key makes of their names, those nodes that it tells apart."""
    found: dict[str, str] = {}
    several = set()
    for node in nodes:
        made = key(node)
        if found.setdefault(made, node) != node:
            several.add(made)
    return {made: node for made, node in found.items() if made not in several}
