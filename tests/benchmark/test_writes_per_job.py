"""API writes per admitted job, by what is written: a count, so the same on every machine.

The operator runs under the virtual time of the embedded cluster; a hundred gangs of one shape come a minute
apart and each fits at once, so nothing is written but what one admission from creation to success needs.
"""

from __future__ import annotations

import asyncio

import pytest

from lstqueue.embedded import clock, memory, world
from lstqueue.kube import port
from lstqueue.operator import app

GANGS = 100
SHAPES = {
    "one pod": [("worker", 1)],
    "four pods": [("worker", 4)],
    "a leader and seven workers": [("leader", 1), ("worker", 7)],
}


def gang(number: int, groups: list[tuple[str, int]]) -> port.Object:
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    template = {"metadata": {"annotations": {"sim/run-for": "30s"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": f"gang-{number}"},
        "spec": {
            "queue": "bench",
            "deadlineIn": "1h",
            "estimatedDuration": "30s",
            "groups": [
                {"name": name, "replicas": replicas, "template": template} for name, replicas in groups
            ],
        },
    }


async def count(groups: list[tuple[str, int]]) -> dict[tuple[str, str], float]:
    pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": 128}]}
    queue = {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "GPUQueue",
        "metadata": {"name": "bench"},
        "spec": {"pools": [pool]},
    }
    async with world.World(serve=False) as cluster:
        cluster.add_nodes(16)
        api = memory.MemoryApi(cluster.server.backend)
        await api.create(port.GPU_QUEUES, None, queue)
        operator = app.Operator(api, now=cluster.now)
        task = asyncio.create_task(operator.run())
        for number in range(GANGS):
            await api.create(port.DEADLINE_JOBS, "default", gang(number, groups))
            await asyncio.sleep(60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        phases = {raw["status"]["phase"] for raw in cluster.store.list(port.DEADLINE_JOBS)}
    assert phases == {"Succeeded"}
    verbs = ("create", "patch", "patch_status", "delete", "dry_run")
    return {key: n / GANGS for key, n in operator.api.requests.items() if key[0] in verbs}


@pytest.mark.benchmark
@pytest.mark.parametrize("shape", SHAPES)
def test_writes_per_admitted_job(shape: str) -> None:
    found = clock.run(count(SHAPES[shape]))
    writes = {key: figure for key, figure in found.items() if key[0] != "dry_run"}
    parts = ", ".join(f"{verb} {kind} {figure:.2f}" for (verb, kind), figure in sorted(found.items()))
    print(f"\n{shape}: {sum(writes.values()):.2f} writes per admitted job ({parts})")
