"""Under kopf and over HTTP: connections, watches and answers that fail while one job makes room for another.

A user's own Job holds the cluster, an urgent gang takes its room, and another own Job waits for both.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import cluster
import crash_scenarios
import pytest
import served
import trouble
from existing import Existing
from ledger_of_calls import about_gangs
from manifests import group

from lstqueue.embedded import faults
from lstqueue.operator import shell

NAMES = ("held", "gang", "next")
WRITES = 40
"""At least as many as the scenario takes."""


async def begin(made: cluster.Cluster) -> None:
    await crash_scenarios.own_holder(made)


def act(made: cluster.Cluster) -> None:
    made.submit("gang", group("worker", 2, run_for="30m"), deadlineIn="50m", estimatedDuration="30m")
    Existing(made).create("next", parallelism=1, completions=1, run_for="10m")


async def end(made: cluster.Cluster) -> None:
    """Everybody ends as without any trouble: one makes room once, and nobody is admitted more often."""
    await made.until(
        lambda: all(crash_scenarios.over(made, name) for name in NAMES), "everybody is over", within="9h"
    )
    ends = {name: found for name, (found,) in crash_scenarios.outcome(made).items()}
    assert {name: (found.phase, found.attempt) for name, found in ends.items()} == {
        "held": ("Succeeded", 2),
        "gang": ("Succeeded", 1),
        "next": ("Succeeded", 1),
    }
    assert ends["held"].runs == ("Preempted", "Succeeded")
    assert not ends["gang"].missed


def every(number: int, when: faults.When = faults.writes) -> faults.When:
    """Every so many of the requests that match."""
    count = 0

    def match(call: faults.Call) -> bool:
        nonlocal count
        count += when(call)
        return when(call) and count % number == 0

    return match


def throttled(made: cluster.Cluster) -> None:
    made.faults.throttle(retry_after=3.0, when=every(4), times=None)


def failing(made: cluster.Cluster) -> None:
    # Every fourth would be the same call of a start, each time that is tried again.
    made.faults.fail(500, "InternalError", when=every(5, faults.any_call), times=60)


def unavailable(made: cluster.Cluster) -> None:
    made.faults.fail(503, "ServiceUnavailable", when=every(3), times=None)


def slow(made: cluster.Cluster) -> None:
    made.faults.delay(2.0, when=faults.writes)
    made.faults.delay(10.0, when=faults.calls(verb="watch"))


def lost(made: cluster.Cluster) -> None:
    made.faults.lose_response(when=every(3), times=None)


def outrun(made: cluster.Cluster) -> None:
    made.faults.conflict(when=every(4), times=None)


@pytest.mark.parametrize(
    "requests", [throttled, failing, unavailable, slow, lost, outrun], ids=lambda how: how.__name__
)
def test_requests_may_go_wrong(requests: Callable[[cluster.Cluster], None]) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with served.run(slack=400, reaction="5m") as made:
            await begin(made)
            requests(made)
            act(made)
            await end(made)

    scenario()


def cut(made: cluster.Cluster) -> None:
    assert made.faults.cut_watches()


def expired_in_stream(made: cluster.Cluster) -> None:
    assert made.faults.expire_watches()


def compacted(made: cluster.Cluster) -> None:
    made.faults.cut_watches()
    made.faults.compact()


@pytest.mark.parametrize("watches", [cut, expired_in_stream, compacted], ids=lambda how: how.__name__)
def test_watches_may_end_at_any_time(watches: Callable[[cluster.Cluster], None]) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with served.run(slack=1500, reaction="5m") as made:
            await begin(made)
            act(made)
            for _ in range(12):
                await made.rest("1700ms")
                watches(made)
            for _ in range(8):
                await made.rest("10m")
                watches(made)
            await end(made)

    scenario()


@cluster.virtual
async def test_a_watch_of_queues_that_is_refused_ends_the_process_and_the_next_goes_on() -> None:
    async with served.run(slack=1500, reaction="5m") as made:
        await begin(made)
        act(made)
        for pause in ("1s", "2s", "5s", "1m", "40m", "1h"):
            await made.rest(pause)
            made.faults.refuse_watches(times=8)
            made.faults.cut_watches()
            await made.rest("30s")
            await made.revive()
        await end(made)
        # Whoever ran it reads one sentence, not kopf's traceback.
        assert {type(error) for error in made.ends} == {shell.StartError}
        assert {getattr(error.__cause__, "status", None) for error in made.ends if error} == {410}


async def struck(kind: str, number: int) -> bool:
    """Play it with a trouble at a write; whether it came to that."""
    async with served.run(slack=60, reaction="5m") as made:
        await begin(made)
        found = trouble.KINDS[kind].make(made, number, about_gangs)
        act(made)
        if isinstance(found, trouble.Killed):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(cluster.seconds("9h")):
                    await found.aftermath()
        await end(made)
        return found.struck is not None


KINDS = ("killed after", "killed before", "answer lost")


@pytest.mark.parametrize("number", range(1, 28, 6))
def test_trouble_at_a_write_changes_no_end(number: int) -> None:
    kind = KINDS[number // 6 % len(KINDS)]
    assert cluster.alone(lambda: struck(kind, number))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(1, WRITES))
def test_trouble_at_any_write_changes_no_end(number: int, kind: str) -> None:
    assert cluster.alone(lambda: struck(kind, number)) or number > 27
