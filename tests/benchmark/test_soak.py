"""Thirty virtual days of arrivals through one operator: what it keeps in memory must not grow.

Inline gangs, users' own Jobs, and every day a large one without a deadline that others displace. Counted is
what is reachable from the operator, the world's own left out, at day 10, 20 and 30, after everything that
was submitted has ended and was removed: by its owner, by its own TTL, or by that of a labelled Job's ledger.
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
LEDGERS_GO_AFTER = 7 * DAY
FINAL = ("Succeeded", "Failed", "Rejected")


def pods(rng: random.Random, *, seconds: int) -> port.Object:
    limits = {"nvidia.com/gpu": rng.choice([1, 2, 4, 8])}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    annotations = {"sim/run-for": f"{seconds}s", "sim/start-after": "20s"}
    if rng.random() < 0.05:
        annotations |= {"sim/fail-after": f"{seconds // 2}s", "sim/exit-code": "1"}
    spec = {"containers": [container], "restartPolicy": "Never"}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def gang(number: int, rng: random.Random) -> port.Object:
    seconds = rng.randint(60, 7200)
    group = {"name": "worker", "replicas": rng.choice([1, 1, 2, 4]), "template": pods(rng, seconds=seconds)}
    # Some in a hurry, so that they are late unless others make room.
    hours = rng.randint(2, 48) if rng.random() < 0.8 else seconds / 3600 + 0.5
    spec = {
        "queue": "soak",
        "deadlineIn": f"{int(hours * 3600)}s",
        "estimatedDuration": f"{seconds}s",
        "backoffLimit": 1,
        "groups": [group],
    }
    if rng.random() < 0.3:
        spec["ttlSecondsAfterFinished"] = 3600
    return deadline_job(f"gang-{number}", spec)


def deadline_job(name: str, spec: port.Object) -> port.Object:
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def labelled(number: int, rng: random.Random) -> port.Object:
    """A user's own Job: a gang, or a bag of twice as many tasks as run at a time."""
    seconds, width, bag = rng.randint(60, 7200), rng.choice([1, 2, 4]), rng.random() < 0.3
    asked = {"lstqueue.dev/deadline-in": "48h", "lstqueue.dev/estimated-duration": f"{2 * seconds}s"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number}",
            "labels": {"lstqueue.dev/queue": "soak"},
            "annotations": asked,
        },
        "spec": {
            "suspend": True,
            "parallelism": width,
            "completions": 2 * width if bag else width,
            "completionMode": "NonIndexed" if bag else "Indexed",
            "backoffLimit": 2,
            "template": pods(rng, seconds=seconds),
        },
    }


def large(day: int) -> port.Object:
    """All nodes for six hours and no deadline: whoever comes in a hurry displaces it."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    template = {
        "metadata": {"annotations": {"sim/run-for": "6h", "sim/start-after": "20s"}},
        "spec": {"containers": [container]},
    }
    spec = {
        "queue": "soak",
        "estimatedDuration": "6h",
        "checkpoint": {"interval": "20m", "onSuspend": True},
        "groups": [{"name": "worker", "replicas": NODES, "template": template}],
    }
    return deadline_job(f"large-{day}", spec)


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
        # What functools remembers of pure functions has a bound of its own, and fills up to it.
        if module.startswith("lstqueue.embedded") or module in ("asyncio", "logging", "types", "functools"):
            continue
        found[type(here).__name__] += 1
        todo += [one for one in gc.get_referents(here) if not isinstance(one, str | int | float | bytes)]
    return found


class Users:
    """Submit, and remove what is over; ledgers of labelled Jobs are left to their TTL."""

    def __init__(self, cluster: world.World, rng: random.Random) -> None:
        self.cluster = cluster
        self.api = memory.MemoryApi(cluster.server.backend)
        self.rng = rng
        self.ended: collections.Counter[str] = collections.Counter()

    async def submit(self, day: int) -> None:
        """Submit for a day."""
        for number in range(DAY // EVERY_S):
            if self.rng.random() < 0.4:
                await self.api.create(port.JOBS, "default", labelled(day * 1000 + number, self.rng))
            else:
                await self.api.create(port.DEADLINE_JOBS, "default", gang(day * 1000 + number, self.rng))
            if number == 40:
                await self.api.create(port.DEADLINE_JOBS, "default", large(day))
            await asyncio.sleep(EVERY_S)

    async def clear(self) -> None:
        for raw in list(self.cluster.store.list(port.DEADLINE_JOBS)):
            status, ref = raw.get("status") or {}, raw["spec"].get("jobRef")
            if status.get("phase") not in FINAL:
                continue
            if ref is None:
                self.note(status)
                await self.api.delete(port.DEADLINE_JOBS, "default", raw["metadata"]["name"])
            elif any(job["metadata"]["name"] == ref["name"] for job in self.cluster.store.list(port.JOBS)):
                self.note(status)
                await self.api.delete(port.JOBS, "default", ref["name"])

    def note(self, status: port.Object) -> None:
        self.ended[status["phase"]] += 1
        self.ended["preempted"] += sum(run["reason"] == "Preempted" for run in status.get("runs") or ())


async def soak() -> tuple[list[collections.Counter[str]], collections.Counter[str]]:
    counts: list[collections.Counter[str]] = []
    async with world.World(serve=False) as cluster:
        cluster.add_nodes(NODES)
        users = Users(cluster, random.Random(1))
        pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": NODES * 8}]}
        spec = {"pools": [pool], "defaults": {"estimatedDuration": "1h"}}
        body = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": "GPUQueue", "spec": spec}
        await users.api.create(port.GPU_QUEUES, None, {**body, "metadata": {"name": "soak"}})
        operator = app.Operator(users.api, now=cluster.now)
        task = asyncio.create_task(operator.run())
        for day in range(1, DAYS + 1):
            await users.submit(day)
            await users.clear()
            if day % 10 == 0:
                for _ in range(3):
                    await asyncio.sleep(2 * DAY)
                    await users.clear()
                await asyncio.sleep(LEDGERS_GO_AFTER + DAY / 4)
                assert not cluster.store.list(port.DEADLINE_JOBS)
                assert not cluster.store.list(port.JOBS)
                gc.collect()
                counts.append(owned(operator))
        assert not cluster.audit.violations
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return counts, users.ended


@pytest.mark.benchmark
def test_thirty_days_leave_nothing_behind() -> None:
    counts, ended = clock.run(soak(), horizon=120.0 * DAY)
    totals = [sum(found.values()) for found in counts]
    print(f"\nended: {dict(ended)}")
    print(f"objects an idle operator holds on day 10, 20, 30: {totals}")
    print("grown since day 10:", (counts[-1] - counts[0]).most_common(8))
    assert ended["preempted"]
    assert totals[-1] <= GROWTH * totals[0]
