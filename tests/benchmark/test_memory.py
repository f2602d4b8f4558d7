"""Resident memory of the operator's process with 10,000 waiting DeadlineJobs, all of them told their verdict.

The process is `lstqueue operator` as it is installed; the embedded cluster runs in another one, in real time.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator

import crowd
import pytest

from lstqueue.kube import client, port

JOBS = 10_000
CEILING_MIB = 350
WITHIN_S = 600


@contextlib.asynccontextmanager
async def operator(url: str) -> AsyncIterator[int]:
    """Run an operator of its own and give its process id."""
    main = "from lstqueue import cli; cli.main()"
    command = [sys.executable, "-c", main, "operator", "--url", url, "--writes-per-second", "0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
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


async def told(api: port.KubeApi) -> int:
    """Count the DeadlineJobs that have a verdict or hold capacity."""
    known, token = 0, ""
    while True:
        page = await api.list_page(port.DEADLINE_JOBS, continue_token=token)
        known += sum("phase" in (raw.get("status") or {}) for raw in page.items)
        token = page.continue_token
        if not token:
            return known


async def until_told(api: port.KubeApi) -> None:
    """Wait until every job has been told, looking now and then: a watch would cost the cluster time."""
    loop, known = asyncio.get_running_loop(), 0
    while known <= JOBS:
        known = await told(api)
        again = asyncio.Event()
        loop.call_later(10, again.set)
        await again.wait()


@pytest.mark.benchmark
@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="no /proc to read memory from")
async def test_resident_memory_with_ten_thousand_jobs() -> None:
    async with crowd.cluster(crowd.NODES) as url:
        api = await client.connect(url=url)
        await api.create(port.GPU_QUEUES, None, crowd.queue())
        blocking = crowd.gang(99_999, replicas=crowd.NODES, seconds=3600, importance=10)
        await api.create(port.DEADLINE_JOBS, "default", blocking)
        await crowd.submit(api, JOBS)
        async with operator(url) as pid, asyncio.timeout(WITHIN_S):
            await until_told(api)
            now, peak = resident_mib(pid, "VmRSS"), resident_mib(pid, "VmHWM")
        await api.close()
    print(f"\n{JOBS} DeadlineJobs: {now:.0f} MiB resident, {peak:.0f} MiB at most")
    assert now <= CEILING_MIB
