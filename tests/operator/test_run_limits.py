"""Ends that a job's own spec sets: limits of a run, impossible and missed deadlines, removal afterwards."""

from __future__ import annotations

import cluster
import pytest
from manifests import group

from lstqueue.api import times
from lstqueue.kube import port


def gone(made: cluster.Cluster, name: str) -> bool:
    return made.store.find(port.DEADLINE_JOBS, cluster.NAMESPACE, name) is None


@cluster.virtual
async def test_a_run_that_takes_longer_than_it_may_is_ended_for_good() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group("worker", 2, gpus=4, run_for="9h"), maxRunTime="2h")
        await made.until_phase("job", "Running")
        began = made.now()
        await made.until_phase("job", "Failed", within="3h")
        assert made.condition("job", "Finished")["reason"] == "MaxRunTimeExceeded"
        assert "spec.maxRunTime, 2h" in made.condition("job", "Finished")["message"]
        assert (made.now() - began) / 60_000 == pytest.approx(120, abs=1)
        await made.until(lambda: made.staying() == [], "its pods leave")
        made.submit("next", group(run_for="1m"))
        await made.until_phase("next", "Succeeded")


@cluster.virtual
async def test_the_limit_of_a_run_begins_anew_with_each() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        save = {"onSuspend": True}
        made.submit("job", group(run_for="100m"), maxRunTime="2h", checkpoint=save)
        await made.until_phase("job", "Running")
        await made.rest("90m")
        made.edit("job", active=False)
        await made.until_phase("job", "Pending")
        made.edit("job", active=True)
        await made.until_phase("job", "Succeeded", within="3h")


@cluster.virtual
async def test_a_late_job_that_is_to_be_cancelled_is_ended_only_once_its_deadline_has_passed() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="9h"), deadlineIn="3h", estimatedDuration="3h", onMissed="Cancel")
        await made.until_phase("job", "Running")
        await made.until_phase("job", "Failed", within="4h")
        status = made.status("job")
        assert made.condition("job", "Finished")["reason"] == "DeadlineMissed"
        late = times.parse(status["completionTime"]) - times.parse(status["deadline"])
        assert 0 < late < 2000
        await made.until(lambda: made.staying() == [], "its pods leave")


@cluster.virtual
async def test_a_waiting_job_that_is_to_be_cancelled_never_starts_after_its_deadline() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="3h"), preemptible=False)
        await made.until_phase("holder", "Running")
        made.submit("job", group(run_for="1h"), deadlineIn="2h", estimatedDuration="1h", onMissed="Cancel")
        await made.until_phase("job", "Failed", within="3h")
        assert made.status("job").get("attempt", 0) == 0
        assert made.holds("job", "DeadlineMissed")


@cluster.virtual
@pytest.mark.parametrize("policy", ["Demote", "Continue"])
async def test_else_a_late_job_goes_on_to_its_end(policy: str) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="3h"), deadlineIn="2h", estimatedDuration="1h", onMissed=policy)
        await made.until_phase("job", "Succeeded", within="4h")
        assert made.holds("job", "DeadlineMissed")


@cluster.virtual
async def test_a_job_is_rejected_with_words_where_its_deadline_is_impossible_and_it_says_so() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        impossible = {"deadlineIn": "1h", "estimatedDuration": "9h"}
        made.submit("job", group(run_for="9h"), **impossible, onInfeasible="Reject")
        await made.until_phase("job", "Rejected")
        finished = made.condition("job", "Finished")
        assert finished["reason"] == "Infeasible"
        assert finished["message"]
        assert made.pods("job") == []


@cluster.virtual
async def test_a_job_gives_an_impossible_deadline_up_and_runs_where_it_says_so() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="30m"))
        await made.until_phase("holder", "Running")
        impossible = {"deadlineIn": "1h", "estimatedDuration": "9h"}
        made.submit("job", group(run_for="9h"), **impossible, onInfeasible="BestEffort", onMissed="Cancel")
        await made.until(lambda: made.status("job").get("bestEffort"), "it gives its deadline up")
        await made.until_phase("job", "Succeeded", within="11h")


@cluster.virtual
async def test_a_deadline_that_is_extended_is_judged_anew() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="3h"), preemptible=False, estimatedDuration="3h")
        await made.until_phase("holder", "Running")
        impossible = {"deadlineIn": "1h", "estimatedDuration": "9h"}
        made.submit("job", group(run_for="1h"), **impossible, onInfeasible="BestEffort")
        await made.until(lambda: made.status("job").get("bestEffort"), "it gives its deadline up")
        made.edit("job", deadlineIn="2d")
        await made.until(lambda: made.level("job") == "LIKELY", "its deadline counts again")
        assert "bestEffort" not in made.status("job")
        await made.until_phase("job", "Succeeded", within="9h")


@cluster.virtual
async def test_a_job_is_removed_with_what_it_made_when_it_has_been_over_for_long_enough() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("short", group(run_for="10m"), ttlSecondsAfterFinished=3600)
        made.submit("kept", group(run_for="10m"))
        await made.until_all("Succeeded", "short", "kept")
        ended = made.finished_at("short")
        await made.until(lambda: gone(made, "short"), "it is removed", within="2h")
        assert (made.now() - ended) / 60_000 == pytest.approx(60, abs=1)
        await made.until(lambda: made.children("short") == [], "its Jobs go with it")
        await made.rest("1d")
        assert made.phase("kept") == "Succeeded"


@cluster.virtual
async def test_a_job_may_go_as_soon_as_it_is_over() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("job", group(run_for="10m"), ttlSecondsAfterFinished=0)
        await made.until(lambda: gone(made, "job"), "it is removed")
