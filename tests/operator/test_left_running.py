"""Jobs that nobody speaks for, or that are left alone, go on as they would without lstqueue.

The template of a Job that was released once keeps our scheduling gate; its later pods must not wait there.
"""

from __future__ import annotations

from collections.abc import Callable

import cluster
import pytest
from existing import Existing, Object

from lstqueue.api import names
from lstqueue.kube import port

Setting = Callable[[cluster.Cluster, Existing], None]


def gated(jobs: Existing, name: str) -> list[str]:
    return [
        raw["metadata"]["name"]
        for raw in jobs.pods(name)
        if {"name": names.GATE} in (raw["spec"].get("schedulingGates") or [])
    ]


def told(made: cluster.Cluster, name: str) -> list[Object]:
    return [
        raw
        for raw in made.store.list(port.EVENTS)
        if raw["reason"] == "LeftRunning" and raw["involvedObject"]["name"] == name
    ]


async def drained(made: cluster.Cluster, jobs: Existing, **job: str | None) -> None:
    """Have a Job run once and be suspended: its template keeps our gate from then on."""
    made.queue()
    jobs.create("w", run_for="1h", **job)
    if job:
        jobs.refer("a", "w")
    await jobs.until_phase("w", "Running")
    await made.rest("5m")
    made.patch_queue(stopPolicy="HoldAndDrain")
    await jobs.until_phase("w", "Pending")


@cluster.virtual
async def test_a_bag_whose_deadline_job_is_deleted_runs_to_its_end_and_is_told_once() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("w", queue=None, parallelism=2, completions=6, indexed=False, run_for="1h")
        jobs.refer("a", "w")
        await made.until_phase("a", "Running")
        await made.rest("10m")
        made.delete("a")
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="4h")
        (event,) = told(made, "w")
        assert event["count"] == 1
        assert event["involvedObject"]["kind"] == "Job"


@cluster.virtual
async def test_pods_that_are_let_go_are_neither_pinned_nor_ours() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        await drained(made, jobs, queue=None)
        made.delete("a")
        jobs.suspend("w", False)
        await made.until(lambda: len(jobs.bound("w")) == 2, "its pods run", within="2m")
        for raw in jobs.pods("w"):
            assert not [key for key in raw["metadata"]["labels"] if names.GROUP in key]
            assert "matchFields" not in str(raw["spec"].get("affinity"))


@cluster.virtual
async def test_a_clock_that_is_set_back_keeps_nobodys_pods_waiting() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs, ahead, real = Existing(made), [24 * 3_600_000], made.world.now
        made.world.now = lambda: real() + ahead[0]
        await made.restart()
        await drained(made, jobs, queue=None)
        made.delete("a")
        jobs.suspend("w", False)
        await made.rest("2s")
        ahead[0] = 0
        await made.until(lambda: len(jobs.bound("w")) == 2, "its pods run", within="2m")


@cluster.virtual
async def test_a_job_whose_deadline_job_was_deleted_while_it_waited_runs_when_it_is_resumed() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        await drained(made, jobs, queue=None)
        made.delete("a")
        await made.rest("1m")
        jobs.suspend("w", False)
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="2h")


@cluster.virtual
async def test_a_job_without_label_and_deadline_job_runs_on() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("w", parallelism=2, completions=6, indexed=False, run_for="1h")
        await jobs.until_phase("w", "Running")
        jobs.patch("w", {"metadata": {"labels": {names.LABEL_QUEUE: None}}})
        made.delete(jobs.ledger("w"))
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="4h")


@cluster.virtual
async def test_a_copy_of_a_released_job_runs_as_if_it_had_been_written_anew() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("w", parallelism=1, completions=1, run_for="1h")
        await jobs.until_phase("w", "Running")
        raw = jobs.job("w")
        template = raw["spec"]["template"]
        labels = {key: value for key, value in template["metadata"]["labels"].items() if names.GROUP in key}
        copied = {"metadata": {**template["metadata"], "labels": labels}, "spec": template["spec"]}
        spec = {"template": copied}
        jobs.create("copy", queue=None, suspend=False, spec=spec, parallelism=1, completions=1)
        await made.until(lambda: bool(jobs.bound("copy")), "the copy runs", within="1m")
        assert jobs.phase("w") == "Running"


@cluster.virtual
async def test_a_job_that_somebody_keeps_resuming_really_runs() -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        await drained(made, jobs)
        for _ in range(4):
            await made.rest("1m")
            if jobs.suspended("w"):
                jobs.suspend("w", False)
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="2h")
        assert len(told(made, "w")) == 1


def _observed(made: cluster.Cluster, _: Existing) -> None:
    made.patch_queue(stopPolicy="None", mode="Observe")


def _no_queue(made: cluster.Cluster, _: Existing) -> None:
    made.delete(cluster.QUEUE, port.GPU_QUEUES)


def _unselected(made: cluster.Cluster, _: Existing) -> None:
    made.patch_queue(stopPolicy="None", namespaceSelector={"matchLabels": {"team": "other"}})


@pytest.mark.parametrize("happens", [_observed, _no_queue, _unselected])
@cluster.virtual
async def test_a_job_that_a_queue_keeps_its_hands_off_runs_when_it_is_resumed(happens: Setting) -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        await drained(made, jobs)
        happens(made, jobs)
        await made.rest("5m")
        jobs.suspend("w", False)
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="2h")
        await jobs.until_told("w", "LeftRunning")


@pytest.mark.parametrize("happens", [_observed, _no_queue, _unselected])
@cluster.virtual
async def test_a_bag_that_is_admitted_goes_on_in_its_own_slots(happens: Setting) -> None:
    async with cluster.run(nodes=4, slack=500) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("w", parallelism=2, completions=6, indexed=False, run_for="1h")
        await jobs.until_phase("w", "Running")
        places = jobs.bound("w")
        happens(made, jobs)
        await made.rest("90m")
        assert jobs.bound("w") == places
        await made.until(lambda: jobs.over("w") == "Complete", "it is complete", within="4h")
        assert not told(made, "w")
