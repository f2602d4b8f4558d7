"""Resident memory of the operator's process with 10,000 waiting jobs, all of them told their verdict.

The process is `lstqueue operator` as it is installed; the embedded cluster runs in another one, in real time.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import crowd
import pytest

from lstqueue.kube import client, port

JOBS = 10_000
CEILING_MIB = 350
WITHIN_S = 700


@contextlib.asynccontextmanager
async def operator(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run an operator in a process of its own."""
    main = "from lstqueue import cli; cli.main()"
    command = [sys.executable, "-c", main, "operator", "--url", url, "--writes-per-second", "0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def resident_mib(pid: int, field: str) -> float:
    """Return a figure of /proc/PID/status in MiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


async def until_told(api: client.KubeClient, count: int, *, version: str) -> None:
    """Wait until so many DeadlineJobs have been written to since `version`.

    It costs the cluster one watch, so that it can be asked about ten thousand jobs on a busy machine: listing
    them takes it a second each time.
    """
    known: set[str] = set()
    while len(known) < count:
        stream = api.watch(port.DEADLINE_JOBS, resource_version=version, timeout_seconds=3600)
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if "phase" in (event.object.get("status") or {}):
                    known.add(event.object["metadata"]["uid"])
                if len(known) == count:
                    return


async def measure(resource: port.Resource, make: Callable[[int], dict[str, Any]]) -> tuple[float, float]:
    """Return MiB resident with all jobs told, and the most it was until then."""
    async with crowd.cluster(crowd.NODES) as url:
        api = await client.connect(url=url)
        await api.create(port.GPU_QUEUES, None, crowd.queue())
        blocking = crowd.gang(99_999, replicas=crowd.NODES, seconds=3600, importance=10)
        await api.create(port.DEADLINE_JOBS, "default", blocking)
        await crowd.submit(api, JOBS, resource=resource, make=make)
        version = (await api.list_page(port.DEADLINE_JOBS, limit=1)).resource_version
        async with operator(url) as process, asyncio.timeout(WITHIN_S):
            ended = asyncio.create_task(process.wait())
            all_told = asyncio.create_task(until_told(api, JOBS + 1, version=version))
            try:
                await asyncio.wait({ended, all_told}, return_when=asyncio.FIRST_COMPLETED)
                assert not ended.done(), "the operator ended by itself"
                await all_told
                found = resident_mib(process.pid, "VmRSS"), resident_mib(process.pid, "VmHWM")
            finally:
                ended.cancel()
                all_told.cancel()
                await asyncio.gather(ended, all_told, return_exceptions=True)
        await api.close()
    return found


@pytest.mark.benchmark
@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="no /proc to read memory from")
@pytest.mark.parametrize("kind", ["DeadlineJobs", "labelled Jobs"])
async def test_resident_memory_with_ten_thousand_jobs(kind: str) -> None:
    labelled = kind == "labelled Jobs"
    now, peak = await measure(
        port.JOBS if labelled else port.DEADLINE_JOBS, crowd.labelled if labelled else crowd.gang
    )
    print(f"\n{JOBS} {kind}: {now:.0f} MiB resident, {peak:.0f} MiB at most")
    assert now <= CEILING_MIB
