"""Crashes, lost replies, two writers and Jobs that come and go under their DeadlineJob."""

from __future__ import annotations

import cluster
import pytest
from existing import Existing

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port

RUN = {"run_for": "20m", "said": {"deadline-in": "6h", "estimated-duration": "30m"}}


async def whole_life(made: cluster.Cluster, *, number: int, before: bool) -> bool:
    """Run a gang and a bag, the operator killed at its `number`-th write; whether it got that far."""
    jobs = Existing(made)
    made.queue()
    killed = made.kill_at(number, before=before)
    jobs.create("gang", **RUN)
    jobs.create("bag", parallelism=1, completions=3, indexed=False, **RUN)
    for _ in range(200):
        if killed.is_set() or jobs.over("gang") == jobs.over("bag") == "Complete":
            break
        await made.rest("30s")
    if killed.is_set():
        await made.restart()
    for name in ("gang", "bag"):
        await jobs.until_phase(name, "Succeeded", within="6h")
        assert len(jobs.ledgers(name)) == 1
        assert jobs.over(name) == "Complete"
    return killed.is_set()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 19))
@cluster.virtual
async def test_a_crash_at_any_write_loses_nothing(number: int, before: bool) -> None:
    async with cluster.run(nodes=3, slack=40, reaction="10m") as made:
        killed = await whole_life(made, number=number, before=before)
        assert killed or number > SURE


SURE = 15
"""So many writes two Jobs take in any case."""


@pytest.mark.parametrize("resource", [port.DEADLINE_JOBS, port.JOBS, port.PODS], ids=lambda item: item.plural)
@cluster.virtual
async def test_lost_replies_make_no_second_ledger_and_no_second_release(resource: port.Resource) -> None:
    async with cluster.run(nodes=3, slack=60, reaction="10m") as made:
        jobs = Existing(made)
        made.queue()
        made.faults.lose_response(
            when=lambda call: call.resource == resource and faults.writes(call), times=3
        )
        jobs.create("gang", **RUN)
        await jobs.until_phase("gang", "Succeeded", within="6h")
        assert len(jobs.ledgers("gang")) == 1


@cluster.virtual
async def test_conflicts_are_met_by_reading_again() -> None:
    async with cluster.run(nodes=3, slack=60, reaction="10m") as made:
        jobs = Existing(made)
        made.queue()
        made.faults.conflict(when=lambda call: call.resource == port.JOBS and faults.writes(call), times=3)
        jobs.create("gang", **RUN)
        await jobs.until_phase("gang", "Succeeded", within="6h")


@cluster.virtual
async def test_a_job_of_the_same_name_is_a_new_unit() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h", said={"deadline-in": "6h"})
        await jobs.until_phase("train", "Running")
        first = jobs.ledger("train")
        made.delete("train", port.JOBS)
        await made.until_phase(first, "Failed")
        assert made.condition(first, "Finished")["reason"] == "JobVanished"
        assert not made.holds(first, "DeadlineMissed")
        jobs.create("train", run_for="10m")
        await made.until(lambda: jobs.ledger("train") not in ("", first), "a new ledger")
        await jobs.until_phase("train", "Succeeded")
        assert made.phase(first) == "Failed"


@cluster.virtual
async def test_a_reference_holds_to_the_job_it_saw_first() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", queue=None)
        jobs.refer("mine", "train")
        await made.until(lambda: made.status("mine").get("jobUid"), "the job is seen")
        await made.kill()
        made.delete("train", port.JOBS)
        jobs.create("train", queue=None)
        await made.start()
        await made.until_phase("mine", "Failed")
        assert made.condition("mine", "Finished")["reason"] == "JobVanished"
        assert jobs.suspended("train")


@cluster.virtual
async def test_a_job_deleted_and_recreated_while_its_release_was_on_its_way_is_not_released() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        jobs = Existing(made)
        made.queue()

        def meddle(call: faults.Call) -> bool:
            if call.resource == port.JOBS and call.verb == "patch":
                made.delete("train", port.JOBS)
                jobs.create("train", queue=None)
            return call.resource == port.JOBS and call.verb == "patch"

        made.faults.delay(0, when=meddle, times=1)
        jobs.create("train", run_for="10m")
        await made.until(lambda: len(jobs.ledgers("train")) == 1, "it has a ledger")
        await jobs.until_phase("train", "Failed")
        await made.rest("5m")
        assert jobs.suspended("train")


@cluster.virtual
async def test_a_release_that_is_refused_is_rolled_back_with_the_reason_and_tried_again() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        jobs = Existing(made)
        made.queue()
        made.faults.fail(
            403,
            "Forbidden",
            message="a policy says no",
            when=faults.calls(verb="patch", resource=port.JOBS),
            times=1,
        )
        jobs.create("train", run_for="10m")
        assert "a policy says no" in await jobs.until_told("train", "Suspended")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_a_ledger_that_may_not_be_written_is_told_and_tried_again() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        jobs = Existing(made)
        made.queue()
        created = faults.calls(verb="create", resource=port.DEADLINE_JOBS)
        made.faults.fail(403, "Forbidden", message="exceeded quota: few", when=created, times=2)
        jobs.create("train", run_for="10m")
        assert "exceeded quota" in await jobs.until_told("train", "NotQueued")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_a_restarted_operator_finds_running_jobs_as_they_are() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("gang", run_for="2h")
        jobs.create("bag", parallelism=1, completions=4, indexed=False, run_for="40m")
        for name in ("gang", "bag"):
            await jobs.until_phase(name, "Running")
        before = sorted(raw["metadata"]["uid"] for raw in jobs.pods("gang"))
        await made.restart()
        await made.rest("20m")
        assert sorted(raw["metadata"]["uid"] for raw in jobs.pods("gang")) == before
        for name in ("gang", "bag"):
            await jobs.until_phase(name, "Succeeded", within="6h")
            assert made.status(jobs.ledger(name))["attempt"] == 1


@cluster.virtual
async def test_labels_that_are_taken_from_a_queued_job_leave_it_queued() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", run_for="10m")
        await jobs.until_phase("train", "Pending")
        jobs.patch("train", {"metadata": {"labels": {names.LABEL_QUEUE: None}}})
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("train", "Succeeded")
