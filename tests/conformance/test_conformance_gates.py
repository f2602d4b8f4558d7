"""Gated pods: gates are only lifted, and while one is left the node constraints may be tightened."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import GATE, pod, refused, required_affinity

ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
ZONE_B = {"key": "zone", "operator": "In", "values": ["b"]}
SSD = {"key": "disk", "operator": "Exists"}
PIN = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
OTHER_PIN = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
USER = {"matchExpressions": [ZONE_A]}


async def create(api: port.KubeApi, namespace: str, *terms: port.Object, **spec: Any) -> port.Object:
    if terms:
        spec["affinity"] = required_affinity(*terms)
    return await api.create(port.PODS, namespace, pod(schedulerName="nobody", **spec))


async def change(api: port.KubeApi, namespace: str, **spec: Any) -> port.Object:
    return await api.patch(port.PODS, namespace, "pod", {"spec": spec})


async def test_a_gate_is_lifted(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace, schedulingGates=[{"name": GATE}, {"name": "example.com/other"}])
    patched = await change(api, namespace, schedulingGates=[{"name": "example.com/other"}])
    assert patched["spec"]["schedulingGates"] == [{"name": "example.com/other"}]
    assert "schedulingGates" not in (await change(api, namespace, schedulingGates=None))["spec"]


async def test_a_gate_is_never_added(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    gates = [{"name": GATE}, {"name": "example.com/late"}]
    await refused(change(api, namespace, schedulingGates=gates), 422, says="only deletion is allowed")


async def test_a_lifted_gate_does_not_come_back(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    await change(api, namespace, schedulingGates=None)
    await refused(
        change(api, namespace, schedulingGates=[{"name": GATE}]), 422, says="only deletion is allowed"
    )


async def test_the_condition_of_a_lifted_gate_is_the_schedulers(api: port.KubeApi, namespace: str) -> None:
    created = await create(api, namespace)
    patched = await change(api, namespace, schedulingGates=None)
    assert patched["metadata"]["generation"] == created["metadata"]["generation"] + 1


async def test_a_pin_on_a_pod_without_affinity(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    affinity = required_affinity({"matchFields": [PIN]})
    assert (await change(api, namespace, affinity=affinity))["spec"]["affinity"] == affinity


async def test_pin_ungate_and_tolerate_in_one_patch(api: port.KubeApi, namespace: str) -> None:
    created = await create(api, namespace, USER)
    pinned = required_affinity(USER | {"matchFields": [PIN]})
    tolerations = [
        *created["spec"]["tolerations"],
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]
    patch = {
        "metadata": {
            "resourceVersion": created["metadata"]["resourceVersion"],
            "labels": {"example.com/attempt": "1"},
            "annotations": {"example.com/rank": "0"},
        },
        "spec": {"affinity": pinned, "tolerations": tolerations, "schedulingGates": None},
    }
    patched = await api.patch(port.PODS, namespace, "pod", patch)
    assert patched["spec"]["affinity"] == pinned
    assert patched["spec"]["tolerations"] == tolerations
    assert "schedulingGates" not in patched["spec"]
    assert patched["metadata"]["labels"] == {"example.com/attempt": "1"}
    await refused(api.patch(port.PODS, namespace, "pod", patch), 409)


TIGHTENED: list[tuple[str, list[Any], list[Any]]] = [
    ("pin", [USER], [USER | {"matchFields": [PIN]}]),
    ("expression", [USER], [{"matchExpressions": [ZONE_A, SSD]}]),
    ("pin in every term", [USER, {"matchExpressions": [ZONE_B]}], [
        USER | {"matchFields": [PIN]}, {"matchExpressions": [ZONE_B], "matchFields": [PIN]},
    ]),
    ("pin in one term", [USER, {"matchExpressions": [ZONE_B]}], [
        USER | {"matchFields": [PIN]}, {"matchExpressions": [ZONE_B]},
    ]),
    ("second pin", [{"matchFields": [PIN]}], [{"matchFields": [PIN, OTHER_PIN]}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"), [row[1:] for row in TIGHTENED], ids=[row[0] for row in TIGHTENED]
)
async def test_affinity_is_tightened(
    api: port.KubeApi, namespace: str, before: list[Any], after: list[Any]
) -> None:
    await create(api, namespace, *before)
    patched = await change(api, namespace, affinity=required_affinity(*after))
    assert patched["spec"]["affinity"] == required_affinity(*after)


LOOSENED: list[tuple[str, list[Any], list[Any]]] = [
    ("replaced term", [USER], [{"matchFields": [PIN]}]),
    ("replaced expression", [USER], [{"matchExpressions": [ZONE_B]}]),
    ("reordered", [{"matchExpressions": [ZONE_A, SSD]}], [{"matchExpressions": [SSD, ZONE_A]}]),
    ("removed expression", [{"matchExpressions": [ZONE_A, SSD]}], [USER]),
    ("added term", [USER], [USER, {"matchFields": [PIN]}]),
    ("removed term", [USER, {"matchExpressions": [ZONE_B]}], [USER]),
    ("replaced pin", [{"matchFields": [PIN]}], [{"matchFields": [OTHER_PIN]}]),
    ("filled empty term", [{}], [{"matchFields": [PIN]}]),
]


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in LOOSENED], ids=[row[0] for row in LOOSENED])
async def test_affinity_is_not_loosened(
    api: port.KubeApi, namespace: str, before: list[Any], after: list[Any]
) -> None:
    await create(api, namespace, *before)
    await refused(change(api, namespace, affinity=required_affinity(*after)), 422, says="nodeSelectorTerms")


async def test_affinity_is_not_removed(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace, USER)
    await refused(change(api, namespace, affinity=None), 422)


async def test_a_pin_names_one_node(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    two = PIN | {"values": ["node-1", "node-2"]}
    await refused(
        change(api, namespace, affinity=required_affinity({"matchFields": [two]})), 422, says="only one value"
    )


async def test_a_pin_is_by_name_only(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    other = {"key": "spec.unschedulable", "operator": "In", "values": ["true"]}
    await refused(change(api, namespace, affinity=required_affinity({"matchFields": [other]})), 422)


async def test_a_node_selector_grows(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace, nodeSelector={"zone": "a"})
    patched = await change(api, namespace, nodeSelector={"disk": "ssd"})
    assert patched["spec"]["nodeSelector"] == {"zone": "a", "disk": "ssd"}
    await refused(change(api, namespace, nodeSelector={"zone": "b"}), 422, says="spec.nodeSelector")
    await refused(change(api, namespace, nodeSelector={"zone": None}), 422, says="spec.nodeSelector")


async def test_an_ungated_pod_is_not_pinned(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    await change(api, namespace, schedulingGates=None)
    await refused(change(api, namespace, affinity=required_affinity({"matchFields": [PIN]})), 422)


async def test_pod_affinity_is_frozen_even_while_gated(api: port.KubeApi, namespace: str) -> None:
    await create(api, namespace)
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await refused(change(api, namespace, affinity=affinity), 422)
