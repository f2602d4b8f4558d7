"""The control plane itself: if one of these fails, no other end-to-end result means anything."""

import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest
import stack
import stack_commands
import stack_process
import stack_state

WITHIN_S = 30.0


def pod(name: str, *, gpus: int = 1, **simulation: str) -> dict[str, Any]:
    """A pod whose keywords are its ``sim/`` annotations, with dashes for underscores."""
    annotations = {f"sim/{key.replace('_', '-')}": value for key, value in simulation.items()}
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


class Pods:
    """The pods of one namespace, with expectations that wait for an outcome."""

    def __init__(self, plane: stack.ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def create(self, manifest: dict[str, Any]) -> None:
        self._plane.request("POST", self._path, manifest)

    def delete(self, name: str) -> None:
        self._plane.request("DELETE", f"{self._path}/{name}")

    def get(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._plane.request("GET", f"{self._path}/{name}")
        return found

    def phases(self) -> list[str]:
        return sorted(item["status"]["phase"] for item in self._plane.request("GET", self._path)["items"])

    def expect(self, *phases: str) -> None:
        wanted = sorted(phases)
        stack_process.wait_until(
            lambda: self.phases() == wanted, what=f"pods to be {wanted}", within_s=WITHIN_S
        )


@pytest.fixture
def pods(control_plane: stack.ControlPlane, namespace: str) -> Pods:
    return Pods(control_plane, namespace)


def node_is_ready(plane: stack.ControlPlane, name: str) -> bool:
    found = plane.request("GET", f"/api/v1/nodes/{name}")
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found["status"]["conditions"])


def test_four_nodes_are_ready_with_eight_gpus_each(control_plane: stack.ControlPlane) -> None:
    nodes = control_plane.request("GET", "/api/v1/nodes")["items"]
    gpus = {item["metadata"]["name"]: item["status"]["allocatable"]["nvidia.com/gpu"] for item in nodes}
    assert gpus == {f"node-{index:04d}": "8" for index in range(4)}
    assert all(node_is_ready(control_plane, name) for name in gpus)


def test_a_pod_runs_for_its_time_and_succeeds(pods: Pods) -> None:
    pods.create(pod("worker", run_for="500ms"))
    pods.expect("Running")
    pods.expect("Succeeded")


def test_a_pod_that_is_to_fail_fails_with_its_exit_code(pods: Pods) -> None:
    pods.create(pod("worker", run_for="100ms", fail_after="200ms", exit_code="42"))
    pods.expect("Failed")
    (container,) = pods.get("worker")["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 42


def test_a_pod_waits_for_gpus_until_another_gives_them_back(pods: Pods) -> None:
    for index in range(4):
        pods.create(pod(f"full-{index}", gpus=8))
    pods.expect(*["Running"] * 4)
    pods.create(pod("late", gpus=8))
    pods.expect("Pending", *["Running"] * 4)
    pods.delete("full-2")
    pods.expect(*["Running"] * 4)
    assert pods.get("late")["status"]["phase"] == "Running"


def test_a_deleted_pod_takes_its_time_to_end(pods: Pods) -> None:
    pods.create(pod("slow", terminate_after="700ms"))
    pods.expect("Running")
    pods.delete("slow")
    assert "deletionTimestamp" in pods.get("slow")["metadata"]
    pods.expect()


def test_a_suspended_job_gives_up_its_pods_and_runs_them_again(
    control_plane: stack.ControlPlane, namespace: str, pods: Pods
) -> None:
    spec = {"parallelism": 3, "completions": 3, "backoffLimit": 0, "template": pod("unnamed")}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    control_plane.request("POST", path, {"metadata": {"name": "gang"}, "spec": spec})
    pods.expect(*["Running"] * 3)
    for suspend, phases in (("true", []), ("false", ["Running"] * 3)):
        patch = f'{{"spec":{{"suspend":{suspend}}}}}'
        control_plane.kubectl("patch", "job", "gang", f"--namespace={namespace}", f"--patch={patch}")
        pods.expect(*phases)
    status = control_plane.request("GET", f"{path}/gang")["status"]
    # A suspension must not count as a failure, which the back-off limit of zero would punish.
    assert status.get("failed", 0) == 0


def test_a_node_goes_down_and_comes_back(control_plane: stack.ControlPlane) -> None:
    control_plane.kubectl("annotate", "node", "node-0003", "sim/down=yes")
    stack_process.wait_until(
        lambda: not node_is_ready(control_plane, "node-0003"), what="the outage", within_s=WITHIN_S
    )
    control_plane.kubectl("annotate", "node", "node-0003", "sim/down-")
    stack_process.wait_until(
        lambda: node_is_ready(control_plane, "node-0003"), what="the recovery", within_s=WITHIN_S
    )


def test_a_service_account_may_do_what_its_roles_say_and_no_more(
    control_plane: stack.ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "serviceaccount", "reader", f"--namespace={namespace}")
    scope, account = f"--namespace={namespace}", f"--serviceaccount={namespace}:reader"
    control_plane.kubectl("create", "rolebinding", "read", "--clusterrole=view", account, scope)
    kubeconfig = f"--kubeconfig={control_plane.kubeconfig_for(namespace, 'reader')}"
    control_plane.kubectl("get", "pods", scope, kubeconfig)
    with pytest.raises(stack_process.ControlPlaneError, match="forbidden"):
        control_plane.kubectl("delete", "pod", "any", scope, kubeconfig)


def test_objects_survive_a_crash_of_the_api_server(
    control_plane: stack.ControlPlane, namespace: str, pods: Pods
) -> None:
    pods.create(pod("worker"))
    pods.expect("Running")
    control_plane.kill(stack_commands.API_SERVER)
    with pytest.raises(stack_process.ControlPlaneError):
        pods.get("worker")
    control_plane.revive(stack_commands.API_SERVER)
    assert pods.get("worker")["status"]["phase"] == "Running"


@pytest.mark.usefixtures("control_plane")  # skipped with the others when nothing is built
def test_a_plane_ends_when_its_owner_is_killed(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "plane"
    script = "\n".join(
        [
            "import os, signal, sys, stack",
            "with stack.ControlPlane(directory=sys.argv[1], nodes=0):",
            "    os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    owner = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": str(stack.HERE)},
        check=False,
        capture_output=True,
    )
    assert owner.returncode == -signal.SIGKILL, owner.stderr.decode()
    stack_process.wait_until(lambda: not stack_state.read(folder), what="the plane to end", within_s=WITHIN_S)
