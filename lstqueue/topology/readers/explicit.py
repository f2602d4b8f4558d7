"""An interconnect as somebody writes it down: nodes and links.

```yaml
nodes:
- {name: leaf-1, kind: switch}
- {name: n1}                             # kind: node
- {name: n1-mlx5-0, kind: nic, node: n1} # cables of a NIC or a GPU are those of its node
- {name: rack-1, kind: nvl}
links:
- {between: [n1-mlx5-0, leaf-1], bandwidth: 400Gb/s, count: 2}
- {between: [n1, rack-1], bandwidth: 900GB/s}
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, Graph, TopologyError, within
from lstqueue.topology.readers import fields

KINDS = ("node", "switch", "nvl", "nic", "gpu")
_RATE = re.compile(r"(\d{1,9})\s*(Gb/s|GB/s|MB/s)")
_MEGABYTES = {"Gb/s": 125, "GB/s": 1000, "MB/s": 1}
_MOST_CABLES = 1024


@dataclass(slots=True)
class _Made:
    graph: Graph = field(default_factory=Graph)
    of: dict[str, str] = field(default_factory=dict)
    owners: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def read(objects: Sequence[object]) -> Found:
    """Read the one object of the source.

    Raises:
        TopologyError: It is none, has no node, or a field is wrong.
    """
    if len(objects) != 1:
        raise TopologyError("", f"has {len(objects)} documents; write one with nodes and links")
    whole = fields.mapping(objects[0], "the file")
    fields.only(whole, ("nodes", "links"), "the file")
    made = _Made()
    for index, item in enumerate(fields.sequence(whole.get("nodes"), "nodes")):
        _vertex(made, fields.mapping(item, f"nodes[{index}]"), f"nodes[{index}]")
    for part, owner, where in made.owners:
        if made.graph.kinds.get(owner) != "node":
            raise TopologyError(f"{where}.node", f"is {owner!a}, which is no node of the list; add it")
        made.of[part] = owner
    for index, item in enumerate(fields.sequence(whole.get("links"), "links")):
        _link(made, fields.mapping(item, f"links[{index}]"), f"links[{index}]")
    nodes = made.graph.of("node")
    if not nodes:
        raise TopologyError("nodes", "has none of kind node; list the cluster's nodes")
    within(nodes)
    return Found(tuple(nodes), made.graph, left_out=tuple(made.left_out))


def _vertex(made: _Made, item: Mapping[str, object], where: str) -> None:
    fields.only(item, ("name", "kind", "node"), where)
    name = fields.name(item.get("name"), f"{where}.name")
    kind = item.get("kind", "node")
    if kind not in KINDS:
        raise TopologyError(f"{where}.kind", f"is {fields.shown(kind)}; write one of {', '.join(KINDS)}")
    if name in made.of:
        raise TopologyError(f"{where}.name", f"{name!a} is there twice; give each its own")
    made.of[name] = name
    if kind in ("nic", "gpu"):
        made.owners.append((name, fields.name(item.get("node"), f"{where}.node"), where))
    elif "node" in item:
        raise TopologyError(f"{where}.node", "is for kinds nic and gpu; remove it")
    else:
        made.graph.add(name, str(kind))


def _link(made: _Made, item: Mapping[str, object], where: str) -> None:
    fields.only(item, ("between", "bandwidth", "count", "healthy"), where)
    ends = [
        fields.name(end, f"{where}.between")
        for end in fields.sequence(item.get("between"), f"{where}.between")
    ]
    if len(ends) != 2:
        raise TopologyError(f"{where}.between", f"has {len(ends)} names; write two")
    for end in ends:
        if end not in made.of:
            raise TopologyError(f"{where}.between", f"names {end!a}, which is not in nodes; add it there")
    count = item.get("count", 1)
    if type(count) is not int or not 1 <= count <= _MOST_CABLES:
        raise TopologyError(f"{where}.count", f"is {fields.shown(count)}; write 1 to {_MOST_CABLES}")
    healthy = item.get("healthy", True)
    if not isinstance(healthy, bool):
        raise TopologyError(f"{where}.healthy", f"is {fields.shown(healthy)}; write true or false")
    speed = bandwidth(item.get("bandwidth"), f"{where}.bandwidth") * count
    one, other = (made.of[end] for end in ends)
    if not healthy:
        made.left_out.append(LeftOut(f"{ends[0]} to {ends[1]}", "is not healthy, and counts as not there"))
    elif one != other:
        made.graph.link(one, other, speed)


def bandwidth(value: object, where: str) -> int:
    """Return MB/s one way; 0 where none is said.

    Raises:
        TopologyError: It is none.
    """
    if value is None:
        return 0
    match = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise TopologyError(where, f"is {fields.shown(value)}; write such as 400Gb/s or 50GB/s, one way")
    return int(match[1]) * _MEGABYTES[match[2]]
