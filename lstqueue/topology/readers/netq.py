"""What NVIDIA NetQ shows of an Ethernet fabric (Spectrum-X): devices by tier, and links between them.

Links have their port pairs and no rates. Devices that are no switches are machines, found by what switches
hear of them (LLDP).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, TopologyError, within
from lstqueue.topology.readers import fields

_SWITCH = "switch"


def read(objects: Sequence[object]) -> Found:
    """Read the one graph of a file.

    Raises:
        TopologyError: There is none, or several, or a field is wrong.
    """
    if len(objects) != 1:
        raise TopologyError("", f"has {len(objects)} graphs; give one topologyGraph of NetQ")
    whole = fields.mapping(objects[0], "[0]")
    graph = graphs.Graph()
    left_out: list[LeftOut] = []
    of: dict[str, str] = {}
    for where, device in _devices(whole):
        _device(graph, of, device, where, left_out)
    for index, item in enumerate(fields.sequence(whole.get("links"), "links")):
        _link(graph, of, fields.mapping(item, f"links[{index}]"), f"links[{index}]", left_out)
    nodes = graphs.of(graph, "node")
    if not nodes:
        raise TopologyError("nodes", "has no device that is no switch; give a topologyGraph with hosts")
    within(nodes)
    return Found(tuple(nodes), graph, left_out=tuple(left_out), notes=("rates are not told",))


def _devices(whole: Mapping[str, object]) -> list[tuple[str, Mapping[str, object]]]:
    """All devices, of every tier, with where they are."""
    found = []
    for index, item in enumerate(fields.sequence(whole.get("nodes"), "nodes")):
        tier = fields.mapping(item, f"nodes[{index}]")
        inner = fields.sequence(tier.get("compounded_nodes"), f"nodes[{index}].compounded_nodes")
        for number, device in enumerate(inner):
            where = f"nodes[{index}].compounded_nodes[{number}]"
            found.append((where, fields.mapping(device, where)))
    return found


def _device(
    graph: graphs.Graph,
    of: dict[str, str],
    device: Mapping[str, object],
    where: str,
    left_out: list[LeftOut],
) -> None:
    identity = fields.name(device.get("id"), f"{where}.id")
    name = fields.name(device.get("name"), f"{where}.name")
    kind = "switch" if device.get("device_type") == _SWITCH else "node"
    if identity in of:
        left_out.append(LeftOut(name, f"has the id {identity} of another device, which counts"))
        return
    # Switches are known by their ids: names of several fabrics repeat. Machines are known by their names.
    vertex = name if kind == "node" else f"{identity} {name}"
    if vertex in graph:
        left_out.append(LeftOut(name, "is there twice, and the first counts; give each machine its name"))
        return
    of[identity] = vertex
    graphs.add(graph, vertex, kind, title=name)


def _link(
    graph: graphs.Graph,
    of: Mapping[str, str],
    item: Mapping[str, object],
    where: str,
    left_out: list[LeftOut],
) -> None:
    ends = [fields.name(item.get(key), f"{where}.{key}") for key in ("src", "target")]
    unknown = [end for end in ends if end not in of]
    if unknown:
        why = f"leads to {', '.join(unknown)}, which is no device here"
        left_out.append(LeftOut(where, why))
    elif of[ends[0]] != of[ends[1]]:
        graphs.link(graph, of[ends[0]], of[ends[1]], 0)
