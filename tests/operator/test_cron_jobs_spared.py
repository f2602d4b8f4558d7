"""Jobs of CronJobs that we have ended: only what nobody can want is deleted, and nothing that still runs."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import Existing, body
from manifests import group

from lstqueue.api import names
from lstqueue.kube import port

HALF = {"deadline-in": "30m", "on-missed": "Cancel"}


def controlled(made: cluster.Cluster) -> dict[str, Any]:
    """The reference of a Job to the CronJob that made it."""
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": body("x")["spec"]}}
    kind = {"apiVersion": "batch/v1", "kind": "CronJob"}
    raw = made.create(port.CRON_JOBS, {**kind, "metadata": {"name": "often"}, "spec": spec})
    return {**kind, "name": "often", "uid": raw["metadata"]["uid"], "controller": True}


def there(made: cluster.Cluster, name: str) -> bool:
    return made.store.find(port.JOBS, cluster.NAMESPACE, name) is not None


async def clean(made: cluster.Cluster, *jobs: str) -> None:
    made.delete("often", port.CRON_JOBS)
    for name in jobs:
        made.store.patch(port.JOBS, cluster.NAMESPACE, name, {"metadata": {"finalizers": None}})
        if there(made, name):
            made.delete(name, port.JOBS)
    made.calm()
    made.world.audit.violations.clear()


@cluster.virtual
async def test_a_job_that_its_user_has_run_after_its_end_is_not_deleted_when_they_pause_it() -> None:
    async with cluster.run(nodes=1, slack=4000, reaction="15h") as made:
        made.queue(gpus=8, stopPolicy="Hold")
        jobs = Existing(made)
        owner = controlled(made)
        jobs.create("own", parallelism=1, completions=4, run_for="30m", owner=owner, said=HALF)
        await made.rest("5m")
        for _ in range(3):
            jobs.suspend("own", False)
            await made.rest("5s")
        await made.rest("95m")
        assert (jobs.phase("own"), jobs.suspended("own")) == ("Failed", False)
        jobs.suspend("own", True)
        await made.rest("1m")
        await made.restart()
        await made.rest("1m")
        assert there(made, "own")
        assert jobs.job("own")["status"]["succeeded"] == 3
        await clean(made, "own")


@pytest.mark.parametrize("completions", [1, 4], ids=["nothing done", "some done"])
@cluster.virtual
async def test_what_was_ended_while_its_queue_observed_is_not_deleted_when_that_enforces(
    completions: int,
) -> None:
    async with cluster.run(nodes=1, slack=4000, reaction="15h") as made:
        made.queue(gpus=8, mode="Observe")
        jobs = Existing(made)
        owner, long = controlled(made), "30m" if completions > 1 else "9h"
        jobs.create("own", parallelism=1, completions=completions, run_for=long, owner=owner, said=HALF)
        await made.rest("1m")
        jobs.suspend("own", False)
        await made.rest("95m")
        jobs.suspend("own", True)
        await made.rest("5m")
        assert jobs.phase("own") == "Failed"
        made.patch_queue(mode="Enforce")
        await made.rest("5m")
        assert there(made, "own")
        await clean(made, "own")


@cluster.virtual
async def test_a_dispute_that_a_restart_has_forgotten_deletes_nothing() -> None:
    async with cluster.run(nodes=1, slack=4000, reaction="15h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        said = {"deadline-in": "1h", "on-missed": "Cancel"}
        jobs.create("own", parallelism=1, completions=1, run_for="6h", owner=controlled(made), said=said)
        await jobs.until_phase("own", "Running")
        made.patch_queue(stopPolicy="HoldAndDrain")
        await jobs.until_phase("own", "Pending")
        for _ in range(3):
            await made.rest("5s")
            jobs.suspend("own", False)
            await made.rest("5s")
        await made.rest("2h")
        assert (jobs.phase("own"), jobs.suspended("own")) == ("Failed", False)
        for _ in range(2):
            await made.restart()
            await made.rest("5m")
        assert there(made, "own")
        assert "JobEnded" not in jobs.events("often", "CronJob")
        await clean(made, "own")


@cluster.virtual
async def test_a_job_that_a_finalizer_keeps_has_stopped_before_it_is_deleted() -> None:
    async with cluster.run(nodes=1, slack=400, reaction="2h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        said = {"max-run-time": "10m"}
        jobs.create("own", parallelism=1, completions=1, run_for="3h", owner=controlled(made), said=said)
        jobs.patch("own", {"metadata": {"finalizers": ["example.com/keep"]}})
        await jobs.until_phase("own", "Failed")
        await made.until(lambda: "deletionTimestamp" in jobs.job("own")["metadata"], "it is deleted")
        assert jobs.suspended("own")
        assert jobs.job("own")["metadata"]["annotations"][names.ANNOTATION_ENDED] == "MaxRunTimeExceeded/1"
        assert jobs.pods("own") == []
        made.submit("next", group(run_for="1m"))
        await made.until_phase("next", "Succeeded")
        await clean(made, "own")


@cluster.virtual
async def test_a_job_that_is_resumed_after_we_have_ended_it_is_stopped_and_kept() -> None:
    async with cluster.run(nodes=1, slack=400, reaction="2h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        said = {"max-run-time": "10m"}
        given = {"owner": controlled(made), "said": said, "terminate_after": "10m"}
        jobs.create("own", parallelism=1, completions=1, run_for="3h", **given)
        await jobs.until_phase("own", "Failed")
        await made.until(lambda: jobs.suspended("own"), "it is stopped")
        jobs.suspend("own", False)
        await made.rest("30m")
        assert there(made, "own")
        assert jobs.suspended("own")
        assert jobs.job("own")["metadata"]["annotations"][names.ANNOTATION_ENDED].endswith("/resumed")
        await clean(made, "own")


@pytest.mark.parametrize("wanted", [{"active": False}, {}], ids=["paused", "waits"])
@cluster.virtual
async def test_what_waited_is_deleted_unless_its_user_had_paused_it(wanted: dict[str, Any]) -> None:
    async with cluster.run(nodes=1, slack=4000, reaction="15h") as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        jobs.create("own", parallelism=1, completions=1, run_for="6h", owner=controlled(made), said=HALF)
        await jobs.until_phase("own", "Running")
        if wanted:
            made.edit(jobs.ledger("own"), **wanted)
        else:
            made.patch_queue(stopPolicy="HoldAndDrain")
        await jobs.until_phase("own", "Pending")
        await made.rest("1h")
        assert jobs.phase("own") == "Failed"
        assert there(made, "own") is bool(wanted)
        await clean(made, *(["own"] if wanted else []))
