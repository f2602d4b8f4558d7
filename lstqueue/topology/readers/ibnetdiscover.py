"""What `ibnetdiscover` prints of an InfiniBand fabric: switches, adapters, and cables from both ends.

Adapters are called by their host and device (`host mlx5_0`), where somebody set that. One that has the name
of its model stands for a node of its own, since nobody can say whose it is. What a switch has inside for
reductions (SHARP) looks like an adapter and is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, TopologyError, within

_HEAD = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9A-Fa-f]{1,32})"\s*(?:#\s*"([^"]*)")?')
_GUID = r"(?:\([0-9A-Fa-f]{1,32}\))?"
_CABLE = re.compile(
    rf'\[(\d{{1,5}})\](?:\[ext \d{{1,5}}\])?{_GUID}\s+"([SHR]-[0-9A-Fa-f]{{1,32}})"\[(\d{{1,5}})\]'
    rf"(?:\[ext \d{{1,5}}\])?{_GUID}\s*(?:#\s?(.*))?"
)
_RATE = re.compile(r"\b(\d{1,2})x([A-Z]+\d*)\s*$")
_QUOTED = re.compile(r'"([^"]*)"')
_HOST = re.compile(r"(\S+) (?:HCA-\d+|\S*\d+_\d+|ib\S*)")
_OTHER = re.compile(r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|Chassis)\b|#|$")
_LANE = {"SDR": 312, "DDR": 625, "QDR": 1250, "FDR10": 1250, "FDR": 1750, "EDR": 3125, "HDR": 6250}
_LANE |= {"NDR": 12_500, "XDR": 25_000}
"""MB/s one way of a lane: NDR is 100 Gb/s, and a port of four lanes 400."""
_AGGREGATION = "Aggregation Node"
_TOLD = 20
"""Unreadable lines that are told one by one."""


@dataclass(slots=True)
class _Seen:
    names: dict[str, str] = field(default_factory=dict)
    described: set[str] = field(default_factory=set)
    cables: dict[tuple[tuple[str, str], tuple[str, str]], int] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)


def read(lines: Iterable[str]) -> Found:
    """Read the lines of a file.

    Raises:
        TopologyError: There is no switch in it.
    """
    seen = _Seen()
    at = ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if head := _HEAD.match(text):
            at = head[2]
            seen.described.add(at)
            seen.names[at] = head[3] or seen.names.get(at, "")
        elif cable := _CABLE.match(text):
            _cable(seen, at, cable)
        elif not _OTHER.match(text):
            seen.unread.append(number)
    if not any(vertex.startswith("S-") for vertex in seen.names):
        raise TopologyError("line 1", "no line begins with Switch; give a file that ibnetdiscover printed")
    return _found(seen)


def _cable(seen: _Seen, at: str, cable: re.Match[str]) -> None:
    """Note a cable, once for both of its ends."""
    port, other, its_port, remark = cable.groups()
    rate = _RATE.search(remark or "")
    speed = int(rate[1]) * _LANE.get(rate[2], 0) if rate else 0
    if other.startswith("H-") and (name := _QUOTED.search(remark or "")):
        seen.names.setdefault(other, name[1])
    seen.names.setdefault(other, "")
    if at:
        ends = sorted([(at, port), (other, its_port)])
        key = ends[0], ends[1]
        seen.cables[key] = max(speed, seen.cables.get(key, 0))


def _found(seen: _Seen) -> Found:
    graph = graphs.Graph()
    left_out: list[LeftOut] = []
    of: dict[str, str] = {}
    others = 0
    for vertex, name in seen.names.items():
        if vertex.startswith("S-"):
            of[vertex] = vertex
            if vertex not in seen.described:
                why = "is at the end of cables and described nowhere; is the file whole?"
                left_out.append(LeftOut(vertex, why))
            graphs.add(graph, vertex, "switch", title=switch_title(name))
        elif vertex.startswith("R-") or _AGGREGATION in name:
            others += 1
        else:
            host = _HOST.fullmatch(name.strip())
            if not host:
                why = f"has no host in its name ({ascii(name)[1:-1][:60]}); a node of its own, until it has"
                left_out.append(LeftOut(vertex, f"{why} a node description"))
            of[vertex] = host[1] if host else vertex
            graphs.add(graph, of[vertex], "node")
    for (one, two), speed in ((tuple(end[0] for end in key), value) for key, value in seen.cables.items()):
        if one in of and two in of and of[one] != of[two]:
            graphs.link(graph, of[one], of[two], speed)
    strange = "nothing that ibnetdiscover prints; run it again"
    left_out += [LeftOut(f"line {number}", f"is {strange}") for number in seen.unread[:_TOLD]]
    if len(seen.unread) > _TOLD:
        left_out.append(LeftOut(f"{len(seen.unread) - _TOLD} more lines", f"are {strange}"))
    nodes = graphs.of(graph, "node")
    within(nodes)
    notes = (
        (f"{others} routers and aggregation nodes of switches are no adapters of nodes",) if others else ()
    )
    return Found(tuple(nodes), graph, left_out=tuple(left_out), notes=notes)


def switch_title(name: str) -> str:
    """The name of a switch without what its firmware adds: `leaf-1` of `MF0;leaf-1:MQM9701/U1`."""
    return name.rpartition(";")[2].partition(":")[0].strip()
