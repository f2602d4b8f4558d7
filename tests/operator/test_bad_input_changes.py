"""What is changed, deleted or taken away under a job: it is told, and nobody else is hurt."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import LABEL, Existing, body
from manifests import group, own, pool

from cases import bad_input
from lstqueue.embedded import resources
from lstqueue.kube import port

Object = dict[str, Any]
OTHER = "healthy"


def healthy(made: cluster.Cluster) -> None:
    made.queue(OTHER)
    made.submit(OTHER, group(run_for="10m"), queue=OTHER)


async def unharmed(made: cluster.Cluster) -> None:
    await made.until_phase(OTHER, "Succeeded")
    assert made.status(OTHER)["attempt"] == 1


# References


@cluster.virtual
async def test_a_reference_to_a_job_that_does_not_exist_says_so_until_it_does() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.refer("mine", "train")
        healthy(made)
        await made.until(lambda: made.code("mine") == "JobNotFound", "it is told", within="1m")
        assert "Job default/train does not exist" in made.status("mine")["pending"]["message"]
        await unharmed(made)
        with pytest.raises(port.InvalidError) as refused:
            made.edit("mine", jobRef={"name": "other"})
        assert "jobRef never changes" in refused.value.message
        jobs.create("train", queue=None, run_for="10m")
        await made.until_phase("mine", "Succeeded")


@cluster.virtual
async def test_of_two_references_to_one_job_the_older_counts() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, run_for="10m")
        jobs.refer("first", "train")
        await made.rest("5s")
        jobs.refer("second", "train")
        healthy(made)
        await made.until_phase("second", "Rejected", within="1m")
        finished = made.condition("second", "Finished")
        assert finished["reason"] == "DuplicateReference"
        assert "DeadlineJob default/first speaks for Job default/train" in finished["message"]
        assert "delete one" in finished["message"]
        await made.until_phase("first", "Succeeded")
        await unharmed(made)


@cluster.virtual
async def test_a_labelled_job_that_is_referred_to_as_well_has_one_ledger() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="10m")
        await made.until(lambda: jobs.ledger("train"), "it has a ledger")
        labelled = jobs.ledger("train")
        await made.rest("5s")
        jobs.refer("mine", "train")
        healthy(made)
        await made.until_phase("mine", "Rejected", within="1m")
        assert labelled in made.condition("mine", "Finished")["message"]
        await made.until_phase(labelled, "Succeeded")
        assert len(jobs.ledgers("train")) == 2
        await unharmed(made)


@cluster.virtual
async def test_a_job_that_is_deleted_and_made_anew_is_another_one() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, run_for="1h")
        jobs.refer("mine", "train")
        healthy(made)
        await made.until_phase("mine", "Running")
        made.delete("train", port.JOBS)
        await made.until(lambda: made.store.find(port.JOBS, "default", "train") is None, "it is gone")
        jobs.create("train", queue=None, run_for="1h")
        await made.until_phase("mine", "Failed")
        finished = made.condition("mine", "Finished")
        assert finished["reason"] == "JobVanished"
        assert "was deleted" in finished["message"]
        assert jobs.suspended("train")
        jobs.refer("again", "train")
        await made.until_phase("again", "Succeeded", within="2h")
        await unharmed(made)


# Labels that come late, or in the wrong place


@cluster.virtual
async def test_a_job_that_runs_when_the_label_comes_is_suspended_and_told_why() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, suspend=False, run_for="10m")
        healthy(made)
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        jobs.patch("train", {"metadata": {"labels": {LABEL: cluster.QUEUE}}})
        words = await jobs.until_told("train", "SuspendedOnSight")
        assert "without an admission" in words
        await jobs.until_phase("train", "Succeeded")
        await unharmed(made)


@cluster.virtual
async def test_a_label_on_a_cron_job_is_told_to_be_in_the_wrong_place() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        inner = body("unused", queue=None, suspend=False, parallelism=1, completions=1, run_for="1m")
        cron = {
            "metadata": {"name": "nightly", "labels": {LABEL: cluster.QUEUE}},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": inner["spec"]}},
        }
        made.create(port.CRON_JOBS, cron)
        healthy(made)
        words = await jobs.until_told("nightly", "LabelMisplaced", kind="CronJob")
        assert "spec.jobTemplate.metadata" in words
        await unharmed(made)
        made.delete("nightly", port.CRON_JOBS)


# Edits


@cluster.virtual
async def test_a_template_that_is_edited_while_it_waits_is_judged_as_it_is_then() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", run_for="10m")
        healthy(made)
        await made.until(lambda: made.code(jobs.ledger("train")) == "QueueHeld", "it waits")
        edited = {"template": {"spec": {"nodeSelector": {"zone": "moon"}}}}
        jobs.patch("train", {"spec": edited})
        made.patch_queue(stopPolicy="None")
        words = await jobs.until_told("train", "NoMatchingNodes")
        assert "node selector" in words
        await made.rest("10m")
        assert jobs.suspended("train")
        jobs.patch("train", {"spec": {"template": {"spec": {"nodeSelector": {"zone": None}}}}})
        await jobs.until_phase("train", "Succeeded")
        await unharmed(made)


@cluster.virtual
async def test_a_template_that_is_edited_into_what_is_not_modelled_ends_the_wait() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", run_for="10m")
        healthy(made)
        await made.until(lambda: made.code(jobs.ledger("train")) == "QueueHeld", "it waits")
        spec, where = bad_input.UNSUPPORTED["an empty node selector term"]
        jobs.patch("train", {"spec": {"template": {"spec": spec}}})
        words = await jobs.until_told("train", "UnsupportedConstraint")
        assert where in words
        assert jobs.suspended("train")
        await unharmed(made)


@cluster.virtual
async def test_parallelism_that_changes_in_flight_takes_the_whole_gang_through_the_queue_again() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("bag", parallelism=2, completions=6, run_for="20m")
        healthy(made)
        await jobs.until_phase("bag", "Running")
        jobs.patch("bag", {"spec": {"parallelism": 3}})
        words = await jobs.until_told("bag", "Suspended")
        assert "other pods than those admitted" in words
        await jobs.until_phase("bag", "Succeeded", within="3h")
        await unharmed(made)


# What is taken away


@cluster.virtual
async def test_jobs_that_run_outlive_their_queue_and_those_that_wait_are_told() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue(gpus=16)
        jobs.create("runs", run_for="1h")
        healthy(made)
        await jobs.until_phase("runs", "Running")
        jobs.create("waits", run_for="10m")
        await made.until(lambda: made.code(jobs.ledger("waits")) == "QuotaExceeded", "it waits")
        made.delete(cluster.QUEUE, port.GPU_QUEUES)
        words = await jobs.until_told("waits", "QueueNotFound")
        assert '"research"' in words
        await jobs.until_phase("runs", "Succeeded", within="2h")
        assert jobs.suspended("waits")
        await unharmed(made)


@cluster.virtual
async def test_a_namespace_that_ends_under_its_jobs_gives_their_room_back() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=16)
        made.store.create(port.NAMESPACES, None, {"metadata": {"name": "team"}})
        for name in ("runs", "waits"):
            spec = {"queue": cluster.QUEUE, "groups": [group("worker", 2, run_for="9h")]}
            made.store.create(port.DEADLINE_JOBS, "team", own("DeadlineJob", name, spec))
            await made.rest("1m")
        healthy(made)
        await made.until(lambda: len(made.pods("runs")) == 2, "one runs")
        ending = "unable to create new content in namespace team because it is being terminated"
        made.faults.fail(
            403, "Forbidden", message=ending, when=lambda call: call.namespace == "team", times=None
        )
        for resource in (port.DEADLINE_JOBS, port.JOBS, port.SERVICES, port.PODS):
            for raw in list(made.store.list(resource, namespace="team")):
                made.store.delete(resource, "team", raw["metadata"]["name"])
        made.store.delete(port.NAMESPACES, None, "team")
        await unharmed(made)
        made.calm()
        made.submit("next", group("worker", 2, run_for="10m"))
        await made.until_phase("next", "Succeeded")


@cluster.virtual
async def test_a_limit_range_that_refuses_the_pods_is_told_in_its_words_until_it_takes_them() -> None:
    async with cluster.run(nodes=2, slack=40) as made:
        made.queue()
        most = {"type": "Container", "max": {"nvidia.com/gpu": "4"}}
        made.create(resources.LIMIT_RANGES, {"metadata": {"name": "small"}, "spec": {"limits": [most]}})
        made.submit("job", group(run_for="10m"))
        await made.until(lambda: made.code("job") == "Forbidden", "it is told", within="1m")
        message = made.status("job")["pending"]["message"]
        assert "maximum nvidia.com/gpu usage per Container is 4" in message
        await made.rest("10m")
        made.delete("small", resources.LIMIT_RANGES)
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_what_a_limit_range_adds_counts_in_the_fit() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(pools=[pool("all")])
        given = {"type": "Container", "defaultRequest": {"cpu": "5000"}, "default": {"cpu": "5000"}}
        made.create(resources.LIMIT_RANGES, {"metadata": {"name": "large"}, "spec": {"limits": [given]}})
        made.submit("job", group("worker", 3, gpus=1, run_for="10m"))
        await made.until(lambda: made.code("job") == "NoMatchingNodes", "it is told", within="1m")
        assert "cpu" in made.status("job")["pending"]["message"]
