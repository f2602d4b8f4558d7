"""PyTorchJobs in a queue on a real API server, with the real training operator."""

from __future__ import annotations

import pathlib
from typing import Any

import operator_run
import pytest
import pytorch_jobs
import stack
import yaml
from pytorch_jobs import Jobs, on
from scenes import places, scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "labelled-pytorchjob.yaml"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

pytestmark = pytest.mark.usefixtures("training_operator")


def pinned_to(pod: Object) -> str:
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


async def test_the_example_runs_on_32_gpus_ends_and_gives_them_to_the_next(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    body: Object = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    body["metadata"]["labels"][names.LABEL_QUEUE] = queue
    for replica in body["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["metadata"] = {"annotations": {"sim/run-for": "3s"}}
    async with scene(control_plane, api, namespace) as told:
        created = await told.create(port.PYTORCH_JOBS, body)
        await told.until_phase("pretrain", "Running", "Succeeded")
        grant = next(
            raw["status"]["admission"]
            for raw in told.record.of("DeadlineJob")
            if raw.get("status", {}).get("admission")
        )
        await Jobs(told).submit("next", 3, run_for="1s")
        await told.until_phase("pretrain", "Succeeded")
        await told.until_phase("next", "Succeeded")
    ledger = told.ledger("pretrain")
    assert ledger["metadata"]["name"] == f"pytorchjob-pretrain-{created['metadata']['uid'][:6]}"
    assert told.phases("pretrain")[-3:] == ["Admitted", "Running", "Succeeded"]
    order = places(grant)
    assert len(set(order.values())) == 4
    ranked = ["pretrain-master-0", *(f"pretrain-worker-{index}" for index in range(3))]
    bound = {raw["metadata"]["name"]: raw for raw in told.record.of("Pod") if raw["spec"].get("nodeName")}
    assert [pinned_to(bound[pod]) for pod in ranked] == [order[rank] for rank in range(4)]
    assert [bound[pod]["spec"]["nodeName"] for pod in ranked] == [order[rank] for rank in range(4)]
    assert [bound[pod]["metadata"]["annotations"][names.ANNOTATION_RANK] for pod in ranked] == list("0123")


async def test_one_gives_way_and_comes_back_when_its_last_pod_has_left(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        jobs = Jobs(told)
        # With Never it would fail for good if it were resumed over one of its pods.
        await jobs.submit(
            "holder", 2, restart="Never", said={"estimated-duration": "3h"}, terminate_after="2s"
        )
        await told.until_phase("holder", "Running")
        inline = operator_run.group("worker", 3, run_for="2s")
        await told.submit_inline("urgent", inline, deadlineIn="70m", estimatedDuration="1h")
        await told.until_phase("urgent", "Succeeded")
        await told.until_seen(
            lambda: told.phase("holder") == "Running" and told.status("holder")["attempt"] == 2, "it is back"
        )
        assert "Failed" not in await jobs.conditions("holder")
        assert told.condition("holder", "Suspended")["reason"] == "Resumed"
        await jobs.end("holder-master-0", "Succeeded")
        await told.until_phase("holder", "Succeeded")


@pytest.mark.parametrize("lost", ["train-worker-1", "train-master-0"])
@pytest.mark.parametrize("policy", ["OnFailure", "Always", "ExitCode"])
async def test_a_lost_pod_goes_back_to_its_node_alone(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str, policy: str, lost: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        jobs = Jobs(told)
        await jobs.submit("train", 2, restart=policy)
        await told.until_phase("train", "Running")
        before, uid = on(told, "train"), (await jobs.pods("train"))[lost]["metadata"]["uid"]
        await jobs.lose(lost)

        def back() -> bool:
            pods = {raw["metadata"]["name"]: raw for raw in told.members("train")}
            again = lost in pods and pods[lost]["metadata"]["uid"] != uid
            return again and on(told, "train") == before and pods[lost]["status"]["phase"] == "Running"

        await told.until_seen(back, "it runs again where it was")
        assert told.status("train")["attempt"] == 1
        assert told.phase("train") == "Running"
        await jobs.end("train-master-0", "Succeeded")
        await told.until_phase("train", "Succeeded")


@pytest.mark.parametrize("lost", ["train-worker-1", "train-master-0"])
async def test_with_never_a_lost_pod_ends_the_job_and_the_others_hold_their_gpus(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str, lost: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        jobs = Jobs(told)
        await jobs.submit("train", 3, restart="Never")
        await told.until_phase("train", "Running")
        await jobs.end(lost)
        await told.until_phase("train", "Failed")
        assert f"pod {lost} failed" in str(told.condition("train", "Finished"))
        await jobs.submit("small", 0, run_for="1s")
        await jobs.submit("next", 1, run_for="1s")
        await told.until_pending("next", "NoRoom", "QuotaExceeded")
        policy = {"spec": {"runPolicy": {"cleanPodPolicy": "Running"}}}
        await told.patch("train", policy, port.PYTORCH_JOBS)
        await told.until_phase("next", "Succeeded")


async def test_a_lost_node_has_the_gang_begin_again_when_its_pod_was_removed_by_force(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    settings = operator_run.IMPATIENT
    async with scene(control_plane, api, namespace, settings=settings) as told:
        jobs = Jobs(told)
        await jobs.submit("train", 2, restart="Never", terminate_after="1h")
        await told.until_phase("train", "Running")
        lost = on(told, "train")["train-worker-1"]
        down = {"metadata": {"annotations": {"sim/down": "yes"}}}
        await api.patch(port.NODES, None, lost, down)
        try:
            await told.until_seen(lambda: told.phase("train") == "Suspending", "it stops")
            # The others leave; only that of the dead node cannot.
            for pod in ("train-master-0", "train-worker-0"):
                await told.api.delete(port.PODS, namespace, pod, at_once=True)
            await told.until_seen(
                lambda: told.phase("train") == "Running" and told.status("train")["attempt"] == 2,
                "it runs again",
            )
            assert lost not in on(told, "train").values()
            assert "Failed" not in await jobs.conditions("train")
            await told.until_told("PyTorchJob", "train", "RemovedByForce")
        finally:
            await api.patch(port.NODES, None, lost, {"metadata": {"annotations": {"sim/down": None}}})
            for pod in await jobs.pods("train"):
                await api.delete(port.PODS, namespace, pod, at_once=True)


async def test_a_deadline_job_refers_to_one_that_has_no_label(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        ref = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train"}
        body = operator_run.deadline_job("mine", queue, [], jobRef=ref)
        del body["spec"]["groups"]
        await told.create(port.DEADLINE_JOBS, body)
        await told.until_pending("train", "JobNotFound")
        created = await told.create(port.PYTORCH_JOBS, pytorch_jobs.body("train", 1, run_for="2s"))
        await told.until_phase("train", "Succeeded")
        assert told.status("train")["jobUid"] == created["metadata"]["uid"]


async def test_an_elastic_one_is_rejected_by_the_field(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    body = pytorch_jobs.body("train", 1, queue=queue)
    body["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 2}
    async with scene(control_plane, api, namespace) as told:
        await told.create(port.PYTORCH_JOBS, body)
        await told.until_phase("train", "Rejected")
        assert "remove spec.elasticPolicy" in str(told.condition("train", "Finished"))
