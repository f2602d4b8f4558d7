"""The operator is killed at any write while one job makes room for another, and started again."""

from __future__ import annotations

import asyncio

import cluster
import pytest
from manifests import group

SAVES = {"interval": "30m", "onSuspend": True}


async def begin(made: cluster.Cluster) -> None:
    """Two holders have run for an hour when a gang comes that needs both of their nodes."""
    made.queue()
    for name in ("one", "two"):
        made.submit(name, group(run_for="4h"), estimatedDuration="4h", checkpoint=SAVES)
    await made.until_all("Running", "one", "two")
    await made.rest("1h")


def urgent(made: cluster.Cluster) -> None:
    made.submit("gang", group("worker", 2, run_for="1h"), deadlineIn="100m", estimatedDuration="1h")


async def end(made: cluster.Cluster) -> None:
    await made.until_phase("gang", "Succeeded", within="3h")
    assert not made.holds("gang", "DeadlineMissed")
    await made.until_all("Succeeded", "one", "two", within="9h")
    for name in ("one", "two"):
        assert made.status(name)["attempt"] == 2
        assert [run["reason"] for run in made.status(name)["runs"]] == ["Preempted", "Succeeded"]
        assert made.status(name).get("restarts", 0) == 0


async def writes() -> int:
    async with cluster.run(nodes=2) as made:
        await begin(made)
        before = made.calls.about_gangs()
        urgent(made)
        await end(made)
        return made.calls.about_gangs() - before


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_each_write_and_started_again_at_once(before: bool) -> None:
    points = cluster.alone(writes)
    assert points > 12
    for point in range(1, points + 1):

        async def killed(point: int = point) -> None:
            async with cluster.run(nodes=2, slack=30) as made:
                await begin(made)
                at = made.kill_at(point, before=before)
                urgent(made)
                await asyncio.wait_for(at.wait(), cluster.seconds("9h"))
                await made.kill()
                await made.start()
                await end(made)

        try:
            cluster.alone(killed)
        except AssertionError as error:
            raise AssertionError(f"killed at write {point}") from error
