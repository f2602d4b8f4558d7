"""At Kubernetes 1.35 a template freezes with its first run: a Job that ran before is released even so."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator, Iterator

import build
import operator_run
import pytest
import stack
from scenes import scene

from lstqueue.api import names
from lstqueue.kube import client, port

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.ControlPlane]:
    if not build.is_complete(build.directory()):
        pytest.skip("the control plane is not built: run `make e2e`, which needs Go")
    folder = tmp_path_factory.mktemp("older-control-plane")
    with stack.ControlPlane(directory=folder, nodes=2, crds=[ROOT / "crds"], emulate="1.35") as plane:
        yield plane


@pytest.fixture
async def older_api(older: stack.ControlPlane) -> AsyncIterator[port.KubeApi]:
    api = await client.connect(kubeconfig=str(older.kubeconfig))
    await api.create(port.NAMESPACES, None, {"metadata": {"name": "older"}})
    await api.create(port.GPU_QUEUES, None, operator_run.queue("older"))
    yield api
    await api.close()


async def test_a_job_that_ran_before_is_suspended_and_released_with_our_gate(
    older: stack.ControlPlane, older_api: port.KubeApi
) -> None:
    async with scene(older, older_api, "older") as told:
        await told.submit("train", 2, run_for="10s", suspend=False)
        await told.until_seen(
            lambda: any(raw["spec"]["suspend"] for raw in told.record.of("Job")), "it is suspended"
        )
        await told.until_phase("train", "Running")
        gates = told.job("train")["spec"]["template"]["spec"]["schedulingGates"]
        assert [gate["name"] for gate in gates] == [names.GATE]
        await told.patch("train", {"spec": {"suspend": True}})
        await told.until_seen(
            lambda: (told.status("train").get("pending") or {}).get("code") == "Inactive", "it is paused"
        )
        await told.patch("train", {"spec": {"suspend": False}})
        await told.until_phase("train", "Succeeded", within_s=90)
        assert told.status("train")["attempt"] == 2
