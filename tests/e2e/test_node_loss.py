"""Nodes that go, on a real API server: the whole gang leaves them at once and runs elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import operator_run
import pytest
import stack
import stack_objects
import stack_process
from scenes import Scene, claimed, named, our_job, scene

from lstqueue.kube import port

Object = dict[str, Any]

FIRST = 100
POOL = "example.com/pool"
AT_ONCE_S = 60.0
"""Long before the 300 s after which Kubernetes evicts the pods of a node that is not ready."""


class Nodes:
    """Nodes of this test's own, in a pool that only its queue knows."""

    def __init__(self, plane: stack.ControlPlane, pool: str) -> None:
        self._plane = plane
        self._pool = pool
        self.names: list[str] = []

    def add(self, count: int) -> None:
        for number in range(FIRST + len(self.names), FIRST + len(self.names) + count):
            body = stack_objects.node(number)
            body["metadata"]["labels"][POOL] = self._pool
            self._plane.request("POST", "/api/v1/nodes", body)
            self.names.append(body["metadata"]["name"])
        self._wait(lambda: all(map(stack_objects.is_schedulable, self._all())), "the nodes to be ready")

    def delete(self, name: str) -> None:
        self._plane.request("DELETE", f"/api/v1/nodes/{name}")

    def remove_all(self) -> None:
        for raw in self._all():
            self.delete(raw["metadata"]["name"])

    def _all(self) -> list[Object]:
        path = f"/api/v1/nodes?labelSelector={POOL}%3D{self._pool}"
        return list(self._plane.request("GET", path)["items"])

    def _wait(self, condition: Any, what: str) -> None:
        stack_process.wait_until(condition, what=what, within_s=30)


@pytest.fixture
async def nodes(control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str) -> AsyncIterator[Nodes]:
    made = Nodes(control_plane, namespace)
    body = operator_run.queue(namespace)
    body["spec"]["pools"][0]["nodeSelector"] = {POOL: namespace}
    await api.create(port.GPU_QUEUES, None, body)
    yield made
    await api.delete(port.GPU_QUEUES, None, namespace)
    # Pods that cannot end on their own would keep the namespace.
    path = f"/api/v1/namespaces/{namespace}/pods"
    for raw in control_plane.request("GET", path)["items"]:
        with contextlib.suppress(stack_process.ControlPlaneError):
            _force(control_plane, namespace, raw["metadata"]["name"])
    made.remove_all()


