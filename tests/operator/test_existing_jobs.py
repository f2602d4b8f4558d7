"""Existing Jobs wait, run where they were admitted, and end, by nothing but a label."""

from __future__ import annotations

import cluster
from existing import Existing

from lstqueue.api import names


@cluster.virtual
async def test_a_labelled_gang_waits_suspended_runs_on_its_admission_and_ends_with_its_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", said={"deadline-in": "6h", "estimated-duration": "30m"}, run_for="30m")
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        places = made.placement(ledger)
        assert sorted(places.values()) == jobs.bound("train") == sorted(set(places.values()))
        ranks = {
            raw["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: raw["spec"]["nodeName"]
            for raw in jobs.pods("train")
        }
        assert ranks == {str(rank): node for rank, node in places.items()}
        assert made.job(ledger)["metadata"]["labels"][names.LABEL_LEDGER] == "true"
        assert made.level(ledger) == "LIKELY"
        await jobs.until_phase("train", "Succeeded")
        assert jobs.over("train") == "Complete"
        assert "Admitted" in jobs.events("train")


@cluster.virtual
async def test_a_job_without_room_stays_suspended_and_has_no_pods() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("first", parallelism=1, completions=1, run_for="1h")
        await jobs.until_phase("first", "Running")
        jobs.create("second", parallelism=1, completions=1, run_for="10m")
        await made.rest("10m")
        assert (jobs.phase("second"), made.code(jobs.ledger("second"))) == ("Pending", "NoRoom")
        assert jobs.suspended("second")
        assert jobs.ledger("second") in jobs.events("second")["Queued"]
        assert jobs.pods("second") == []
        await jobs.until_phase("second", "Succeeded", within="3h")


@cluster.virtual
async def test_a_deadline_job_may_refer_to_a_job_that_is_not_labelled() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.refer("mine", "train", deadlineIn="4h", estimatedDuration="10m")
        await made.until(lambda: made.code("mine") == "JobNotFound", "it is said that the job is missing")
        jobs.create("train", queue=None, run_for="10m")
        await made.until_phase("mine", "Running")
        assert made.status("mine")["jobUid"] == jobs.job("train")["metadata"]["uid"]
        await made.until_phase("mine", "Succeeded")
        assert len(jobs.ledgers("train")) == 1


@cluster.virtual
async def test_a_job_that_fails_by_its_own_rules_fails_its_deadline_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", spec={"backoffLimit": 0}, fail_after="5m", run_for="10m")
        await jobs.until_phase("train", "Failed")
        assert jobs.over("train") == "Failed" or not jobs.pods("train")
        assert "BackoffLimitExceeded" in str(made.condition(jobs.ledger("train"), "Finished"))


@cluster.virtual
async def test_no_parallelism_is_said_and_mended_by_raising_it() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", parallelism=0, completions=2, run_for="10m")
        await made.until(lambda: made.code(jobs.ledger("train")) == "NoParallelism", "it is said why")
        await made.rest("5m")
        jobs.patch("train", {"spec": {"parallelism": 2}})
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_a_waiting_job_that_is_changed_is_admitted_as_it_is_then() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", run_for="10m")
        await jobs.until_phase("train", "Pending")
        await made.rest("5m")
        jobs.patch("train", {"spec": {"parallelism": 4, "completions": 4}})
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Running")
        assert len(made.placement(jobs.ledger("train"))) == 4
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_a_running_job_that_is_changed_is_queued_again_in_its_new_shape() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h")
        await jobs.until_phase("train", "Running")
        jobs.patch("train", {"spec": {"parallelism": 4, "completions": 4}})
        await made.until(lambda: made.status(jobs.ledger("train")).get("attempt") == 2, "admitted again")
        await jobs.until_phase("train", "Running")
        assert len(made.placement(jobs.ledger("train"))) == 4
        assert "Suspended" in jobs.events("train")
        await jobs.until_phase("train", "Succeeded", within="3h")
