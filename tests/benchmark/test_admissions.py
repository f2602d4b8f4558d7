"""Admissions per second through the operator under kopf, with thousands of jobs pending, limits lifted.

The embedded cluster runs in a process of its own; operator and submitter share this one. Every job is a gang
of one pod of eight GPUs that runs for a second, on more nodes than any rate here could fill, so that the
operator is what limits. At first one gang holds every node, until all others have been told their verdict.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import time
from collections.abc import AsyncIterator

import crowd
import pytest

from lstqueue.kube import client, port
from lstqueue.operator import app, command, shell
from lstqueue.operator import settings as all_settings

SUBMITTED = 8_000
ADMITTED = 3_000
FLOOR_PER_SECOND = 60
BLOCKED_S = 60
WITHIN_S = 240


def admitted(operator: app.Operator) -> float:
    samples = [sample for metric in operator.metrics.admissions.collect() for sample in metric.samples]
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))


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
    try:
        yield under_kopf.operator
    finally:
        under_kopf.stop.set()
        await task


def per_job(requests: collections.Counter[tuple[str, str]], jobs: int) -> str:
    verbs = ("create", "patch", "patch_status", "delete")
    writes = {key: count for key, count in requests.items() if key[0] in verbs}
    parts = [f"{verb} {kind} {count / jobs:.2f}" for (verb, kind), count in sorted(writes.items())]
    return f"{sum(writes.values()) / jobs:.2f} ({', '.join(parts)})"


@pytest.mark.benchmark
async def test_admissions_per_second_with_five_thousand_pending() -> None:
    async with crowd.cluster(crowd.NODES) as url:
        api = await client.connect(url=url)
        await api.create(port.GPU_QUEUES, None, crowd.queue())
        await api.create(
            port.DEADLINE_JOBS,
            "default",
            crowd.gang(99_999, replicas=crowd.NODES, seconds=BLOCKED_S, importance=10),
        )
        began = time.perf_counter()
        await crowd.submit(api, SUBMITTED)
        print(f"\nsubmitted {SUBMITTED} in {time.perf_counter() - began:.1f} s")
        async with running(url) as operator, asyncio.timeout(WITHIN_S):
            began = time.perf_counter()
            await operator.synced.wait()
            print(f"synced in {time.perf_counter() - began:.1f} s")
            while admitted(operator) < 1 or operator.loop.writer.backlog:
                await operator.loop.next_pass(after=operator.loop.passes)
            told = time.perf_counter() - began
            print(f"verdicts: {SUBMITTED} told in {told:.1f} s = {SUBMITTED / told:.0f}/s")
            before, passes = operator.api.requests.copy(), operator.loop.passes
            while admitted(operator) < 2:
                await operator.loop.next_pass(after=operator.loop.passes)
            first, cpu, already = time.perf_counter(), time.process_time(), admitted(operator)
            while admitted(operator) < ADMITTED:
                await operator.loop.next_pass(after=operator.loop.passes)
            seconds, done = time.perf_counter() - first, admitted(operator) - already
            cpu, passes = time.process_time() - cpu, operator.loop.passes - passes
            print(
                f"admissions: {done:.0f} in {seconds:.1f} s = {done / seconds:.0f}/s with at least "
                f"{SUBMITTED - done - already:.0f} pending; CPU {cpu:.1f} s; {passes} passes; writes per "
                f"admitted job {per_job(operator.api.requests - before, int(done + already))}"
            )
        await api.close()
    assert done / seconds >= FLOOR_PER_SECOND
