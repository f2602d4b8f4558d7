"""Interconnects that the CRD accepts or refuses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cases import crd_case, objects

FILE = {"namespace": "lstqueue-system", "name": "fabric", "key": "cables.txt", "format": "ibnetdiscover"}
HYPER_NODES = {"apiVersion": "topology.volcano.sh/v1alpha1"}
WRITTEN = {
    "nodes": [
        {"name": "n1"},
        {"name": "leaf-1", "kind": "switch"},
        {"name": "n1-mlx5-0", "kind": "nic", "node": "n1"},
    ],
    "links": [
        {
            "between": ["n1-mlx5-0", "leaf-1"],
            "bandwidth": "400Gb/s",
            "count": 2,
            "latency": "600ns",
            "healthy": False,
        }
    ],
}


def interconnect(*sources: objects.Object, **spec: Any) -> objects.Object:
    made = {"sources": list(sources), **spec}
    return objects.bare("Interconnect", {"name": "case"}, made, None)


def source(name: str = "one", **where: Any) -> objects.Object:
    return {"name": name, **where}


def specs() -> Iterable[crd_case.Case]:
    yield crd_case.Case("labels that are known", interconnect(source(nodeLabels={})))
    yield crd_case.Case(
        "everything an interconnect can say",
        interconnect(
            source("cables", configMap=FILE),
            source("labels", nodeLabels={"preset": "CoreWeave"}),
            source("own", nodeLabels={"keys": ["example.com/row", "example.com/rack"]}),
            source("kueue", topology={"apiVersion": "kueue.x-k8s.io/v1beta1", "name": "default"}),
            source("kai", topology={"apiVersion": "kai.scheduler/v1alpha1", "name": "default"}),
            source("volcano", hyperNodes=HYPER_NODES),
            source("written", explicit=WRITTEN),
            levels=[{"name": "leafgroup", "bandwidth": "12800 Gb/s"}],
            nodeBandwidth="400GB/s",
        ),
    )
    yield crd_case.refused("no source", interconnect(), "spec.sources", "at least 1 items")
    where = "spec.sources[0]"
    yield crd_case.refused("a source that is nowhere", interconnect(source()), where, "exactly one place")
    yield crd_case.refused(
        "a source in two places",
        interconnect(source(nodeLabels={}, hyperNodes=HYPER_NODES)),
        where,
        "exactly one place",
    )
    yield crd_case.refused(
        "a source twice",
        interconnect(source(nodeLabels={}), source(hyperNodes=HYPER_NODES)),
        "spec.sources[1]",
        "Duplicate",
    )
    yield crd_case.refused(
        "a preset with keys",
        interconnect(source(nodeLabels={"preset": "GKE", "keys": ["a"]})),
        f"{where}.nodeLabels",
        "preset has its own keys",
    )
    yield crd_case.refused(
        "a key twice",
        interconnect(source(nodeLabels={"keys": ["a", "b", "a"]})),
        f"{where}.nodeLabels.keys[2]",
        "Duplicate",
    )
    yield crd_case.refused(
        "an unknown preset",
        interconnect(source(nodeLabels={"preset": "Acme"})),
        f"{where}.nodeLabels.preset",
        '"EKS"',
    )
    yield crd_case.refused(
        "an unknown format",
        interconnect(source(configMap={**FILE, "format": "pdf"})),
        f"{where}.configMap.format",
        '"slurm"',
    )
    yield crd_case.refused(
        "somebody else's topology",
        interconnect(source(topology={"apiVersion": "v1", "name": "x"})),
        f"{where}.topology.apiVersion",
        "should match",
    )
    yield from _written()
    yield crd_case.refused(
        "a level through which nothing goes",
        interconnect(source(nodeLabels={}), levels=[{"name": "block", "bandwidth": "0Gb/s"}]),
        "spec.levels[0].bandwidth",
        "should match",
    )
    yield crd_case.refused(
        "a bandwidth without a unit",
        interconnect(source(nodeLabels={}), nodeBandwidth="400"),
        "spec.nodeBandwidth",
        "should match",
    )


def _written() -> Iterable[crd_case.Case]:
    def written(**changes: Any) -> objects.Object:
        return interconnect(source(explicit={**WRITTEN, **changes}))

    where = "spec.sources[0].explicit"
    yield crd_case.refused("a graph without nodes", written(nodes=[]), f"{where}.nodes", "at least 1 items")
    yield crd_case.refused(
        "a node twice", written(nodes=[{"name": "n"}, {"name": "n"}]), f"{where}.nodes[1]", "Duplicate"
    )
    yield crd_case.refused(
        "a cable with three ends",
        written(links=[{"between": ["a", "b", "c"]}]),
        f"{where}.links[0].between",
        "Too many",
    )
    yield crd_case.refused(
        "a speed of light",
        written(links=[{"between": ["a", "b"], "latency": "0.1ns"}]),
        f"{where}.links[0].latency",
        "should match",
    )
