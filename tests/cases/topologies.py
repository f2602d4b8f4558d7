"""Sources of an interconnect, made by hand, and how tests look at what became of them."""

from __future__ import annotations

import json
import pathlib
import random

import pytest

from lstqueue.interconnect import sources
from lstqueue.topology import contract
from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import Domains
from lstqueue.topology.found import Found
from lstqueue.topology.graph import Graph

NDR = 50_000
"""MB/s of a port of 4xNDR."""


def members(made: Domains, level: str) -> dict[str, tuple[str, ...]]:
    """By domain of a level, its nodes."""
    one = next(item for item in made.levels if item.name == level)
    slices = zip(one.names, one.starts, one.ends, strict=True)
    return {name: made.nodes[start:end] for name, start, end in slices}


def sizes(made: Domains) -> dict[str, int]:
    """By level from outer to inner, how many domains it has."""
    return {level.name: len(level.names) for level in made.levels}


def left_out(made: Domains) -> dict[str, str]:
    """By name, why something was left out."""
    return {item.name: item.reason for item in made.left_out}


def read(folder: pathlib.Path, form: str, told: object, **more: object) -> Domains:
    """Read text, or objects as JSON, as a source of the format."""
    path = folder / ("source.txt" if isinstance(told, str | bytes) else "source.json")
    if isinstance(told, str) and form not in sources.LINES:
        path = folder / "source.yaml"
    path.write_bytes(told if isinstance(told, bytes) else _text(told).encode())
    return sources.read(f"{form}:{path}", **more).domains


def refusal(folder: pathlib.Path, form: str, told: object, **more: object) -> str:
    """What is said of a source that cannot be used, without the path."""
    with pytest.raises(sources.SourceError) as caught:
        read(folder, form, told, **more)
    return str(caught.value).replace(f"{folder}/", "")


def _text(told: object) -> str:
    return told if isinstance(told, str) else json.dumps(told)


def labelled(name: str, labels: dict[str, str]) -> dict[str, object]:
    """A node with these labels."""
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def rails(groups: int, hosts: int, *, leaves: int = 4, spines: int = 4, pods: int = 1) -> Graph:
    """A rail-optimised fabric: every host on each leaf of its group, every leaf on each spine of its pod.

    Where there are several pods, spines are on cores: a spine of each pod on the same.
    """
    graph = Graph()
    for spine in range(spines if pods > 1 else 0):
        graphs.add(graph, f"core-{spine}", "switch")
    for pod in range(pods):
        for spine in range(spines):
            graphs.add(graph, f"spine-{pod}-{spine}", "switch")
            if pods > 1:
                graphs.link(graph, f"spine-{pod}-{spine}", f"core-{spine}", 4 * NDR)
        for group in range(pod * groups, (pod + 1) * groups):
            _group(graph, group, hosts, leaves=leaves, spines=[f"spine-{pod}-{s}" for s in range(spines)])
    return graph


def _group(graph: Graph, group: int, hosts: int, *, leaves: int, spines: list[str]) -> None:
    for leaf in range(leaves):
        graphs.add(graph, f"leaf-{leaf}-{group}", "switch")
        for spine in spines:
            graphs.link(graph, f"leaf-{leaf}-{group}", spine, 2 * NDR)
    for host in range(hosts):
        graphs.add(graph, f"n{group}-{host}", "node")
        for leaf in range(leaves):
            graphs.link(graph, f"n{group}-{host}", f"leaf-{leaf}-{group}", NDR)


def cut(graph: Graph, one: str, other: str) -> None:
    """Take a cable away."""
    graph.remove_edge(one, other)


def relabelled(graph: Graph, seed: int) -> tuple[Graph, dict[str, str]]:
    """The same fabric with other names, told in another order; and the names by the old ones."""
    chance = random.Random(seed)
    old = list(graph)
    chance.shuffle(old)
    names = {vertex: f"v{index}" for index, vertex in enumerate(old)}
    other = Graph()
    for vertex in old:
        graphs.add(other, names[vertex], graph.nodes[vertex]["kind"])
    pairs = [sorted(pair, key=names.__getitem__) for pair in graph.edges]
    chance.shuffle(pairs)
    for one, two in pairs:
        graphs.link(other, names[one], names[two], graphs.speed(graph, one, two))
    return other, names


def domains(graph: Graph) -> Domains:
    """What becomes of a fabric."""
    return contract.contract(Found(tuple(graphs.of(graph, "node")), graph))


def parts(made: Domains, level: str) -> set[frozenset[str]]:
    """The sets of nodes that a level's domains are, whatever they are called."""
    return {frozenset(its) for its in members(made, level).values()}
