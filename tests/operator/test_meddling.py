"""Somebody else at what is ours: labels, Jobs, finalizers, the clock; and words that must stay true."""

from __future__ import annotations

import cluster
from manifests import group, pool

from lstqueue.api import names, times
from lstqueue.kube import port

GONE = {"metadata": {"labels": {names.LABEL_JOB: None, names.LABEL_GROUP: None}}}


@cluster.virtual
async def test_a_job_that_loses_our_labels_gets_them_back_and_its_gang_runs_on() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="2h"))
        await made.until_phase("gang", "Running")
        made.patch(port.JOBS, "gang-worker-0", GONE)
        await made.until(
            lambda: (
                names.LABEL_JOB in made.store.get(port.JOBS, "default", "gang-worker-0")["metadata"]["labels"]
            ),
            "the labels are back",
        )
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang").get("restarts") is None


@cluster.virtual
async def test_a_gang_whose_parallelism_was_changed_begins_again_whole() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="2h"))
        await made.until_phase("gang", "Running")
        made.patch(port.JOBS, "gang-worker-0", {"spec": {"parallelism": 1}})
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_a_deleted_gang_that_a_finalizer_keeps_gives_its_places_back() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("kept", group(run_for="48h"))
        await made.until_phase("kept", "Running")
        made.patch(port.DEADLINE_JOBS, "kept", {"metadata": {"finalizers": ["example.com/keep"]}})
        made.delete("kept")
        made.submit("next", group(run_for="1m"))
        await made.until_phase("next", "Succeeded", within="1h")
        assert made.status("kept")["phase"] == "Suspending"
        made.patch(port.DEADLINE_JOBS, "kept", {"metadata": {"finalizers": None}})


@cluster.virtual
async def test_a_back_off_from_a_clock_that_was_ahead_is_cut_to_its_length() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(bindTimeout="1m")
        made.foreign_pod("squatter", "node-0000")
        made.submit("gang", group(run_for="1m"))
        await made.until(lambda: "pending" in made.status("gang"), "it waits")
        far = times.format(made.now() + 3 * 86_400_000)
        back_off = {"backoff": {"until": far, "count": 1, "avoid": []}}
        made.store.patch(port.DEADLINE_JOBS, "default", "gang", {"status": back_off}, subresource="status")
        made.delete("squatter", port.PODS)
        await made.until_phase("gang", "Succeeded", within="1h")


@cluster.virtual
async def test_a_job_that_waits_is_told_anew_when_its_queue_changes_and_when_its_figures_are_old() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(pools=[pool("all", gpus=16)])
        made.submit("first", group("worker", 1, run_for="9h"))
        await made.until_phase("first", "Running")
        made.submit("wide", group("worker", 2, run_for="1m"))
        await made.until(lambda: "pending" in made.status("wide"), "it is told")
        before = made.status("wide")["pending"]
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"pools": [pool("all", gpus=12)]}})
        await made.until(lambda: made.status("wide")["pending"] != before, "it is told of the quota")
        assert "12" in made.status("wide")["pending"]["message"]
