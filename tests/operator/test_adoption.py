"""What happens to Jobs that run already when lstqueue first sees them, or that others steer beside it."""

from __future__ import annotations

import cluster
import existing
import manifests
from existing import Existing

from lstqueue.api import names
from lstqueue.jobs import existing as existing_jobs
from lstqueue.jobs import views
from lstqueue.kube import port


def ledger_uids(jobs: Existing, name: str) -> list[str]:
    return [raw["metadata"]["uid"] for raw in jobs.ledgers(name)]


def spoken_for(jobs: Existing, name: str) -> set[str]:
    return {raw["metadata"]["labels"].get(names.LABEL_JOB) for raw in jobs.pods(name)}


@cluster.virtual
async def test_a_labelled_job_that_runs_is_suspended_on_sight_and_told_why() -> None:
    async with cluster.run(nodes=2, start=False) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", suspend=False, run_for="30m")
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        await made.start()
        await made.until(lambda: jobs.suspended("train"), "it is suspended")
        assert "suspended" in await jobs.until_told("train", "SuspendedOnSight")
        await jobs.until_phase("train", "Running")
        assert all(names.LABEL_JOB in raw["metadata"]["labels"] for raw in jobs.pods("train"))
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_job_that_is_to_be_adopted_goes_on_where_it_runs() -> None:
    async with cluster.run(nodes=3, start=False) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", suspend=False, run_for="2h", said={"adopt": "true"})
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        before = {raw["metadata"]["uid"]: raw["spec"]["nodeName"] for raw in jobs.pods("train")}
        await made.start()
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        await made.until(lambda: len(made.pods("train")) == 2, "its pods are members")
        after = {raw["metadata"]["uid"]: raw["spec"]["nodeName"] for raw in made.pods("train")}
        assert after == before
        assert sorted(made.placement(ledger).values()) == sorted(before.values())
        assert "Adopted" in jobs.events("train")
        made.submit("next", made_of(2))
        await made.rest("30m")
        assert made.phase("next") == "Pending"
        await jobs.until_phase("train", "Succeeded", within="3h")
        await made.until_phase("next", "Succeeded", within="3h")


def made_of(pods: int) -> cluster.Object:
    return manifests.group("worker", pods, run_for="10m")


@cluster.virtual
async def test_a_lost_ledger_is_written_anew_and_its_job_goes_on_undisturbed() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="2h", said={"deadline-in": "5h", "estimated-duration": "2h"})
        await jobs.until_phase("train", "Running")
        (first,) = ledger_uids(jobs, "train")
        deadline = made.status(jobs.ledger("train"))["deadline"]
        before = sorted(raw["metadata"]["uid"] for raw in jobs.pods("train"))
        made.delete(jobs.ledger("train"))
        await made.until(lambda: first not in ledger_uids(jobs, "train") != [], "it is there again")
        await jobs.until_phase("train", "Running")
        (second,) = ledger_uids(jobs, "train")
        await made.until(
            lambda: (
                {raw["metadata"]["labels"].get(names.LABEL_JOB) for raw in jobs.pods("train")} == {second}
            ),
            "its pods are those of the new ledger",
        )
        assert sorted(raw["metadata"]["uid"] for raw in jobs.pods("train")) == before
        assert made.status(jobs.ledger("train"))["deadline"] == deadline
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_gang_is_adopted_with_the_ranks_that_are_left_of_it() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", parallelism=4, completions=4, run_for="2h")
        await jobs.until_phase("train", "Running")
        first = next(raw for raw in jobs.pods("train") if raw["metadata"]["labels"][views.INDEX] == "0")
        made.end_pod(first, "Succeeded")
        await made.rest("5s")
        made.delete(jobs.ledger("train"))
        await made.until(lambda: made.status(jobs.ledger("train")).get("attempt") == 1, "adopted")
        assert sorted(made.placement(jobs.ledger("train"))) == [1, 2, 3]
        made.submit("next", made_of(1))
        await made.until_phase("next", "Running", within="5m")
        assert jobs.phase("train") == "Running"
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_deadline_job_that_refers_to_a_running_job_is_rejected() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, suspend=False, run_for="1h")
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        jobs.refer("mine", "train")
        await made.until_phase("mine", "Rejected")
        finished = made.condition("mine", "Finished")
        assert finished["reason"] == "AlreadyRunning"
        assert "suspend it" in finished["message"]
        assert "create a new DeadlineJob" in finished["message"]
        assert not jobs.suspended("train")
        assert len(jobs.bound("train")) == 2


@cluster.virtual
async def test_a_running_job_that_was_annotated_before_may_be_referred_to() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue=None, suspend=False, run_for="1h", said={"adopt": "true"})
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        jobs.refer("mine", "train")
        await made.until_phase("mine", "Running")
        await made.until_phase("mine", "Succeeded", within="2h")


