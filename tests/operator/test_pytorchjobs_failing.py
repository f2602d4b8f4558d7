"""What each restart policy makes of a lost worker, a lost master and a lost node."""

from __future__ import annotations

import dataclasses

import cluster
import pytest
from pytorch import PyTorch

from lstqueue.kube import port

RESTARTING = (
    "OnFailure",
    *(pytest.param(policy, marks=pytest.mark.slow) for policy in ("Always", "ExitCode")),
)


async def running(made: cluster.Cluster, **given: object) -> PyTorch:
    """A job of a master and two workers that runs."""
    jobs = PyTorch(made)
    made.queue()
    jobs.create("train", workers=2, run_for="2h", **given)
    await jobs.until_phase("train", "Running")
    return jobs


@pytest.mark.parametrize("lost", ["train-worker-1", "train-master-0"])
@pytest.mark.parametrize("policy", RESTARTING)
def test_a_lost_pod_is_replaced_alone_where_it_was(policy: str, lost: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=4) as made:
            jobs = await running(made, restart=policy)
            before, pod = jobs.on("train"), jobs.pod(lost)
            made.delete(lost, port.PODS)
            await made.until(
                lambda: (
                    jobs.on("train") == before
                    and jobs.pod(lost)["metadata"]["uid"] != pod["metadata"]["uid"]
                    and jobs.pod(lost)["status"]["phase"] == "Running"
                ),
                "it runs again where it was",
            )
            assert jobs.phase("train") == "Running"
            assert made.status(jobs.ledger("train"))["attempt"] == 1
            await jobs.until_phase("train", "Succeeded", within="5h")

    scenario()


@pytest.mark.parametrize("lost", ["train-worker-1", "train-master-0"])
def test_with_never_a_lost_pod_ends_the_job_and_the_others_are_charged_until_they_end(lost: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=3) as made:
            jobs = await running(made, restart="Never")
            made.end_pod(jobs.pod(lost))
            await jobs.until_phase("train", "Failed", within="1m")
            assert f"pod {lost} failed" in str(made.condition(jobs.ledger("train"), "Finished"))
            jobs.create("next", workers=2, run_for="10m")
            jobs.create("small", workers=0, run_for="10m")
            await jobs.until_phase("small", "Succeeded")
            assert (jobs.phase("next"), made.code(jobs.ledger("next"))) == ("Pending", "NoRoom")
            assert len(jobs.on("train")) == 2
            await jobs.until_phase("next", "Succeeded", within="3h")

    scenario()


@pytest.mark.parametrize(("code", "end"), [("1", "Failed"), ("137", "Succeeded")])
def test_with_exit_code_the_code_decides_whether_a_failed_worker_ends_the_job(code: str, end: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2) as made:
            jobs = PyTorch(made)
            made.queue()
            jobs.create(
                "train",
                restart="ExitCode",
                fail_after="10m",
                exit_code=code,
                on_master={"fail-after": "1000h", "run-for": "1h"},
            )
            await jobs.until_phase("train", end, within="2h")

    scenario()


@pytest.mark.parametrize("policy", ["Never", *RESTARTING])
def test_a_lost_node_has_the_whole_gang_begin_again_elsewhere(policy: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=4, reaction="15m", node_leases=True) as made:
            jobs = await running(made, restart=policy)
            lost = jobs.on("train")["train-worker-1"]
            made.world.fail_node(lost, how="silent")
            await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
            await made.rest("4m")
            assert jobs.phase("train") == "Suspending"
            await jobs.until_phase("train", "Running", within="20m")
            assert lost not in jobs.on("train").values()
            assert made.status(jobs.ledger("train"))["attempt"] == 2
            assert not jobs.has("train", "Failed")
            await jobs.until_phase("train", "Succeeded", within="5h")

    scenario()


@cluster.virtual
async def test_without_a_heartbeat_to_go_by_nothing_is_removed_by_force() -> None:
    async with cluster.run(nodes=4, reaction="1h") as made:
        jobs = await running(made)
        lost = jobs.on("train")["train-worker-1"]
        made.world.fail_node(lost, how="silent")
        await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
        await made.rest("30m")
        assert jobs.phase("train") == "Suspending"
        assert list(jobs.on("train")) == ["train-worker-1"]
        made.world.heal_node(lost)
        await jobs.until_phase("train", "Running", within="20m")


