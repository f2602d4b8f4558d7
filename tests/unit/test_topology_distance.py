"""Fabrics whose domains do not nest: blocks are what is near, by latency where it is told, else by hops."""

import itertools
import pathlib

import pytest

from cases import topologies
from lstqueue.topology import graph as graphs
from lstqueue.topology.readers import explicit

Written = dict[str, list[dict[str, object]]]


def written(switches: int, cables: list[tuple[int, int, str]]) -> Written:
    """Switches with two nodes each, and cables between switches."""
    nodes: list[dict[str, object]] = [{"name": f"s{at}", "kind": "switch"} for at in range(switches)]
    links: list[dict[str, object]] = []
    for at, number in itertools.product(range(switches), range(2)):
        nodes.append({"name": f"n{at}-{number}"})
        links.append({"between": [f"n{at}-{number}", f"s{at}"], "bandwidth": "400Gb/s"})
    for one, two, late in cables:
        told = {"latency": late} if late else {}
        links.append({"between": [f"s{one}", f"s{two}"], "bandwidth": "400Gb/s", **told})
    return {"nodes": nodes, "links": links}


def dragonfly(groups: int, size: int, *, near: str = "", far: str = "") -> Written:
    """All switches of a group are cabled to each other, and a switch of each group to one of each other."""
    cables = [
        (group * size + one, group * size + two, near)
        for group in range(groups)
        for one, two in itertools.combinations(range(size), 2)
    ]
    for one, two in itertools.combinations(range(groups), 2):
        cables.append((one * size + two % size, two * size + one % size, far))
    return written(groups * size, cables)


def test_groups_of_a_dragonfly_are_blocks(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "explicit", dragonfly(4, 4))
    assert topologies.sizes(made) == {"fabric": 1, "block": 4, "leafgroup": 16}
    assert all(len(its) == 8 for its in topologies.members(made, "block").values())


def test_latencies_tell_halls_apart_that_hops_do_not(tmp_path: pathlib.Path) -> None:
    everyone = list(itertools.combinations(range(6), 2))
    alike = written(6, [(one, two, "") for one, two in everyone])
    assert topologies.parts(topologies.read(tmp_path, "explicit", alike), "block") == {
        frozenset(f"n{at}-{number}" for at in range(6) for number in range(2))
    }
    halls = written(6, [(one, two, "300ns" if one // 3 == two // 3 else "5us") for one, two in everyone])
    assert topologies.parts(topologies.read(tmp_path, "explicit", halls), "block") == {
        frozenset(f"n{at}-{number}" for at in hall for number in range(2)) for hall in ((0, 1, 2), (3, 4, 5))
    }


def test_a_torus_has_no_borders(tmp_path: pathlib.Path) -> None:
    side = 6
    cables = []
    for row, column in itertools.product(range(side), range(side)):
        at = row * side + column
        cables += [(at, row * side + (column + 1) % side, ""), (at, (row + 1) % side * side + column, "")]
    made = topologies.read(tmp_path, "explicit", written(side * side, cables))
    assert len(topologies.parts(made, "block")) == 1


@pytest.mark.parametrize(("groups", "size"), [(4, 4), (5, 8)])
def test_names_do_not_matter_in_a_dragonfly(tmp_path: pathlib.Path, groups: int, size: int) -> None:
    graph = explicit.read([dragonfly(groups, size)]).graph
    for seed in range(5):
        other, names = topologies.relabelled(graph, seed)
        renamed = {
            frozenset(names[f"n{group * size + at}-{number}"] for at in range(size) for number in range(2))
            for group in range(groups)
        }
        assert topologies.parts(topologies.domains(other), "block") == renamed


@pytest.mark.parametrize(("groups", "size"), [(4, 4), (5, 8)])
def test_one_dead_or_wrong_cable_leaves_the_groups_of_a_dragonfly(groups: int, size: int) -> None:
    before = topologies.parts(topologies.domains(explicit.read([dragonfly(groups, size)]).graph), "block")
    whole = explicit.read([dragonfly(groups, size)]).graph
    between = [edge for edge in whole.edges if all(end.startswith("s") for end in edge)]
    for one, two in between[:: len(between) // 12]:
        graph = whole.copy()
        topologies.cut(graph, one, two)
        assert topologies.parts(topologies.domains(graph), "block") == before
        wrong = next(other for other in graphs.of(graph, "switch") if other not in (one, *graph[one]))
        graphs.link(graph, one, wrong, topologies.NDR)
        assert topologies.parts(topologies.domains(graph), "block") == before


@pytest.mark.parametrize("late", ["fast", "0ns", "2ms", "999999us", 5])
def test_a_latency_that_no_cable_has_is_refused(tmp_path: pathlib.Path, late: object) -> None:
    told = {
        "nodes": [{"name": "n"}, {"name": "m"}],
        "links": [{"between": ["n", "m"], "latency": late}],
    }
    said = topologies.refusal(tmp_path, "explicit", told)
    assert "links[0].latency: is " in said
    assert "write such as 600ns or 2us" in said


def test_cables_of_a_nic_are_those_of_its_node_and_those_within_it_are_none(tmp_path: pathlib.Path) -> None:
    told = {
        "nodes": [
            {"name": "s", "kind": "switch"},
            *({"name": name} for name in ("n", "m")),
            {"name": "g", "kind": "gpu", "node": "n"},
            *({"name": f"nic{at}", "kind": "nic", "node": "n"} for at in range(2)),
        ],
        "links": [
            {"between": ["g", "nic0"], "bandwidth": "64GB/s"},
            *({"between": [f"nic{at}", "s"], "bandwidth": "50GB/s"} for at in range(2)),
            {"between": ["m", "s"], "bandwidth": "50GB/s"},
        ],
    }
    made = topologies.read(tmp_path, "explicit", told)
    assert made.nodes == ("m", "n")
    assert made.link.tolist() == [50_000, 100_000]
