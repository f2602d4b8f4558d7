"""Jobs that end, go, or cannot go: what their users are told is what happened, and CronJobs go on."""

from __future__ import annotations

import cluster
import pytest
from existing import Existing, body
from manifests import group

from lstqueue.kube import port


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"max-run-time": "5m"}, "MaxRunTimeExceeded"),
        ({"deadline-in": "10m", "on-missed": "Cancel"}, "DeadlineMissed"),
    ],
)
@cluster.virtual
async def test_a_job_that_we_end_is_not_told_that_it_ran_without_an_admission(
    said: dict[str, str], reason: str
) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        jobs.create("long", parallelism=1, completions=1, run_for="1h", said=said)
        await jobs.until_phase("long", "Failed")
        await made.until(lambda: jobs.suspended("long"), "it is stopped")
        await made.rest("5m")
        assert made.condition(jobs.ledger("long"), "Finished")["reason"] == reason
        assert reason in jobs.events("long")
        assert "SuspendedOnSight" not in jobs.events("long")
        jobs.suspend("long", False)
        assert "stays suspended" in await jobs.until_told("long", "Ended")
        assert jobs.suspended("long")


ENDS = [
    {"max-run-time": "5m"},
    {"deadline-in": "10m", "on-missed": "Cancel"},
    {"deadline-in": "1m", "estimated-duration": "20m", "on-infeasible": "Reject"},
]


@pytest.mark.parametrize("said", ENDS, ids=["limit", "cancel", "reject"])
@cluster.virtual
async def test_a_cron_job_that_forbids_two_at_once_goes_on_after_a_job_that_we_ended(
    said: dict[str, str],
) -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        job = body("x", parallelism=1, completions=1, run_for="20m", said=said)
        template = {"metadata": {key: job["metadata"][key] for key in ("labels", "annotations")}}
        spec = {"schedule": "*/30 * * * *", "concurrencyPolicy": "Forbid"}
        spec["jobTemplate"] = {**template, "spec": job["spec"]}
        cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": spec}
        made.create(port.CRON_JOBS, cron_job)
        await made.rest("100m")
        told = [raw["spec"]["jobRef"]["name"] for raw in made.store.list(port.DEADLINE_JOBS)]
        assert len(set(told)) == 3, told
        assert "was ended by lstqueue" in jobs.events("often", "CronJob")["JobEnded"]
        made.delete("often", port.CRON_JOBS)


@cluster.virtual
async def test_what_a_cron_job_replaces_is_forgotten_sooner_than_other_jobs() -> None:
    async with cluster.run(nodes=1, slack=600, reaction="3h") as made:
        made.queue(gpus=8)
        job = body("x", parallelism=1, completions=1, run_for="20m")
        spec = {"schedule": "*/10 * * * *", "concurrencyPolicy": "Replace"}
        spec["jobTemplate"] = {"metadata": {"labels": job["metadata"]["labels"]}, "spec": job["spec"]}
        cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": spec}
        made.create(port.CRON_JOBS, cron_job)
        await made.rest("3h")
        ledgers = [raw["metadata"]["name"] for raw in made.store.list(port.DEADLINE_JOBS)]
        assert 3 < len(ledgers) <= 8, ledgers
        reasons = {made.condition(name, "Finished").get("reason") for name in ledgers}
        assert reasons <= {"Replaced", None}
        made.delete("often", port.CRON_JOBS)


@cluster.virtual
async def test_a_job_that_is_deleted_and_kept_is_no_victim_and_its_room_is_not_promised() -> None:
    async with cluster.run(nodes=1, slack=60, reaction="12h") as made:
        made.queue(gpus=8, preemption={"minRunTime": "0s"})
        jobs = Existing(made)
        jobs.create("kept", parallelism=1, completions=1, run_for="10h")
        await jobs.until_phase("kept", "Running")
        jobs.patch("kept", {"metadata": {"finalizers": ["example.com/keep"]}})
        made.delete("kept", port.JOBS)
        assert "example.com/keep" in await jobs.until_told("kept", "KeptByFinalizer")
        made.submit("urgent", group(run_for="10m"), deadlineIn="2h", estimatedDuration="10m")
        await made.until(lambda: made.level("urgent"), "it is judged")
        await made.rest("5m")
        assert (jobs.phase("kept"), made.phase("urgent")) == ("Running", "Pending")
        assert "forecastStart" not in made.status("urgent")["verdict"]
        made.patch_queue(stopPolicy="HoldAndDrain")
        await made.rest("5m")
        assert jobs.phase("kept") == "Running"
        made.patch_queue(stopPolicy="None")
        jobs.patch("kept", {"metadata": {"finalizers": None}})
        await made.until_phase("urgent", "Succeeded")


@cluster.virtual
async def test_room_is_not_promised_that_a_suspended_job_keeps_for_it_was_deleted_before() -> None:
    async with cluster.run(nodes=1, slack=60, reaction="12h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        jobs.create("kept", parallelism=1, completions=1, run_for="10h", said={"estimated-duration": "10h"})
        await jobs.until_phase("kept", "Running")
        jobs.patch("kept", {"metadata": {"finalizers": ["example.com/keep"]}})
        made.delete("kept", port.JOBS)
        made.edit(jobs.ledger("kept"), active=False)
        await jobs.until_phase("kept", "Suspending")
        made.submit("next", group(run_for="10m"), deadlineIn="2h", estimatedDuration="10m")
        await made.until(lambda: made.level("next"), "it is judged")
        assert "forecastStart" not in made.status("next")["verdict"]
        jobs.patch("kept", {"metadata": {"finalizers": None}})
        await made.until_phase("next", "Succeeded")


@cluster.virtual
async def test_a_job_that_went_while_nobody_looked_is_not_said_to_have_been_deleted() -> None:
    async with cluster.run(nodes=1, reaction="2h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        spec = {"ttlSecondsAfterFinished": 0}
        jobs.create("brief", parallelism=1, completions=1, run_for="10m", spec=spec)
        jobs.create("gone", parallelism=1, completions=1, gpus=0, run_for="10h")
        await jobs.until_phase("brief", "Running")
        made.delete("gone", port.JOBS)
        await made.until(lambda: made.phase(jobs.ledger("gone")) == "Failed", "it is told")
        assert "was deleted" in made.condition(jobs.ledger("gone"), "Finished")["message"]
        await made.kill()
        await made.rest("20m")
        await made.start()
        await made.until(lambda: made.phase(jobs.ledger("brief")) == "Failed", "it is told")
        told = made.condition(jobs.ledger("brief"), "Finished")["message"]
        assert "may have succeeded" in told
        assert "ttlSecondsAfterFinished" in told


@cluster.virtual
async def test_a_reference_to_a_job_of_a_gang_is_told_whose_job_that_is() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        made.submit("gang", group(run_for="10m"))
        await made.until_phase("gang", "Running")
        jobs.refer("other", "gang-worker-0")
        await made.until(lambda: made.code("other") == "LabelIgnored", "it is told")
        assert "DeadlineJob default/gang made" in made.status("other")["pending"]["message"]


@cluster.virtual
async def test_a_job_that_names_itself_its_owner_is_queued() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        uid = jobs.create("self", parallelism=1, completions=1, run_for="1m", queue=None)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "self", "uid": uid, "controller": True}
        labels = {"lstqueue.dev/queue": cluster.QUEUE}
        jobs.patch("self", {"metadata": {"ownerReferences": [owner], "labels": labels}})
        await jobs.until_phase("self", "Succeeded")
