"""An API server in trouble delays what the operator does and never makes it do something wrong."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import cluster
import pytest
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

JOBS = ("first", "second", "third", "fails", "solo")


def submit(made: cluster.Cluster) -> None:
    made.queue()
    made.submit("first", group("worker", 2, run_for="20m"), deadlineIn="2h", estimatedDuration="20m")
    made.submit("second", group("leader", run_for="20m"), group("worker", 2, gpus=4, run_for="20m"))
    made.submit("third", group("worker", 3, run_for="10m"), deadlineIn="9h", estimatedDuration="10m")
    made.submit("fails", group("first", run_for="1h"), group("second", fail_after="10m"), backoffLimit=1)
    made.submit("solo", group(gpus=1, run_for="15m"))


async def all_end(made: cluster.Cluster, *, within: str = "9h") -> None:
    await made.until(
        lambda: all(made.phase(name) == ("Failed" if name == "fails" else "Succeeded") for name in JOBS),
        "every gang ends as it should",
        within=within,
    )
    assert made.status("fails")["restarts"] == 1


def every(number: int, when: faults.When = faults.writes) -> faults.When:
    """Every so many of the requests that match."""
    count = 0

    def match(call: faults.Call) -> bool:
        nonlocal count
        if not when(call):
            return False
        count += 1
        return count % number == 0

    return match


def lost_answers(made: cluster.Cluster) -> None:
    made.faults.lose_response(when=every(3), times=None)


def conflicts(made: cluster.Cluster) -> None:
    made.faults.conflict(when=every(3), times=None)


def throttling(made: cluster.Cluster) -> None:
    made.faults.throttle(retry_after=7.0, when=every(4), times=None)


def server_errors(made: cluster.Cluster) -> None:
    made.faults.fail(500, "InternalError", when=every(3, faults.any_call), times=200)


def slowness(made: cluster.Cluster) -> None:
    made.faults.delay(3.0, when=faults.writes)


def slow_watches(made: cluster.Cluster) -> None:
    made.faults.delay(20.0, when=faults.calls(verb="watch"))
    made.faults.fail(503, "ServiceUnavailable", when=every(2, faults.calls(verb="list")), times=20)


def everything(made: cluster.Cluster) -> None:
    made.faults.delay(0.7, when=every(2))
    made.faults.lose_response(when=every(5), times=None)
    made.faults.conflict(when=every(7), times=None)
    made.faults.fail(503, "ServiceUnavailable", when=every(6, faults.any_call), times=None)


@pytest.mark.parametrize(
    "trouble",
    [lost_answers, conflicts, throttling, server_errors, slowness, slow_watches, everything],
    ids=lambda trouble: trouble.__name__,
)
def test_every_gang_ends_as_it_should_in_spite_of(trouble: Callable[[cluster.Cluster], None]) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=3, slack=600, reaction="10m", start=False) as made:
            trouble(made)
            await made.start()
            submit(made)
            await all_end(made)

    scenario()


async def cut(made: cluster.Cluster) -> None:
    made.faults.cut_watches()


async def expire_in_stream(made: cluster.Cluster) -> None:
    made.faults.expire_watches()


async def expire_on_request(made: cluster.Cluster) -> None:
    made.faults.refuse_watches(times=6)
    made.faults.cut_watches()


async def compact(made: cluster.Cluster) -> None:
    made.faults.cut_watches()
    made.faults.compact()


@pytest.mark.parametrize(
    "trouble", [cut, expire_in_stream, expire_on_request, compact], ids=lambda trouble: trouble.__name__
)
def test_watches_may_end_at_any_time(
    trouble: Callable[[cluster.Cluster], Coroutine[Any, Any, None]],
) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=3, slack=4000) as made:
            submit(made)
            for _ in range(100):
                await made.rest("37s")
                await trouble(made)
            await all_end(made)

    scenario()


@cluster.virtual
async def test_an_outage_of_an_hour_is_survived_and_made_up_for() -> None:
    async with cluster.run(nodes=3, slack=2000, reaction="2h") as made:
        submit(made)
        await made.until_phase("first", "Running")
        made.faults.fail(503, "ServiceUnavailable", when=faults.any_call, times=None)
        made.faults.cut_watches()
        began = len(made.calls.seen)
        await made.rest("1h")
        # Ten lists, and what jobs and history need, each tried again a few times in a minute at most.
        assert len(made.calls.seen) - began < 14 * 3 * 60
        made.calm()
        await made.until_phase("first", "Succeeded", within="5m")
        await all_end(made)


@cluster.virtual
async def test_lost_permissions_are_waited_for_and_cost_no_gang_its_start() -> None:
    async with cluster.run(nodes=3, slack=600, reaction="2h") as made:
        statuses = faults.calls(verb="patch", resource=port.DEADLINE_JOBS)
        made.faults.fail(403, "Forbidden", message="no role", when=statuses, times=None)
        submit(made)
        await made.rest("1h")
        assert made.store.list(port.JOBS) == []
        assert made.calls.count("patch", port.DEADLINE_JOBS) < 60 * 5 * 2
        made.calm()
        await all_end(made)
        assert made.status("first")["attempt"] == 1
        assert "backoff" not in made.status("first")


@cluster.virtual
async def test_a_status_that_cannot_be_written_while_a_gang_starts_is_no_failed_start() -> None:
    async with cluster.run(nodes=1, slack=60, reaction="1h") as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, start_after="1m", run_for="30m"))
        await made.until_phase("gang", "Admitted")
        made.faults.fail(
            422, "Invalid", when=faults.calls(verb="patch", resource=port.DEADLINE_JOBS), times=None
        )
        await made.rest("10m")
        made.calm()
        await made.until_phase("gang", "Succeeded")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_after_a_row_of_failures_the_next_one_is_again_retried_quickly() -> None:
    async with cluster.run(nodes=1, slack=60) as made:
        made.queue()
        statuses = faults.calls(verb="patch", resource=port.DEADLINE_JOBS)
        made.faults.fail(503, "ServiceUnavailable", when=statuses, times=5)
        made.submit("first", group(run_for="10m"))
        await made.until_phase("first", "Running")
        await made.rest("5m")
        made.faults.fail(503, "ServiceUnavailable", when=statuses, times=1)
        began = made.now()
        made.edit("first", deadlineIn="1h", estimatedDuration="10m")
        await made.until(lambda: made.level("first") == "LIKELY", "it is judged", within="10m")
        assert made.now() - began < 5_000
        await made.until_phase("first", "Succeeded")


@cluster.virtual
async def test_the_report_about_a_queue_is_made_up_for_when_it_failed() -> None:
    async with cluster.run(nodes=1, slack=20) as made:
        made.faults.fail(
            503, "ServiceUnavailable", when=faults.calls(verb="patch", resource=port.GPU_QUEUES), times=3
        )
        made.queue()
        await made.rest("1m")
        status = made.store.get(port.GPU_QUEUES, None, cluster.QUEUE).get("status") or {}
        assert status.get("observedGeneration") == 1
