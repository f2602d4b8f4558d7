"""Where Kubernetes has no mutating policies yet: who installs ours is told, and the operator steps in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import build
import operator_run
import plain_jobs
import policies
import pytest
import stack
import stack_process
from scenes import our_job, scene

from lstqueue.kube import client, port

SAID = 'no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"'


@pytest.fixture(scope="module", params=["1.33", "1.35"])
def older(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[stack.ControlPlane]:
    if not build.is_complete(build.directory()):
        pytest.skip("the control plane is not built: run `make e2e`, which needs Go")
    folder = tmp_path_factory.mktemp("older-control-plane")
    with stack.ControlPlane(
        directory=folder, nodes=2, crds=[policies.ROOT / "crds"], emulate=request.param
    ) as plane:
        yield plane


@pytest.fixture
async def older_api(older: stack.ControlPlane) -> AsyncIterator[port.KubeApi]:
    api = await client.connect(kubeconfig=str(older.kubeconfig))
    await api.create(port.NAMESPACES, None, {"metadata": {"name": "older", "labels": policies.ENFORCED}})
    await api.create(port.GPU_QUEUES, None, operator_run.queue("older"))
    yield api
    await api.delete(port.GPU_QUEUES, None, "older")
    await api.close()


async def test_installing_says_what_is_missing_and_a_running_job_is_suspended_on_sight(
    older: stack.ControlPlane, older_api: port.KubeApi
) -> None:
    with pytest.raises(stack_process.ControlPlaneError) as told_so:
        older.kubectl("apply", f"--filename={policies.FOLDER}")
    assert SAID in str(told_so.value)
    validating = [path for path in policies.FOLDER.glob("*.yaml") if path.name.startswith("validating-")]
    again = older.kubectl("apply", *(f"--filename={path}" for path in validating))
    assert again.count("unchanged") == 2 * len(validating)

    async with (
        scene(older, older_api, "older") as told,
        policies.user(older, "older", policies.EDITOR) as user,
    ):
        made = await user.create(port.JOBS, our_job("train", 2, "older", run_for="5s", suspend=False))
        assert not made["spec"]["suspend"]
        await told.until_told("Job", "train", "SuspendedOnSight")
        await told.until_phase("train", "Succeeded", within_s=90)
        # What validating policies refuse they refuse here, too.
        await user.create(port.JOBS, our_job("waits", 3, "older"))
        await plain_jobs.refused(user.suspend("waits", False), 403, says="when its turn comes")
