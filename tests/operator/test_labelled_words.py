"""Who labelled a Job is told of its label and annotations, never of a spec that they did not write."""

from __future__ import annotations

import cluster
import pytest
from existing import Existing

from lstqueue.kube import port

SPEC = "spec.queue", "spec.active", "spec.estimatedDuration", "spec.maxRunTime", "spec.onMissed", "spec.value"


def told(made: cluster.Cluster, jobs: Existing, name: str) -> str:
    """Every sentence that its user can read of it."""
    status = made.status(jobs.ledger(name))
    words = [
        (status.get("pending") or {}).get("message", ""),
        (status.get("verdict") or {}).get("reason", ""),
    ]
    words += [item.get("message", "") for item in status.get("conditions") or ()]
    words += jobs.events(name).values()
    return "\n".join(words)


@cluster.virtual
async def test_without_a_queue_the_label_is_named() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        jobs.create("train", queue="")
        assert "set the label lstqueue.dev/queue of the Job" in await jobs.until_told("train", "QueueNotSet")
        await made.until(lambda: made.code(jobs.ledger("train")) == "QueueNotSet", "it is told")
        assert "(none)" not in told(made, jobs, "train")
        assert not any(field in told(made, jobs, "train") for field in SPEC)


@cluster.virtual
async def test_a_queue_that_is_not_there_is_corrected_in_the_label() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        jobs.create("train", queue="nobody")
        words = await jobs.until_told("train", "QueueNotFound")
        assert words.endswith("name one that exists in label lstqueue.dev/queue of the Job.")
        assert not any(field in told(made, jobs, "train") for field in SPEC)


@cluster.virtual
async def test_a_pause_ends_by_resuming_the_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="2h")
        await jobs.until_phase("train", "Running")
        jobs.suspend("train")
        await made.until(lambda: made.code(jobs.ledger("train")) == "Inactive", "it is paused")
        assert "resume Job train (spec.suspend: false) to queue it again" in told(made, jobs, "train")
        assert not any(field in told(made, jobs, "train") for field in SPEC)
        jobs.suspend("train", False)
        await jobs.until_phase("train", "Running")


@pytest.mark.parametrize(
    ("said", "annotation"),
    [
        ({"max-run-time": "30m"}, "max-run-time"),
        ({"on-missed": "Cancel", "deadline-in": "30m"}, "on-missed"),
    ],
)
def test_what_ended_it_is_named_as_the_annotation(said: dict[str, str], annotation: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2) as made:
            jobs = Existing(made)
            made.queue()
            jobs.create("train", said=said, run_for="2h")
            await jobs.until_phase("train", "Failed")
            words = made.condition(jobs.ledger("train"), "Finished")["message"]
            assert f"annotation lstqueue.dev/{annotation} of the Job" in words
            assert not any(field in told(made, jobs, "train") for field in SPEC)
            made.delete("train", port.JOBS)

    scenario()


@cluster.virtual
async def test_a_missing_estimate_is_asked_for_as_an_annotation() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", said={"deadline-in": "2h"}, run_for="1h")
        await made.until(lambda: "verdict" in made.status(jobs.ledger("train")), "it is judged")
        assert "annotation lstqueue.dev/estimated-duration of the Job" in told(made, jobs, "train")
        await jobs.until_phase("train", "Succeeded", within="3h")
