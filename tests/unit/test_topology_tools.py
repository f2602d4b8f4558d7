"""NetQ, `nvidia-smi topo -m`, Slurm's BlockSizes and topology.yaml: what is read of them, broken ones too."""

import pathlib
from typing import Any

import pytest

from cases import topologies, trace_files
from lstqueue.interconnect import sources


def device(identity: str, name: str, kind: str = "switch") -> dict[str, Any]:
    return {"id": identity, "name": name, "device_type": kind}


def netq(*devices: dict[str, Any], links: list[tuple[str, str]]) -> list[dict[str, Any]]:
    told = [{"src": src, "target": target} for src, target in links]
    return [{"nodes": [{"name": "tier", "compounded_nodes": list(devices)}], "links": told}]


HOSTS = [device(f"h{at}", f"dgx-{at}", "discovered_via_lldp") for at in range(4)]
LEAVES = [device("l0", "leaf"), device("l1", "leaf"), device("s0", "spine")]
LINKS = [("l0", "h0"), ("h1", "l0"), ("l1", "h2"), ("l1", "h3"), ("l0", "s0"), ("s0", "l1")]


def test_devices_of_netq_are_machines_and_switches(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "netq", netq(*HOSTS, *LEAVES, links=LINKS))
    assert topologies.sizes(made) == {"block": 1, "leafgroup": 2}
    assert topologies.parts(made, "leafgroup") == {
        frozenset({"dgx-0", "dgx-1"}),
        frozenset({"dgx-2", "dgx-3"}),
    }


def test_odd_devices_and_links_of_netq_are_left_out_by_name(tmp_path: pathlib.Path) -> None:
    devices = [*HOSTS, *LEAVES, device("h9", "dgx-0", "host"), device("h1", "again", "host")]
    made = topologies.read(tmp_path, "netq", netq(*devices, links=[*LINKS, ("l0", "gone"), ("l0", "l0")]))
    assert topologies.sizes(made) == {"block": 1, "leafgroup": 2}
    said = topologies.left_out(made)
    assert "twice" in said["dgx-0"]
    assert "another device" in said["again"]
    assert "leads to gone" in said["links[6]"]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "has 0 graphs; give one topologyGraph of NetQ"),
        ([{}], "nodes: has no device that is no switch"),
        ([{"nodes": 5}], "nodes: is 5; write a list"),
        (netq(device("", "x"), links=[]), "nodes[0].compounded_nodes[0].id: is ''; write a name"),
        ([{"nodes": [{"compounded_nodes": [{"id": "a"}]}]}], "compounded_nodes[0].name: is missing"),
        ("[[1", "is no YAML"),
    ],
)
def test_a_broken_graph_of_netq_names_the_field(tmp_path: pathlib.Path, told: object, said: str) -> None:
    assert said in topologies.refusal(tmp_path, "netq", told)


TABLE = """\
\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPIX\t0-71\t0
GPU1\tNV18\t X \tSYS\t0-71\t0
mlx5_0\tPIX\tSYS\t X
"""


def test_a_machine_says_what_is_beside_what(tmp_path: pathlib.Path) -> None:
    (tmp_path / "topo.txt").write_text(TABLE, encoding="utf-8")
    found = sources.read(f"nvidia-smi:{tmp_path}/topo.txt")
    assert found.domains.nodes == ("this machine",)
    assert found.notes[1:] == (
        "GPU0 to GPU1 (2) are one NVLink domain, 18 links between each two",
        "GPU0 is beside mlx5_0",
    )


def test_a_table_that_is_cut_off_counts_as_far_as_it_goes(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "nvidia-smi", TABLE[: TABLE.index("mlx5_0\tPIX")])
    assert "ends before it" in topologies.left_out(made)["mlx5_0"]
    cut = topologies.read(tmp_path, "nvidia-smi", TABLE[: TABLE.index("18\t X")])
    assert "mlx5_0" in topologies.left_out(cut)
    for told, said in (
        ("", "has no row of a GPU"),
        ("GPU0 GPU1\nhello\n", "has no row of a GPU"),
        (TABLE.replace("SYS", "WAY"), "line 3: 'WAY' is no way"),
    ):
        assert said in topologies.refusal(tmp_path, "nvidia-smi", told)


