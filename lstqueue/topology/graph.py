"""The graph of an interconnect: one `networkx.Graph` that every reader of cables writes to.

A vertex has a `kind` (`KINDS`) and a `title`, which is how people call it where its name is not unique; a
`gpu` or a `nic` also has the `node` that it is in. An edge has `bandwidth` (MB/s one way, parallel cables
summed, 0 unknown), `latency` (ns one way, 0 unknown) and `healthy`, which is false where every cable of it is
dead; dead cables carry nothing. `hosts` is what domains are found in: machines and switches alone.

The one module that imports networkx, which takes as long as all else of a command: whoever reads labels alone
does not import this.
"""

from __future__ import annotations

from typing import Any

from networkx import Graph as Graph

KINDS = ("node", "switch", "nvl", "nic", "gpu")
"""Machines, network switches, NVLink switches (or the whole of a rack of them), and what is in a machine."""
PARTS = ("nic", "gpu")
"""Kinds whose cables are those of their node."""


def add(graph: Graph, vertex: str, kind: str, *, title: str = "", node: str = "") -> None:
    """Add a vertex; `node` is the machine that a part is in."""
    graph.add_node(vertex, kind=kind, title=title or vertex, node=node or vertex)


def link(
    graph: Graph, one: str, other: str, bandwidth: int, *, latency: int = 0, healthy: bool = True
) -> None:
    """Add a cable of two vertices that are there: MB/s one way and ns, 0 where unknown.

    Of parallel cables bandwidths are summed, and the least latency is theirs.
    """
    has: dict[str, Any] = graph.get_edge_data(one, other) or {"bandwidth": 0, "latency": 0, "healthy": False}
    known = [value for value in (has["latency"], latency) if value] if healthy else [has["latency"]]
    graph.add_edge(
        one,
        other,
        bandwidth=has["bandwidth"] + (bandwidth if healthy else 0),
        latency=min(known, default=0),
        healthy=has["healthy"] or healthy,
    )


def of(graph: Graph, kind: str) -> list[str]:
    """All vertices of a kind, in the order in which they were added."""
    return [vertex for vertex, its in graph.nodes(data="kind") if its == kind]


def kinds(graph: Graph) -> dict[str, str]:
    """By vertex, its kind."""
    return dict(graph.nodes(data="kind"))


def speed(graph: Graph, one: str, other: str) -> int:
    """MB/s one way of the cables between two vertices, 0 unknown or none."""
    has = graph.get_edge_data(one, other)
    return int(has["bandwidth"]) if has else 0


def title(graph: Graph, vertex: str) -> str:
    """How people call a vertex."""
    return str(graph.nodes[vertex]["title"])


def hosts(graph: Graph) -> Graph:
    """The graph between machines and switches: parts are their machine, and dead cables are not there."""
    found = Graph()
    home: dict[str, str] = {}
    for vertex, its in graph.nodes(data=True):
        home[vertex] = its["node"]
        if its["kind"] not in PARTS:
            found.add_node(vertex, **its)
    for one, other, its in graph.edges(data=True):
        if its["healthy"] and home[one] != home[other]:
            link(found, home[one], home[other], its["bandwidth"], latency=its["latency"])
    return found
