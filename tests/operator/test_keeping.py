"""The DeadlineJobs of labelled Jobs: made and kept in step though refused at first, and told of once."""

from __future__ import annotations

import cluster
import existing
from existing import Existing

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port


def told(made: cluster.Cluster, reason: str) -> list[int]:
    """The counts of our Events of this reason."""
    return [raw["count"] for raw in made.store.list(port.EVENTS) if raw["reason"] == reason]


def refusing(made: cluster.Cluster, verb: str) -> None:
    """A policy of the cluster refuses writes of DeadlineJobs."""
    made.faults.fail(
        422,
        "Invalid",
        message="a policy denied the request",
        when=faults.calls(verb=verb, resource=port.DEADLINE_JOBS, subresource=""),
        times=None,
    )


@cluster.virtual
async def test_a_job_that_a_policy_would_not_have_queued_is_queued_when_that_is_gone() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="3h") as made:
        jobs = Existing(made)
        made.queue()
        refusing(made, "create")
        jobs.create("train", run_for="5m")
        assert "policy" in await jobs.until_told("train", "NotQueued")
        await made.rest("1h")
        assert told(made, "NotQueued") == [1]
        made.calm()
        await jobs.until_phase("train", "Succeeded", within="30m")


@cluster.virtual
async def test_a_job_is_tried_at_once_when_its_user_edits_it() -> None:
    async with cluster.run(nodes=2, slack=40) as made:
        jobs = Existing(made)
        made.queue()
        refusing(made, "create")
        jobs.create("train", run_for="5m")
        await jobs.until_told("train", "NotQueued")
        made.calm()
        jobs.say("train", value="2")
        await jobs.until_phase("train", "Running", within="1m")


@cluster.virtual
async def test_another_queue_waits_for_the_end_of_the_admission_and_holds_up_no_other_edit() -> None:
    async with cluster.run(nodes=2, slack=40) as made:
        jobs = Existing(made)
        made.queue()
        made.queue("other")
        jobs.create("train", run_for="5h", said={"deadline-in": "9h"})
        await jobs.until_phase("train", "Running")
        jobs.patch("train", {"metadata": {"labels": {names.LABEL_QUEUE: "other"}}})
        jobs.say("train", deadline_in="8h", max_run_time="6h")
        await made.rest("1m")
        spec = made.job(jobs.ledger("train"))["spec"]
        assert (spec["deadlineIn"], spec["maxRunTime"], spec["queue"]) == ("8h", "6h", "research")
        assert "EditRefused" not in jobs.events("train")
        jobs.suspend("train")
        await jobs.until_phase("train", "Pending")
        await made.rest("10s")
        assert made.job(jobs.ledger("train"))["spec"]["queue"] == "other"


@cluster.virtual
async def test_an_edit_that_is_refused_is_told_and_tried_again() -> None:
    async with cluster.run(nodes=2, slack=40) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="5h", said={"deadline-in": "9h"})
        await jobs.until_phase("train", "Running")
        refusing(made, "patch")
        jobs.say("train", deadline_in="8h")
        assert "policy" in await jobs.until_told("train", "EditRefused")
        made.calm()
        await made.rest("10m")
        assert made.job(jobs.ledger("train"))["spec"]["deadlineIn"] == "8h"


@cluster.virtual
async def test_what_is_wrong_with_annotations_is_told_once_by_all_processes() -> None:
    async with cluster.run(nodes=1, slack=40, reaction="3h") as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", said={"dead-line": "6h"})
        await jobs.until_told("train", "UnknownAnnotation")
        for _ in range(3):
            await made.rest("20m")
            await made.restart()
        await made.rest("1m")
        assert told(made, "UnknownAnnotation") == [1]


@cluster.virtual
async def test_a_label_on_a_cron_job_is_told_once_however_often_it_runs() -> None:
    async with cluster.run(nodes=1, slack=40, reaction="3h") as made:
        made.queue()
        job = existing.body("x", queue=None, suspend=False, run_for="10s", parallelism=1, completions=1)
        meta = {"name": "minutely", "labels": {names.LABEL_QUEUE: cluster.QUEUE}}
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}
        made.create(port.CRON_JOBS, {"metadata": meta, "spec": spec})
        await made.rest("30m")
        await made.restart()
        await made.rest("5m")
        assert told(made, "LabelMisplaced") == [1]
        made.delete("minutely", port.CRON_JOBS)


@cluster.virtual
async def test_names_that_nobody_refers_to_any_more_are_forgotten() -> None:
    async with cluster.run(nodes=2, slack=40) as made:
        jobs = Existing(made)
        made.queue()
        made.faults.fail(
            503, "ServiceUnavailable", when=faults.calls(verb="get", resource=port.JOBS), times=None
        )
        jobs.refer("ref", "nowhere")
        await made.until(lambda: made.operator.keeper._name_failures, "it is looked for in vain")
        made.delete("ref")
        made.calm()
        jobs.create("train", run_for="1m")
        await jobs.until_phase("train", "Succeeded")
        assert made.operator.keeper._name_failures == {}
