"""Jobs that are paused, by users, by hand or with their queue: they make room, and come back when told."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.kube import port


@cluster.virtual
async def test_a_paused_job_makes_room_and_goes_on_when_it_is_resumed() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="2h"), estimatedDuration="2h", checkpoint={"onSuspend": True})
        await made.until_phase("job", "Running")
        await made.rest("30m")
        made.edit("job", active=False)
        await made.until_phase("job", "Pending")
        assert made.pods("job") == []
        assert made.condition("job", "Suspended")["reason"] == "Inactive"
        await made.until(lambda: made.code("job") == "Inactive", "it is told that it is paused")
        assert "spec.active" in made.status("job")["pending"]["message"]
        assert made.status("job")["saved"].startswith("30m")
        made.submit("next", group(run_for="1h"))
        await made.until_phase("next", "Succeeded", within="2h")
        await made.rest("1d")
        assert made.phase("job") == "Pending"
        made.edit("job", active=True)
        await made.until_phase("job", "Running")
        assert made.status("job").get("restarts", 0) == 0
        await made.until_phase("job", "Succeeded", within="3h")


@cluster.virtual
async def test_a_job_may_be_created_paused() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="1h"), active=False)
        await made.until(lambda: made.code("job") == "Inactive", "it is told")
        await made.rest("2h")
        assert made.status("job").get("attempt", 0) == 0
        made.edit("job", active=True)
        await made.until_phase("job", "Succeeded", within="2h")


@cluster.virtual
async def test_a_pause_while_it_starts_costs_no_failed_start() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group("worker", 2, gpus=4, start_after="10m", run_for="1h"))
        await made.until_phase("job", "Admitted")
        await made.rest("3m")
        made.edit("job", active=False)
        await made.until_phase("job", "Pending")
        assert "backoff" not in made.status("job")
        made.edit("job", active=True)
        await made.until_phase("job", "Succeeded", within="3h")
        assert made.status("job").get("restarts", 0) == 0


@cluster.virtual
@pytest.mark.parametrize("limit", [0, 3])
async def test_jobs_that_somebody_suspends_by_hand_pause_the_gang_without_a_failure(limit: int) -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        gang = (group("leader", run_for="2h"), group("worker", run_for="2h"))
        made.submit("gang", *gang, backoffLimit=limit)
        await made.until_phase("gang", "Running")
        made.patch(port.JOBS, "gang-worker-0", {"spec": {"suspend": True}})
        await made.until_phase("gang", "Pending")
        assert made.job("gang")["spec"]["active"] is False
        await made.until(lambda: made.code("gang") == "Inactive", "it is told that it is paused")
        assert made.pods("gang") == []
        await made.rest("3h")
        assert made.phase("gang") == "Pending"
        made.edit("gang", active=True)
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang").get("restarts", 0) == 0


@cluster.virtual
async def test_a_paused_gang_of_which_a_member_was_through_begins_again_whole() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("a", run_for="10m"), group("b", run_for="2h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        await made.rest("30m")
        made.edit("gang", active=False)
        await made.until_phase("gang", "Pending")
        made.edit("gang", active=True)
        await made.until_phase("gang", "Running")
        assert made.children("gang") == ["gang-a-0", "gang-a-1", "gang-b-1"]
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_a_drained_queue_suspends_everybody_and_lets_them_back_afterwards() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("one", group(run_for="2h"))
        made.submit("two", group(run_for="2h"))
        await made.until_all("Running", "one", "two")
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"stopPolicy": "HoldAndDrain"}})
        await made.until_all("Pending", "one", "two")
        assert made.condition("one", "Suspended")["reason"] == "QueueDrained"
        await made.until(lambda: made.code("one") == "QueueHeld", "it is told")
        assert made.pods() == []
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"stopPolicy": "None"}})
        await made.until_all("Succeeded", "one", "two", within="4h")
        assert made.status("one").get("restarts", 0) == 0


@cluster.virtual
async def test_a_held_queue_lets_go_on_what_runs() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("one", group(run_for="1h"))
        await made.until_phase("one", "Running")
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"stopPolicy": "Hold"}})
        made.submit("two", group(run_for="1h"))
        await made.until(lambda: made.code("two") == "QueueHeld", "it is told")
        await made.until_phase("one", "Succeeded", within="2h")
        await made.rest("1h")
        assert made.phase("two") == "Pending"
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"stopPolicy": None}})
        await made.until_phase("two", "Succeeded", within="2h")
