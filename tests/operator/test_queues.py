"""Queues: quota pool by pool, and what becomes of jobs whose queue is missing, late, gone or broken."""

from __future__ import annotations

import cluster
import manifests
from manifests import group, pool

from lstqueue.kube import port


def labelled(kind: str) -> cluster.Object:
    return {"nodeSelector": {"kind": kind}}


def queue_status(made: cluster.Cluster, name: str = cluster.QUEUE) -> cluster.Object:
    return dict(made.store.get(port.GPU_QUEUES, None, name).get("status") or {})


@cluster.virtual
async def test_quota_holds_though_the_nodes_have_room() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue(gpus=16)
        made.submit("first", group("worker", 1, run_for="30m"), estimatedDuration="30m")
        await made.until_phase("first", "Running")
        made.submit("second", group("worker", 2, run_for="30m"), estimatedDuration="30m")
        await made.until_phase("second", "Pending")
        assert made.code("second") == "QuotaExceeded"
        made.submit("giant", group("worker", 3))
        await made.until_phase("giant", "Pending")
        assert made.code("giant") == "QuotaTooSmall"
        await made.until_all("Succeeded", "first", "second", within="2h")
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"pools": [pool("all", gpus=24)]}})
        await made.until_phase("giant", "Running", within="1m")


@cluster.virtual
async def test_each_pool_has_its_own_quota_and_groups_may_lie_in_different_ones() -> None:
    async with cluster.run(nodes=0) as made:
        fast = made.world.add_nodes(2, labels={"kind": "fast"})
        slow = made.world.add_nodes(4, labels={"kind": "slow"})
        pools = [pool("fast", gpus=16, **labelled("fast")), pool("slow", gpus=16, **labelled("slow"))]
        made.queue(pools=pools)
        made.submit("first", group("worker", 2, run_for="1h"), estimatedDuration="1h")
        await made.until_phase("first", "Running")
        assert set(made.placement("first").values()) == set(fast)
        made.submit("second", group("worker", 2, run_for="1h"), estimatedDuration="1h")
        await made.until_phase("second", "Running")
        assert set(made.placement("second").values()) < set(slow)
        made.submit("third", group("worker", 1, run_for="1h"), estimatedDuration="1h")
        await made.until_phase("third", "Pending")
        assert made.code("third") == "QuotaExceeded"
        await made.rest("1m")
        used = {row["pool"]: row["used"] for row in queue_status(made)["usage"]}
        assert used == {"fast": "16", "slow": "16"}
        await made.until_all("Succeeded", "first", "second", "third", within="3h")


@cluster.virtual
async def test_a_group_that_selects_the_nodes_of_one_pool_is_charged_there() -> None:
    async with cluster.run(nodes=0) as made:
        made.world.add_nodes(1, labels={"kind": "fast"})
        (slow,) = made.world.add_nodes(1, labels={"kind": "slow"})
        made.queue(pools=[pool("fast", **labelled("fast")), pool("slow", **labelled("slow"))])
        wanted = group("worker", pod={"nodeSelector": {"kind": "slow"}}, run_for="10m")
        made.submit("choosy", group("leader", run_for="10m"), wanted)
        await made.until_phase("choosy", "Running")
        assert made.placement("choosy")[1] == slow
        charged = {part["name"]: part["pool"] for part in made.status("choosy")["admission"]["groups"]}
        assert charged == {"leader": "fast", "worker": "slow"}
        await made.until_phase("choosy", "Succeeded")


@cluster.virtual
async def test_a_resource_that_no_pool_lists_is_refused_until_the_queue_lists_it() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(pools=[pool("cpus", resource="cpu", gpus=100)])
        made.submit("job", group(run_for="10m"))
        await made.until_phase("job", "Pending")
        assert made.code("job") == "ResourceNotInQueue"
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"pools": [pool("all")]}})
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_a_job_waits_for_a_queue_that_comes_later() -> None:
    async with cluster.run(nodes=1) as made:
        made.submit("early", group(run_for="10m"), deadlineIn="9h", estimatedDuration="10m")
        await made.until_phase("early", "Pending")
        assert made.code("early") == "QueueNotFound"
        assert cluster.QUEUE in made.status("early")["pending"]["message"]
        await made.rest("3h")
        made.queue()
        await made.until_phase("early", "Running", within="1m")
        await made.until_phase("early", "Succeeded")


@cluster.virtual
async def test_a_waiting_job_may_change_its_queue() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue("other")
        made.submit("job", group(run_for="10m"), queue="missing")
        await made.until_phase("job", "Pending")
        made.edit("job", queue="other")
        await made.until_phase("job", "Succeeded")
        assert made.status("job")["runs"][-1]["reason"] == "Succeeded"


@cluster.virtual
async def test_a_running_gang_survives_the_end_of_its_queue_and_others_wait() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=16)
        made.submit("runs", group(run_for="1h"), estimatedDuration="1h")
        await made.until_phase("runs", "Running")
        made.delete(cluster.QUEUE, port.GPU_QUEUES)
        made.submit("waits", group(run_for="10m"), estimatedDuration="10m")
        await made.until_phase("waits", "Pending")
        assert made.code("waits") == "QueueNotFound"
        await made.rest("10m")
        made.queue(gpus=8)
        await made.until(lambda: made.code("waits") == "QuotaExceeded", "what runs counts in the new queue")
        await made.until_all("Succeeded", "runs", "waits", within="2h")


@cluster.virtual
async def test_lowering_the_quota_below_what_runs_evicts_nobody() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=16)
        made.submit("first", group(run_for="30m"), estimatedDuration="30m")
        made.submit("second", group(run_for="1h"), estimatedDuration="1h")
        await made.until_all("Running", "first", "second")
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"pools": [pool("all", gpus=8)]}})
        made.submit("third", group(run_for="10m"), estimatedDuration="10m")
        await made.until_phase("first", "Succeeded")
        await made.rest("1m")
        assert (made.phase("second"), made.phase("third")) == ("Running", "Pending")
        await made.until_all("Succeeded", "second", "third", within="2h")


@cluster.virtual
async def test_a_queue_that_cannot_be_read_admits_nothing_until_it_is_mended() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()

        made.smuggle(port.GPU_QUEUES, cluster.QUEUE, {"order": "lottery"})
        made.submit("job", group(run_for="10m"))
        await made.until_phase("job", "Pending")
        await made.rest("1h")
        assert made.phase("job") == "Pending"
        assert made.code("job") == "QueueInvalid"
        assert "spec.order: 'lottery'" in made.status("job")["pending"]["message"]
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"order": "edf"}})
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_the_status_of_a_queue_counts_what_waits_runs_and_was_met() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=16)
        made.submit("met", group(run_for="20m"), deadlineIn="1h", estimatedDuration="20m")
        made.submit("missed", group(run_for="2h"), deadlineIn="1h", estimatedDuration="20m")
        made.submit("waits", group("worker", 2, run_for="10m"), estimatedDuration="10m")
        await made.until_all("Running", "met", "missed")
        await made.rest("1m")
        seen = queue_status(made)
        assert (seen["pending"], seen["admitted"], seen["running"]) == (1, 0, 2)
        assert seen["usage"] == [{"pool": "all", "name": manifests.GPU, "used": "16", "nominal": "16"}]
        await made.until_all("Succeeded", "met", "missed", "waits", within="4h")
        await made.rest("1m")
        seen = queue_status(made)
        assert (seen["met"], seen["missed"], seen["pending"], seen["running"]) == (1, 1, 0, 0)
        assert seen["observedGeneration"] == 1
