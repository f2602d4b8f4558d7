"""A gang that breaks again and again waits longer each time, and leaves its room to others meanwhile."""

from __future__ import annotations

import itertools

import cluster
from manifests import group

from lstqueue.api import times
from lstqueue.embedded import eventlog
from lstqueue.kube import port

LEAST = {"terminate_after": "0s"}


def starts(made: cluster.Cluster, name: str) -> list[int]:
    """Collect the times (ms) at which children of a gang are made from now on."""
    seen: list[int] = []

    def note(event: eventlog.Event) -> None:
        made_now = event.resource == port.JOBS and event.type == eventlog.ADDED
        if made_now and event.object["metadata"]["name"].startswith(f"{name}-"):
            seen.append(made.now())

    made.store.subscribe(note)
    return seen


def waits(at: list[int]) -> list[int]:
    """Seconds between each start and the next."""
    return [round((later - earlier) / 1000) for earlier, later in itertools.pairwise(at)]


@cluster.virtual
async def test_a_gang_that_fails_at_once_pauses_ten_seconds_and_twice_that_each_time_after() -> None:
    async with cluster.run(nodes=1, slack=50) as made:
        made.queue()
        seen = starts(made, "gang")
        made.submit("gang", group(fail_after="1s", **LEAST), backoffLimit=9)
        await made.until_phase("gang", "Failed", within="2h")
        assert made.condition("gang", "Finished")["reason"] == "BackoffLimitExceeded"
        between = waits(seen)
        assert len(between) == 9
        assert between[0] < 10, "the first restart is at once"
        wanted = [10, 20, 40, 80, 160, 320, 360, 360]
        assert all(0 <= wait - least <= 10 for wait, least in zip(between[1:], wanted, strict=True)), between


@cluster.virtual
async def test_evictions_without_end_are_paused_for_too() -> None:
    async with cluster.run(nodes=1, slack=200) as made:
        made.queue()
        seen = starts(made, "gang")
        made.submit("gang", group(run_for="5h", **LEAST), backoffLimit=0)
        for _ in range(8):
            await made.until_phase("gang", "Running", within="10m")
            made.evict(made.pods("gang")[-1])
            await made.until(lambda: made.phase("gang") != "Running", "it stops")
        assert made.status("gang").get("restarts", 0) == made.status("gang").get("disruptions", 0) >= 7
        assert waits(seen)[-1] >= 300
        await made.until_phase("gang", "Running", within="10m")


@cluster.virtual
async def test_while_it_pauses_its_room_is_free_and_its_status_says_when_it_comes_back() -> None:
    async with cluster.run(nodes=1, slack=50) as made:
        made.queue()
        made.submit("gang", group(fail_after="5s", **LEAST), backoffLimit=9)
        await made.until(lambda: made.status("gang").get("restarts") == 6, "it has broken often")
        await made.until(lambda: made.code("gang") == "BackingOff", "it pauses", within="2m")
        until = times.parse(made.status("gang")["backoff"]["until"])
        assert made.now() < until <= made.now() + 360_000
        assert "after it broke" in made.status("gang")["pending"]["message"]
        made.submit("short", group(run_for="1m"))
        await made.until_phase("short", "Running", within="10s")
        await made.until_phase("short", "Succeeded")


@cluster.virtual
async def test_after_a_run_that_lasted_a_gang_begins_again_at_once() -> None:
    async with cluster.run(nodes=1, slack=50) as made:
        made.queue()
        seen = starts(made, "gang")
        made.submit("gang", group(fail_after="11m", **LEAST), backoffLimit=3)
        await made.until_phase("gang", "Failed", within="2h")
        assert max(waits(seen)) < 11 * 60 + 10
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_an_edit_of_the_spec_ends_the_pause() -> None:
    async with cluster.run(nodes=1, slack=50) as made:
        made.queue()
        made.submit("gang", group(fail_after="5s", **LEAST), backoffLimit=9)
        await made.until(lambda: made.status("gang").get("restarts") == 7, "it has broken often", within="2h")
        await made.until(lambda: made.code("gang") == "BackingOff", "it pauses", within="2m")
        attempt = made.status("gang")["attempt"]
        made.edit("gang", importance=1)
        await made.until(lambda: made.status("gang")["attempt"] > attempt, "it starts", within="10s")
