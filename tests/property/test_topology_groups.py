"""Leaf groups and blocks are the same whatever things are called, and in spite of a wrong cable."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cases import effort, topologies
from lstqueue.topology import graph as graphs
from lstqueue.topology.graph import Graph


@st.composite
def fabrics(draw: st.DrawFn) -> Graph:
    return topologies.rails(
        draw(st.integers(1, 3)),
        draw(st.integers(2, 5)),
        leaves=draw(st.sampled_from([1, 2, 4, 8])),
        spines=draw(st.integers(1, 4)),
        pods=draw(st.integers(1, 3)),
    )


def groups(graph: Graph, level: str = "leafgroup", without: str = "") -> set[frozenset[str]]:
    made = topologies.domains(graph)
    if level not in topologies.sizes(made):
        return set()
    return {part - {without} for part in topologies.parts(made, level)} - {frozenset()}


def cables(graph: Graph) -> list[tuple[str, str]]:
    return [(one, two) for one in graphs.of(graph, "node") for two in graph[one]]


@settings(max_examples=effort.examples(8), deadline=None)
@given(fabrics(), st.integers(0, 10**6))
def test_names_and_order_do_not_matter(graph: Graph, seed: int) -> None:
    other, names = topologies.relabelled(graph, seed)
    for level in ("leafgroup", "block", "fabric"):
        expected = {frozenset(names[node] for node in part) for part in groups(graph, level)}
        assert groups(other, level) == expected


@settings(max_examples=effort.examples(8), deadline=None)
@given(fabrics(), st.data())
def test_a_dead_cable_changes_no_group_but_for_its_host(graph: Graph, data: st.DataObject) -> None:
    one, two = data.draw(st.sampled_from(cables(graph)))
    levels = {level: groups(graph, level, one) for level in ("leafgroup", "block", "fabric")}
    topologies.cut(graph, one, two)
    for level in levels:
        assert groups(graph, level, one) == levels[level]


@settings(max_examples=effort.examples(8), deadline=None)
@given(fabrics(), st.data())
def test_a_wrong_cable_changes_no_group_but_for_its_host(graph: Graph, data: st.DataObject) -> None:
    one, two = data.draw(st.sampled_from(cables(graph)))
    leaves = sorted({leaf for _, leaf in cables(graph)} - set(graph[one]))
    assume(leaves)
    levels = {level: groups(graph, level, one) for level in ("leafgroup", "block", "fabric")}
    topologies.cut(graph, one, two)
    graphs.link(graph, one, data.draw(st.sampled_from(leaves)), topologies.NDR)
    for level in levels:
        assert groups(graph, level, one) == levels[level]


@settings(max_examples=effort.examples(8), deadline=None)
@given(st.integers(2, 3), st.integers(2, 4), st.integers(2, 4), st.data())
def test_a_dead_cable_above_leaves_changes_no_block(
    pods: int, leafgroups: int, hosts: int, data: st.DataObject
) -> None:
    graph = topologies.rails(leafgroups, hosts, pods=pods)
    before = {level: groups(graph, level) for level in ("leafgroup", "block", "fabric")}
    above = [
        (one, two) for one in graphs.of(graph, "switch") for two in graph[one] if two.startswith(("s", "c"))
    ]
    topologies.cut(graph, *data.draw(st.sampled_from(above)))
    assert {level: groups(graph, level) for level in before} == before
