"""Pods are removed by force from dead nodes for a PyTorchJob that waits for them, and in their time."""

from __future__ import annotations

import cluster
import pytest
from pytorch import PyTorch

from lstqueue.kube import port


async def running(made: cluster.Cluster, *, workers: int = 2, **more: object) -> PyTorch:
    jobs = PyTorch(made)
    made.queue()
    jobs.create("train", workers=workers, run_for="2h", **more)
    await jobs.until_phase("train", "Running")
    return jobs


@pytest.mark.parametrize("mode", ["Enforce", "Observe"])
def test_a_pod_of_somebody_else_that_has_a_name_we_need_stays(mode: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=4, reaction="1h", node_leases=True) as made:
            jobs = PyTorch(made)
            made.queue(mode=mode)
            made.foreign_pod("train-worker-0", "node-0003")  # as a StatefulSet train-worker would make it
            await made.rest("1m")
            jobs.create("train", workers=1, run_for="2h")
            await made.rest("1m")
            made.world.fail_node("node-0003", how="silent")
            await made.rest("2m")
            made.delete("train-worker-0", port.PODS)
            await made.rest("20m")
            there = [raw for raw in made.store.list(port.PODS) if raw["metadata"]["name"] == "train-worker-0"]
            assert [raw["metadata"].get("ownerReferences") for raw in there] == [None]
            assert "RemovedByForce" not in jobs.events("train")
            made.world.heal_node("node-0003")
            await made.rest("5m")

    scenario()


@cluster.virtual
async def test_a_pod_that_its_job_has_no_place_for_any_more_does_not_keep_it_for_ever() -> None:
    async with cluster.run(nodes=4, reaction="1h", node_leases=True) as made:
        jobs = await running(made)
        made.world.fail_node(jobs.on("train")["train-worker-1"], how="silent")
        await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
        jobs.patch("train", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}})
        await jobs.until_phase("train", "Running", within="20m")
        assert sorted(jobs.on("train")) == ["train-master-0", "train-worker-0"]


@cluster.virtual
async def test_a_pod_is_given_the_time_to_leave_that_it_was_promised() -> None:
    async with cluster.run(nodes=4, reaction="2h", node_leases=True) as made:
        jobs = await running(made, pod={"terminationGracePeriodSeconds": 3600})
        made.world.fail_node(jobs.on("train")["train-worker-1"], how="silent")
        await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
        await made.rest("50m")
        assert list(jobs.on("train")) == ["train-worker-1"]
        await jobs.until_phase("train", "Running", within="20m")


@cluster.virtual
async def test_nothing_is_removed_while_the_way_to_many_nodes_is_broken() -> None:
    async with cluster.run(nodes=6, reaction="2h", node_leases=True) as made:
        jobs = await running(made)
        lost = sorted(jobs.on("train").values())
        for node in lost:
            made.world.fail_node(node, how="silent")
        await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
        await made.rest("30m")
        assert len(jobs.on("train")) == 3
        for node in lost[:2]:
            made.world.heal_node(node)
        await jobs.until_phase("train", "Running", within="20m")
