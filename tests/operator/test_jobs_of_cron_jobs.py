"""Jobs of CronJobs that we end are deleted once, as they were judged, and CronJobs are told what was done."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import Existing, body

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port

LIMIT = {"max-run-time": "5m"}
CANCEL = {"deadline-in": "5m", "on-missed": "Cancel"}


def cron_job(made: cluster.Cluster, policy: str = "Allow", **given: Any) -> None:
    """Create the CronJob "often", which makes a Job every half an hour."""
    job = body("x", parallelism=1, completions=1, **{"run_for": "20m", **given})
    template = {
        "metadata": {key: job["metadata"][key] for key in ("labels", "annotations")},
        "spec": job["spec"],
    }
    spec = {"schedule": "*/30 * * * *", "concurrencyPolicy": policy, "jobTemplate": template}
    kind = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": spec}
    made.create(port.CRON_JOBS, kind)


def jobs_there(made: cluster.Cluster) -> list[str]:
    return [raw["metadata"]["name"] for raw in made.store.list(port.JOBS)]


def ends(made: cluster.Cluster) -> dict[str, tuple[str, str]]:
    """Reason and message of each DeadlineJob that is over."""
    found = {raw["metadata"]["name"]: raw for raw in made.store.list(port.DEADLINE_JOBS)}
    told = {name: made.condition(name, "Finished") for name in found}
    return {name: (one["reason"], one.get("message", "")) for name, one in told.items() if one}


async def first(made: cluster.Cluster) -> str:
    """Wait for the first Job, and have the CronJob make no other."""
    await made.until(lambda: jobs_there(made), "the CronJob makes a Job", within="31m")
    made.store.patch(port.CRON_JOBS, "default", "often", {"spec": {"suspend": True}})
    return jobs_there(made)[0]


def deletions(made: cluster.Cluster) -> int:
    return sum(call.verb == "delete" and call.resource == port.JOBS for call in made.calls.seen)


@cluster.virtual
async def test_a_job_is_deleted_once_though_nobody_hears_of_its_end() -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        cron_job(made, said=LIMIT)
        await first(made)

        def silenced(call: faults.Call) -> bool:
            return call.resource == port.JOBS and call.verb in ("list", "watch") and deletions(made) > 0

        made.faults.fail(503, "ServiceUnavailable", when=silenced, times=20)
        made.store.subscribe(lambda event: cut(made, event))
        await made.until(lambda: not jobs_there(made), "it is deleted", within="30m")
        await made.rest("5m")
        assert deletions(made) == 1


def cut(made: cluster.Cluster, event: Any) -> None:
    """End the watches of Jobs before they tell of a deletion."""
    if event.resource == port.JOBS and event.type == "DELETED":
        made.faults.cut_watches(port.JOBS)


@cluster.virtual
async def test_a_job_that_a_finalizer_keeps_is_not_deleted_again_and_again() -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        cron_job(made, said=LIMIT)
        name = await first(made)
        jobs.patch(name, {"metadata": {"finalizers": ["example.com/keep"]}})
        await made.until(lambda: deletions(made), "it is deleted", within="30m")
        await made.rest("10m")
        assert deletions(made) == 1
        assert jobs.events("often", "CronJob").keys() >= {"JobEnded"}
        jobs.patch(name, {"metadata": {"finalizers": None}})
        await made.until(lambda: not jobs_there(made), "it goes")


@cluster.virtual
async def test_what_its_user_takes_out_of_the_queue_in_the_last_moment_is_not_deleted() -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        cron_job(made, said=LIMIT)
        name = await first(made)
        api, tries = made.operator.api, []
        real = api.delete

        async def delete(resource: port.Resource, *args: Any, **options: Any) -> None:
            if resource == port.JOBS:
                tries.append(options)
                jobs.patch(name, {"metadata": {"labels": {names.LABEL_QUEUE: None}}})
            await real(resource, *args, **options)

        api.delete = delete
        await made.until(lambda: tries, "it was to be deleted", within="30m")
        await made.rest("10m")
        assert (jobs_there(made), len(tries)) == ([name], 1)
        assert "JobEnded" not in jobs.events("often", "CronJob")


@pytest.mark.parametrize("whose", ["observed", "another manager's"])
@cluster.virtual
async def test_nobody_is_told_of_a_deletion_that_is_not_made(whose: str) -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8, **({"mode": "Observe"} if whose == "observed" else {}))
        jobs = Existing(made)
        cron_job(made, said=CANCEL, gpus=8)
        made.patch_queue(stopPolicy="Hold")
        name = await first(made)
        await made.until(lambda: made.store.list(port.DEADLINE_JOBS), "it is queued")
        if whose != "observed":
            await made.rest("1m")
            jobs.patch(name, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "theirs"}}})
        await made.until(lambda: ends(made), "its deadline passes", within="30m")
        await made.rest("10m")
        assert jobs_there(made) == [name]
        assert "JobEnded" not in jobs.events("often", "CronJob")


@cluster.virtual
async def test_a_cron_job_is_told_by_the_process_that_deletes_its_job() -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        cron_job(made, said=LIMIT)
        await first(made)
        removes = faults.calls(resource=port.JOBS, verb="delete")
        made.faults.fail(503, "ServiceUnavailable", when=removes, times=None)
        await made.until(lambda: ends(made), "its limit passes", within="30m")
        await made.rest("1m")
        await made.kill()
        assert "JobEnded" not in jobs.events("often", "CronJob")
        made.faults.clear()
        await made.start()
        await made.until(lambda: not jobs_there(made), "it is deleted", within="10m")
        await made.until(lambda: "JobEnded" in jobs.events("often", "CronJob"), "the CronJob is told")
        assert "(MaxRunTimeExceeded) and is removed" in jobs.events("often", "CronJob")["JobEnded"]


@pytest.mark.parametrize("by", ["its user", "the end of its CronJob"])
@cluster.virtual
async def test_a_job_that_no_other_follows_was_deleted_and_not_replaced(by: str) -> None:
    async with cluster.run(nodes=1, slack=100, reaction="40m") as made:
        made.queue(gpus=8)
        cron_job(made, policy="Replace", run_for="29m")
        name = await first(made)
        await made.rest("1m")
        if by == "its user":
            made.delete(name, port.JOBS)
        else:
            made.delete("often", port.CRON_JOBS)
        await made.until(lambda: ends(made), "it is told", within="1m")
        [(reason, message)] = ends(made).values()
        assert (reason, message.startswith("the Job was deleted")) == ("JobVanished", True)


@pytest.mark.parametrize("kept", [False, True])
@cluster.virtual
async def test_a_job_that_its_cron_job_replaces_is_told_so(kept: bool) -> None:
    async with cluster.run(nodes=1, slack=100, reaction="2h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        cron_job(made, policy="Replace", run_for="50m")
        await made.until(lambda: jobs_there(made), "the CronJob makes a Job", within="31m")
        name = jobs_there(made)[0]
        if kept:
            jobs.patch(name, {"metadata": {"finalizers": ["example.com/keep"]}})
        await made.until(
            lambda: len(made.store.list(port.DEADLINE_JOBS)) == 2, "it makes the next", within="1h"
        )
        if kept:
            await made.rest("1m")
            assert not ends(made)
            jobs.patch(name, {"metadata": {"finalizers": None}})
        await made.until(lambda: ends(made), "it is told", within="1m")
        [(reason, message)] = ends(made).values()
        assert (reason, message.endswith("CronJob often has made the next")) == ("Replaced", True)
        made.delete("often", port.CRON_JOBS)
