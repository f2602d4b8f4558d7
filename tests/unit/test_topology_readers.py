"""What each reader of an interconnect makes of whole, odd and broken sources."""

import pathlib

import pytest

from cases import topologies
from lstqueue.topology.readers import hostlist

TIER = "fabric.topograph.run/tier-{}"


def tiers(name: str, *values: str | None) -> dict[str, object]:
    pairs = {TIER.format(index): value for index, value in enumerate(values) if value is not None}
    return topologies.labelled(name, pairs)


@pytest.mark.parametrize("value", ["no-imds-data", "none", "Unknown", "n/a", "", "empty", "missing", None])
def test_an_unknown_label_is_no_domain(tmp_path: pathlib.Path, value: str | None) -> None:
    nodes = [
        tiers("n1", "s1", "b1"),
        tiers("n2", "s1", "b1"),
        tiers("n3", value, "b1"),
        tiers("n4", value, "b1"),
    ]
    made = topologies.read(tmp_path, "labels", nodes)
    assert topologies.members(made, "tier-0") == {"b1/s1": ("n1", "n2")}
    assert topologies.members(made, "tier-1") == {"b1": ("n1", "n2", "n3", "n4")}
    assert set(topologies.left_out(made)) == {"n3", "n4"}
    assert "is in no tier-0" in topologies.left_out(made)["n3"]


def test_levels_are_ordered_by_what_contains_what(tmp_path: pathlib.Path) -> None:
    racks = [
        topologies.labelled(
            f"n{number}",
            {
                "topology.k8s.aws/network-node-layer-1": f"leaf{number // 2}",  # numbered from the wrong end
                "topology.k8s.aws/network-node-layer-2": f"top{number // 8}",
                "nvidia.com/gpu.clique": f"uuid.{number // 4}",  # spans two leaves
            },
        )
        for number in range(16)
    ]
    made = topologies.read(tmp_path, "labels", racks)
    assert topologies.sizes(made) == {"layer-2": 2, "nvl": 4, "layer-1": 8}
    assert not made.merged


def test_a_node_that_is_there_twice_counts_once(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "labels", [tiers("n1", "s1"), tiers("n2", "s1"), tiers("n1", "s2")])
    assert topologies.members(made, "tier-0") == {"s1": ("n1", "n2")}
    assert "twice" in topologies.left_out(made)["n1"]


def test_kueue_says_the_levels_and_nodes_their_values(tmp_path: pathlib.Path) -> None:
    levels = [{"nodeLabel": key} for key in ("dc/block", "dc/rack", "kubernetes.io/hostname")]
    topology = {"kind": "Topology", "spec": {"levels": levels}}
    nodes = [
        topologies.labelled(f"n{number}", {"dc/block": "b", "dc/rack": f"r{number % 2}"})
        for number in range(4)
    ]
    made = topologies.read(tmp_path, "kueue", [topology, *nodes, topologies.labelled("bare", {})])
    assert topologies.sizes(made) == {"block": 1, "rack": 2}
    assert set(topologies.left_out(made)) == {"bare"}
    assert topologies.refusal(tmp_path, "kueue", nodes).endswith(
        "has 0 objects of kind Topology; keep one, and add the nodes"
    )
    topology["spec"] = {"levels": [{"nodelabel": "x"}]}
    said = topologies.refusal(tmp_path, "kueue", [topology, *nodes])
    assert said == "source.json: spec.levels[0].nodeLabel: is missing; write a name of 1 to 253 characters"


def hypernode(name: str, tier: int, kind: str, *selectors: dict[str, object]) -> dict[str, object]:
    members = [{"type": kind, "selector": selector} for selector in selectors]
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": tier, "members": members}}


def exact(name: str) -> dict[str, object]:
    return {"exactMatch": {"name": name}}


def pattern(text: str) -> dict[str, object]:
    return {"regexMatch": {"pattern": text}}


def test_hypernodes_are_a_tree_by_tier(tmp_path: pathlib.Path) -> None:
    objects = [
        hypernode("top", 2, "HyperNode", pattern("^s")),  # of those, too, that come after it
        hypernode("s0", 1, "Node", pattern("^n0-")),
        hypernode("s1", 1, "Node", exact("n1-0"), exact("n1-1"), exact("n0-1")),
        *[topologies.labelled(name, {}) for name in ("n0-0", "n0-1", "n1-0", "n1-1", "alone")],
    ]
    made = topologies.read(tmp_path, "volcano", objects)
    assert topologies.members(made, "tier-1") == {"top/s0": ("n0-0", "n0-1"), "top/s1": ("n1-0", "n1-1")}
    assert set(topologies.left_out(made)) == {"n0-1", "alone"}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "line 1: switch a lies in itself"),
        ("SwitchName=a Nodes=n[1-\n", "line 1: 'n[1-' has a bracket that does not close"),
        ("# x\nSwitchName=a Nodes=n[1-99999999]\n", "line 2: has more than 200,000 names"),
        ("SwitchName=a Nodes=n[3-1]\n", "line 1: '3-1' ends before it begins"),
        ("SwitchName=a Node=n1\n", "line 1: 'Node=n1' is nothing that topology.conf has"),
        (
            "".join(f"SwitchName=s{i} Nodes=n[1-150000]\n" for i in range(3)),
            "line 3: is where more than 400,000",
        ),
        ("Nodes=n1\n", "line 1: has neither SwitchName nor BlockName"),
        ("", "has no SwitchName and no BlockName"),
    ],
)
def test_a_broken_topology_conf_names_the_line(tmp_path: pathlib.Path, told: str, said: str) -> None:
    assert said in topologies.refusal(tmp_path, "slurm", told)


