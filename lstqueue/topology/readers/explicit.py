"""An interconnect as somebody writes it down: nodes and links.

```yaml
nodes:
- {name: leaf-1, kind: switch}
- {name: n1}                             # kind: node
- {name: n1-mlx5-0, kind: nic, node: n1} # cables of a NIC or a GPU are those of its node
- {name: rack-1, kind: nvl}
links:
- {between: [n1-mlx5-0, leaf-1], bandwidth: 400Gb/s, count: 2, latency: 600ns}
- {between: [n1, rack-1], bandwidth: 900GB/s}
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, TopologyError, within
from lstqueue.topology.graph import Graph
from lstqueue.topology.readers import fields, rates

_MOST_CABLES = 1024


def read(objects: Sequence[object]) -> Found:
    """Read the one object of the source.

    Raises:
        TopologyError: It is none, has no node, or a field is wrong.
    """
    if len(objects) != 1:
        raise TopologyError("", f"has {len(objects)} documents; write one with nodes and links")
    whole = fields.mapping(objects[0], "the file")
    fields.only(whole, ("nodes", "links"), "the file")
    graph = Graph()
    owners: list[tuple[str, str]] = []
    for index, item in enumerate(fields.sequence(whole.get("nodes"), "nodes")):
        where = f"nodes[{index}]"
        if owner := _vertex(graph, fields.mapping(item, where), where):
            owners.append((owner, where))
    kinds = graphs.kinds(graph)
    for owner, where in owners:
        if kinds.get(owner) != "node":
            raise TopologyError(f"{where}.node", f"is {owner!a}, which is no node of the list; add it")
    left_out: list[LeftOut] = []
    for index, item in enumerate(fields.sequence(whole.get("links"), "links")):
        _link(graph, fields.mapping(item, f"links[{index}]"), f"links[{index}]", left_out)
    nodes = graphs.of(graph, "node")
    if not nodes:
        raise TopologyError("nodes", "has none of kind node; list the cluster's nodes")
    within(nodes)
    return Found(tuple(nodes), graph, left_out=tuple(left_out))


def _vertex(graph: Graph, item: Mapping[str, object], where: str) -> str:
    """Add a vertex; return the name of the node that it is a part of, "" for none."""
    fields.only(item, ("name", "kind", "node"), where)
    name = fields.name(item.get("name"), f"{where}.name")
    kind = _or(item.get("kind"), "node")
    if kind not in graphs.KINDS:
        raise TopologyError(
            f"{where}.kind", f"is {fields.shown(kind)}; write one of {', '.join(graphs.KINDS)}"
        )
    if name in graph:
        raise TopologyError(f"{where}.name", f"{name!a} is there twice; give each its own")
    if kind not in graphs.PARTS and item.get("node") is not None:
        raise TopologyError(f"{where}.node", "is for kinds nic and gpu; remove it")
    owner = fields.name(item.get("node"), f"{where}.node") if kind in graphs.PARTS else ""
    graphs.add(graph, name, str(kind), node=owner)
    return owner


def _or(value: object, default: object) -> object:
    """What nothing is said of, or null as Kubernetes has it, is the default."""
    return default if value is None else value


def _link(graph: Graph, item: Mapping[str, object], where: str, left_out: list[LeftOut]) -> None:
    fields.only(item, ("between", "bandwidth", "count", "latency", "healthy"), where)
    ends = [
        fields.name(end, f"{where}.between")
        for end in fields.sequence(item.get("between"), f"{where}.between")
    ]
    if len(ends) != 2:
        raise TopologyError(f"{where}.between", f"has {len(ends)} names; write two")
    for end in ends:
        if end not in graph:
            raise TopologyError(f"{where}.between", f"names {end!a}, which is not in nodes; add it there")
    count = _or(item.get("count"), 1)
    if type(count) is not int or not 1 <= count <= _MOST_CABLES:
        raise TopologyError(f"{where}.count", f"is {fields.shown(count)}; write 1 to {_MOST_CABLES}")
    healthy = _or(item.get("healthy"), True)
    if not isinstance(healthy, bool):
        raise TopologyError(f"{where}.healthy", f"is {fields.shown(healthy)}; write true or false")
    speed = rates.bandwidth(item.get("bandwidth"), f"{where}.bandwidth") * count
    late = rates.latency(item.get("latency"), f"{where}.latency")
    if not healthy:
        left_out.append(LeftOut(f"{ends[0]} to {ends[1]}", "is not healthy, and counts as not there"))
    if ends[0] == ends[1]:
        left_out.append(LeftOut(f"{ends[0]} to {ends[1]}", "has one end twice; name the other, or remove it"))
    else:
        graphs.link(graph, ends[0], ends[1], speed, latency=late, healthy=healthy)
