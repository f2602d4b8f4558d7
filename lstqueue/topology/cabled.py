"""What cables say of where nodes are: levels of switches by `fabric`, and NVLink domains."""

from __future__ import annotations

import networkx

from lstqueue.topology import fabric, graph, titles
from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Cabled, Said
from lstqueue.topology.table import natural

NVL = "nvl"


def cabled(whole: graph.Graph) -> Cabled:
    """Find levels in a graph of cables; NVLink domains are told last, as the innermost."""
    hosts = graph.hosts(whole)
    out = fabric.climb(hosts)
    _nvlink(hosts, out)
    return out


def _nvlink(hosts: graph.Graph, out: Cabled) -> None:
    """NVLink domains: what NVLink switches connect, and what each node can send into its own."""
    of: dict[str, str] = {}
    for reached in networkx.connected_components(hosts.subgraph(graph.of(hosts, NVL))):
        of.update(dict.fromkeys(reached, titles.common(reached)))
    domain: dict[str, str] = {}
    for node in graph.of(hosts, "node"):
        its = sorted({of[other] for other in hosts[node] if other in of}, key=natural)
        if not its:
            continue
        domain[node] = its[0]
        speed = sum(graph.speed(hosts, node, other) for other in hosts[node] if of.get(other) == its[0])
        if speed:
            out.nvlinks[node] = speed
        if len(its) > 1:
            why = f"is in NVLink domains {', '.join(its)}; it is taken for one of {its[0]}"
            out.left_out.append(LeftOut(node, why))
    if domain:
        out.said.append(Said(NVL, domain, accelerator=True))
