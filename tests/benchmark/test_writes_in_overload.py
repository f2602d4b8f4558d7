"""Status writes of jobs that wait in an overload: a count, so the same on every machine.

A day of arrivals that ask for half as much again as there is, under the virtual time of the embedded cluster,
most of them with deadlines. Counted is what is said in words to those who wait, by the part that changed.
"""

from __future__ import annotations

import asyncio
import collections
import random

import pytest

from lstqueue.embedded import clock, memory, world
from lstqueue.kube import limits, port
from lstqueue.operator import app

NODES = 8
DAY = 86_400
LOAD = 1.5
MOST = 2.0
"""Writes a waiting job and hour; docs/performance.md says what they are about."""


class Heard(limits.LimitedApi):
    """Keeps count of the status writes that change no phase, by the parts of a status they change."""

    parts: collections.Counter[str]
    words: int = 0
    waiting: frozenset[str] = frozenset()

    async def patch_status(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        raw = await super().patch_status(resource, namespace, name, body)
        status = body["status"]
        if resource == port.DEADLINE_JOBS and "phase" not in status and raw["status"]["phase"] == "Pending":
            self.words += 1
            verdict = status.get("verdict") or {}
            what = {*status, *(f"verdict.{key}" for key in verdict)} - {"verdict", "conditions"}
            self.parts[", ".join(sorted(what))] += 1
        return raw


def body(number: int, rng: random.Random, *, nodes: int, seconds: int) -> port.Object:
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    # Users are wrong about how long their jobs run, to either side.
    run = f"{int(seconds * rng.uniform(0.3, 1.6))}s"
    template = {"metadata": {"annotations": {"sim/run-for": run}}, "spec": {"containers": [container]}}
    spec: port.Object = {
        "queue": "bench",
        "estimatedDuration": f"{seconds}s",
        "groups": [{"name": "worker", "replicas": nodes, "template": template}],
    }
    if rng.random() < 0.8:
        spec["deadlineIn"] = f"{int(seconds * rng.uniform(1.5, 12))}s"
    meta = {"name": f"job-{number}"}
    return {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "DeadlineJob", "metadata": meta, "spec": spec}


async def day() -> tuple[Heard, float]:
    """Return what was heard, and how many hours jobs waited in all."""
    rng, hours = random.Random(7), 0.0
    async with world.World(serve=False) as cluster:
        cluster.add_nodes(NODES)
        inner = memory.MemoryApi(cluster.server.backend)
        pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": 8 * NODES}]}
        queue = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "bench"}}
        await inner.create(port.GPU_QUEUES, None, {**queue, "spec": {"pools": [pool]}})
        api = Heard(inner, rate=0, in_flight=64)
        api.parts = collections.Counter()
        operator = app.Operator(api, now=cluster.now)
        task = asyncio.create_task(operator.run())
        number, spent = 0, 0.0
        while spent < DAY:
            nodes, seconds = rng.choice((1, 1, 2, 4)), rng.randint(600, 4 * 3600)
            await inner.create(port.DEADLINE_JOBS, "default", body(number, rng, nodes=nodes, seconds=seconds))
            number += 1
            # Its own share of the cluster, and less.
            pause = nodes * seconds / NODES / LOAD
            await asyncio.sleep(pause)
            found = [raw.get("status") or {} for raw in cluster.store.list(port.DEADLINE_JOBS)]
            hours += sum(status.get("phase") == "Pending" for status in found) * pause / 3600
            spent += pause
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return api, hours


@pytest.mark.benchmark
def test_what_a_waiting_job_is_told_in_an_overload() -> None:
    heard, hours = clock.run(day(), horizon=3 * DAY)
    each = heard.words / hours
    print(f"\n{heard.words} writes in words in {hours:.0f} waiting job hours: {each:.2f} each")
    for parts, count in heard.parts.most_common(12):
        print(f"  {count / hours:5.2f}  {parts}")
    assert each <= MOST
