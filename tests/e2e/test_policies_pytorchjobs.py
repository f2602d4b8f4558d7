"""The policies and PyTorchJobs: made to wait at creation, guarded, and run by their own controller."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import plain_jobs
import policies
import pytest
import pytorch_jobs
import stack
import training_operator as training
from scenes import scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]

STARTS = "lstqueue starts this job when its turn comes"
STAYS = "The label lstqueue.dev/queue of a job stays as it is"
SIZE = "A job keeps its parallelism, or replicas, while it runs"
SCALE = "A PyTorchJob keeps its replicas while it runs"
GATE = "The gate lstqueue.dev/placement stays in the pod template"
BELOW = "A job below a DeadlineJob"


@pytest.fixture(autouse=True)
def _kind(control_plane: stack.ControlPlane) -> None:
    """The kind is there, with or without its controller."""
    if not training.is_built():
        pytest.skip("the training operator is not built: run `make e2e`, which needs Go")


@pytest.fixture
async def user(control_plane: stack.ControlPlane, namespace: str) -> AsyncIterator[plain_jobs.Namespace]:
    async with policies.user(control_plane, namespace, policies.EDITOR) as made:
        yield made


@pytest.fixture
async def holder(control_plane: stack.ControlPlane, namespace: str) -> AsyncIterator[plain_jobs.Namespace]:
    """Somebody who may release besides."""
    rules = [*policies.EDITOR, policies.RELEASES]
    async with policies.user(control_plane, namespace, rules, name="holder") as made:
        yield made


def running(name: str, **given: Any) -> Object:
    """A labelled PyTorchJob as users write it who do not think of suspending."""
    body = pytorch_jobs.body(name, 2, queue="research", **given)
    del body["spec"]["runPolicy"]
    return body


def gates(job: Object) -> dict[str, list[str]]:
    replicas = job["spec"]["pytorchReplicaSpecs"]
    return {role: plain_jobs.gates(replica["template"]) for role, replica in replicas.items()}


async def scaled(here: plain_jobs.Namespace, name: str, replicas: int) -> None:
    """Change its replicas as `kubectl scale` does."""
    subresource = port.Resource("kubeflow.org", "v1", f"pytorchjobs/{name}", "Scale")
    await here.api.patch(subresource, here.name, "scale", {"spec": {"replicas": replicas}})


async def test_a_pytorchjob_without_a_run_policy_waits_for_its_turn_and_runs_to_its_end(
    control_plane: stack.ControlPlane,
    training_operator: None,
    api: port.KubeApi,
    namespace: str,
    queue: str,
    user: plain_jobs.Namespace,
) -> None:
    async with scene(control_plane, api, namespace) as told:
        body = running("train", run_for="1s")
        body["metadata"]["labels"][names.LABEL_QUEUE] = queue
        made = await user.create(port.PYTORCH_JOBS, body)
        assert made["spec"]["runPolicy"] == {"suspend": True}
        assert gates(made) == {"Master": [names.GATE], "Worker": [names.GATE]}
        await told.until_phase("train", "Succeeded")
        assert "SuspendedOnSight" not in await told.reasons("PyTorchJob", "train")
    assert told.status("train")["attempt"] == 1


@pytest.mark.parametrize("role", ["Master", "Worker"])
async def test_whatever_roles_it_has_are_gated_beside_the_gates_of_others(
    user: plain_jobs.Namespace, role: str
) -> None:
    body = running("train")
    replicas = body["spec"]["pytorchReplicaSpecs"]
    body["spec"]["pytorchReplicaSpecs"] = {role: copy.deepcopy(replicas[role])}
    body["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["schedulingGates"] = [{"name": "my/gate"}]
    made = await user.create(port.PYTORCH_JOBS, body, dry_run=True)
    assert gates(made) == {role: ["my/gate", names.GATE]}
    assert made["spec"]["runPolicy"]["suspend"]


@dataclass(frozen=True, slots=True)
class Cheat:
    """A merge patch of a PyTorchJob that waits or runs in a queue, and how the refusal begins."""

    waits: bool
    patch: Object
    says: str


def replica(role: str, change: Object | None) -> Object:
    return {"spec": {"pytorchReplicaSpecs": {role: change}}}


NO_GATES: Object = {"template": {"spec": {"schedulingGates": None}}}
ANOTHER: Object = {"metadata": {"labels": {names.LABEL_QUEUE: "other"}}}
LABEL_GONE: Object = {"metadata": {"labels": {names.LABEL_QUEUE: None}}}
CHILD: Object = {
    "metadata": {
        "ownerReferences": [
            {
                "apiVersion": "lstqueue.dev/v1alpha1",
                "kind": "DeadlineJob",
                "name": "mine",
                "uid": "1234",
                "controller": True,
            }
        ]
    }
}
CHEATS = (
    Cheat(True, {"spec": {"runPolicy": {"suspend": False}}}, STARTS),
    Cheat(True, {"spec": {"runPolicy": {"suspend": None}}}, STARTS),
    Cheat(True, {"spec": {"runPolicy": {"suspend": False}}, **LABEL_GONE}, STARTS),
    Cheat(True, ANOTHER, STAYS),
    Cheat(True, LABEL_GONE, STAYS),
    Cheat(True, replica("Worker", NO_GATES), GATE),
    Cheat(True, CHILD, BELOW),
    Cheat(False, replica("Worker", {"replicas": 3}), SIZE),
    Cheat(False, replica("Master", {"replicas": 1, **NO_GATES}), GATE),
    Cheat(False, replica("Worker", None), SIZE),
    Cheat(False, ANOTHER, STAYS),
    Cheat(False, LABEL_GONE, STAYS),
    Cheat(False, CHILD, BELOW),
)


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "runs"])
async def test_a_cheat_is_refused_with_a_remedy_and_changes_nothing(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace, waits: bool
) -> None:
    await user.create(port.PYTORCH_JOBS, running("train"))
    if not waits:
        resumed = {"spec": {"runPolicy": {"suspend": False}}}
        await holder.patch("train", resumed, port.PYTORCH_JOBS)
    before = await user.get("train", port.PYTORCH_JOBS)
    for cheat in CHEATS:
        if cheat.waits == waits:
            written = user.patch("train", copy.deepcopy(cheat.patch), port.PYTORCH_JOBS)
            await plain_jobs.refused(written, 403, says=cheat.says)
    after = await user.get("train", port.PYTORCH_JOBS)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]


async def test_scaling_is_for_those_that_wait_or_are_in_no_queue(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace
) -> None:
    await user.create(port.PYTORCH_JOBS, running("train"))
    free = running("free")
    del free["metadata"]["labels"]
    await user.create(port.PYTORCH_JOBS, free)
    await scaled(user, "train", 3)
    await holder.patch("train", {"spec": {"runPolicy": {"suspend": False}}}, port.PYTORCH_JOBS)

    async def refused() -> bool:
        """The API server's own cache learns of the release a moment later."""
        try:
            await scaled(user, "train", 3)
            await scaled(user, "train", 4)
        except port.ForbiddenError as refusal:
            return SCALE in refusal.message
        await scaled(holder, "train", 3)
        return False

    await user.until(refused, "scaling it is refused")
    await scaled(user, "free", 5)
    await scaled(holder, "train", 5)
    for name in ("train", "free"):
        with contextlib.suppress(port.NotFoundError):
            await user.api.delete(port.PYTORCH_JOBS, user.name, name)
