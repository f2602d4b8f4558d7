"""How long it takes to find the domains of 5,000 nodes with eight rails each."""

import time

import pytest

from cases import topologies

SECONDS = 2.0


@pytest.mark.benchmark
def test_domains_of_five_thousand_nodes_are_found_in_two_seconds() -> None:
    graph = topologies.rails(25, 20, leaves=8, spines=16, pods=10)
    begun = time.process_time()
    made = topologies.domains(graph)
    taken = time.process_time() - begun
    print(f"\n{len(made.nodes):,} nodes, {topologies.sizes(made)}: {taken:.2f} s of CPU")
    assert topologies.sizes(made) == {"fabric": 1, "block": 10, "leafgroup": 250}
    assert taken < SECONDS
