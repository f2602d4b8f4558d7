"""What the readers make of files that real fabrics and tools gave, where these are there (LSTQUEUE_DATA)."""

import pytest
import yaml

from cases import topologies, trace_files
from lstqueue.interconnect import sources
from lstqueue.topology import contract
from lstqueue.topology.readers import labels


def real(form: str, name: str) -> sources.Source:
    return sources.read(f"{form}:{trace_files.real('topology/' + name)}")


def test_a_rail_optimised_fabric_has_eight_leaf_groups_and_not_twenty_eight() -> None:
    made = real("ibnetdiscover", "ibnetdiscover-ndr-rail-8su.txt").domains
    assert topologies.sizes(made) == {"block": 1, "leafgroup": 8}
    groups = topologies.members(made, "leafgroup")
    assert sorted(map(len, groups.values())) == [17, 18, 18, 20, 27, 28, 31, 32]
    assert groups["*-P1-IBSPINE-*/A09-P1-IBLEAF-*-03"][0] == "a07-p1-dgx-03-c01"
    assert made.link[made.nodes.index("a07-p1-dgx-03-c01")] == 4 * topologies.NDR
    unnamed = [reason for reason in topologies.left_out(made).values() if "MT4129" in reason]
    assert len(unnamed) == 69


def test_a_tor_switch_is_known_by_its_path() -> None:
    made = real("alibaba", "alibaba-lingjun-2023-topo.csv").domains
    assert topologies.sizes(made) == {"fabric": 1, "block": 3, "leafgroup": 119}
    assert len(made.nodes) == 847
    assert not made.left_out
    assert not made.merged


def test_blocks_of_nvlink_racks_are_four_of_eighteen() -> None:
    made = real("slurm", "azure-gb200-nvl72-block.topology.conf").domains
    assert [len(its) for its in topologies.members(made, "block").values()] == [18] * 4
    assert not made.left_out


def test_a_tree_of_slurm_switches_has_three_levels() -> None:
    made = real("slurm", "topograph-slurm-tree.topology.conf").domains
    assert topologies.sizes(made) == {"fabric": 1, "block": 6, "leafgroup": 12}
    assert topologies.members(made, "leafgroup")["switch.3.1/switch.2.1/switch.1.2"][-1] == "srv1208"


@pytest.mark.parametrize(
    ("provider", "levels"),
    [
        ("aws-eks", ["layer-1", "layer-2", "layer-3"]),
        ("oci-oke", ["island", "block", "localblock", "nvl"]),
        ("gke", ["block", "subblock"]),
        ("coreweave-cks", ["fabric", "superpod", "leafgroup"]),
        ("topograph-k8s-1.x", ["tier-2", "tier-1", "tier-0", "nvl", "nvl-sub"]),
        ("topograph-k8s-0.x", ["core", "spine", "leaf", "nvl"]),
        ("nvidia-gpu-operator", ["nvl"]),
        ("crusoe", ["partition", "pod"]),
        ("nebius-soperator", ["tier-2", "tier-1", "nvl"]),
    ],
)
def test_labels_of_every_provider_are_levels(provider: str, levels: list[str]) -> None:
    with open(trace_files.real("topology/node-labels-by-provider.yaml"), encoding="utf-8") as file:
        table = {entry["provider"]: entry["labels"] for entry in yaml.safe_load(file)}
    nodes = [topologies.labelled(f"n{index}", dict(table[provider])) for index in range(4)]
    for index, node in enumerate(nodes):  # machines of their own in one rack
        for key in ("oci.oraclecloud.com/rdma.host_id", "cloud.google.com/gce-topology-host"):
            if key in table[provider]:
                node["metadata"]["labels"][key] += str(index)
    found = labels.read(nodes)
    assert [said.level for said in found.said if len(set(said.domain.values())) == 1] == levels
    made = contract.contract(found)
    assert list(topologies.sizes(made)) == levels
    assert not made.left_out
