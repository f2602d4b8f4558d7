"""What an Interconnect's sources are read from, as the operator has it: whole, packed, cut off or missing."""

import base64
import gzip
import json
from typing import Any

import pytest

from lstqueue.api import interconnect
from lstqueue.operator import fabric_sources
from lstqueue.topology.found import TopologyError

CONF = "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\n"
YAML = "- topology: t\n  tree:\n    switches:\n    - {switch: s0, nodes: 'n[0-3]'}\n"
NETQ = [
    {
        "nodes": [
            {
                "compounded_nodes": [
                    {"id": "a", "name": "n0", "device_type": "host"},
                    {"id": "b", "name": "s0", "device_type": "switch"},
                ]
            }
        ],
        "links": [{"src": "a", "target": "b"}],
    }
]


def source(**where: Any) -> interconnect.Source:
    return interconnect.Source.model_validate({"name": "one", **where})


def file(form: str) -> interconnect.Source:
    return source(configMap={"namespace": "d", "name": "f", "key": "k", "format": form})


def config_map(text: str | None = None, packed: bytes | None = None) -> dict[str, Any]:
    raw: dict[str, Any] = {"metadata": {"name": "f", "namespace": "d", "uid": "u", "resourceVersion": "1"}}
    if text is not None:
        raw["data"] = {"k": text}
    if packed is not None:
        raw["binaryData"] = {"k": base64.b64encode(packed).decode()}
    return raw


@pytest.mark.parametrize(
    ("form", "text", "nodes"),
    [("slurm", CONF, 4), ("slurm-yaml", YAML, 4), ("netq", json.dumps(NETQ), 1)],
)
def test_a_file_is_read_as_text_and_packed(form: str, text: str, nodes: int) -> None:
    plain = fabric_sources.read(file(form), [config_map(text)], [])
    packed = fabric_sources.read(file(form), [config_map(packed=gzip.compress(text.encode()))], [])
    assert plain.facts() == packed.facts()
    assert len(plain.nodes) == nodes


@pytest.mark.parametrize(
    ("form", "raw", "said"),
    [
        ("slurm", config_map("\ufeff\x00"), "is nothing that topology.conf has"),
        ("slurm", config_map(), "key k: is not in the ConfigMap, which has none"),
        ("slurm", config_map(packed=b"plain"), "key k: is no gzip of UTF-8 text"),
        ("slurm", config_map(packed=gzip.compress(CONF.encode())[:-9]), "is gzip that ends early"),
        ("slurm", config_map(packed=gzip.compress(b"\xff\xfe")), "is no gzip of UTF-8 text"),
        ("slurm", config_map(packed=gzip.compress(b"#" * (17 << 20))), "has more than 16 MiB once unpacked"),
        ("netq", config_map("[{"), "is neither JSON nor YAML"),
        ("netq", config_map("[" * 100_000), "is neither JSON nor YAML"),
        ("slurm-yaml", config_map("a: [b"), "is neither JSON nor YAML"),
        ("slurm-yaml", config_map(""), "has no topology"),
        ("slurm-yaml", config_map("x: !!python/name:os.system"), "is neither JSON nor YAML"),
        ("ibnetdiscover", config_map("hello"), "no line begins with Switch"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(form: str, raw: dict[str, Any], said: str) -> None:
    with pytest.raises(TopologyError) as caught:
        fabric_sources.read(file(form), [raw], [])
    assert said in str(caught.value)


def labelled(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_objects_of_kueue_and_volcano_are_read_with_the_nodes() -> None:
    nodes = [labelled(f"n{at}", rack=f"r{at // 2}") for at in range(4)]
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    kueue = source(topology={"apiVersion": "kueue.x-k8s.io/v1beta1", "name": "t"})
    found = fabric_sources.read(kueue, [{"metadata": {"name": "t"}, "spec": {"levels": levels}}], nodes)
    assert [said.level for said in found.said] == ["rack"]
    hyper = source(hyperNodes={"apiVersion": "topology.volcano.sh/v1alpha1"})
    member = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r1"}}}}
    told = [{"metadata": {"name": "h1"}, "spec": {"tier": 1, "members": [member]}}]
    found = fabric_sources.read(hyper, told, nodes)
    assert dict(found.said[0].domain) == {"n2": "h1", "n3": "h1"}
    for missing, words in ((kueue, "Topology t: is not there"), (hyper, "hypernodes: is not there")):
        with pytest.raises(TopologyError, match=words):
            fabric_sources.read(missing, [], nodes)


def test_a_preset_looks_at_the_labels_of_one_vendor_alone() -> None:
    gke = {"cloud.google.com/gce-topology-block": "b"}
    nodes = [labelled(f"n{at}", **gke, **{"nvidia.com/gpu.clique": f"c.{at}"}) for at in range(2)]
    assert [said.level for said in fabric_sources.read(source(nodeLabels={}), [], nodes).said] == [
        "block",
        "nvl",
    ]
    for preset, level in (("GKE", "block"), ("GPUOperator", "nvl")):
        found = fabric_sources.read(source(nodeLabels={"preset": preset}), [], nodes)
        assert [said.level for said in found.said] == [level]
    for where, said in (
        ({"preset": "EKS"}, "no node has labels of EKS"),
        ({"keys": ["a"]}, "known value of a"),
    ):
        with pytest.raises(TopologyError, match=said):
            fabric_sources.read(source(nodeLabels=where), [], nodes)
