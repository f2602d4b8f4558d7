"""Statuses and ledgers of users' own Jobs that somebody edits by hand: what is on record stays true."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import Existing
from manifests import group

from lstqueue.kube import port

Object = dict[str, Any]


def edit(made: cluster.Cluster, name: str, status: Object) -> None:
    made.store.patch(port.DEADLINE_JOBS, "default", name, {"status": status}, subresource="status")


def forgiven(made: cluster.Cluster) -> None:
    """The edit itself is a breach of what is audited, whatever becomes of it."""
    made.world.audit.violations.clear()


def admission(uid: str) -> Object:
    part = {"name": "main", "pool": "all", "nodes": [{"node": "node-0000", "ranks": "0-1"}]}
    made_up = {"at": "2026-01-01T00:00:10Z", "queue": cluster.QUEUE, "shapeHash": "nonsense"}
    return {**made_up, "groups": [part], **({"jobUid": uid} if uid else {})}


@pytest.mark.parametrize("phase", ["", "Admitted", "Running"])
@pytest.mark.parametrize("known", [True, False])
def test_an_admission_written_by_hand_on_a_job_that_waits_pauses_nobody(phase: str, known: bool) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=2, slack=100) as made:
            made.queue()
            made.submit("holder", group("worker", 2, run_for="1h"))
            await made.until_phase("holder", "Running")
            jobs = Existing(made)
            uid = jobs.create("own", run_for="1m")
            await made.until(lambda: made.code(jobs.ledger("own")), "it waits")
            name = jobs.ledger("own")
            wanted = admission(uid if known else "")
            edit(made, name, {"admission": wanted, **({"phase": phase} if phase else {})})
            await made.rest("5m")
            forgiven(made)
            assert made.job(name)["spec"].get("active") is not False
            assert made.phase(name) == "Pending"
            assert "admission" not in made.status(name)
            await made.until_phase(name, "Succeeded", within="3h")

    cluster.alone(scenario)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Rejected"])
def test_an_end_written_by_hand_under_an_admission_is_taken_back_and_the_job_runs_on(phase: str) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=2, slack=100) as made:
            made.queue()
            jobs = Existing(made)
            jobs.create("own", run_for="1h")
            await jobs.until_phase("own", "Running")
            name, pods = jobs.ledger("own"), [pod["metadata"]["uid"] for pod in jobs.pods("own")]
            edit(made, name, {"phase": phase})
            await made.until_phase(name, "Running")
            forgiven(made)
            await made.rest("1m")
            assert [pod["metadata"]["uid"] for pod in jobs.pods("own")] == pods
            assert "completionTime" not in made.status(name)
            await made.until_phase(name, "Succeeded", within="2h")
            assert made.status(name)["attempt"] == 1

    cluster.alone(scenario)


@cluster.virtual
async def test_a_job_that_is_said_to_have_succeeded_and_has_not_is_stopped_and_queued_again() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue()
        jobs = Existing(made)
        jobs.create("own", run_for="1h")
        await jobs.until_phase("own", "Running")
        name = jobs.ledger("own")
        edit(made, name, {"phase": "Succeeded", "admission": None})
        forgiven(made)
        await made.until(lambda: made.status(name).get("attempt") == 2, "it is admitted anew")
        forgiven(made)
        await made.until_phase(name, "Succeeded", within="2h")
        assert jobs.over("own") == "Complete"
        assert [run["reason"] for run in made.status(name)["runs"]] == ["Succeeded"]


@cluster.virtual
async def test_a_job_ended_for_good_stays_so_without_its_ledger_until_its_user_says_otherwise() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue()
        jobs = Existing(made)
        jobs.create("own", run_for="9h", said={"max-run-time": "30m"})
        await jobs.until_phase("own", "Failed", within="2h")
        await made.until(lambda: jobs.suspended("own"), "it is suspended")
        said = jobs.job("own")["metadata"]["annotations"]
        assert said["lstqueue.dev/ended"] == "MaxRunTimeExceeded/1"
        made.delete(jobs.ledger("own"))
        words = await jobs.until_told("own", "Ended")
        assert "MaxRunTimeExceeded/1" in words
        assert "lstqueue.dev/ended" in words
        await made.restart()
        await made.rest("10m")
        assert jobs.ledgers("own") == []
        assert jobs.suspended("own")
        assert "UnknownAnnotation" not in jobs.events("own")
        jobs.say("own", ended=None)
        await jobs.until_phase("own", "Running")


@cluster.virtual
async def test_a_job_ended_for_good_that_is_resumed_without_its_ledger_is_queued_anew() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.queue()
        jobs = Existing(made)
        jobs.create("own", run_for="9h", said={"max-run-time": "30m"})
        await jobs.until_phase("own", "Failed", within="2h")
        await made.until(lambda: jobs.suspended("own"), "it is suspended")
        made.delete(jobs.ledger("own"))
        await jobs.until_told("own", "Ended")
        jobs.suspend("own", False)
        await jobs.until_phase("own", "Running")
        assert "lstqueue.dev/ended" not in jobs.job("own")["metadata"]["annotations"]
        await jobs.until_phase("own", "Failed", within="2h")


@pytest.mark.parametrize("seen", [2, 99, 2**62])
def test_a_generation_that_is_yet_to_come_does_not_keep_a_job_from_being_judged(seen: int) -> None:
    async def scenario() -> None:
        async with cluster.run(nodes=1, slack=100) as made:
            made.queue()
            made.submit("holder", group(run_for="2h"), estimatedDuration="2h")
            await made.until_phase("holder", "Running")
            made.submit("gang", group(run_for="1m"), deadlineIn="30m", estimatedDuration="1m")
            await made.until(lambda: made.level("gang"), "it is judged")
            before = made.level("gang")
            edit(made, "gang", {"observedGeneration": seen})
            made.edit("gang", deadlineIn="20h")
            await made.until(lambda: made.level("gang") != before, "it is judged anew")
            assert made.status("gang")["observedGeneration"] == 2

    cluster.alone(scenario)
