"""Thirty virtual days of arrivals through one operator: what it keeps in memory must not grow.

Counted are the objects that the garbage collector knows, the world's own left out by counting both with and
without the operator; at day 10, 20 and 30, after everything that was submitted has ended and was removed.
"""

from __future__ import annotations

import asyncio
import collections
import gc
import random

import pytest

from lstqueue.embedded import clock, memory, world
from lstqueue.kube import port
from lstqueue.operator import app

DAYS = 30
EVERY_S = 900
NODES = 8
GROWTH = 1.05
DAY = 86_400


def gang(number: int, rng: random.Random) -> port.Object:
    limits = {"nvidia.com/gpu": rng.choice([1, 2, 4, 8])}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    seconds = rng.randint(60, 7200)
    annotations = {"sim/run-for": f"{seconds}s", "sim/start-after": "20s"}
    if rng.random() < 0.05:
        annotations |= {"sim/fail-after": f"{seconds // 2}s", "sim/exit-code": "1"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": f"gang-{number}"},
        "spec": {
            "queue": "soak",
            "deadlineIn": f"{rng.randint(2, 48)}h",
            "estimatedDuration": f"{seconds}s",
            "backoffLimit": 1,
            "groups": [{"name": "worker", "replicas": rng.choice([1, 1, 2, 4]), "template": template}],
        },
    }


def owned(root: object) -> collections.Counter[str]:
    """Count what an object of ours holds on to, by type: its own containers, not the world's."""
    seen: set[int] = set()
    found: collections.Counter[str] = collections.Counter()
    todo = [root]
    while todo:
        here = todo.pop()
        if id(here) in seen or isinstance(here, type):
            continue
        seen.add(id(here))
        module = type(here).__module__
        if module.startswith("lstqueue.embedded") or module in ("asyncio", "logging", "types"):
            continue
        found[type(here).__name__] += 1
        todo += [one for one in gc.get_referents(here) if not isinstance(one, str | int | float | bytes)]
    return found


async def clear(api: port.KubeApi, cluster: world.World) -> None:
    """Remove what is over, as owners do, and let the rest end."""
    for raw in list(cluster.store.list(port.DEADLINE_JOBS)):
        if (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Rejected"):
            await api.delete(port.DEADLINE_JOBS, "default", raw["metadata"]["name"])


async def soak() -> list[collections.Counter[str]]:
    rng, counts = random.Random(1), []
    async with world.World(serve=False) as cluster:
        cluster.add_nodes(NODES)
        api = memory.MemoryApi(cluster.server.backend)
        pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": NODES * 8}]}
        spec = {"pools": [pool], "defaults": {"estimatedDuration": "1h"}}
        body = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "GPUQueue", "spec": spec}
        await api.create(port.GPU_QUEUES, None, {**body, "metadata": {"name": "soak"}})
        operator = app.Operator(api, now=cluster.now)
        task = asyncio.create_task(operator.run())
        for day in range(1, DAYS + 1):
            for number in range(DAY // EVERY_S):
                await api.create(port.DEADLINE_JOBS, "default", gang(day * 1000 + number, rng))
                await asyncio.sleep(EVERY_S)
            await clear(api, cluster)
            if day % 10 == 0:
                await asyncio.sleep(2 * DAY)
                await clear(api, cluster)
                await asyncio.sleep(DAY / 4)
                gc.collect()
                counts.append(owned(operator))
        assert not cluster.store.list(port.DEADLINE_JOBS)
        assert not cluster.audit.violations
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return counts


@pytest.mark.benchmark
def test_thirty_days_leave_nothing_behind() -> None:
    counts = clock.run(soak(), horizon=60.0 * DAY)
    totals = [sum(found.values()) for found in counts]
    print(f"\nobjects an idle operator holds on day 10, 20, 30: {totals}")
    print("grown since day 10:", (counts[-1] - counts[0]).most_common(8))
    assert totals[-1] <= GROWTH * totals[0]
