"""A real control plane for the whole session; `make e2e` builds its programs first."""

import pathlib
import secrets
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from lstqueue.kube import client, port

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The scripts are no part of the installed package, and also run where nothing is installed.
sys.path.insert(0, str(ROOT / "hack" / "controlplane"))

import build  # noqa: E402 - found by the line above
import operator_run  # noqa: E402 - finds its own through it
import policies  # noqa: E402
import stack  # noqa: E402
import stack_process  # noqa: E402
import training_operator as training  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder, so that no test can forget to."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("e2e")


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.ControlPlane]:
    """A control plane with four nodes of eight GPUs, the project's kinds and policies, and PyTorchJobs.

    Tests share it.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("the local control plane runs on Linux only")
    if not build.is_complete(build.directory()):
        pytest.skip("the control plane is not built: run `make e2e`, which needs Go")
    folder = tmp_path_factory.mktemp("control-plane")
    crds = [ROOT / "crds", *([training.crd()] if training.is_built() else [])]
    with stack.ControlPlane(directory=folder, nodes=4, crds=crds) as plane:
        policies.install(plane)
        if training.is_built():
            policies.await_pytorch_jobs(plane)
        yield plane


@pytest.fixture(scope="session")
def training_operator(control_plane: stack.ControlPlane) -> Iterator[None]:
    """Kubeflow's controller of PyTorchJobs at work in the control plane."""
    if not training.is_built():
        pytest.skip("the training operator is not built: run `make e2e`, which needs Go")
    with training.running(control_plane):
        yield


@pytest.fixture
def namespace(control_plane: stack.ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, emptied afterwards so that its pods give back their GPUs.

    The policies are bound to it unless the test is marked `unenforced`.
    """
    name = f"test-{secrets.token_hex(4)}"
    labels = {} if request.node.get_closest_marker("unenforced") else policies.ENFORCED
    control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    yield name
    path = f"/api/v1/namespaces/{name}"
    control_plane.request("DELETE", path)
    # Nothing can be created in it from here on.  Its controller would wait 5 s before it touches the pods.
    control_plane.request("DELETE", f"{path}/pods")
    stack_process.wait_until(
        lambda: not control_plane.request("GET", f"{path}/pods")["items"],
        what=f"the pods of {name} to end",
        within_s=60,
    )


@pytest.fixture
async def api(control_plane: stack.ControlPlane) -> AsyncIterator[port.KubeApi]:
    """An administrator's client, over our own adapter."""
    connected = await client.connect(kubeconfig=str(control_plane.kubeconfig))
    yield connected
    await connected.close()


@pytest.fixture
async def queue(api: port.KubeApi, namespace: str) -> AsyncIterator[str]:
    """A queue of the namespace's name over all nodes, in which others may be suspended at once."""
    body = operator_run.queue(namespace, preemption={"minRunTime": "0s"})
    await api.create(port.GPU_QUEUES, None, body)
    yield namespace
    await api.delete(port.GPU_QUEUES, None, namespace)
