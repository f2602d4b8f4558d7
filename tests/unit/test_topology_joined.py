"""Several sources of one interconnect: an earlier one counts, later ones fill in what it leaves open."""

import json
import pathlib

import pytest

from cases import topologies
from lstqueue.interconnect import sources
from lstqueue.topology.domains import Domains

BACKEND = "backend.coreweave.cloud/"


def leaf(name: str, port: int, *hosts: str) -> list[str]:
    """Lines of `ibnetdiscover` for a leaf with these hosts, on a port of the one spine."""
    cables = [
        f'[{at}] "H-{name}{at}"[1](0) # "{host} mlx5_0" lid 2 4xNDR' for at, host in enumerate(hosts, 1)
    ]
    return [f'Switch 64 "S-{name}" # "{name}"', f'[60] "S-5b1e"[{port}] # "spine" lid 5 4xNDR', *cables]


SPINE = 'Switch 64 "S-5b1e" # "spine"'
FIRST = leaf("a1", 1, "n1", "N2", "n3.fabric.local", "store")
CABLES = "\n".join([SPINE, *FIRST, *leaf("a2", 2, "n4", "n5")])


def labelled(name: str, group: str) -> dict[str, object]:
    return topologies.labelled(name, {BACKEND + "leafgroup": group, BACKEND + "superpod": "p1"})


NODES = [*(labelled(f"n{at}", "g1") for at in (1, 2, 3, 6)), labelled("n4", "g2"), labelled("n7", "g3")]


def joined(folder: pathlib.Path, *forms: str) -> Domains:
    files = {"labels": "nodes.json", "ibnetdiscover": "cables.txt"}
    (folder / "nodes.json").write_text(json.dumps(NODES), encoding="utf-8")
    (folder / "cables.txt").write_text(CABLES, encoding="utf-8")
    return sources.read(*(f"{form}:{folder / files[form]}" for form in forms)).domains


def test_cables_place_nodes_and_labels_those_without_cables(tmp_path: pathlib.Path) -> None:
    made = joined(tmp_path, "labels", "ibnetdiscover")
    assert topologies.sizes(made) == {"superpod": 1, "block": 1, "leafgroup": 3}
    groups = {name.rpartition("/")[2]: its for name, its in topologies.members(made, "leafgroup").items()}
    assert groups == {"a1": ("n1", "n2", "n3", "n6"), "a2": ("n4",), "g3": ("n7",)}
    assert made.link[made.nodes.index("n1")] == topologies.NDR
    said = topologies.left_out(made)
    assert said["store"].endswith("is no node of the cluster")
    assert said["n5"].endswith("is no node of the cluster")


def test_what_one_source_takes_for_one_and_another_for_two_is_told(tmp_path: pathlib.Path) -> None:
    for name, groups in (("a", ("g1", "g1", "g2", "g2")), ("b", ("x",) * 5)):
        nodes = [labelled(f"n{at}", group) for at, group in enumerate(groups, 1)]
        (tmp_path / f"{name}.json").write_text(json.dumps(nodes), encoding="utf-8")
    made = sources.read(f"labels:{tmp_path}/a.json", f"labels:{tmp_path}/b.json").domains
    assert {item.name: item.reason for item in made.merged}["x"].startswith("is one leafgroup for one source")
    # Which of the two n5 is in nobody can say.
    assert topologies.parts(made, "superpod") == {frozenset(f"n{at}" for at in range(1, 6))}
    assert topologies.parts(made, "leafgroup") == {frozenset({"n1", "n2"}), frozenset({"n3", "n4"})}


def test_a_cable_that_two_sources_tell_of_is_there_once(tmp_path: pathlib.Path) -> None:
    written = {
        "nodes": [{"name": "n1"}, {"name": "n2"}, {"name": "s", "kind": "switch"}],
        "links": [{"between": [f"n{at}", "s"], "bandwidth": "400Gb/s"} for at in (1, 2)],
    }
    more = {
        "nodes": [*written["nodes"], {"name": "rack", "kind": "nvl"}],
        "links": [
            {"between": ["n1", "s"], "bandwidth": "100Gb/s"},
            *({"between": [f"n{at}", "rack"], "bandwidth": "900GB/s"} for at in (1, 2)),
        ],
    }
    for name, told in (("a", written), ("b", more)):
        (tmp_path / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")
    made = sources.read(f"explicit:{tmp_path}/a.json", f"explicit:{tmp_path}/b.json").domains
    assert topologies.sizes(made) == {"leafgroup": 1, "nvl": 1}
    assert made.link.tolist() == [900_000, 900_000]
    assert made.levels[1].uplink.tolist() == [100_000]


def test_a_name_that_is_a_switch_in_one_and_a_node_in_another_is_told(tmp_path: pathlib.Path) -> None:
    for name, kind in (("a", "switch"), ("b", "node")):
        told = {
            "nodes": [{"name": "n1"}, {"name": "n2"}, {"name": "x", "kind": kind}],
            "links": [{"between": [f"n{at}", "x"]} for at in (1, 2)],
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")
    made = sources.read(f"explicit:{tmp_path}/a.json", f"explicit:{tmp_path}/b.json").domains
    assert "a switch in an earlier source" in topologies.left_out(made)["x"]
    assert topologies.parts(made, "leafgroup") == {frozenset({"n1", "n2"})}


def test_the_same_file_twice_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(sources.SourceError, match="is given twice; give each once"):
        joined(tmp_path, "labels", "labels")
