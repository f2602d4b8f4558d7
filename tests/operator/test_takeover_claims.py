"""An operator that comes up while one job makes room for another: what was begun ends, or is given up."""

from __future__ import annotations

from collections.abc import Callable

import cluster
import pytest
from crashes import dead, dies_when
from manifests import group

from lstqueue.kube import port


async def preempting(made: cluster.Cluster, condition: Callable[[], bool], *, away: str = "1m") -> None:
    """Two holders are to make room for a gang that needs both nodes; the operator dies on the way."""
    made.queue()
    for name in ("one", "two"):
        made.submit(name, group(run_for="4h"), estimatedDuration="4h")
    await made.until_all("Running", "one", "two")
    await made.rest("1h")
    dies_when(made, condition)
    made.submit("gang", group("worker", 2, run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
    await dead(made, condition, "it dies while it makes room", away=away)


def phases(made: cluster.Cluster) -> list[str]:
    return sorted(made.phase(name) for name in ("one", "two"))


@cluster.virtual
@pytest.mark.parametrize("victims", [["Running", "Running"], ["Running", "Suspending"]])
async def test_a_claim_that_is_still_justified_is_continued(victims: list[str]) -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        await preempting(made, lambda: made.phase("gang") == "Claiming" and phases(made) == victims)
        await made.start()
        await made.until_phase("gang", "Running", within="10m")
        await made.until_phase("gang", "Succeeded", within="2h")
        assert not made.holds("gang", "DeadlineMissed")
        await made.until_all("Succeeded", "one", "two", within="9h")


@cluster.virtual
@pytest.mark.parametrize("how", ["deleted", "paused"])
async def test_a_claim_that_is_not_justified_any_more_spares_who_was_not_told(how: str) -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        halfway = ["Running", "Suspending"]
        await preempting(made, lambda: made.phase("gang") == "Claiming" and phases(made) == halfway)
        spared = next(name for name in ("one", "two") if made.phase(name) == "Running")
        if how == "deleted":
            made.delete("gang")
        else:
            made.edit("gang", active=False)
        await made.start()
        await made.until_all("Running", "one", "two", within="10m")
        assert made.status(spared)["attempt"] == 1
        await made.until_all("Succeeded", "one", "two", within="9h")


@cluster.virtual
async def test_a_suspension_that_was_written_but_not_carried_out_is() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="10m") as made:
        await preempting(made, lambda: "Suspending" in phases(made))
        (victim,) = [name for name in ("one", "two") if made.phase(name) == "Suspending"]
        child = made.store.get(port.JOBS, cluster.NAMESPACE, f"{victim}-worker-0")
        assert not child["spec"].get("suspend")
        await made.start()
        await made.until_phase("gang", "Running", within="10m")
        await made.until_all("Succeeded", "one", "two", within="9h")


@cluster.virtual
async def test_a_victim_that_finished_before_it_was_stopped_has_succeeded() -> None:
    async with cluster.run(nodes=1, slack=60, reaction="10m") as made:
        made.queue()
        made.submit("victim", group(run_for="2h"), estimatedDuration="4h")
        await made.until_phase("victim", "Running")
        await made.rest("1h57m")
        dies_when(made, lambda: made.phase("victim") == "Suspending")
        made.submit("gang", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await dead(made, lambda: made.phase("victim") == "Suspending", "it dies when its victim is to stop")
        await made.start()
        await made.until_phase("victim", "Succeeded", within="5m")
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_claim_whose_time_ran_out_without_an_operator_is_made_anew_and_blames_no_node() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="20m") as made:
        untold = ["Running", "Running"]
        await preempting(
            made, lambda: made.phase("gang") == "Claiming" and phases(made) == untold, away="10m"
        )
        said: set[str] = set()
        avoided: list[object] = []

        def look(_: object) -> None:
            said.add(made.condition("gang", "Admitted").get("message", ""))
            avoided.extend((made.status("gang").get("backoff") or {}).get("avoid") or ())

        made.store.subscribe(look)
        await made.start()
        await made.until_phase("gang", "Running", within="5m")
        assert "Its time ran out before anybody was told to make room." in said
        assert avoided == []
        await made.until_phase("gang", "Succeeded", within="2h")
        assert not made.holds("gang", "DeadlineMissed")
        await made.until_all("Succeeded", "one", "two", within="9h")


@cluster.virtual
async def test_a_claim_whose_place_came_free_without_an_operator_is_used_however_late() -> None:
    async with cluster.run(nodes=2, slack=60, reaction="20m") as made:
        await preempting(made, lambda: phases(made) == ["Suspending", "Suspending"], away="1s")
        for name in ("one", "two"):
            made.patch(port.JOBS, f"{name}-worker-0", {"spec": {"suspend": True}})
        await made.rest("10m")
        assert made.phase("gang") == "Claiming"
        await made.start()
        await made.until_phase("gang", "Running", within="1m")
        assert made.status("gang")["attempt"] == 1
        await made.until_all("Succeeded", "gang", "one", "two", within="9h")
