"""An operator that comes up finds Jobs without our label that DeadlineJobs refer to: it knows them at once.

The list of Jobs may come before that of the DeadlineJobs, and asking for single Jobs may take its time.
"""

from __future__ import annotations

import cluster
from crashes import dead, dies_when
from existing import Existing
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port


def slow_answers(made: cluster.Cluster) -> None:
    made.faults.delay(3.0, when=faults.calls(verb="get", resource=port.JOBS))


@cluster.virtual
async def test_what_runs_is_charged_to_its_queue_from_the_first_pass_on() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        jobs = Existing(made)
        made.queue(gpus=8)
        jobs.create("train", queue=None, parallelism=1, completions=1, run_for="5h")
        jobs.refer("ref", "train")
        await jobs.until_phase("train", "Running")
        made.submit("next", group("worker", 1, run_for="1h"))
        await made.rest("2m")
        await made.kill()
        slow_answers(made)
        await made.start()
        await made.rest("1m")
        assert (jobs.phase("train"), made.phase("next")) == ("Running", "Pending")
        assert made.code("next") == "QuotaExceeded"


@cluster.virtual
async def test_a_claim_that_others_are_leaving_for_is_kept() -> None:
    async with cluster.run(nodes=2, slack=40, reaction="3h") as made:
        jobs = Existing(made)
        made.queue(gpus=16)
        slow = {"terminationGracePeriodSeconds": 1800}
        holder = group("worker", 2, run_for="9h", terminate_after="10m", pod=slow)
        made.submit("holder", holder, estimatedDuration="9h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        jobs.create("urgent", queue=None, run_for="1h")
        jobs.refer("ref", "urgent", deadlineIn="100m", estimatedDuration="1h")
        await made.until_phase("ref", "Claiming")
        await made.kill()
        slow_answers(made)
        phases: list[str] = []
        made.store.subscribe(lambda _: phases.append(made.phase("ref")))
        await made.start()
        await made.until_phase("ref", "Running", within="20m")
        assert "Pending" not in phases


@cluster.virtual
async def test_an_admission_that_was_not_released_is_carried_out() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        made.queue()
        dies_when(made, lambda: made.phase("ref") == "Admitted")
        jobs.create("train", queue=None, run_for="1h")
        jobs.refer("ref", "train")
        await dead(made, lambda: made.phase("ref") == "Admitted", "it dies once it is admitted")
        slow_answers(made)
        phases: list[str] = []
        made.store.subscribe(lambda _: phases.append(made.phase("ref")))
        await made.start()
        await made.until_phase("ref", "Running", within="5m")
        assert "Pending" not in phases
        assert made.status("ref")["attempt"] == 1
        await made.until_phase("ref", "Succeeded", within="2h")


@cluster.virtual
async def test_those_that_wait_are_asked_for_by_nobody_and_told_nothing_false() -> None:
    async with cluster.run(nodes=1, slack=200, reaction="1h") as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        for number in range(20):
            jobs.create(f"job-{number}", queue=None, parallelism=1, completions=1)
            jobs.refer(f"ref-{number}", f"job-{number}")
        await made.rest("10m")
        await made.kill()
        seen: list[faults.Call] = []
        made.calls.listeners.append(seen.append)
        await made.start()
        await made.rest("5m")
        assert [call for call in seen if call.verb == "get" and call.resource == port.JOBS] == []
        assert [call for call in seen if call.verb == "patch" and call.resource == port.DEADLINE_JOBS] == []
        told = {raw["reason"] for raw in made.store.list(port.EVENTS)}
        assert "JobNotFound" not in told
        for number in range(20):
            made.delete(f"ref-{number}")


@cluster.virtual
async def test_a_job_that_went_while_nobody_looked_is_missed() -> None:
    async with cluster.run(nodes=1, slack=20, reaction="10m") as made:
        jobs = Existing(made)
        made.queue(stopPolicy="Hold")
        jobs.create("train", queue=None, parallelism=1, completions=1)
        jobs.refer("ref", "train")
        jobs.refer("early", "later")
        await made.until_phase("ref", "Pending")
        await made.kill()
        made.delete("train", port.JOBS)
        await made.start()
        await made.until_phase("ref", "Failed", within="1m")
        assert made.condition("ref", "Finished")["reason"] == "JobVanished"
        assert made.code("early") == "JobNotFound"
        made.delete("early")


@cluster.virtual
async def test_pods_of_a_job_that_went_meanwhile_stay_charged_to_its_queue() -> None:
    async with cluster.run(nodes=2, slack=20, reaction="20m") as made:
        jobs = Existing(made)
        made.queue(gpus=8)
        slow = {"terminationGracePeriodSeconds": 1800}
        jobs.create(
            "train",
            queue=None,
            parallelism=1,
            completions=1,
            pod=slow,
            run_for="5h",
            terminate_after="10m",
        )
        jobs.refer("ref", "train")
        await jobs.until_phase("train", "Running")
        await made.kill()
        made.store.delete(port.JOBS, cluster.NAMESPACE, "train", propagation="Background")
        await made.rest("10s")
        await made.start()
        made.submit("next", group("worker", 1, run_for="1h"))
        await made.rest("2m")
        assert (made.phase("ref"), made.phase("next")) == ("Failed", "Pending")
        assert made.code("next") == "QuotaExceeded"
        await made.until_phase("next", "Running", within="15m")