@cluster.virtual
async def test_what_to_do_about_a_deleted_job_depends_on_who_wrote_its_deadline_job() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("labelled")
        jobs.create("plain", queue=None)
        jobs.refer("mine", "plain")
        await jobs.until_phase("labelled", "Pending")
        await made.until_phase("mine", "Pending")
        ledger = jobs.ledger("labelled")
        for name in ("labelled", "plain"):
            made.store.delete(port.JOBS, cluster.NAMESPACE, name)
        await made.until_all("Failed", ledger, "mine")
        assert "take it for a new one" in made.condition(ledger, "Finished")["message"]
        assert "together with a new DeadlineJob" in made.condition("mine", "Finished")["message"]


@cluster.virtual
async def test_a_suspension_by_hand_is_the_users_own_pause() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h")
        await jobs.until_phase("train", "Running")
        jobs.suspend("train")
        ledger = jobs.ledger("train")
        await made.until(lambda: made.code(ledger) == "Inactive", "it is paused")
        await made.rest("1h")
        assert jobs.suspended("train")
        jobs.suspend("train", value=False)
        await jobs.until_phase("train", "Running")
        assert made.status(ledger)["attempt"] == 2
        assert made.job(ledger)["spec"]["active"] is True
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_pauses_of_the_user_are_no_offence_however_often_they_end() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="2h")
        for attempt in range(1, 6):
            await jobs.until_phase("train", "Running")
            assert made.status(jobs.ledger("train"))["attempt"] == attempt
            await made.rest("20s")
            jobs.suspend("train")
            await made.until(lambda: made.code(jobs.ledger("train")) == "Inactive", "it is paused")
            await made.rest("20s")
            jobs.suspend("train", value=False)
        await jobs.until_phase("train", "Running")
        assert {"SuspendedOnSight", "SuspensionUndone"}.isdisjoint(jobs.events("train"))
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_an_admission_soon_after_two_early_resumes_is_no_dispute() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", parallelism=1, completions=1, run_for="1h")
        await jobs.until_phase("train", "Pending")
        for _ in range(2):
            jobs.suspend("train", value=False)
            await made.until(lambda: jobs.suspended("train"), "it is suspended again")
            await made.rest("10s")
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Running")
        jobs.suspend("train")
        await made.until(lambda: made.code(jobs.ledger("train")) == "Inactive", "it is paused")
        jobs.suspend("train", value=False)
        await jobs.until_phase("train", "Running")
        await made.rest("1m")
        assert "SuspensionUndone" not in jobs.events("train")
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_job_that_is_resumed_without_its_turn_is_suspended_again_and_nobody_fights() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", parallelism=1, completions=1, run_for="1h")
        await jobs.until_phase("train", "Pending")
        for _ in range(2):
            jobs.suspend("train", value=False)
            await made.until(lambda: jobs.suspended("train"), "it is suspended again")
            await made.rest("10s")
        await jobs.until_told("train", "SuspendedOnSight")
        jobs.suspend("train", value=False)
        await made.rest("30m")
        assert not jobs.suspended("train")
        assert made.code(jobs.ledger("train")) == "SuspensionUndone"
        assert "leaves it running" in await jobs.until_told("train", "SuspensionUndone")
        jobs.suspend("train")
        await made.until(lambda: made.code(jobs.ledger("train")) == "QueueHeld", "it is queued again")
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_job_of_another_manager_is_left_alone_and_told_so() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        kueue = {**jobs_body("theirs"), "metadata": {"name": "theirs", "labels": labels()}}
        made.create(port.JOBS, kueue)
        assert "Kueue" in await jobs.until_told("theirs", "OtherManager")
        await made.rest("10m")
        assert jobs.ledgers("theirs") == []
        jobs.refer("mine", "theirs")
        await made.until_phase("mine", "Rejected")
        assert made.condition("mine", "Finished")["reason"] == "OtherManager"
        assert jobs.suspended("theirs")


def labels() -> cluster.Object:
    return {names.LABEL_QUEUE: cluster.QUEUE, existing_jobs.KUEUE: "team-a"}


def jobs_body(name: str) -> cluster.Object:
    return existing.body(name)


@cluster.virtual
async def test_a_job_is_not_adopted_while_a_pod_and_its_replacement_are_both_there() -> None:
    async with cluster.run(nodes=3, slack=20, reaction="20m") as made:
        jobs = Existing(made)
        made.queue()
        slow = {"terminationGracePeriodSeconds": 900}
        jobs.create("train", suspend=False, queue=None, run_for="3h", terminate_after="10m", pod=slow)
        await made.rest("1m")
        made.delete(jobs.pods("train")[0]["metadata"]["name"], port.PODS)
        await made.rest("20s")
        asked = {
            "labels": {names.LABEL_QUEUE: cluster.QUEUE},
            "annotations": {f"{names.GROUP}/adopt": "true"},
        }
        jobs.patch("train", {"metadata": asked})
        await made.rest("1m")
        assert made.code(jobs.ledger("train")) == "Adopting"
        await jobs.until_phase("train", "Running", within="15m")
        assert sorted(made.placement(jobs.ledger("train")).values()) == jobs.bound("train")
