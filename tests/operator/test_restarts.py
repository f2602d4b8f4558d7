"""The operator is killed at any write and started again: nothing is admitted twice, moved or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import cluster
import pytest
from manifests import group

from lstqueue.kube import port


def start(made: cluster.Cluster) -> None:
    made.submit("gang", group("leader", run_for="10m"), group("worker", 2, gpus=4, run_for="10m"))


def fail(made: cluster.Cluster) -> None:
    made.submit("gang", group("leader", run_for="1h"), group("worker", fail_after="5m"), backoffLimit=1)


async def run_to(made: cluster.Cluster, phase: str) -> None:
    await made.until_phase("gang", phase, within="6h")
    await made.until(lambda: not made.staying(), "all pods end")
    await made.rest("1m")


async def writes_of(scenario: Callable[[cluster.Cluster], None], phase: str, ready: str) -> int:
    async with cluster.run(nodes=2) as made:
        made.queue(gangReadyTimeout=ready)
        scenario(made)
        await run_to(made, phase)
        return made.calls.about_gangs()


SCENARIOS = {
    "start": (start, "Succeeded", "30m", 1),
    "fail": (fail, "Failed", "30m", 1),
}


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_each_write_and_started_again_at_once(name: str, before: bool) -> None:
    scenario, phase, ready, attempts = SCENARIOS[name]
    points = cluster.alone(lambda: writes_of(scenario, phase, ready))
    assert points > 8
    for point in range(1, points + 1):

        async def killed(point: int = point) -> None:
            async with cluster.run(nodes=2, slack=20) as made:
                made.queue(gangReadyTimeout=ready)
                at = made.kill_at(point, before=before)
                scenario(made)
                await asyncio.wait_for(at.wait(), cluster.seconds("3h"))
                await made.kill()
                places = made.placement("gang")
                await made.start()
                if places and made.phase("gang") == "Admitted":
                    await made.until_phase("gang", "Running")
                    assert made.placement("gang") == places, f"moved when killed at write {point}"
                await run_to(made, phase)
                assert made.status("gang")["attempt"] == attempts, f"killed at write {point}"

        cluster.alone(killed)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_each_write_of_a_start_and_away_for_long(before: bool) -> None:
    points = cluster.alone(lambda: writes_of(start, "Succeeded", "30m"))
    for point in range(1, points + 1):

        async def killed(point: int = point) -> None:
            async with cluster.run(nodes=2, slack=20, reaction="3h") as made:
                made.queue()
                at = made.kill_at(point, before=before)
                start(made)
                await asyncio.wait_for(at.wait(), cluster.seconds("3h"))
                await made.kill()
                await made.rest("2h")
                await made.start()
                await run_to(made, "Succeeded")
                assert made.status("gang")["attempt"] <= 2, f"killed at write {point}"

        cluster.alone(killed)


@cluster.virtual
async def test_an_operator_that_starts_late_finds_everything_and_moves_nothing() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("runs", group("worker", 2, run_for="2h"), estimatedDuration="2h")
        await made.until_phase("runs", "Running")
        made.submit("waits", group("worker", 2, run_for="10m"), deadlineIn="9h", estimatedDuration="10m")
        await made.until_phase("waits", "Pending")
        places, writes = made.placement("runs"), made.calls.about_gangs()
        for _ in range(3):
            await made.restart()
            await made.rest("5m")
        # Only the question about the pods is asked again: what is known of it is nowhere written.
        assert made.calls.about_gangs() - writes <= 3 * 2
        assert made.placement("runs") == places
        await made.until_all("Succeeded", "runs", "waits", within="4h")


@cluster.virtual
async def test_what_ended_while_nobody_looked_is_noticed_at_its_own_time() -> None:
    async with cluster.run(nodes=2, reaction="4h") as made:
        made.queue()
        made.submit("succeeds", group(run_for="30m"), deadlineIn="1h", estimatedDuration="30m")
        made.submit("fails", group(fail_after="30m"), backoffLimit=0)
        await made.until_all("Running", "succeeds", "fails")
        await made.kill()
        ended = made.now() + 30 * 60_000
        await made.rest("3h")
        await made.start()
        await made.until_phase("succeeds", "Succeeded", within="1m")
        await made.until_phase("fails", "Failed", within="1m")
        assert made.finished_at("succeeds") == pytest.approx(ended, abs=5_000)
        assert not made.holds("succeeds", "DeadlineMissed")


@cluster.virtual
async def test_a_gang_whose_job_was_deleted_while_nobody_looked_is_cleaned_up() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, terminate_after="20m"))
        await made.until_phase("gang", "Running")
        await made.kill()
        made.delete("gang")
        made.submit("next", group("worker", 2, run_for="10m"))
        await made.rest("1m")
        await made.start()
        deleted = made.now()
        await made.until_phase("next", "Running")
        # The pods of the deleted one tell by themselves what they hold.
        assert made.now() - deleted >= 18 * 60_000
        await made.until_phase("next", "Succeeded")


@cluster.virtual
async def test_a_node_lost_while_nobody_looked_has_its_gang_queued_again() -> None:
    async with cluster.run(nodes=3, reaction="4h") as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h"))
        await made.until_phase("gang", "Running")
        await made.kill()
        made.delete(made.placement("gang")[0], port.NODES)
        await made.rest("30m")
        await made.start()
        await made.until_phase("gang", "Succeeded", within="3h")
