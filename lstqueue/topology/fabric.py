"""Domains of a cabled fabric: leaf groups by shared leaves, then blocks of these by shared spines, and so on.

Starts from hosts and climbs. At each step what is one unit so far is attached to the switches above it, and
units with nearly the same of them (`overlap`) are one unit of the next level. Where no switch is above and a
fabric is still in parts, as in a torus or a dragonfly, `distance` says what is near. What is not connected
stays apart: several roots are legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lstqueue.topology import distance, overlap, titles
from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import LeftOut, Merged
from lstqueue.topology.found import MOST_LEVELS, Cabled, Said
from lstqueue.topology.graph import Graph
from lstqueue.topology.table import natural

LEVELS = ("leafgroup", "block", "fabric")
"""What the levels of switches are called, from the hosts up; those above have a number."""
_FEWER = 4
"""A switch most of whose neighbours have more than so many times its hosts is no leaf, but has a manager."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """Hosts that are one domain so far, the switches at its top, and what lies below in it."""

    hosts: tuple[str, ...]
    tops: frozenset[str]


def level_name(height: int) -> str:
    """The name of the level of switches at a height above the hosts, from 0."""
    return LEVELS[height] if height < len(LEVELS) else f"tier{height + 1}"


def climb(graph: Graph) -> Cabled:
    """Find the domains of the hosts of `graph.hosts` that are cabled to switches; others are in none."""
    out = Cabled()
    leaves = _leaves(graph)
    attached = _attached(graph, leaves, out)
    units = [_Unit(one.members, one.core) for one in overlap.group(attached)]
    _tell_odd(units, attached, graph=graph, out=out)
    seen = set(leaves)
    height = 0
    out.links = {host: sum(graphs.speed(graph, host, leaf) for leaf in attached[host]) for host in attached}
    late = _late(graph, leaves)
    while units:
        above = [_above(graph, unit.tops, seen) for unit in units]
        _say(out, units, above, graph=graph, height=height)
        height += 1
        late_here = [host for host, switches in late.items() if switches & set().union(*above)]
        if not any(above) or height >= MOST_LEVELS - 1:
            break
        units = _raised(units, above, {host: late.pop(host) for host in late_here}, out=out, graph=graph)
        seen.update(*above)
    _finish(out, units, graph=graph, height=height)
    return out


def _leaves(graph: Graph) -> set[str]:
    """Switches with hosts, other than spines on which somebody hung a manager or a store."""
    kinds = graphs.kinds(graph)
    hosts = {
        switch: sum(1 for other in graph[switch] if kinds[other] == "node")
        for switch in graphs.of(graph, "switch")
    }
    leaves = set()
    for switch, count in hosts.items():
        others = [other for other in graph[switch] if kinds[other] == "switch"]
        busier = sum(1 for other in others if hosts[other] > _FEWER * count)
        if count and busier * 2 <= len(others):
            leaves.add(switch)
    return leaves


def _attached(graph: Graph, leaves: set[str], out: Cabled) -> dict[str, frozenset[str]]:
    """By host in natural order, its leaves."""
    found = {}
    for host in sorted(graphs.of(graph, "node"), key=natural):
        its = frozenset(leaves.intersection(graph[host]))
        if len(its) > overlap.WIDEST:
            why = f"is on {len(its)} leaf switches, more than one machine can be; give each machine its name"
            out.left_out.append(LeftOut(host, why))
        elif its:
            found[host] = its
    return found


def _late(graph: Graph, leaves: set[str]) -> dict[str, frozenset[str]]:
    """By host that is on no leaf, the switches above leaves that it is on."""
    found = {}
    kinds = graphs.kinds(graph)
    for host in graphs.of(graph, "node"):
        its = [other for other in graph[host] if kinds[other] == "switch"]
        if its and not leaves & set(its):
            found[host] = frozenset(its)
    return found


def _tell_odd(
    units: Sequence[_Unit], attached: Mapping[str, frozenset[str]], *, graph: Graph, out: Cabled
) -> None:
    for unit in units:
        sets = {attached[host] for host in unit.hosts}
        if len(sets) > 1:
            title = titles.common(graphs.title(graph, top) for top in unit.tops)
            why = f"{len(unit.hosts)} nodes with {len(sets)} different sets of leaves, that overlap, are one"
            out.merged.append(Merged(title, why))
        for host in unit.hosts:
            if strange := attached[host] - unit.tops:
                where = ", ".join(sorted(graphs.title(graph, switch) for switch in strange)[:3])
                why = f"is also cabled to {where}, outside of its leaf group"
                out.merged.append(Merged(host, why))


def _above(graph: Graph, tops: Iterable[str], seen: set[str]) -> frozenset[str]:
    found = {other for top in tops for other in graph[top]} - seen
    return frozenset(other for other in found if graph.nodes[other]["kind"] == "switch")


def _say(
    out: Cabled, units: Sequence[_Unit], above: Sequence[frozenset[str]], *, graph: Graph, height: int
) -> None:
    """Add a level; one that is the level below again, only where it has a name of its own.

    So a level is called the same before and after a cable makes a difference within it.
    """
    names = titles.unique([titles.common(graphs.title(graph, top) for top in unit.tops) for unit in units])
    domain = {host: name for unit, name in zip(units, names, strict=True) for host in unit.hosts}
    alike = bool(out.said) and len(set(domain.values())) == len(set(out.said[0].domain.values()))
    if alike and len(out.said) >= len(LEVELS):
        return
    uplinks = {}
    for unit, name, tops in zip(units, names, above, strict=True):
        uplinks[name] = sum(graphs.speed(graph, top, up) for top in unit.tops for up in tops)
    out.said.insert(0, Said(level_name(len(out.said)), domain, uplinks=uplinks))


def _raised(
    units: Sequence[_Unit],
    above: Sequence[frozenset[str]],
    late: Mapping[str, frozenset[str]],
    *,
    out: Cabled,
    graph: Graph,
) -> list[_Unit]:
    """The units one level up, hosts included that are cabled to its switches and not to a leaf."""
    attached: dict[int | str, frozenset[str]] = {}
    for index, tops in enumerate(above):
        if tops:
            attached[index] = frozenset(sorted(tops)[: overlap.WIDEST])
    attached.update(late)
    weights = {member: len(units[member].hosts) if isinstance(member, int) else 1 for member in attached}
    found = []
    for one in overlap.group(attached, weights):
        hosts: list[str] = []
        for member in one.members:
            hosts += units[member].hosts if isinstance(member, int) else (member,)
        found.append(_Unit(tuple(hosts), one.core))
    for host, switches in late.items():
        out.links[host] = sum(graphs.speed(graph, host, switch) for switch in switches)
    # What nothing is above of stays as it is, a root of its own until `_finish` looks at distances.
    found += [unit for unit, tops in zip(units, above, strict=True) if not tops]
    return found


def _finish(out: Cabled, units: Sequence[_Unit], *, graph: Graph, height: int) -> None:
    """Join what is connected and in parts: by distance where it is several hops wide, then as a whole."""
    if len(units) < 2:
        return
    parts = distance.components(graph, [unit.tops for unit in units])
    if len(set(parts)) == len(units):
        return
    near = distance.clusters(graph, [unit.tops for unit in units], parts=parts)
    if near is None:
        why = f"more than {distance.MOST} leaf groups that no switches above them join; kept without blocks"
        out.left_out.append(LeftOut(level_name(height), why))
        near = parts
    for grouping in (near, parts) if near != parts else (parts,):
        joined: dict[int, list[_Unit]] = {}
        for unit, home in zip(units, grouping, strict=True):
            joined.setdefault(home, []).append(unit)
        whole = [
            _Unit(tuple(h for unit in some for h in unit.hosts), frozenset().union(*(u.tops for u in some)))
            for some in joined.values()
        ]
        _say(out, whole, [frozenset()] * len(whole), graph=graph, height=height)