def test_what_a_topology_conf_says_twice_counts_once(tmp_path: pathlib.Path) -> None:
    told = "SwitchName=a Nodes=ñ[08-10] \\\n\nSwitchName=a Nodes=x\nSwitchName=b Nodes=ñ09,y Switches=gone\n"
    made = topologies.read(tmp_path, "slurm", told)
    assert topologies.members(made, "leafgroup")["a"] == ("ñ08", "ñ09", "ñ10")
    assert set(topologies.left_out(made)) == {"switch a (line 3)", "ñ09", "switch gone"}


def test_ranges_keep_their_zeros() -> None:
    assert hostlist.expand("r[01-02]-n[1,3],z") == ["r01-n1", "r01-n3", "r02-n1", "r02-n3", "z"]


IBNET = """\
Switch 4 "S-a1" # "MF0;leaf-a:MQM9700/U1" enhanced port 0 lid 1 lmc 0
[1] "H-01"[1](01) # "n1 mlx5_0" lid 2 4xNDR
[2] "H-02"[1](02) # "n2 mlx5_0" lid 3 2xHDR
[3] "H-03"[1](03) # "Mellanox Technologies Aggregation Node" lid 3 4xNDR
[4] "S-b1"[1] # "MF0;spine:MQM9700/U1" lid 5 4xNDR
[5] "S-b1"[2] # "MF0;spine:MQM9700/U1" lid 5 4xNDR
Switch 4 "S-b1" # "MF0;spine:MQM9700/U1" enhanced port 0 lid 5 lmc 0
[1] "S-a1"[4] # "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR
[2] "S-a1"[5] # "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR
Ca 1 "H-01" # "n1 mlx5_0"
[1](01) "S-a1"[1] # lid 2 lmc 0 "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR
"""


def test_parallel_cables_are_summed_and_both_ends_of_one_are_not(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "ibnetdiscover", IBNET)
    assert topologies.members(made, "leafgroup") == {"spine/leaf-a": ("n1", "n2")}
    assert made.link.tolist() == [50_000, 12_500]
    assert made.levels[1].uplink.tolist() == [100_000]
    assert not made.left_out


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "ibnetdiscover", IBNET[: IBNET.index('"H-02"') + 4])
    assert made.nodes == ("n1",)
    assert "run it again" in topologies.left_out(made)["line 3"]
    assert "no line begins with Switch" in topologies.refusal(tmp_path, "ibnetdiscover", "hello\n")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"nodes": [{"name": "n"}], "link": []}, "the file.link: is no field here; there are nodes, links"),
        ({"nodes": [{"name": "n"}, {"name": "n"}]}, "nodes[1].name: 'n' is there twice"),
        ({"nodes": [{"name": "n", "kind": "box"}]}, "nodes[0].kind: is 'box'; write one of node"),
        ({"nodes": [{"name": "g", "kind": "gpu", "node": "n"}]}, "nodes[0].node: is 'n', which is no node"),
        (
            {"nodes": [{"name": "n"}], "links": [{"between": ["n", "m"]}]},
            "links[0].between: names 'm', which is not in nodes",
        ),
        (
            {
                "nodes": [{"name": "n"}, {"name": "m"}],
                "links": [{"between": ["n", "m"], "bandwidth": "fast"}],
            },
            "links[0].bandwidth: is 'fast'; write such as 400Gb/s",
        ),
        ({"nodes": []}, "nodes: has none of kind node"),
        ("- 1\n- 2\n", "has 2 documents; write one with nodes and links"),
        ("a: [", "is no YAML"),
        ("nodes:\n- {name: n}\nnodes: []\n", "line 3: key 'nodes' is there twice; remove one"),
    ],
)
def test_a_written_interconnect_names_the_field_that_is_wrong(
    tmp_path: pathlib.Path, told: object, said: str
) -> None:
    assert said in topologies.refusal(tmp_path, "explicit", told)
