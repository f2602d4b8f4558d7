"""What `nvidia-smi topo -m` prints of one machine: its GPUs, its adapters, and the way between each two.

It knows of nothing outside of the machine, so it makes no domain: what it has to say are notes. NVLink beyond
the machine is invisible here, so the GPUs of a tray of an NVLink rack are a few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import networkx

from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, TopologyError

NODE = "this machine"
_PART = re.compile(r"(?:GPU|NIC|mlx|bnxt|ib|roce)[A-Za-z]*_?\d+(?:_\d+)*")
_NVLINK = re.compile(r"NV(\d{1,3})")
_NEAR = ("PIX", "PXB", "P2C")
"""Ways that cross no host bridge: an adapter so is beside a GPU."""
_WAYS = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|P2C|NODE|SYS|C2C|N/A")
_MOST = 512
"""Columns of a table."""


def read(lines: Iterable[str]) -> Found:
    """Read the lines of a table; a table that is cut off counts as far as it goes.

    Raises:
        TopologyError: There is no table, or a row has a way that is none.
    """
    names: list[str] = []
    rows: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not names:
            names = [word for word in words if _PART.fullmatch(word)] if "GPU0" in words else []
            if len(names) > _MOST:
                raise TopologyError(f"line {number}", f"has {len(names)} columns; give one machine's")
        elif words and _PART.fullmatch(words[0]):
            ways = dict(zip(names, words[1:], strict=False))
            strange = next((way for way in ways.values() if not _WAYS.fullmatch(way)), "")
            if strange and len(words) > len(names):
                raise TopologyError(f"line {number}", f"{strange[:20]!a} is no way; print it again")
            rows[words[0]] = {other: way for other, way in ways.items() if _WAYS.fullmatch(way)}
    if not rows:
        raise TopologyError("", "has no row of a GPU; give what nvidia-smi topo -m prints")
    graph = _graph(names, rows)
    missing = [name for name in names if name not in rows]
    left_out = [LeftOut(name, "has no row, as the table ends before it; print it again") for name in missing]
    return Found((NODE,), graph, left_out=tuple(left_out), notes=tuple(_notes(graph, rows)))


def _graph(names: Iterable[str], rows: Mapping[str, Mapping[str, str]]) -> graphs.Graph:
    graph = graphs.Graph()
    graphs.add(graph, NODE, "node")
    for name in dict.fromkeys([*names, *rows]):
        graphs.add(graph, name, "gpu" if name.startswith("GPU") else "nic", node=NODE)
    for one, ways in rows.items():
        for other, way in ways.items():
            if one < other and (_NVLINK.fullmatch(way) or way in _NEAR):
                graphs.link(graph, one, other, 0)
    return graph


def _notes(graph: graphs.Graph, rows: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    gpus = graphs.of(graph, "gpu")
    nics = graphs.of(graph, "nic")
    yield f"{len(gpus)} GPUs and {len(nics)} adapters; of other machines nothing is told"
    links = {
        int(match[1])
        for one in gpus
        for other, way in rows.get(one, {}).items()
        if other in gpus and (match := _NVLINK.fullmatch(way))
    }
    joined = [sorted(part) for part in networkx.connected_components(_nvlinked(gpus, rows)) if len(part) > 1]
    for part in joined:
        count = "/".join(map(str, sorted(links)))
        yield f"{part[0]} to {part[-1]} ({len(part)}) are one NVLink domain, {count} links between each two"
    for gpu in gpus:
        beside = [other for other, way in rows.get(gpu, {}).items() if way in _NEAR and other not in gpus]
        if beside:
            yield f"{gpu} is beside {', '.join(beside)}"


def _nvlinked(gpus: list[str], rows: Mapping[str, Mapping[str, str]]) -> graphs.Graph:
    found = graphs.Graph()
    found.add_nodes_from(gpus)
    for one in gpus:
        for other, way in rows.get(one, {}).items():
            if other in gpus and _NVLINK.fullmatch(way):
                found.add_edge(one, other)
    return found
