"""API writes per admitted job, by what is written: a count, so the same on every machine.

The operator runs under the virtual time of the embedded cluster. Jobs of one kind come one after the other,
and each has ended before the next comes, so nothing is written but what that one job needs.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Mapping

import pytest

from lstqueue.embedded import clock, memory, world
from lstqueue.kube import limits, port
from lstqueue.operator import app

TIMES = 10
GPUS = 128
VERBS = ("create", "patch", "patch_status", "delete", "dry_run")

Come = Callable[["Case", int], Awaitable[None]]


class Case:
    """A cluster with room for sixteen whole-node pods, and its users."""

    def __init__(self, cluster: world.World) -> None:
        self.cluster = cluster
        self.api = memory.MemoryApi(cluster.server.backend)

    async def gang(self, name: str, groups: list[tuple[str, int]], *, run: str, **spec: object) -> None:
        asked = {
            "queue": "bench",
            "estimatedDuration": run,
            "groups": [
                {"name": group, "replicas": replicas, "template": template(run)} for group, replicas in groups
            ],
            **spec,
        }
        await self.api.create(port.DEADLINE_JOBS, "default", own("DeadlineJob", name, asked))

    async def job(self, name: str, *, width: int, tasks: int, indexed: bool, run: str) -> None:
        pods = template(run)
        pods["spec"]["restartPolicy"] = "Never"
        spec = {
            "suspend": True,
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "parallelism": width,
            "completions": tasks,
            "template": pods,
        }
        asked = {"lstqueue.dev/deadline-in": "1h", "lstqueue.dev/estimated-duration": "60s"}
        metadata = {"name": name, "labels": {"lstqueue.dev/queue": "bench"}, "annotations": asked}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        await self.api.create(port.JOBS, "default", body)

    async def over(self) -> None:
        """Wait until all have ended."""
        while True:
            await asyncio.sleep(30)
            found = [raw.get("status") or {} for raw in self.cluster.store.list(port.DEADLINE_JOBS)]
            if found and all(status.get("phase") == "Succeeded" for status in found):
                return


def own(kind: str, name: str, spec: port.Object) -> port.Object:
    return {"apiVersion": "lstqueue.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(run: str) -> port.Object:
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {"metadata": {"annotations": {"sim/run-for": run}}, "spec": {"containers": [container]}}


def fits(*groups: tuple[str, int]) -> Come:
    async def come(case: Case, number: int) -> None:
        await case.gang(f"gang-{number}", list(groups), run="30s", deadlineIn="1h")

    return come


def labelled(*, width: int, tasks: int, indexed: bool) -> Come:
    async def come(case: Case, number: int) -> None:
        await case.job(f"job-{number}", width=width, tasks=tasks, indexed=indexed, run="30s")

    return come


async def waits(case: Case, number: int) -> None:
    """A gang of four that waits ten minutes for one that has all nodes."""
    await case.gang(f"first-{number}", [("worker", 16)], run="10m", deadlineIn="1h")
    await asyncio.sleep(5)
    await case.gang(f"then-{number}", [("worker", 4)], run="30s", deadlineIn="1h")


async def preempted(case: Case, number: int) -> None:
    """A gang of four without a deadline that makes room once, after an hour, for one that would be late."""
    await case.gang(f"rest-{number}", [("worker", 12)], run="3h", importance=9, preemptible=False)
    await case.gang(f"victim-{number}", [("worker", 4)], run="2h", checkpoint={"onSuspend": True})
    await asyncio.sleep(3600)
    await case.gang(f"urgent-{number}", [("worker", 4)], run="10m", deadlineIn="15m")


CASES: dict[str, Come] = {
    "one pod": fits(("worker", 1)),
    "four pods": fits(("worker", 4)),
    "a leader and seven workers": fits(("leader", 1), ("worker", 7)),
    "a labelled Job of one pod": labelled(width=1, tasks=1, indexed=True),
    "a labelled Job of four pods": labelled(width=4, tasks=4, indexed=True),
    "a labelled bag of eight tasks, four at a time": labelled(width=4, tasks=8, indexed=False),
    "four pods that wait for a gang of sixteen, both": waits,
    "four pods preempted once for four, beside a gang of twelve, all three": preempted,
}


TOGETHER = {
    "one pod": 5,
    "four pods": 9,
    "a leader and seven workers": 14,
    "a labelled Job of one pod": 6,
    "a labelled Job of four pods": 9,
    "a labelled bag of eight tasks, four at a time": 13,
    "four pods that wait for a gang of sixteen, both": 31,
    "four pods preempted once for four, beside a gang of twelve, all three": 49,
}
"""Writes without Events and dry runs; docs/performance.md says what they are."""


class Counted(limits.LimitedApi):
    """Counts what the operator sends, its Events included, and what its status writes say."""

    said: collections.Counter[tuple[str, str]]

    async def patch_status(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        raw = await super().patch_status(resource, namespace, name, body)
        if resource == port.DEADLINE_JOBS:
            self.said[name.partition("-")[0], body["status"].get("phase", "words")] += 1
        return raw


async def count(come: Come, times: int) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Return requests by kind, and DeadlineJobs' status writes by name and new phase, per round."""
    async with world.World(serve=False) as cluster:
        cluster.add_nodes(GPUS // 8)
        case = Case(cluster)
        pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": GPUS}]}
        await case.api.create(port.GPU_QUEUES, None, own("GPUQueue", "bench", {"pools": [pool]}))
        api = Counted(case.api, rate=0, in_flight=64)
        api.said = collections.Counter()
        operator = app.Operator(api, now=cluster.now)
        task = asyncio.create_task(operator.run())
        for number in range(times):
            await come(case, number)
            await case.over()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    # What is written for the queues, and of run times, is by the clock, not by the job.
    by_clock = ("gpuqueues", "configmaps")
    sent = {key: n for key, n in api.requests.items() if key[0] in VERBS and key[1] not in by_clock}
    return each(sent, times), each(api.said, times)


def each(counts: Mapping[tuple[str, str], int], times: int) -> dict[tuple[str, str], float]:
    return {key: n / times for key, n in sorted(counts.items())}


@pytest.mark.benchmark
@pytest.mark.parametrize("name", CASES)
def test_writes_per_admitted_job(name: str) -> None:
    found, said = clock.run(count(CASES[name], TIMES), horizon=60 * 86_400.0)
    counted = {key: n for key, n in found.items() if key[0] != "dry_run" and key[1] != "events"}
    print(f"\n{name}: {sum(counted.values()):.2f} writes without Events")
    print("  requests:", ", ".join(f"{verb} {kind} {n:.2f}" for (verb, kind), n in found.items()))
    print("  status writes:", ", ".join(f"{whose} {phase} {n:.2f}" for (whose, phase), n in said.items()))
    assert sum(counted.values()) <= TOGETHER[name]
