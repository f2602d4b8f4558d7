"""PyTorchJobs give way and come back whole, and never over pods that are still leaving."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import group
from pytorch import PyTorch


@cluster.virtual
async def test_a_job_that_gives_way_comes_back_when_its_last_pod_has_left() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue(preemption={"minRunTime": "0s"})
        # With Never a resume over a pod that leaves would be the end of the job.
        jobs.create(
            "train",
            restart="Never",
            run_for="2h",
            terminate_after="3m",
            pod={"terminationGracePeriodSeconds": 300},
        )
        await jobs.until_phase("train", "Running")
        await made.rest("10m")
        made.submit("urgent", group(replicas=2, run_for="30m"), deadlineIn="1h", estimatedDuration="30m")
        await made.until(lambda: jobs.suspended("train"), "it gives way")
        await made.until_phase("urgent", "Running")
        assert jobs.pods("train") == []
        await made.until_phase("urgent", "Succeeded")
        await jobs.until_phase("train", "Running")
        assert made.status(jobs.ledger("train"))["attempt"] == 2
        await jobs.until_phase("train", "Succeeded", within="3h")
        assert not jobs.has("train", "Failed")


@cluster.virtual
async def test_a_finished_worker_is_made_again_with_all_the_others() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue(preemption={"minRunTime": "0s"})
        jobs.create("train", run_for="5m", on_master={"run-for": "2h"})
        await jobs.until_phase("train", "Running")
        await made.until(
            lambda: jobs.pod("train-worker-0")["status"]["phase"] == "Succeeded", "it is through"
        )
        made.submit("urgent", group(replicas=2, run_for="30m"), deadlineIn="40m", estimatedDuration="30m")
        await made.until_phase("urgent", "Succeeded")
        await jobs.until_phase("train", "Running")
        assert sorted(jobs.on("train")) == ["train-master-0", "train-worker-0"]
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_pause_by_hand_is_its_users_own_until_it_is_resumed() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", run_for="1h", terminate_after="1m")
        await jobs.until_phase("train", "Running")
        jobs.suspend("train")
        await jobs.until_phase("train", "Pending")
        await made.rest("10m")
        assert made.code(jobs.ledger("train")) == "Inactive"
        assert "spec.runPolicy.suspend: false" in made.status(jobs.ledger("train"))["pending"]["message"]
        jobs.suspend("train", value=False)
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_more_workers_while_it_runs_have_it_queued_again_in_its_new_shape() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", workers=1, run_for="1h")
        await jobs.until_phase("train", "Running")
        jobs.patch("train", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}})
        await made.until(lambda: made.status(jobs.ledger("train")).get("attempt") == 2, "admitted again")
        await jobs.until_phase("train", "Running")
        assert len(made.placement(jobs.ledger("train"))) == 4
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_deadline_job_may_refer_to_one_that_is_not_labelled() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.refer("mine", "train", deadlineIn="4h", estimatedDuration="10m")
        await made.until(lambda: made.code("mine") == "JobNotFound", "it is said that the job is missing")
        assert "PyTorchJob default/train does not exist" in made.status("mine")["pending"]["message"]
        jobs.create("train", queue=None, run_for="10m")
        await made.until_phase("mine", "Running")
        assert made.status("mine")["jobUid"] == jobs.job("train")["metadata"]["uid"]
        await made.until_phase("mine", "Succeeded")
        assert len(jobs.ledgers("train")) == 1


@cluster.virtual
async def test_a_job_and_a_pytorchjob_of_one_name_are_two() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = PyTorch(made)
        made.queue()
        others = Existing(made)
        others.create("train", parallelism=1, completions=1, run_for="20m")
        jobs.create("train", run_for="20m")
        await jobs.until_phase("train", "Running")
        await others.until_phase("train", "Running")
        assert len({*jobs.bound("train"), *others.bound("train")}) == 3
        await jobs.until_phase("train", "Succeeded")
        await others.until_phase("train", "Succeeded")


@cluster.virtual
async def test_one_that_runs_is_adopted_where_it_runs() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = PyTorch(made)
        made.queue()
        jobs.create("train", queue=None, suspend=None, said={"adopt": "true"}, run_for="1h")
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs")
        before = jobs.on("train")
        jobs.patch("train", {"metadata": {"labels": {"lstqueue.dev/queue": cluster.QUEUE}}})
        await jobs.until_phase("train", "Running")
        assert jobs.on("train") == before
        places = made.placement(jobs.ledger("train"))
        assert places == {0: before["train-master-0"], 1: before["train-worker-0"]}
        await made.rest("5m")
        await jobs.until_phase("train", "Succeeded", within="2h")
