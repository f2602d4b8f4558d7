"""Whatever is wrong with a source, it is read in part or refused in words; no reader trips over it."""

import json
import pathlib
import random
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, topologies
from lstqueue.interconnect import sources
from lstqueue.operator import fabric_sources, interconnects
from lstqueue.operator import nodes as node_views
from lstqueue.topology import found
from lstqueue.topology.readers import nvidia_smi

LINES = {
    "ibnetdiscover": (
        'Switch 4 "S-a1" # "MF0;leaf-a:MQM9700/U1" enhanced port 0 lid 1 lmc 0\n'
        '[1] "H-01"[1](01) # "n1 mlx5_0" lid 2 4xNDR\n[2] "H-02"[1](02) # "n2 mlx5_0" lid 3 2xHDR\n'
        '[4] "S-b1"[1] # "MF0;spine:MQM9700/U1" lid 5 4xNDR\nCa 1 "H-01" # "n1 mlx5_0"\n'
    ),
    "slurm": "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=m[01-02],x\nSwitchName=t Switches=a,b\n",
    "nvidia-smi": "\tGPU0\tGPU1\tmlx5_0\nGPU0\t X \tNV18\tPIX\nGPU1\tNV18\t X \tSYS\nmlx5_0\tPIX\tSYS\t X\n",
    "alibaba": "ip,DSW,PSW,ASW\nh1,d1,p1,a1\nh2,d1,p1,a1\nh3,d1,p1,a2\n",
}
NODE = topologies.labelled("n1", {"fabric.topograph.run/tier-0": "s1", "rack": "r"})
OTHER = topologies.labelled("n2", {"fabric.topograph.run/tier-0": "s1", "rack": "r"})
MEMBER = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
SWITCH = {"id": "s", "name": "leaf", "device_type": "switch"}
OBJECTS: dict[str, Any] = {
    "labels": [NODE, OTHER],
    "kueue": [{"kind": "Topology", "spec": {"levels": [{"nodeLabel": "rack"}]}}, NODE, OTHER],
    "volcano": [
        {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": [MEMBER]}},
        NODE,
    ],
    "explicit": {
        "nodes": [{"name": "n"}, {"name": "s", "kind": "switch"}, {"name": "g", "kind": "gpu", "node": "n"}],
        "links": [
            {"between": ["n", "s"], "bandwidth": "400Gb/s", "count": 2, "latency": "1us", "healthy": True}
        ],
    },
    "netq": [
        {
            "nodes": [{"compounded_nodes": [SWITCH, {"id": "h", "name": "n", "device_type": "host"}]}],
            "links": [{"src": "s", "target": "h"}],
        }
    ],
    "slurm-yaml": [
        {"topology": "t", "tree": {"switches": [{"switch": "s", "nodes": "n[1-3]"}]}},
        {"topology": "b", "block": {"block_sizes": [2], "blocks": [{"block": "b", "nodes": "n1"}]}},
    ],
}
JUNK = (
    None,
    0,
    -1,
    1e308,
    10**40,
    True,
    "",
    "ñ\u202e\x00",
    "n[1-999999]",
    "x" * 5000,
    [],
    {},
    [[]],
    {"": None},
)


def survive(form: str, told: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = topologies.read(pathlib.Path(folder), form, told)
        except sources.SourceError:
            return
        assert all(item.name and item.reason for item in made.left_out)


@pytest.mark.parametrize("form", sorted(LINES))
@settings(max_examples=effort.examples(30), deadline=None)
@given(st.integers(0, 10**9))
def test_a_file_with_damage_is_read_in_part_or_refused(form: str, seed: int) -> None:
    chance = random.Random(seed)
    text = LINES[form]
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        text = chance.choice(
            (
                text[:at],
                text[:at] + text[to:],
                text[:to] + text[at:],
                text[:at] + chance.choice(("ñ", "\x00", "[", '"', "=", "\n", "9" * 30, "-")) + text[at:],
            )
        )
        if not text:
            break
    survive(form, text.encode("utf-8"))


@pytest.mark.parametrize("form", sorted(OBJECTS))
@settings(max_examples=effort.examples(30), deadline=None)
@given(st.integers(0, 10**9))
def test_objects_with_damage_are_read_in_part_or_refused(form: str, seed: int) -> None:
    chance = random.Random(seed)
    told = json.loads(json.dumps(OBJECTS[form]))
    for _ in range(chance.randint(1, 3)):
        told = damaged(told, chance)
    survive(form, told)


def damaged(value: Any, chance: random.Random) -> Any:
    """The same with one thing in it replaced, taken away or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        if chance.random() < 0.15:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: damaged(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        if chance.random() < 0.15:
            return [*value, value[at]]
        return [*value[:at], damaged(value[at], chance), *value[at + 1 :]]
    return chance.choice(JUNK)


SPEC = {
    "sources": [
        {"name": "labels", "nodeLabels": {"keys": ["rack"]}},
        {"name": "conf", "configMap": {"namespace": "d", "name": "f", "key": "k", "format": "slurm"}},
        {"name": "kueue", "topology": {"apiVersion": "kueue.x-k8s.io/v1beta1", "name": "t"}},
        {"name": "volcano", "hyperNodes": {"apiVersion": "topology.volcano.sh/v1alpha1"}},
        {"name": "written", "explicit": OBJECTS["explicit"]},
    ],
    "levels": [{"name": "rack", "bandwidth": "400Gb/s"}],
    "nodeBandwidth": "50GB/s",
}
META = {"name": "fabric", "uid": "u", "resourceVersion": "1"}


@settings(max_examples=effort.examples(40), deadline=None)
@given(st.integers(0, 10**9))
def test_an_interconnect_with_damage_is_told_and_the_rest_of_it_read(seed: int) -> None:
    chance = random.Random(seed)
    spec, objects = (
        json.loads(json.dumps(each)) for each in (SPEC, [*OBJECTS["kueue"], *OBJECTS["volcano"]])
    )
    if chance.random() < 0.5:
        spec = damaged(spec, chance)
    else:
        objects = [damaged(item, chance) for item in objects]
    view = interconnects.view({"metadata": META, "spec": spec})
    assert (view.spec is None) == bool(view.problem)
    heard = {}
    for source in view.spec.sources if view.spec is not None else ():
        if (place := fabric_sources.watched(source)) is not None:
            there = [item for item in objects if isinstance(item, dict)]
            there = [{**item, "metadata": META, "data": {"k": LINES["slurm"]}} for item in there]
            heard[place] = interconnects.Heard(tuple(there))
    nodes = {
        f"n{at}": node_views.NodeView(f"n{at}", (), (("rack", "r"),), (), True, False) for at in range(3)
    }
    known = interconnects.Interconnect()
    known.look(interconnects.chosen([view]), heard, nodes)
    assert known.domains is not None or known.problem or view.spec is None


@pytest.mark.parametrize("form", sorted(set(LINES) | set(OBJECTS) - {"netq", "volcano"}))
def test_more_nodes_than_there_can_be_are_refused(
    form: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "nvidia-smi":
        monkeypatch.setattr(nvidia_smi, "_MOST", 1)
    monkeypatch.setattr(found, "MOST_NODES", 0)
    said = topologies.refusal(tmp_path, form, (LINES | OBJECTS)[form])
    assert "has more than 0 nodes" in said or "has 3 columns" in said
