"""An operator that comes up while a user's Job makes room for another: it ends what was begun, or spares."""

from __future__ import annotations

from collections.abc import Callable

import cluster
from crashes import dead, dies_when
from existing import Existing
from manifests import group


async def preempting(jobs: Existing, condition: Callable[[], bool]) -> None:
    """A Job is to make room for a gang; the operator dies on the way."""
    made = jobs.made
    made.queue()
    jobs.create("train", said={"estimated-duration": "3h"}, run_for="3h")
    await jobs.until_phase("train", "Running")
    await made.rest("30m")
    dies_when(made, condition)
    made.submit("gang", group("worker", 2, run_for="30m"), deadlineIn="50m", estimatedDuration="30m")
    await dead(made, condition, "it dies while it makes room", away="1m")


@cluster.virtual
async def test_a_claim_that_is_still_justified_is_continued() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await preempting(jobs, lambda: made.phase("gang") == "Claiming" and jobs.phase("train") == "Running")
        await made.start()
        await made.until_phase("gang", "Succeeded", within="2h")
        assert not made.holds("gang", "DeadlineMissed")
        await jobs.until_phase("train", "Succeeded", within="9h")


@cluster.virtual
async def test_a_claim_that_is_not_justified_any_more_spares_the_job() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await preempting(jobs, lambda: made.phase("gang") == "Claiming" and jobs.phase("train") == "Running")
        made.delete("gang")
        await made.start()
        await jobs.until_phase("train", "Succeeded", within="3h")
        assert made.status(jobs.ledger("train"))["attempt"] == 1


@cluster.virtual
async def test_a_suspension_that_was_written_but_not_carried_out_is() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="10m") as made:
        jobs = Existing(made)
        await preempting(jobs, lambda: jobs.phase("train") == "Suspending")
        assert not jobs.suspended("train")
        await made.start()
        await made.until_phase("gang", "Running", within="10m")
        assert jobs.suspended("train")
        await jobs.until_phase("train", "Succeeded", within="9h")
