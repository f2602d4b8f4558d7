"""What lstqueue takes for granted about PyTorchJobs, shown with the real training operator alone."""

from __future__ import annotations

import plain_jobs
import pytest
from pytorch_jobs import Jobs

from lstqueue.kube import port

pytestmark = pytest.mark.usefixtures("training_operator")


@pytest.fixture
def jobs(api: port.KubeApi, namespace: str) -> Jobs:
    return Jobs(plain_jobs.Namespace(api, namespace))


async def test_ranks_are_labels_names_are_fixed_and_the_gate_comes_from_the_template(jobs: Jobs) -> None:
    await jobs.create("train", 2)
    gates = {"spec": {"schedulingGates": [{"name": plain_jobs.GATE}]}, "metadata": {"labels": {"team": "a"}}}
    replicas = {role: {"template": gates} for role in ("Master", "Worker")}
    patch = {"spec": {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": replicas}}
    await jobs.here.patch("train", patch, port.PYTORCH_JOBS)

    async def look() -> bool:
        return len(await jobs.pods("train")) == 3

    await jobs.here.until(look, "it has its pods")
    found = await jobs.pods("train")
    assert sorted(found) == ["train-master-0", "train-worker-0", "train-worker-1"]
    for name, raw in found.items():
        labels = raw["metadata"]["labels"]
        where = labels["training.kubeflow.org/replica-type"], labels["training.kubeflow.org/replica-index"]
        assert f"train-{'-'.join(where)}" == name
        assert labels["team"] == "a"
        assert plain_jobs.gates(raw) == [plain_jobs.GATE]


async def test_suspending_deletes_all_pods_and_resuming_makes_them_anew(jobs: Jobs) -> None:
    await jobs.create("train", 2, suspend=False)
    await jobs.until_running("train", 3)
    await jobs.end("train-worker-0", "Succeeded")
    await jobs.suspend("train", True)
    await jobs.until_gone("train")
    assert "Suspended" in await jobs.conditions("train")
    await jobs.suspend("train", False)
    await jobs.until_running("train", 3)
    await jobs.end("train-master-0", "Succeeded")
    await jobs.until("train", "Succeeded")


@pytest.mark.parametrize("policy", ["OnFailure", "Always", "ExitCode"])
async def test_a_lost_worker_is_replaced_alone_while_the_job_runs(jobs: Jobs, policy: str) -> None:
    await jobs.create("train", 2, suspend=False, restart=policy)
    before = await jobs.until_running("train", 3)
    await jobs.lose("train-worker-1")

    async def look() -> bool:
        found = await jobs.pods("train")
        uid = before["train-worker-1"]["metadata"]["uid"]
        return "train-worker-1" in found and found["train-worker-1"]["metadata"]["uid"] != uid

    await jobs.here.until(look, "it is made again")
    after = await jobs.until_running("train", 3)
    for name in ("train-master-0", "train-worker-0"):
        assert after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"]


async def test_never_fails_the_job_for_good_and_leaves_its_master_even_when_it_is_suspended(
    jobs: Jobs,
) -> None:
    await jobs.create("train", 1, suspend=False, restart="Never")
    await jobs.until_running("train", 2)
    await jobs.end("train-worker-0")
    await jobs.until("train", "Failed")
    await jobs.suspend("train", True)
    await jobs.here.patch("train", {"metadata": {"labels": {"seen": "yes"}}}, port.PYTORCH_JOBS)
    assert (await jobs.pods("train"))["train-master-0"]["status"]["phase"] == "Running"
    # The policy ends it even now, and leaves the pod that has ended.
    policy = {"spec": {"runPolicy": {"cleanPodPolicy": "Running"}}}
    await jobs.here.patch("train", policy, port.PYTORCH_JOBS)

    async def look() -> bool:
        return list(await jobs.pods("train")) == ["train-worker-0"]

    await jobs.here.until(look, "the master ends")


async def test_resumed_over_a_pod_that_is_leaving_it_fails_for_ever(jobs: Jobs) -> None:
    await jobs.create("train", 1, suspend=False, restart="Never", terminate_after="5s")
    await jobs.until_running("train", 2)
    await jobs.suspend("train", True)

    async def leaving() -> bool:
        found = await jobs.pods("train")
        return len(found) == 2 and all("deletionTimestamp" in raw["metadata"] for raw in found.values())

    await jobs.here.until(leaving, "its pods are leaving")
    await jobs.suspend("train", False)
    await jobs.until("train", "Failed")


async def test_absent_replicas_are_one(jobs: Jobs) -> None:
    await jobs.create("train", 1, suspend=True)
    await jobs.here.patch(
        "train", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": None}}}}, port.PYTORCH_JOBS
    )
    raw = await jobs.here.get("train", port.PYTORCH_JOBS)
    assert "replicas" not in raw["spec"]["pytorchReplicaSpecs"]["Worker"]
    await jobs.suspend("train", False)
    await jobs.until_running("train", 2)
