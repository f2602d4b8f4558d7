"""Pins over several domains on a real API server: each rank on the node that its admission says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import operator_run
import pytest
import stack
from scenes import places, scene

from lstqueue.kube import port

Object = dict[str, Any]

RACK = "example.com/rack"
INDEX = "batch.kubernetes.io/job-completion-index"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
async def nodes(api: port.KubeApi, namespace: str, queue: str) -> AsyncIterator[list[str]]:
    """Four nodes of the plane, dealt to two racks in turn; they are given rack after rack."""
    page = await api.list_page(port.NODES)
    names = sorted(raw["metadata"]["name"] for raw in page.items)[:4]
    for number, node in enumerate(names):
        labels = {RACK: f"{namespace}-r{number % 2}"}
        await api.patch(port.NODES, None, node, {"metadata": {"labels": labels}})
    spec = {"sources": [{"name": "racks", "nodeLabels": {"keys": [RACK]}}]}
    kind = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "Interconnect"}
    await api.create(port.INTERCONNECTS, None, {**kind, "metadata": {"name": namespace}, "spec": spec})
    yield [*names[::2], *names[1::2]]
    for node in names:
        await api.patch(port.NODES, None, node, {"metadata": {"labels": {RACK: None}}})
    await api.delete(port.INTERCONNECTS, None, namespace)


def pins(pods: list[Object]) -> dict[int, tuple[str, str]]:
    """By completion index, the node that a pod is pinned to and the one it is on."""
    found: dict[int, tuple[str, str]] = {}
    for raw in pods:
        (term,) = raw["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        (pin,) = term["matchFields"]
        assert (pin["key"], len(pin["values"])) == ("metadata.name", 1)
        found[int(raw["metadata"]["labels"][INDEX])] = (pin["values"][0], raw["spec"]["nodeName"])
    return found


async def test_ranks_of_groups_and_of_a_users_own_job_are_pinned_rack_after_rack(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, nodes: list[str]
) -> None:
    order = {rank: (nodes[rank // 2], nodes[rank // 2]) for rank in range(8)}
    async with scene(control_plane, api, namespace) as told:

        async def read() -> bool:
            raw = await api.get(port.INTERCONNECTS, None, namespace)
            return (raw.get("status") or {}).get("summary") == "rack 2"

        await told.until(read, "the racks are read")
        await told.submit_inline("inline", operator_run.group("worker", 8, gpus=4, run_for="10h"))
        await told.until_phase("inline", "Running")
        assert places(told.status("inline")["admission"]) == {rank: node for rank, (node, _) in order.items()}
        assert pins(told.members("inline")) == order
        await api.delete(port.DEADLINE_JOBS, namespace, "inline")
        await told.submit("train", 8, gpus=4, run_for="10h")
        await told.until_phase("train", "Running")
        assert pins(told.members("train")) == order
