"""A job at its last moment has others suspended: they lose no more than they must, and come back."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.api import durations, times
from lstqueue.kube import port

SAVES = {"interval": "30m", "onSuspend": True, "restartOverhead": "2m"}


async def displaced(made: cluster.Cluster, *, within: str = "3h", **holder: object) -> None:
    """A holder of the only node has run for an hour when an urgent job comes and takes its room."""
    made.submit("holder", group(run_for="3h"), estimatedDuration="3h", **holder)
    await made.until_phase("holder", "Running")
    await made.rest("1h")
    made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
    await made.until_phase("urgent", "Running", within=within)


@cluster.virtual
async def test_an_urgent_job_takes_the_room_of_one_without_a_deadline_and_meets_its_own() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        seen: list[str] = []
        made.store.subscribe(lambda _: seen.append(made.phase("urgent")))
        await displaced(made)
        assert "Claiming" in seen
        holder = made.status("holder")
        assert holder["phase"] == "Pending"
        assert made.condition("holder", "Suspended")["reason"] == "Preempted"
        assert "default/urgent" in made.condition("holder", "Suspended")["message"]
        assert holder["displacedBy"] == [made.job("urgent")["metadata"]["uid"]]
        await made.until_phase("urgent", "Succeeded", within="2h")
        assert not made.holds("urgent", "DeadlineMissed")
        await made.until_phase("holder", "Succeeded", within="6h")
        assert made.status("holder").get("restarts", 0) == 0


@cluster.virtual
async def test_what_a_victim_saved_and_what_it_lost_is_told_and_its_children_are_kept() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await displaced(made, checkpoint={"interval": "25m"})
        status = made.status("holder")
        (run,) = status["runs"]
        ran = times.parse(run["end"]) - times.parse(run["start"])
        assert run["reason"] == "Preempted"
        assert status["saved"] == "50m"
        assert durations.parse(run["lost"]) == pytest.approx(ran - durations.parse("50m"), abs=1000)
        assert "wasted" not in status
        assert made.children("holder") == ["holder-worker-0"]
        assert made.store.get(port.JOBS, "default", "holder-worker-0")["spec"]["suspend"] is True
        await made.until_phase("holder", "Running", within="6h")
        assert made.status("holder")["attempt"] == 2
        assert made.children("holder") == ["holder-worker-0"]
        await made.until_phase("holder", "Succeeded", within="6h")


@cluster.virtual
async def test_a_victim_that_saves_when_it_is_told_to_leave_loses_nothing() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await displaced(made, checkpoint=SAVES)
        (run,) = made.status("holder")["runs"]
        ran = times.parse(run["end"]) - times.parse(run["start"])
        assert "lost" not in run
        assert durations.parse(made.status("holder")["saved"]) == pytest.approx(ran, abs=1000)
        assert "ms" not in made.status("holder")["saved"]


@cluster.virtual
async def test_a_victim_that_saves_nothing_is_told_how_often_that_was() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await displaced(made)
        assert made.status("holder")["wasted"] == 1
        assert "saved" not in made.status("holder")


@cluster.virtual
async def test_the_room_stays_the_claimers_while_its_victim_takes_long_to_leave() -> None:
    async with cluster.run(nodes=1, reaction="5m") as made:
        made.queue()
        slow = group(run_for="3h", terminate_after="90s", pod={"terminationGracePeriodSeconds": 120})
        made.submit("holder", slow, estimatedDuration="3h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("holder", "Suspending", within="1h")
        assert made.phase("urgent") == "Claiming"
        assert made.status("holder")["suspension"]["for"] == made.job("urgent")["metadata"]["uid"]
        # Of the same size, and with as little time: it may not have what is being freed.
        made.submit("thief", group(gpus=8, run_for="1m"), importance=0)
        await made.until_phase("urgent", "Running")
        assert made.phase("thief") == "Pending"
        await made.until_phase("thief", "Succeeded", within="9h")


@cluster.virtual
async def test_only_as_many_are_suspended_as_are_needed() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        for number in range(3):
            made.submit(f"holder-{number}", group(run_for="5h"), estimatedDuration="5h")
        await made.until_all("Running", "holder-0", "holder-1", "holder-2")
        await made.rest("1h")
        made.submit("urgent", group("worker", 2, run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("urgent", "Running")
        phases = sorted(made.phase(f"holder-{number}") for number in range(3))
        assert phases == ["Pending", "Pending", "Running"]
        await made.until_phase("urgent", "Succeeded", within="2h")
        assert not made.holds("urgent", "DeadlineMissed")


@cluster.virtual
@pytest.mark.parametrize(
    "holder",
    [{"preemptible": False}, {"minRunTime": "5h"}, {"deadlineIn": "4h10m"}],
    ids=["not-preemptible", "min-run", "would-miss-its-deadline"],
)
async def test_a_protected_job_is_left_alone(holder: dict[str, object]) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(overload={"shedding": False})
        made.submit("holder", group(run_for="4h"), estimatedDuration="4h", **holder)
        await made.until_phase("holder", "Running")
        made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("holder", "Succeeded", within="5h")
        assert made.status("holder")["attempt"] == 1
        await made.until_phase("urgent", "Succeeded", within="2h")


@cluster.virtual
async def test_a_gang_of_which_a_member_is_through_is_left_alone() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("holder", group("a", run_for="10m"), group("b", run_for="4h"), estimatedDuration="4h")
        await made.until_phase("holder", "Running")
        await made.rest("30m")
        made.submit("urgent", group("worker", 2, run_for="1h"), deadlineIn="70m", estimatedDuration="1h")
        await made.until_phase("holder", "Succeeded", within="5h")
        assert made.status("holder")["attempt"] == 1


@cluster.virtual
async def test_a_queue_may_forbid_it() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(preemption={"withinQueue": "Never"})
        made.submit("holder", group(run_for="3h"), estimatedDuration="3h")
        await made.until_phase("holder", "Running")
        made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("holder", "Succeeded", within="5h")
        assert made.status("holder")["attempt"] == 1


@cluster.virtual
async def test_a_job_is_suspended_no_more_than_its_cap_allows_in_a_day() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(preemption={"maxPerJobPerDay": 2, "minRunTime": "5m"})
        made.submit("holder", group(run_for="20h"), estimatedDuration="20h", checkpoint=SAVES)
        for number in range(3):
            await made.until_phase("holder", "Running", within="3h")
            await made.rest("40m")
            name = f"urgent-{number}"
            made.submit(name, group(run_for="10m"), deadlineIn="40m", estimatedDuration="10m")
            if number < 2:
                await made.until_phase(name, "Succeeded")
        await made.rest("3h")
        assert len(made.status("holder")["runs"]) == 2
        assert made.phase("holder") == "Running"
        assert made.phase("urgent-2") == "Pending"