@cluster.virtual
async def test_a_node_that_is_not_ready_and_still_renews_its_lease_keeps_its_pods() -> None:
    async with cluster.run(nodes=4, reaction="1h", node_leases=True) as made:
        jobs = await running(made)
        lost = jobs.on("train")["train-worker-1"]
        made.world.fail_node(lost)
        await made.until(lambda: jobs.suspended("train"), "it stops", within="2m")
        await made.rest("30m")
        assert list(jobs.on("train")) == ["train-worker-1"]
        assert "RemovedByForce" not in jobs.events("train")
        made.world.heal_node(lost)
        await jobs.until_phase("train", "Running", within="20m")


@cluster.virtual
async def test_it_can_be_switched_off() -> None:
    settings = dataclasses.replace(cluster.SETTINGS, force_delete=False)
    async with cluster.run(nodes=4, reaction="1h", node_leases=True, settings=settings) as made:
        jobs = await running(made)
        lost = jobs.on("train")["train-worker-1"]
        made.world.fail_node(lost, how="silent")
        await made.rest("30m")
        assert list(jobs.on("train")) == ["train-worker-1"]
        made.world.heal_node(lost)
        await jobs.until_phase("train", "Running", within="20m")


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_failed_job_has_left_running_is_told_and_ended_where_that_was_asked_for(ended: bool) -> None:
    @cluster.virtual
    async def scenario() -> None:
        settings = dataclasses.replace(cluster.SETTINGS, end_left_pods=ended)
        async with cluster.run(nodes=3, settings=settings) as made:
            jobs = await running(made, restart="Never")
            made.end_pod(jobs.pod("train-worker-1"))
            await jobs.until_phase("train", "Failed", within="1m")
            words = await jobs.until_told("train", "PodsLeftRunning")
            assert "train-master-0, train-worker-0" in words
            await made.rest("1m")
            assert bool(jobs.on("train")) is not ended
            jobs.patch("train", {"spec": {"runPolicy": {"cleanPodPolicy": "Running"}}})
            await made.until(lambda: not jobs.on("train"), "they end", within="1m")
            assert jobs.pod("train-worker-1")["status"]["phase"] == "Failed"

    scenario()


@cluster.virtual
async def test_a_job_waits_for_the_pods_of_another_that_had_its_name() -> None:
    async with cluster.run(nodes=5) as made:
        jobs = await running(made, restart="Never", terminate_after="20m")
        made.delete("train", port.PYTORCH_JOBS)
        await made.rest("1m")
        jobs.create("train", workers=1, restart="Never", run_for="10m")
        await made.rest("10m")
        assert jobs.suspended("train")
        assert jobs.phase("train") == "Admitted"
        await jobs.until_phase("train", "Succeeded")
        assert made.status(jobs.ledger("train"))["attempt"] == 1


@cluster.virtual
async def test_a_pod_that_is_still_gated_when_its_job_is_over_goes() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = await running(made, restart="OnFailure")
        await made.kill()
        made.delete("train-worker-1", port.PODS)
        await made.until(lambda: jobs.on("train").get("train-worker-1") == "", "its replacement is gated")
        made.end_pod(jobs.pod("train-master-0"), "Succeeded")
        await made.until(lambda: jobs.over("train") == "Succeeded", "it is over")
        await made.start()
        await jobs.until_phase("train", "Succeeded")
        await made.until(lambda: list(jobs.on("train")) == ["train-worker-0"], "the gated one goes")


@cluster.virtual
async def test_one_that_fails_while_it_is_suspended_is_over_though_pods_of_it_run() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = await running(made, restart="Never")
        await made.kill()
        made.end_pod(jobs.pod("train-worker-1"))
        await made.until(lambda: jobs.over("train") == "Failed", "it has failed")
        meddled = {"status": {"phase": "Suspending", "admission": None}}
        made.store.patch(
            port.DEADLINE_JOBS, cluster.NAMESPACE, jobs.ledger("train"), meddled, subresource="status"
        )
        await made.start()
        await jobs.until_phase("train", "Failed", within="5m")
        assert len(jobs.on("train")) == 2
