"""What is wrong with a source of an interconnect, or odd in it, is told, and with it what to do."""

from __future__ import annotations

import pathlib

import pytest

from cases import topologies
from lstqueue.evaluate import interconnects
from lstqueue.interconnect import sources
from lstqueue.topology.readers import ibnetdiscover

NODE = {"kind": "Node", "metadata": {"name": "n1", "labels": {"r": "a"}}}
HYPERNODE = {"kind": "HyperNode", "metadata": {"name": "h"}}


def cable(**its: object) -> dict[str, object]:
    nodes = [{"name": "n"}, {"name": "l", "kind": "switch"}]
    return {"nodes": nodes, "links": [{"between": ["n", "l"], **its}]}


def hypernode(**spec: object) -> dict[str, object]:
    return {"items": [{**HYPERNODE, "spec": {"tier": 1, **spec}}]}


@pytest.mark.parametrize(
    ("form", "told", "said"),
    [
        ("slurm", "SwitchName= Nodes=n1\n", "line 1: has a SwitchName without anything; write it"),
        ("slurm", "BlockName= Nodes=n1\n", "line 1: has a BlockName without anything; write it"),
        ("slurm", "SwitchName=\n", "line 1: has a SwitchName without anything; write a name"),
        ("slurm", "SwitchName=a Nodes=\n", "has no node in any switch; list the nodes of each"),
        (
            "slurm",
            "SwitchName=a\nSwitchName=b Switches=a,c\n",
            "(switch c is part of b and described nowhere",
        ),
        (
            "slurm",
            "SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n",
            "line 2: has a BlockName, and line 1 a switch",
        ),
        ("slurm-yaml", "- {topology: t, tree: {switches: [{switch: a}]}}\n", "has no node in any switch"),
        ("slurm-yaml", "- {topology: t, block: {blocks: [{block: a}]}}\n", "has no node in any block"),
        ("volcano", hypernode(members=None), "has no node in any HyperNode; list the nodes of each"),
        ("volcano", hypernode(tier=10**30), "is a very large number; write a whole number of 0 to 1,048,576"),
        (
            "explicit",
            cable(bandwidth="0Gb/s"),
            "links[0].bandwidth: is '0Gb/s', which carries nothing; leave it",
        ),
        ("explicit", cable(latency="0ns"), "links[0].latency: is '0ns'; write such as 600ns"),
        ("explicit", cable(count=0), "links[0].count: is 0; write 1 to 1024"),
        ("explicit", "nodes: [{name: 1}]\n", "nodes[0].name: is 1 and no text; write the name in quotes"),
        (
            "explicit",
            "nodes: [{name: 2024-01-01}]\n",
            "is '2024-01-01' and no text; write the name in quotes",
        ),
        ("explicit", {"nodes": [{"name": "a\x1bb"}]}, "is 'a\\x1bb', of which a part cannot be printed"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(
    tmp_path: pathlib.Path, form: str, told: object, said: str
) -> None:
    assert said in topologies.refusal(tmp_path, form, told)


def test_null_is_what_nobody_has_said(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "explicit", cable(count=None, healthy=None, bandwidth="400Gb/s"))
    assert made.link.tolist() == [topologies.NDR]
    assert not made.left_out


def test_a_cable_from_a_switch_to_itself_is_left_out(tmp_path: pathlib.Path) -> None:
    told = cable(bandwidth="400Gb/s")
    told["links"] = [*told["links"], {"between": ["l", "l"]}]  # type: ignore[misc]  # a list, as made above
    assert "has one end twice" in topologies.left_out(topologies.read(tmp_path, "explicit", told))["l to l"]


@pytest.mark.parametrize(
    ("odd", "name", "said"),
    [
        ("text", "items[1]", "is 'text' and no object"),
        (None, "items[1]", "is missing and no object"),
        ({"kind": "Node", "metadata": {}}, "items[1]", "has no usable metadata.name"),
        ({"kind": "Node"}, "items[1]", "has no usable metadata.name"),
        ({"kind": None, "metadata": "x"}, "items[1]", "has no usable metadata.name"),
        ({"metadata": {"name": "n2", "labels": ["r"]}}, "n2", "has a list for labels; write an object"),
        (
            {"metadata": {"name": "n2", "labels": {"r": 5}}},
            "n2",
            "has a label 'r' that is 5; write it in quotes",
        ),
    ],
)
def test_a_node_that_is_none_is_left_out_by_name(
    tmp_path: pathlib.Path, odd: object, name: str, said: str
) -> None:
    made = topologies.read(tmp_path, "labels", {"kind": "List", "items": [NODE, odd]}, keys=["r"])
    assert said in next(item.reason for item in made.left_out if item.name == name)
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]
    told = hypernode(members=members)
    told["items"] += ["text"]  # type: ignore[operator]  # a list, as made above
    assert topologies.left_out(topologies.read(tmp_path, "volcano", told))["items[1]"]


def test_keys_that_do_not_nest_are_told(tmp_path: pathlib.Path) -> None:
    racks = {f"n{place}": {"row": f"r{place // 4}", "rack": f"k{place % 4}"} for place in range(8)}
    path = tmp_path / "nodes.json"
    nodes = [topologies.labelled(name, labels) for name, labels in racks.items()]
    topologies.read(tmp_path, "labels", nodes, keys=["row", "rack"])
    found = sources.read(f"labels:{path.with_name('source.json')}", keys=["row", "rack"])
    assert found.notes == (
        "of rack 4 names are in several domains of row, and a domain in each of these (k0, k1, k2)",
    )
    labels = {name: {"row": its["row"], "rack": its["row"] + its["rack"]} for name, its in racks.items()}
    told = [topologies.labelled(name, its) for name, its in labels.items()]
    assert not topologies.read(tmp_path, "labels", told, keys=["row", "rack"]).notes


@pytest.mark.parametrize(
    "text", ["clos:0:4", "clos:8", "clos:8:4:2:1", "clos:1e3:4", "clos:100001:2", "clos:8:-1"]
)
def test_a_made_interconnect_says_which_numbers_it_takes(text: str) -> None:
    wishes = interconnects.Wishes()
    with pytest.raises(interconnects.InterconnectError, match="in numbers of 1 to 100,000, as in clos:8:4:2"):
        interconnects.read(text, [("n", 8)], wishes, named=False)


def test_a_switch_whose_section_is_missing_is_told_as_where_a_file_was_cut_off() -> None:
    text = """Switch 41 "S-1" # "leaf-1" base port 0 lid 1 lmc 0
[1] "H-1"[1](1) # "gpu01 mlx5_0" lid 5 4xNDR
[33] "S-2"[1] # "spine-1" lid 2 4xNDR
"""
    found = ibnetdiscover.read(text.splitlines())
    assert [(one.name, "described nowhere" in one.reason) for one in found.left_out] == [("S-2", True)]