def _force(plane: stack.ControlPlane, namespace: str, pod: str) -> None:
    """Take a pod off the books, as administrators do whose node is dead for good."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}", body)


async def set_down(told: Scene, node: str, down: bool) -> None:
    body = {"metadata": {"annotations": {"sim/down": "yes" if down else None}}}
    await told.api.patch(port.NODES, None, node, body)


async def until_elsewhere(told: Scene, name: str, gone: str, attempt: int = 2) -> None:
    await told.until_seen(
        lambda: told.phase(name) == "Running" and told.status(name)["attempt"] == attempt,
        f"{name} runs in attempt {attempt}",
        within_s=AT_ONCE_S,
    )
    live = [pod["spec"].get("nodeName") for pod in told.members(name) if not _leaving(pod)]
    assert len(live) == 2
    assert gone not in live


def why_it_left(told: Scene, name: str) -> str:
    """What its user was told of the one suspension, which was for a lost node."""
    assert [run["reason"] for run in told.status(name)["runs"]] == ["NodeLost"]
    found = [
        item["message"]
        for raw in told.record.of("DeadlineJob")
        if named(raw) == name
        for item in raw.get("status", {}).get("conditions", ())
        if (item["type"], item["reason"]) == ("Suspended", "NodeLost")
    ]
    return str(found[-1])


def _leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


async def test_gangs_leave_a_node_that_is_not_ready_as_a_whole_and_others_do_not_notice(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, nodes: Nodes
) -> None:
    nodes.add(4)
    async with scene(control_plane, api, namespace) as told:
        for name, gpus in (("labelled", 4), ("other", 4)):
            await told.submit(name, 2, gpus=gpus)
            await told.until_phase(name, "Running")
        inline = operator_run.group("worker", 2, gpus=4, run_for="10h")
        await told.submit_inline("inline", inline)
        await told.until_phase("inline", "Running")
        lost = told.nodes("labelled")[0]
        hit = [name for name in ("labelled", "inline", "other") if lost in told.nodes(name)]
        spared = [name for name in ("labelled", "inline", "other") if name not in hit]
        assert spared
        before = {name: [pod["metadata"]["uid"] for pod in told.members(name)] for name in spared}
        await set_down(told, lost, True)
        for name in hit:
            await until_elsewhere(told, name, lost)
            assert "is not ready" in why_it_left(told, name)
            assert [job["status"].get("failed", 0) for job in told.children(name)] == [0]
        assert {name: [pod["metadata"]["uid"] for pod in told.members(name)] for name in spared} == before


@pytest.mark.parametrize("kind", ["labelled", "inline"])
async def test_a_pod_that_cannot_end_blocks_its_node_and_nothing_else(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, nodes: Nodes, kind: str
) -> None:
    nodes.add(3)
    async with scene(control_plane, api, namespace) as told:
        if kind == "labelled":
            await told.submit("gang", 2)
        else:
            await told.submit_inline("gang", operator_run.group("worker", 2, run_for="10h"))
        await told.until_phase("gang", "Running")
        dead = told.members("gang")[0]
        lost = dead["spec"]["nodeName"]
        stuck = dead["metadata"]["name"]
        await told.patch(stuck, {"metadata": {"annotations": {"sim/terminate-after": "1h"}}}, port.PODS)
        await set_down(told, lost, True)
        await until_elsewhere(told, "gang", lost)
        assert [pod["metadata"]["name"] for pod in told.newest("Pod") if _leaving(pod)] == [stuck]
        # It is back, and what is left of the gang still has its room there.
        await set_down(told, lost, False)
        await told.submit("next", 1)
        await told.until_pending("next", "NoRoom", "QuotaExceeded")
        await told.until_seen(lambda: _ready(told, lost), "the node is ready again")
        await told.submit("small", 1, gpus=0, run_for="1s")
        await told.until_phase("small", "Succeeded")
        assert told.phase("next") == "Pending"
        _force(control_plane, namespace, stuck)
        await told.until_phase("next", "Running")
        assert told.nodes("next") == [lost]
        assert told.phase("gang") == "Running"


def _ready(told: Scene, name: str) -> bool:
    raw = next(raw for raw in told.newest("Node") if raw["metadata"]["name"] == name)
    return stack_objects.is_schedulable(raw)


async def test_gangs_leave_a_node_that_was_deleted(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, nodes: Nodes
) -> None:
    nodes.add(3)
    async with scene(control_plane, api, namespace) as told:
        await told.submit("labelled", 2, gpus=4)
        await told.until_phase("labelled", "Running")
        lost = told.nodes("labelled")[0]
        nodes.delete(lost)
        await until_elsewhere(told, "labelled", lost)
        assert "is gone" in why_it_left(told, "labelled")


async def test_a_claim_on_a_node_that_is_lost_is_made_anew_elsewhere(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, nodes: Nodes
) -> None:
    nodes.add(3)
    async with scene(control_plane, api, namespace) as told:
        slow = our_job("holder", 3, namespace, said={"estimated-duration": "3h", "min-run-time": "0s"})
        slow["spec"]["template"]["metadata"]["annotations"] = {"sim/terminate-after": "2s"}
        await told.create(port.JOBS, slow)
        await told.until_phase("holder", "Running")
        group = operator_run.group("worker", 2, run_for="10h")
        await told.submit_inline("urgent", group, deadlineIn="70m", estimatedDuration="1h")
        await told.until_phase("holder", "Suspending")
        lost = claimed(told.status("urgent")["claim"])[0]
        await set_down(told, lost, True)
        await told.until_phase("urgent", "Running")
        assert lost not in told.nodes("urgent")
        assert [run["reason"] for run in told.status("holder")["runs"]] == ["Preempted"]
