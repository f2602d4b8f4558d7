"""An Interconnect on a real API server, under the documented role: read, refused, granted, and placed by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import documented_role
import operator_run
import pytest
import stack
from scenes import scene

from lstqueue.kube import port

Object = dict[str, Any]

RACK = "example.com/rack"
CONF = "SwitchName={0}-s0 Nodes={1}\nSwitchName={0}-s1 Nodes={2}\nSwitchName={0}-top Switches={0}-s[0-1]\n"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
async def racks(api: port.KubeApi, namespace: str, queue: str) -> AsyncIterator[dict[str, str]]:
    """By node, its rack: four nodes of the plane, in pairs."""
    page = await api.list_page(port.NODES)
    nodes = sorted(raw["metadata"]["name"] for raw in page.items)[:4]
    made = {node: f"{namespace}-r{place // 2}" for place, node in enumerate(nodes)}
    for node, rack in made.items():
        await api.patch(port.NODES, None, node, {"metadata": {"labels": {RACK: rack}}})
    yield made
    for node in made:
        await api.patch(port.NODES, None, node, {"metadata": {"labels": {RACK: None}}})
    await api.delete(port.INTERCONNECTS, None, namespace)


def condition(raw: Object, kind: str) -> tuple[str, str, str]:
    found = [one for one in (raw.get("status") or {}).get("conditions", ()) if one["type"] == kind]
    return (found[0]["status"], found[0]["reason"], found[0].get("message", "")) if found else ("", "", "")


def grant(plane: stack.ControlPlane, namespace: str) -> None:
    """Let the operator read the one ConfigMap, as the page says: by a Role in its namespace."""
    rules = [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["fabric"],
            "verbs": ["list", "watch"],
        }
    ]
    plane.request(
        "POST", f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": "fabric"}, "rules": rules}
    )
    account = {
        "kind": "ServiceAccount",
        "name": documented_role.ACCOUNT,
        "namespace": documented_role.NAMESPACE,
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "fabric"}
    body = {"metadata": {"name": "fabric"}, "roleRef": role, "subjects": [account]}
    plane.request("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", body)


async def test_sources_are_read_as_far_as_the_role_allows_and_gangs_placed_by_them(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, racks: dict[str, str]
) -> None:
    nodes = list(racks)
    conf = CONF.format(namespace, ",".join(nodes[:2]), ",".join(nodes[2:]))
    await api.create(port.CONFIG_MAPS, namespace, {"metadata": {"name": "fabric"}, "data": {"conf": conf}})
    file = {"namespace": namespace, "name": "fabric", "key": "conf", "format": "slurm"}
    sources = [
        {"name": "racks", "nodeLabels": {"keys": [RACK]}},
        {"name": "conf", "configMap": file},
        {"name": "kueue", "topology": {"apiVersion": "kueue.x-k8s.io/v1beta1", "name": "default"}},
    ]
    body = {"metadata": {"name": namespace}, "spec": {"sources": sources}}
    kind = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "Interconnect"}
    await api.create(port.INTERCONNECTS, None, {**kind, **body})

    async def until(found: Callable[[Object], bool], what: str) -> Object:
        raw: Object = {}
        for _ in range(600):
            raw = await api.get(port.INTERCONNECTS, None, namespace)
            if found(raw):
                return raw
            await asyncio.sleep(0.1)
        raise AssertionError(f"{what}: {raw.get('status')}")

    async with scene(control_plane, api, namespace, may_not=("configmaps", "topologies")) as told:
        raw = await until(lambda raw: condition(raw, "SourcesRead")[0] == "False", "refused")
        assert raw["status"]["summary"] == "rack 2"
        _, reason, message = condition(raw, "SourcesRead")
        assert reason == "Refused"
        assert 'cannot list resource "configmaps"' in message
        assert "kueue: Topology default cannot be read" in message
        gang = operator_run.group("worker", 2, gpus=8, run_for="10h")
        await told.submit_inline("near", gang, topology={"required": "rack"})
        await told.until_phase("near", "Running")
        assert len({racks[node] for node in told.nodes("near")}) == 1
        assert "rack" in told.status("near")["admission"]["topology"]
        grant(control_plane, namespace)
        raw = await until(lambda raw: "leafgroup 2" in raw["status"]["summary"], "granted")
        assert "configmaps" not in condition(raw, "SourcesRead")[2]
