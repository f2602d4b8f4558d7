"""Every manifest in examples/ works as it stands."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest
import yaml

from lstqueue.demo import scenario, serve
from lstqueue.embedded import clock, memory, world
from lstqueue.kube import port
from lstqueue.operator import app

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
JOBS = {
    "DeadlineJob": port.DEADLINE_JOBS,
    "Job": port.JOBS,
    "CronJob": port.CRON_JOBS,
    "PyTorchJob": port.PYTORCH_JOBS,
}
DAY = 86_400


def documents(path: pathlib.Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def queues() -> list[dict[str, Any]]:
    found = [document for path in EXAMPLES.glob("*.yaml") for document in documents(path)]
    return [document for document in found if document["kind"] == "GPUQueue"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_example_is_admitted_whole(path: pathlib.Path) -> None:
    async def scenario() -> None:
        async with world.World(serve=False) as cluster:
            cluster.add_nodes(16)
            api = memory.MemoryApi(cluster.server.backend)
            for queue in queues():
                await api.create(port.GPU_QUEUES, None, queue)
            jobs = [document for document in documents(path) if document["kind"] in JOBS]
            for job in jobs:
                await api.create(JOBS[job["kind"]], "default", job)
            running = asyncio.create_task(app.Operator(api, now=cluster.now).run())

            def all_run() -> bool:
                stored = cluster.store.list(port.DEADLINE_JOBS)
                runs = [(raw.get("status") or {}).get("phase") == "Running" for raw in stored]
                return len(runs) == len(jobs) and all(runs)

            within = DAY + 60 if any(job["kind"] == "CronJob" for job in jobs) else 60
            await cluster.until(lambda: all_run() or running.done(), within=within)
            if running.done():
                await running
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert cluster.audit.violations == []

    clock.run(scenario(), horizon=2 * DAY)


def test_the_queue_changes_nothing_where_the_demo_has_made_it() -> None:
    (queue,) = documents(EXAMPLES / "queue.yaml")
    assert queue == scenario.queue("lst", gpus=serve.NODES * scenario.GPUS_PER_NODE)


def test_the_page_on_existing_jobs_shows_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "existing-jobs.md").read_text(encoding="utf-8")
    shown = [yaml.safe_load(block.split("```")[0]) for block in page.split("```yaml")[1:]]
    assert shown[0] == documents(EXAMPLES / "labelled-job.yaml")[0]


def test_the_page_on_pytorchjobs_shows_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "pytorchjobs.md").read_text(encoding="utf-8")
    shown = [yaml.safe_load(block.split("```")[0]) for block in page.split("```yaml")[1:]]
    assert shown[0] == documents(EXAMPLES / "labelled-pytorchjob.yaml")[0]
