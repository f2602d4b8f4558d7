"""What users are told on their own Jobs, in their own words' place: labels, annotations, owners, turns."""

from __future__ import annotations

import cluster
import existing
from existing import Existing

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port


def controlled_by(kind: str, api: str, name: str = "above", uid: str = "") -> cluster.Object:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


@cluster.virtual
async def test_a_bad_annotation_is_told_by_its_name_and_costs_nobody_else_anything() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("wrong", parallelism=1, completions=1, said={"deadline-in": "soon"}, run_for="10m")
        jobs.create("right", parallelism=1, completions=1, run_for="10m")
        words = await jobs.until_told("wrong", "BadAnnotations")
        assert "lstqueue.dev/deadline-in" in words
        await jobs.until_phase("right", "Succeeded")
        await jobs.until_phase("wrong", "Succeeded")


@cluster.virtual
async def test_a_misspelt_annotation_is_told() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", said={"dead-line": "6h"}, run_for="10m")
        assert "lstqueue.dev/deadline" in await jobs.until_told("train", "UnknownAnnotation")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_edits_of_annotations_follow_into_the_deadline_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", said={"deadline-in": "6h", "estimated-duration": "1h", "value": "5"})
        await jobs.until_phase("train", "Pending")
        ledger = jobs.ledger("train")
        jobs.say("train", deadline_in="8h", value=None, checkpoint_interval="10m")
        await made.until(lambda: made.job(ledger)["spec"].get("deadlineIn") == "8h", "the deadline moved")
        spec = made.job(ledger)["spec"]
        assert spec["checkpoint"] == {"interval": "10m"}
        assert spec.get("value", 1) == 1
        made.edit(ledger, importance=3)
        jobs.say("train", estimated_duration="2h", checkpoint_interval=None, restart_overhead="1m")
        await made.until(lambda: made.job(ledger)["spec"]["estimatedDuration"] == "2h", "it followed")
        spec = made.job(ledger)["spec"]
        assert (spec["importance"], spec["checkpoint"]) == (3, {"restartOverhead": "1m"})


@cluster.virtual
async def test_jobs_of_kinds_that_are_not_supported_are_named_and_not_queued() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("part", owner=controlled_by("JobSet", "jobset.x-k8s.io/v1alpha2"))
        words = await jobs.until_told("part", "UnsupportedOwner")
        assert "JobSet above" in words
        assert jobs.ledgers("part") == []


@cluster.virtual
async def test_two_labelled_jobs_of_one_unknown_owner_are_both_rejected() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        owner = controlled_by("Workflow", "argoproj.io/v1alpha1")
        jobs.create("one", owner=owner)
        await jobs.until_phase("one", "Pending")
        jobs.create("two", owner=owner)
        for name in ("one", "two"):
            assert "Workflow above" in await jobs.until_told(name, "SharedOwner")
        await jobs.until_phase("one", "Rejected")
        assert jobs.phase("two") in ("", "Rejected")


@cluster.virtual
async def test_children_of_a_queued_job_are_not_queued_themselves() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        uid = jobs.create("top")
        jobs.create("child", owner=controlled_by("Job", "batch/v1", "top", uid))
        assert "Job top" in await jobs.until_told("child", "LabelIgnored")
        await jobs.until_phase("top", "Pending")
        assert jobs.ledgers("child") == []


@cluster.virtual
async def test_one_reference_per_job_the_oldest() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, run_for="10m")
        jobs.refer("first", "train")
        await made.rest("2s")
        jobs.refer("second", "train")
        await made.until_phase("second", "Rejected")
        assert made.condition("second", "Finished")["reason"] == "DuplicateReference"
        assert "first" in made.condition("second", "Finished")["message"]
        await made.until_phase("first", "Succeeded")


@cluster.virtual
async def test_a_label_on_a_cron_job_itself_is_told() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        job = existing.body("nightly", queue=None)
        spec = {"schedule": "0 3 * * *", "jobTemplate": {"metadata": {}, "spec": job["spec"]}}
        meta = {"name": "nightly", "labels": {names.LABEL_QUEUE: cluster.QUEUE}}
        made.create(port.CRON_JOBS, {"metadata": meta, "spec": {**spec, "suspend": True}})
        assert "jobTemplate" in await jobs.until_told("nightly", "LabelMisplaced", kind="CronJob")


@cluster.virtual
async def test_a_job_made_by_a_cron_job_is_a_unit() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        job = existing.body("nightly", run_for="10m")
        template = {"metadata": {"labels": job["metadata"]["labels"]}, "spec": job["spec"]}
        spec = {"schedule": "0 3 * * *", "jobTemplate": template, "suspend": True}
        cron = made.create(port.CRON_JOBS, {"metadata": {"name": "nightly"}, "spec": spec})
        owner = controlled_by("CronJob", "batch/v1", "nightly", cron["metadata"]["uid"])
        jobs.create("nightly-1", owner=owner, run_for="10m")
        await jobs.until_phase("nightly-1", "Succeeded")


@cluster.virtual
async def test_who_had_to_make_room_reads_for_whom_and_a_missed_deadline_is_told() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue(preemption={"withinQueue": "NoHarm", "minRunTime": "1m"})
        jobs.create("idle", parallelism=1, completions=1, run_for="5h")
        await jobs.until_phase("idle", "Running")
        await made.rest("5m")
        urgent = {"deadline-in": "70m", "estimated-duration": "1h"}
        jobs.create("urgent", parallelism=1, completions=1, said=urgent, run_for="90m")
        words = await jobs.until_told("idle", "Preempted", within="30m")
        assert jobs.ledger("urgent") in words
        assert "has passed" in await jobs.until_told("urgent", "DeadlineMissed", within="3h")
        await jobs.until_phase("idle", "Succeeded", within="12h")


@cluster.virtual
async def test_words_that_cannot_be_written_hold_up_nothing() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        made.faults.fail(503, "ServiceUnavailable", when=faults.calls(resource=port.EVENTS), times=None)
        jobs.create("train", run_for="10m")
        await jobs.until_phase("train", "Running", within="1m")
        await jobs.until_phase("train", "Succeeded")
        assert made.operator.events.failed > 0
