"""Who goes first: least slack, or what the queue says instead."""

from __future__ import annotations

import cluster
from manifests import group


async def started(made: cluster.Cluster, *jobs: str) -> list[str]:
    """Wait for all to succeed; return them in the order they started."""
    await made.until_all("Succeeded", *jobs, within="1d")
    return sorted(jobs, key=lambda name: made.status(name)["startTime"])


async def occupied(made: cluster.Cluster, run_for: str = "30m") -> None:
    """Fill the only node, so that what is submitted next has to be ordered."""
    made.submit("holder", group(run_for=run_for), estimatedDuration=run_for)
    await made.until_phase("holder", "Running")


@cluster.virtual
async def test_least_slack_goes_before_the_earlier_submission() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        await occupied(made)
        made.submit("relaxed", group(run_for="1h"), deadlineIn="12h", estimatedDuration="1h")
        made.submit("tight", group(run_for="1h"), deadlineIn="3h", estimatedDuration="1h")
        made.submit("none", group(run_for="1h"), estimatedDuration="1h")
        assert await started(made, "none", "relaxed", "tight") == ["tight", "relaxed", "none"]


@cluster.virtual
async def test_a_long_job_with_the_later_deadline_goes_first_when_it_has_less_slack() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(preemption={"withinQueue": "Never"}, overload={"shedding": False})
        await occupied(made)
        made.submit("short", group(run_for="10m"), deadlineIn="6h", estimatedDuration="10m")
        made.submit("long", group(run_for="5h"), deadlineIn="7h", estimatedDuration="5h")
        assert await started(made, "short", "long") == ["long", "short"]


@cluster.virtual
async def test_an_edf_queue_looks_at_the_deadline_alone() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(order="edf")
        await occupied(made)
        made.submit("long", group(run_for="5h"), deadlineIn="8h", estimatedDuration="5h")
        made.submit("short", group(run_for="10m"), deadlineIn="7h", estimatedDuration="10m")
        assert await started(made, "short", "long") == ["short", "long"]


@cluster.virtual
async def test_a_fifo_queue_is_strict_even_when_a_later_job_would_fit() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(order="fifo")
        await occupied(made)
        made.submit("head", group("worker", 2, run_for="30m"), estimatedDuration="30m")
        await made.rest("1m")
        made.submit("behind", group(run_for="30m"), deadlineIn="40m", estimatedDuration="30m")
        await made.until_phase("behind", "Pending")
        await made.rest("10m")
        assert made.code("head") == "NoRoom"
        assert made.code("behind") == "HeadOfLine"
        assert "default/head" in made.status("behind")["pending"]["message"]
        assert await started(made, "behind", "head") == ["head", "behind"]


@cluster.virtual
async def test_a_job_that_can_never_fit_does_not_block_a_fifo_queue() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(order="fifo")
        made.submit("giant", group("worker", 5))
        await made.until_phase("giant", "Pending")
        made.submit("small", group(run_for="10m"))
        await made.until_phase("small", "Succeeded")
        assert made.code("giant") == "NoMatchingNodes"


@cluster.virtual
async def test_importance_stands_above_slack_up_to_what_the_queue_allows() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(maxImportance=5)
        await occupied(made)
        made.submit("tight", group(run_for="30m"), deadlineIn="2h", estimatedDuration="30m")
        made.submit("important", group(run_for="30m"), deadlineIn="9h", estimatedDuration="30m", importance=5)
        made.submit("boaster", group(run_for="30m"), deadlineIn="9h", estimatedDuration="30m", importance=6)
        await made.until(lambda: made.code("boaster") == "ImportanceTooHigh", "the boaster is told")
        assert await started(made, "tight", "important") == ["important", "tight"]
        made.edit("boaster", importance=5)
        await made.until_phase("boaster", "Succeeded")


@cluster.virtual
async def test_a_job_that_is_late_leaves_the_deadline_class_but_runs_in_the_end() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(preemption={"withinQueue": "Never"})
        await occupied(made, "3h")
        made.submit("hopeless", group(run_for="1h"), deadlineIn="2h", estimatedDuration="1h")
        made.submit("alive", group(run_for="1h"), deadlineIn="9h", estimatedDuration="1h")
        await made.until(lambda: made.status("hopeless").get("late") is False, "it is in the deadline class")
        await made.until(lambda: made.status("hopeless").get("late") is True, "it is late", within="2h")
        assert made.level("hopeless") == "IMPOSSIBLE"
        assert await started(made, "hopeless", "alive") == ["alive", "hopeless"]
        assert made.holds("hopeless", "DeadlineMissed")
        assert not made.holds("alive", "DeadlineMissed")
