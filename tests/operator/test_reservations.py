"""Room that is kept for a wide gang while others leave, in its status and across restarts."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.kube import port


async def crowded(made: cluster.Cluster) -> None:
    """Four nodes that are free after 2, 3, 4 and 5 h, and a gang that wants two of them."""
    made.queue()
    for number in range(4):
        hours = f"{number + 2}h"
        made.submit(f"holder-{number}", group(run_for=hours), estimatedDuration=hours)
    await made.until_all("Running", *[f"holder-{number}" for number in range(4)])
    made.submit("wide", group(replicas=2, run_for="1h"), deadlineIn="40h", estimatedDuration="1h")
    await made.until(lambda: "reservation" in made.status("wide"), "room is kept for it")


def places(made: cluster.Cluster) -> list[str]:
    kept = made.status("wide")["reservation"]
    return [place["node"] for place in kept["groups"][0]["nodes"]]


@cluster.virtual
async def test_a_wide_gang_gets_the_room_that_was_kept_for_it() -> None:
    async with cluster.run(nodes=4) as made:
        await crowded(made)
        before = places(made)
        assert len(before) == 2
        made.submit("small", group(run_for="9h"), deadlineIn="90h", estimatedDuration="9h")
        await made.until(lambda: made.code("small") == "Reserved", "it is told", within="5h")
        assert "default/wide" in made.status("small")["pending"]["message"]
        await made.restart()
        await made.rest("10m")
        assert places(made) == before
        await made.until_phase("wide", "Running", within="3h")
        assert "reservation" not in made.status("wide")
        await made.until_phase("wide", "Succeeded", within="2h")
        await made.until_phase("small", "Succeeded", within="20h")


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 2, 3])
@cluster.virtual
async def test_whatever_write_it_dies_at_the_room_is_kept(number: int, before: bool) -> None:
    async with cluster.run(nodes=4) as made:
        await crowded(made)
        kept = places(made)
        killed = made.kill_at(number, before=before)
        made.submit("small", group(run_for="9h"), deadlineIn="90h", estimatedDuration="9h")
        await made.until(killed.is_set, "it died", within="3h")
        await made.restart()
        if made.phase("wide") == "Pending":
            assert places(made) == kept
        await made.until_phase("wide", "Succeeded", within="9h")
        await made.until_phase("small", "Succeeded", within="20h")


@cluster.virtual
async def test_it_is_written_once_while_others_take_their_time_to_leave() -> None:
    """Pods that may take twelve minutes to end, and take ten."""
    async with cluster.run(nodes=4) as made:
        made.queue()
        slow = {"terminationGracePeriodSeconds": 720}
        for number in range(4):
            made.submit(
                f"holder-{number}",
                group(run_for="30h", terminate_after="10m", pod=slow),
                estimatedDuration="30h",
            )
        await made.until_all("Running", *[f"holder-{number}" for number in range(4)])
        made.submit("wide", group(replicas=2, run_for="1h"), deadlineIn="40h", estimatedDuration="1h")
        await made.until(lambda: "reservation" in made.status("wide"), "room is kept for it")
        await made.rest("1m")
        first, passes = len(made.calls.seen), made.operator.loop.passes
        for number in range(4):
            made.edit(f"holder-{number}", active=False)
        await made.rest("9m")
        assert made.phase("wide") == "Pending"
        written = [call for call in made.calls.seen[first:] if call.resource == port.DEADLINE_JOBS]
        assert len([call for call in written if (call.verb, call.name) == ("patch", "wide")]) <= 4
        assert made.operator.loop.passes - passes <= 30
        await made.until_phase("wide", "Running", within="3m")


@cluster.virtual
async def test_who_was_held_back_starts_as_soon_as_the_room_is_kept_no_more() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue(preemption={"withinQueue": "NoHarm"})
        for number in range(4):
            hours = f"{9 * number + 2}h"
            made.submit(f"holder-{number}", group(run_for=hours), estimatedDuration=hours, preemptible=False)
        await made.until_all("Running", *[f"holder-{number}" for number in range(4)])
        made.submit("wide", group(replicas=2, run_for="1h"), deadlineIn="60h", estimatedDuration="1h")
        await made.until(lambda: "reservation" in made.status("wide"), "room is kept for it")
        made.submit("small", group(run_for="20h"), deadlineIn="90h", estimatedDuration="20h")
        await made.until(lambda: made.code("small") == "Reserved", "it is held back", within="5h")
        made.edit("wide", deadlineIn="4h")  # at its last moment, for which there is another way
        await made.until(lambda: "reservation" not in made.status("wide"), "nothing is kept", within="1m")
        await made.until_phase("small", "Admitted", "Running", within="30s")
