"""Times that a clock wrote that was wrong: no job is ended for hours that never were."""

from __future__ import annotations

import asyncio

import cluster
import pytest
from existing import Existing
from manifests import group

from lstqueue.api import durations, times
from lstqueue.kube import port
from lstqueue.operator import app

HOUR = 3_600_000


async def under(made: cluster.Cluster, offset: int) -> None:
    """Start an operator whose clock is `offset` ms ahead of the cluster's."""
    made.api = made.connect(made.world.server.backend)
    made._operator = app.Operator(made.api, now=lambda: made.world.now() + offset, settings=made.settings)
    made._task = asyncio.create_task(made._operator.run())


@pytest.mark.parametrize("offset", [-10 * HOUR, 10 * HOUR])
def test_a_run_that_began_under_a_wrong_clock_has_all_its_time(offset: int) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=1, slack=200, start=False) as made:
            made.queue()
            await made.rest("20h")
            await under(made, offset)
            made.submit("gang", group(run_for="5h"), maxRunTime="8h")
            await made.until_phase("gang", "Running")
            writes = made.calls.writes()
            await made.rest("50m")
            assert made.calls.writes() - writes < 20
            await made.restart()
            await made.rest("1m")
            assert made.phase("gang") == "Running"
            began = times.parse(made.status("gang")["startTime"])
            assert made.world.now() - HOUR <= began <= made.world.now()
            await made.until_phase("gang", "Succeeded", within="6h")
            made.world.audit.violations.clear()

    cluster.alone(scenario)


@cluster.virtual
async def test_a_run_without_a_start_that_can_be_read_counts_from_now_on() -> None:
    async with cluster.run(nodes=1, slack=100) as made:
        made.queue()
        made.submit("gang", group(run_for="5h"), maxRunTime="8h")
        await made.until_phase("gang", "Running")
        body = {"status": {"startTime": "0000-01-01T00:00:00Z"}}
        made.store.patch(port.DEADLINE_JOBS, "default", "gang", body, subresource="status")
        await made.until_phase("gang", "Succeeded", within="6h")


@cluster.virtual
async def test_nothing_is_ended_or_removed_by_a_clock_that_runs_ahead_of_the_servers() -> None:
    async with cluster.run(nodes=4, slack=400, reaction="15m") as made:
        made.queue(gpus=32)
        jobs, ahead, real = Existing(made), [0], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        made.submit("limited", group(run_for="3h"), maxRunTime="5h")
        made.submit("dated", group(run_for="3h"), deadlineIn="8h", onMissed="Cancel")
        made.submit("over", group(run_for="1m", gpus=1), ttlSecondsAfterFinished=86_400)
        jobs.create("own", parallelism=2, completions=6, indexed=False, gpus=4, run_for="1h")
        await made.until_all("Running", "limited", "dated")
        await jobs.until_phase("own", "Running")
        await made.until_phase("over", "Succeeded")
        ahead[0] = 30 * durations.DAY
        await made.rest("5m")
        assert (made.phase("limited"), made.phase("dated")) == ("Running", "Running")
        assert made.phase("over") == "Succeeded"
        assert made.operator.loop.skew.ahead > 29 * durations.DAY
        ahead[0] = 0
        await made.until_all("Succeeded", "limited", "dated", within="4h")
        await made.until(lambda: not made.phase("over"), "it is removed in its time", within="25h")


@cluster.virtual
async def test_a_clock_that_jumps_right_after_it_was_found_right_ends_nothing() -> None:
    async with cluster.run(nodes=4, slack=400, reaction="15m") as made:
        made.queue(gpus=32)
        ahead, real = [0], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        made.submit("limited", group(run_for="3h"), maxRunTime="5h")
        made.submit("dated", group(run_for="3h"), deadlineIn="8h", onMissed="Cancel")
        made.submit("small", group(run_for="1m", gpus=1), ttlSecondsAfterFinished=60)
        await made.until_all("Running", "limited", "dated")
        await made.until(lambda: not made.phase("small"), "its removal asks for the time", within="1h")
        ahead[0] = 30 * durations.DAY
        made.submit("ring", group(run_for="1m", gpus=1))
        await made.rest("5m")
        assert (made.phase("limited"), made.phase("dated")) == ("Running", "Running")
        ahead[0] = 0
        await made.until_all("Succeeded", "limited", "dated", within="4h")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("policy", ["BestEffort", "Reject"])
def test_no_deadline_is_given_up_by_a_clock_that_runs_ahead(policy: str, restarts: bool) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=1, slack=400, reaction="15m") as made:
            made.queue(gpus=8)
            ahead, real = [0], made.world.now
            made.world.now = lambda: real() + ahead[0]
            await made.restart()
            made.submit("holder", group(run_for="2h"), preemptible=False, estimatedDuration="2h")
            await made.until_phase("holder", "Running")
            ahead[0] = 30 * durations.DAY
            dated = {"deadlineIn": "8h", "estimatedDuration": "1h", "onInfeasible": policy}
            made.submit("job", group(run_for="1h"), **dated)
            await made.until(lambda: made.level("job") == "IMPOSSIBLE", "it seems to be too late")
            await made.rest("5m")
            ahead[0] = 0
            if restarts:
                await made.kill()
                await made.start()
            await made.until(lambda: made.level("job") == "LIKELY", "it is judged anew", within="15m")
            assert (made.phase("job"), made.status("job").get("bestEffort")) == ("Pending", None)
            await made.until_phase("job", "Succeeded", within="4h")

    cluster.alone(scenario)


@cluster.virtual
async def test_a_clock_that_is_right_ends_what_is_due_without_delay() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        made.submit("limited", group(run_for="3h"), maxRunTime="1h")
        await made.until_phase("limited", "Running")
        await made.until_phase("limited", "Failed", within="61m")


@cluster.virtual
async def test_an_overload_under_a_clock_that_ran_ahead_does_not_last_into_the_future() -> None:
    async with cluster.run(nodes=1, slack=400, reaction="15m") as made:
        made.queue(gpus=8)
        ahead, real = [HOUR], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        names = [f"job-{number}" for number in range(8)]
        for name in names:
            made.submit(name, group(run_for="2h"), deadlineIn="6h", estimatedDuration="2h")
        await made.until(lambda: shed_at(made) > real(), "somebody is given up")
        for name in names:
            made.delete(name)
        await made.rest("5m")
        ahead[0] = 0
        made.submit("ring", group(run_for="1m"))
        await made.until_phase("ring", "Succeeded")
        assert 0 < shed_at(made) <= real()


def shed_at(made: cluster.Cluster) -> int:
    """When somebody was last given up, as the operator believes (ms)."""
    snapshot = made.operator.loop.snapshot
    return snapshot.shed_at if snapshot is not None else 0