BLOCKS = "".join(f"BlockName=b{at} Nodes=n{at}-[0-3]\n" for at in range(6))


def test_block_sizes_are_levels_of_several_blocks(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "slurm", BLOCKS + "BlockSizes=4,8,16\n")
    assert topologies.sizes(made) == {"block-16": 2, "block-8": 3, "block": 6}
    four = topologies.members(made, "block-16")
    assert sorted(map(len, four.values())) == [8, 16]
    single = topologies.read(tmp_path, "slurm", BLOCKS + "BlockSizes=4\n")
    assert topologies.sizes(single) == {"block": 6}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("4,12", "BlockSizes: 12 is no power of two times 4"),
        ("4,x", "BlockSizes: 'x' is no size"),
        ("0", "BlockSizes: '0' is no size"),
        (",".join(["4"] * 20), "BlockSizes: has 20 sizes"),
        ("²", "is no size"),
    ],
)
def test_sizes_that_slurm_would_not_take_are_refused(tmp_path: pathlib.Path, sizes: str, said: str) -> None:
    assert said in topologies.refusal(tmp_path, "slurm", f"{BLOCKS}BlockSizes={sizes}\n")


TREE = """\
- topology: flat
  flat: true
- topology: fabric
  cluster_default: true
  tree:
    switches:
    - {switch: top, children: "s[0-1]"}
    - {switch: s0, nodes: "n[0-3]"}
    - {switch: s1, nodes: "n[4-7]"}
"""


def test_the_default_topology_of_a_topology_yaml_counts(tmp_path: pathlib.Path) -> None:
    made = topologies.read(tmp_path, "slurm-yaml", TREE)
    assert topologies.sizes(made) == {"block": 1, "leafgroup": 2}
    blocks = [{"block": f"b{at}", "nodes": f"n{at}-[0-1]"} for at in range(4)]
    told = [{"topology": "racks", "block": {"block_sizes": [2, 4], "blocks": blocks}}]
    made = topologies.read(tmp_path, "slurm-yaml", told)
    assert topologies.sizes(made) == {"block-4": 2, "block": 4}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "has no topology"),
        ([{"topology": "t", "flat": True}], "[0]: topology t has flat; only tree and block are read"),
        ([{"tree": {}}], "[0].topology: is missing"),
        ([{"topology": "t", "tree": {"switches": []}}], "[0].tree.switches: lists none"),
        ([{"topology": "t", "tree": {"switches": [{"switch": "s", "nodes": 5}]}}], "nodes: is 5"),
        ([{"topology": "t", "tree": {"switches": [{"switch": "s", "nodes": "n[1-"}]}}], "does not close"),
        (TREE.replace("s[0-1]", "top"), "lies in itself"),
        (
            [{"topology": "t", "block": {"blocks": [{"block": "b", "nodes": "n"}], "block_sizes": ["x"]}}],
            "block.block_sizes: ",
        ),
    ],
)
def test_a_broken_topology_yaml_names_the_field(tmp_path: pathlib.Path, told: object, said: str) -> None:
    assert said in topologies.refusal(tmp_path, "slurm-yaml", told)


def test_real_tables_and_graphs_are_read() -> None:
    graph = sources.read(f"netq:{trace_files.real('topology/netq-topologyGraph.json')}").domains
    assert [len(part) for part in topologies.parts(graph, "leafgroup")] == [4, 4]
    whole = sources.read(f"nvidia-smi:{trace_files.real('topology/nvidia-smi-topo-dgx-a100.txt')}")
    assert "GPU0 is beside mlx5_0, mlx5_1" in whole.notes
    cut = sources.read(f"nvidia-smi:{trace_files.real('topology/nvidia-smi-topo-dgx-h100-truncated.txt')}")
    assert {"NIC6", "NIC11"} <= set(topologies.left_out(cut.domains))
    assert "GPU7 is beside NIC11" in cut.notes
