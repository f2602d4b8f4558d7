"""Joining sources: what labels say of nodes that cables do not reach, and what they may not change."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, topologies
from lstqueue.topology import contract, join
from lstqueue.topology import graph as graphs
from lstqueue.topology.domains import Domains
from lstqueue.topology.found import Found, Said


def joined(*parts: Found, nodes: list[str]) -> Domains:
    named = [join.Part(f"source-{at}", found) for at, found in enumerate(parts)]
    return contract.contract(join.join(named, nodes))


@settings(max_examples=effort.examples(15), deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 3), st.integers(3, 5), st.booleans())
def test_labels_place_nodes_without_cables_where_their_peers_are(
    seed: int, groups: int, hosts: int, first: bool
) -> None:
    chance = random.Random(seed)
    graph = topologies.rails(groups, hosts, pods=chance.choice((1, 2)))
    nodes = graphs.of(graph, "node")
    whole = topologies.domains(graph)
    told = {node: node.partition("-")[0] for node in nodes if chance.random() < 0.8}
    dark = [node for node in told if int(node.partition("-")[2]) == hosts - 1 and chance.random() < 0.7]
    for node in dark:
        graph.remove_edges_from([(node, leaf) for leaf in list(graph[node])])
    cables = Found(tuple(nodes), graph)
    labels = Found(tuple(nodes), said=(Said("leafgroup", told),))
    made = joined(*((labels, cables) if first else (cables, labels)), nodes=nodes)
    # A dark node is where its peers are, wherever one of these is told of by both.
    lost = {
        node for node in dark if not any(told.get(peer) == told[node] and peer not in dark for peer in nodes)
    }
    for level in topologies.sizes(whole):
        expected = {part - lost for part in topologies.parts(whole, level)}
        assert {part - lost for part in topologies.parts(made, level)} - {frozenset()} == expected - {
            frozenset()
        }


@settings(max_examples=effort.examples(15), deadline=None)
@given(st.integers(0, 10**9))
def test_a_source_twice_and_names_in_capitals_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    graph = topologies.rails(chance.randint(1, 3), chance.randint(2, 4), pods=chance.randint(1, 2))
    nodes = graphs.of(graph, "node")
    once = topologies.domains(graph)
    written = {node: f"{node.upper()}.fabric.local" if chance.random() < 0.5 else node for node in nodes}
    again = graphs.Graph()
    for vertex, its in graph.nodes(data=True):
        graphs.add(again, written.get(vertex, vertex), its["kind"])
    for one, other in graph.edges:
        speed = graphs.speed(graph, one, other)
        graphs.link(again, written.get(one, one), written.get(other, other), speed)
    named = Found(tuple(written.values()), again)
    made = joined(Found(tuple(nodes), graph), named, nodes=nodes)
    assert topologies.sizes(made) == topologies.sizes(once)
    assert made.nodes == once.nodes
    assert made.link.tolist() == once.link.tolist()
    assert [level.uplink.tolist() for level in made.levels] == [
        level.uplink.tolist() for level in once.levels
    ]
    assert not made.left_out
