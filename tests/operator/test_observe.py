"""A queue that only observes tells what it would do, and writes to nobody's workload."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import group

from lstqueue.kube import port


def writes_to_workloads(made: cluster.Cluster) -> list[str]:
    """All but dry runs, which are the only pods that the operator ever creates."""
    return [
        f"{call.verb} {call.resource.plural}"
        for call in made.calls.seen
        if call.verb in ("patch", "update", "delete") and call.resource in (port.JOBS, port.PODS)
    ]


@cluster.virtual
async def test_suspended_jobs_get_a_forecast_and_stay_suspended() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(mode="Observe")
        jobs.create("train", said={"deadline-in": "6h", "estimated-duration": "1h"}, run_for="1h")
        await made.until(lambda: made.code(jobs.ledger("train")) == "Observing", "it is observed")
        await made.rest("1h")
        assert made.status(jobs.ledger("train"))["verdict"]["level"] == "LIKELY"
        assert jobs.suspended("train")
        assert writes_to_workloads(made) == []


@cluster.virtual
async def test_running_jobs_are_left_as_they_are_and_end_with_their_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(mode="Observe")
        jobs.create("train", suspend=False, run_for="1h", said={"deadline-in": "6h"})
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs")
        await made.until(lambda: made.code(jobs.ledger("train")) == "Observing", "it is observed")
        await jobs.until_phase("train", "Succeeded", within="3h")
        assert writes_to_workloads(made) == []


@cluster.virtual
async def test_once_the_queue_enforces_it_takes_over_what_waits() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(mode="Observe")
        jobs.create("train", run_for="10m")
        await made.until(lambda: made.code(jobs.ledger("train")) == "Observing", "it is observed")
        made.patch_queue(mode="Enforce")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_what_runs_in_a_queue_that_only_observes_is_not_drained() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h")
        made.submit("gang", group(gpus=0, run_for="1h"))
        await jobs.until_phase("train", "Running")
        await made.until_phase("gang", "Running")
        made.patch_queue(mode="Observe", stopPolicy="HoldAndDrain")
        await jobs.until_phase("train", "Succeeded", within="3h")
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["attempt"] == made.status(jobs.ledger("train"))["attempt"] == 1
