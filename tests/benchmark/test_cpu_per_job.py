"""CPU of the operator per admitted job, from creation to success, by how many pods the job has.

The operator runs under kopf in this process; cluster and users have processes of their own. Jobs come as fast
as earlier ones succeed and always fit at once, so nothing is counted but what one admission needs. Decision
passes are timed apart: what they cost depends on the cluster and on who waits, not on the job.

A busy machine makes CPU time longer by half. So a fixed piece of work is timed beside it in the same thread,
and each figure is told as it was and as it would be if that work took `YARDSTICK_MS`, as it does on the
machine of docs/performance.md when that is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import crowd
import pytest

from lstqueue.engine import decide
from lstqueue.kube import client, port
from lstqueue.operator import app, command, shell, snapshots
from lstqueue.operator import settings as all_settings

PODS = (1, 4, 8)
JOBS = 80
WARM_UP = 24
IN_FLIGHT = 24
WITHIN_S = 60
YARDSTICK_MS = 0.4
WRITES = ("create", "patch", "patch_status", "delete")


class Passes:
    """CPU seconds spent in the parts of decision passes that look at the whole cluster."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - began

        return timing


@contextlib.contextmanager
def passes() -> Iterator[Passes]:
    timer = Passes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "decide", timer.timed(decide.decide))
        patch.setattr(snapshots, "build", timer.timed(snapshots.build))
        yield timer


class Yardstick:
    """A fixed piece of work, done five times a second: `ms` it took each time."""

    def __init__(self) -> None:
        self.ms: list[float] = []

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            began = time.thread_time()
            total, found = 0, {}
            for number in range(6_000):
                found[number % 97] = total
                total += number
            self.ms.append((time.thread_time() - began) * 1000)


@contextlib.asynccontextmanager
async def running(url: str) -> AsyncIterator[app.Operator]:
    settings = all_settings.Settings(writes_per_second=0)
    api = await client.connect(url=url)

    async def make() -> app.Operator:
        return app.Operator(api, now=command.now_ms, settings=settings, fed=True)

    under_kopf = shell.Shell(make=make, access=api.credentials)
    task = asyncio.create_task(under_kopf.run())
    await under_kopf.running.wait()
    assert under_kopf.operator is not None
    await under_kopf.operator.synced.wait()
    try:
        yield under_kopf.operator
    finally:
        under_kopf.stop.set()
        await task


@contextlib.asynccontextmanager
async def running_bare(url: str) -> AsyncIterator[app.Operator]:
    """Run it without the shell: what kopf costs is the difference."""
    api = await client.connect(url=url)
    operator = app.Operator(api, now=command.now_ms, settings=all_settings.Settings(writes_per_second=0))
    task = asyncio.create_task(operator.run())
    await operator.synced.wait()
    try:
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()


async def submit(url: str, kind: str, *, pods: int, first: int, count: int) -> None:
    script = str(crowd.HERE / "submit_process.py")
    figures = (str(figure) for figure in (pods, first, count, IN_FLIGHT))
    process = await asyncio.create_subprocess_exec(sys.executable, script, url, kind, *figures)
    try:
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def cost(kind: str, pods: int, *, bare: bool) -> float:
    """Return ms of CPU per job without decision passes, scaled, and print what else there is to say."""
    async with crowd.cluster(crowd.NODES) as url:
        api = await client.connect(url=url)
        await api.create(port.GPU_QUEUES, None, crowd.queue())
        await api.close()
        with passes() as deciding:
            under = running_bare(url) if bare else running(url)
            async with under as operator, asyncio.timeout(WITHIN_S):
                await submit(url, kind, pods=pods, first=0, count=WARM_UP)
                yardstick = Yardstick()
                measuring = asyncio.create_task(yardstick.run())
                cpu, decided = time.process_time(), deciding.seconds
                requests, made = operator.api.requests.copy(), operator.loop.passes
                await submit(url, kind, pods=pods, first=WARM_UP, count=JOBS)
                cpu, decided = time.process_time() - cpu, deciding.seconds - decided
                sent, made = operator.api.requests - requests, operator.loop.passes - made
                measuring.cancel()
    each, took = ((cpu - decided) * 1000 - sum(yardstick.ms)) / JOBS, statistics.median(yardstick.ms)
    scaled = each * YARDSTICK_MS / took
    writes = sum(count for (verb, _), count in sent.items() if verb in WRITES) / JOBS
    print(
        f"{kind}, {pods} pods: {each:.2f} ms of CPU per job, {scaled:.2f} scaled (yardstick {took:.2f} ms); "
        f"{decided / JOBS * 1000:.2f} ms in {made} decision passes; {writes:.2f} writes"
    )
    return scaled


def line(points: dict[int, float]) -> tuple[float, float]:
    """Return intercept and slope by least squares."""
    mean_x, mean_y = sum(points) / len(points), sum(points.values()) / len(points)
    spread = sum((x - mean_x) ** 2 for x in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / spread
    return mean_y - slope * mean_x, slope


@pytest.mark.benchmark
@pytest.mark.parametrize(("kind", "bare"), [("inline", False), ("labelled", False), ("inline", True)])
async def test_cpu_per_admitted_job(kind: str, bare: bool) -> None:
    print()
    intercept, slope = line({pods: await cost(kind, pods, bare=bare) for pods in PODS})
    print(f"{kind}{', without kopf' if bare else ''}, scaled: {intercept:.2f} ms + {slope:.2f} ms per pod")
