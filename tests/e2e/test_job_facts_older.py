"""The same at Kubernetes 1.35: a template freezes with its first run, and its gate serves all later ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import build
import pytest
import stack
from plain_jobs import GATE, Namespace, job, refused, version

from lstqueue.kube import client, port


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.ControlPlane]:
    if not build.is_complete(build.directory()):
        pytest.skip("the control plane is not built: run `make e2e`, which needs Go")
    folder = tmp_path_factory.mktemp("older-control-plane")
    with stack.ControlPlane(directory=folder, nodes=1, emulate="1.35") as plane:
        yield plane


@pytest.fixture
async def here(older: stack.ControlPlane) -> AsyncIterator[Namespace]:
    api = await client.connect(kubeconfig=str(older.kubeconfig))
    await api.create(port.NAMESPACES, None, {"metadata": {"name": "older"}})
    yield Namespace(api, "older")
    await api.close()


async def test_readmission_needs_no_change_of_the_template_which_is_frozen(here: Namespace) -> None:
    created = await here.suspended(job("gated", 2, suspend=True))
    labels = {"example.com/group": "pods"}
    template = {"metadata": {"labels": labels}, "spec": {"schedulingGates": [{"name": GATE}]}}
    spec = {"suspend": False, "template": template}
    await here.patch("gated", {"metadata": {"resourceVersion": version(created)}, "spec": spec})
    for _ in range(2):
        for pod in await here.until_gated("gated", 2):
            assert pod["metadata"]["labels"].items() >= labels.items()
            lift = {"metadata": {"resourceVersion": version(pod)}, "spec": {"schedulingGates": None}}
            await here.patch(pod["metadata"]["name"], lift, port.PODS)
        await here.until_status("gated", ready=2)
        await here.suspend("gated", True)
        await here.until_condition("gated", "Suspended")
        status = await here.until_status("gated", active=0, terminating=0)
        assert status["startTime"], "nobody clears it below 1.36"
        moved = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
        await refused(here.patch("gated", moved), 422, says="spec.template")
        await here.suspend("gated", False)
    assert await here.until_gated("gated", 2)
