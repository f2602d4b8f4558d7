"""What nodes in trouble do to pods: cordons, taints, outages, and nodes that are gone."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

from lstqueue.kube import port
from tests.conformance.live import Cluster, live
from tests.conformance.samples import Object, pod, until

LABEL = "example.com/case"
NOT_READY = "node.kubernetes.io/not-ready"
STUCK = {"sim/terminate-after": "600s"}
COLLECTED_WITHIN = 150.0


@contextlib.asynccontextmanager
async def a_node(cluster: Cluster) -> AsyncIterator[str]:
    """A node for this case alone."""
    name = f"case-{secrets.token_hex(4)}"
    capacity = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    body = {
        "metadata": {"name": name, "labels": {LABEL: name, "kubernetes.io/hostname": name}},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    await cluster.api.create(port.NODES, None, body)
    try:
        await until(lambda: has_condition(cluster, name, "Ready", "True"))
        yield name
    finally:
        with contextlib.suppress(port.NotFoundError):
            await cluster.api.delete(port.NODES, None, name)


async def has_condition(cluster: Cluster, node: str, kind: str, status: str) -> bool:
    found = await cluster.api.get(port.NODES, None, node)
    conditions = found.get("status", {}).get("conditions") or []
    return any(item["type"] == kind and item["status"] == status for item in conditions)


async def place(
    cluster: Cluster, node: str, name: str, *, annotations: dict[str, str] | None = None, **spec: Any
) -> None:
    body = pod(name, gated=False, nodeSelector={LABEL: node}, **spec)
    body["metadata"]["annotations"] = annotations or {}
    await cluster.create(body, port.PODS)


async def find(cluster: Cluster, name: str) -> Object | None:
    try:
        return await cluster.api.get(port.PODS, cluster.namespace, name)
    except port.NotFoundError:
        return None


async def until_pod(cluster: Cluster, name: str, *, within: float = 20.0, **wanted: Any) -> Object:
    """Wait until a pod is there and its status, deletion and conditions are as wanted."""
    seen: Object = {}

    async def there() -> bool:
        nonlocal seen
        seen = await find(cluster, name) or {"metadata": {}}
        conditions = {item["type"]: item for item in seen.get("status", {}).get("conditions") or []}
        facts = {
            "phase": seen.get("status", {}).get("phase"),
            "deleting": "deletionTimestamp" in seen["metadata"],
            "ready": conditions.get("Ready", {}).get("status") == "True",
            "disrupted": conditions.get("DisruptionTarget", {}).get("reason"),
            "unscheduled": conditions.get("PodScheduled", {}).get("reason"),
        }
        return all(facts[key] == value for key, value in wanted.items())

    await until(there, within=within)
    return seen


async def until_gone(cluster: Cluster, name: str, *, within: float = 20.0) -> None:
    async def gone() -> bool:
        return await find(cluster, name) is None

    await until(gone, within=within)


@live
async def test_a_cordoned_node_takes_no_more_pods_and_keeps_what_it_has(cluster: Cluster) -> None:
    async with a_node(cluster) as node:
        await place(cluster, node, "early")
        await until_pod(cluster, "early", phase="Running")
        await cluster.api.patch(port.NODES, None, node, {"spec": {"unschedulable": True}})
        await place(cluster, node, "late")
        waiting = await until_pod(cluster, "late", unscheduled="Unschedulable")
        condition = next(item for item in waiting["status"]["conditions"] if item["type"] == "PodScheduled")
        assert "1 node(s) were unschedulable" in condition["message"]
        assert (await find(cluster, "early") or {})["status"]["phase"] == "Running"
        await cluster.api.patch(port.NODES, None, node, {"spec": {"unschedulable": None}})
        await until_pod(cluster, "late", phase="Running")


@live
async def test_a_no_execute_taint_drains_a_node_as_its_pods_tolerate_it(cluster: Cluster) -> None:
    async with a_node(cluster) as node:
        toleration = {"key": "example.com/repair", "operator": "Exists", "effect": "NoExecute"}
        brief = {"sim/terminate-after": "3s"}
        await place(cluster, node, "plain", annotations=brief)
        await place(cluster, node, "patient", tolerations=[{**toleration, "tolerationSeconds": 4}])
        await place(cluster, node, "stoic", tolerations=[toleration])
        for name in ("plain", "patient", "stoic"):
            await until_pod(cluster, name, phase="Running")
        taint = {"key": "example.com/repair", "effect": "NoExecute"}
        await cluster.api.patch(port.NODES, None, node, {"spec": {"taints": [taint]}})
        await until_pod(cluster, "plain", deleting=True, disrupted="DeletionByTaintManager")
        assert await find(cluster, "patient")
        await until_gone(cluster, "plain")
        await until_gone(cluster, "patient")
        await until_pod(cluster, "stoic", deleting=False, phase="Running")


@live
async def test_a_node_that_reports_trouble_is_tainted_and_its_pods_stay_ready(cluster: Cluster) -> None:
    async with a_node(cluster) as node:
        await place(cluster, node, "pod")
        await until_pod(cluster, "pod", phase="Running", ready=True)
        await cluster.api.patch(port.NODES, None, node, {"metadata": {"annotations": {"sim/down": "yes"}}})
        await until(lambda: has_condition(cluster, node, "Ready", "False"))

        async def taints() -> set[tuple[str, str]]:
            found = await cluster.api.get(port.NODES, None, node)
            return {(item["key"], item["effect"]) for item in found["spec"].get("taints") or []}

        async def tainted() -> bool:
            return await taints() == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}

        async def clean() -> bool:
            return not await taints()

        await until(tainted)
        await until_pod(cluster, "pod", phase="Running", ready=True, deleting=False)
        await cluster.api.patch(port.NODES, None, node, {"metadata": {"annotations": {"sim/down": None}}})
        await until(clean)


@live
async def test_pods_of_a_deleted_node_fail_and_go_after_a_while(cluster: Cluster) -> None:
    async with a_node(cluster) as node:
        await place(cluster, node, "pod", annotations=STUCK)
        await until_pod(cluster, "pod", phase="Running")
        await cluster.api.delete(port.NODES, None, node)
        await until_gone(cluster, "pod", within=COLLECTED_WITHIN)


@live
async def test_a_stuck_pod_goes_when_its_node_is_declared_out_of_service(cluster: Cluster) -> None:
    async with a_node(cluster) as node:
        await place(cluster, node, "pod", annotations=STUCK)
        await until_pod(cluster, "pod", phase="Running")
        await cluster.api.patch(port.NODES, None, node, {"metadata": {"annotations": {"sim/down": "yes"}}})
        await until(lambda: has_condition(cluster, node, "Ready", "False"))
        await cluster.api.delete(port.PODS, cluster.namespace, "pod")
        await until_pod(cluster, "pod", deleting=True, phase="Running")
        found = await cluster.api.get(port.NODES, None, node)
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "dead", "effect": "NoExecute"}
        body = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "spec": {"taints": [*(found["spec"].get("taints") or []), taint]},
        }
        await cluster.api.patch(port.NODES, None, node, body)
        await until_gone(cluster, "pod", within=COLLECTED_WITHIN)
