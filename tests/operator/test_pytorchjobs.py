"""PyTorchJobs wait, run where they were admitted, and end, by nothing but a label."""

from __future__ import annotations

import cluster
from pytorch import PyTorch

from lstqueue.api import names
from lstqueue.kube import port


@cluster.virtual
async def test_master_and_workers_are_one_gang_that_runs_on_its_admission_and_ends_with_its_job() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=3, said={"deadline-in": "6h"}, run_for="30m")
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        assert ledger.startswith("pytorchjob-train-")
        assert made.status(ledger)["gang"] == "1×8 nvidia.com/gpu + 3×8 nvidia.com/gpu"
        places = made.placement(ledger)
        assert len(set(places.values())) == 4
        ranked = ["train-master-0", *(f"train-worker-{index}" for index in range(3))]
        assert jobs.on("train") == {pod: places[rank] for rank, pod in enumerate(ranked)}
        ranks = {raw["metadata"]["name"]: raw["metadata"]["annotations"] for raw in jobs.pods("train")}
        assert [ranks[pod][names.ANNOTATION_RANK] for pod in ranked] == ["0", "1", "2", "3"]
        await jobs.until_phase("train", "Succeeded")
        assert jobs.over("train") == "Succeeded"
        assert "Admitted" in jobs.events("train")


@cluster.virtual
async def test_a_gang_of_which_a_pod_has_no_room_waits_suspended_without_any_pod() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("first", workers=1, run_for="1h")
        await jobs.until_phase("first", "Running")
        jobs.create("second", workers=1, run_for="10m")
        await made.rest("10m")
        assert (jobs.phase("second"), made.code(jobs.ledger("second"))) == ("Pending", "NoRoom")
        assert jobs.suspended("second")
        assert jobs.pods("second") == []
        await jobs.until_phase("first", "Succeeded")
        await jobs.until_phase("second", "Running", within="1m")
        await jobs.until_phase("second", "Succeeded")


@cluster.virtual
async def test_without_a_number_of_replicas_there_is_one() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=None, run_for="10m")
        await jobs.until_phase("train", "Running")
        assert len(made.placement(jobs.ledger("train"))) == 2
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_workers_without_a_master_are_a_gang_too() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=3, master=False, run_for="10m")
        await jobs.until_phase("train", "Running")
        assert len(made.placement(jobs.ledger("train"))) == 3
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_one_that_is_created_running_is_suspended_on_sight_and_queued() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", suspend=None, run_for="10m")
        await jobs.until_told("train", "SuspendedOnSight")
        await made.until(lambda: jobs.suspended("train") and not jobs.pods("train"), "it stops")
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_workers_that_go_on_under_a_finished_master_are_charged_until_they_end() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=1, run_for="2h", on_master={"run-for": "1h"})
        await jobs.until_phase("train", "Succeeded", within="2h")
        jobs.create("next", workers=1, run_for="10m")
        jobs.create("small", workers=0, run_for="10m")
        await jobs.until_phase("small", "Succeeded")
        assert list(jobs.on("train")) == ["train-worker-0"]
        assert made.code(jobs.ledger("next")) == "NoRoom"
        await jobs.until_phase("next", "Succeeded", within="2h")


@cluster.virtual
async def test_a_worker_that_is_through_before_its_master_gives_its_gpus_to_others() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=1, run_for="20m", on_master={"run-for": "2h"})
        await jobs.until_phase("train", "Running")
        await made.until(
            lambda: jobs.pod("train-worker-0")["status"]["phase"] == "Succeeded", "it is through"
        )
        jobs.create("small", workers=0, run_for="10m")
        await jobs.until_phase("small", "Succeeded", within="30m")
        assert jobs.phase("train") == "Running"
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_an_elastic_job_is_rejected_by_the_field_and_left_as_it_is() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}}, run_for="10m")
        await jobs.until_phase("train", "Rejected")
        words = await jobs.until_told("train", "UnsupportedConstraint")
        assert "spec.elasticPolicy" in words
        assert "remove spec.elasticPolicy" in words
        assert jobs.suspended("train")


@cluster.virtual
async def test_the_job_of_a_trial_is_the_unit() -> None:
    trial = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "name": "t-1", "uid": "trial-1"}
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", owner={**trial, "controller": True}, run_for="10m")
        await jobs.until_phase("train", "Running")
        job = made.store.get(port.DEADLINE_JOBS, cluster.NAMESPACE, jobs.ledger("train"))
        assert job["spec"]["jobRef"]["kind"] == "PyTorchJob"
        made.store.patch(
            port.PYTORCH_JOBS, cluster.NAMESPACE, "train", {"metadata": {"ownerReferences": None}}
        )
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_workers_of_which_there_are_none_are_no_part_of_the_gang() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = PyTorch(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", workers=1, run_for="10m")
        jobs.patch("train", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}}})
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Running")
        assert list(jobs.on("train")) == ["train-master-0"]
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_one_that_asks_for_billions_of_workers_is_told_and_keeps_nobody_waiting() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("huge", workers=2**31 - 1)
        jobs.create("train", workers=1, run_for="10m")
        await made.until(lambda: made.code(jobs.ledger("huge")) == "TooManyPods", "it is told", within="1m")
        await jobs.until_phase("train", "Succeeded")
