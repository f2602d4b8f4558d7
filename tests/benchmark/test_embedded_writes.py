"""How many status writes a second the embedded API server takes from another process, and at what cost."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import orjson
import pytest

pytestmark = pytest.mark.benchmark

_CLIENTS = 16
_OBJECTS = 200
_WRITES = 6_000
_TICKS = os.sysconf("SC_CLK_TCK")
_PATH = "/apis/lstqueue.dev/v1alpha1/namespaces/default/deadlinejobs"
_MERGE = {"Content-Type": "application/merge-patch+json"}
_CONTAINER = {
    "name": "train",
    "image": "registry.example/train:1",
    "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"],
    "env": [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(20)],
    "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "32", "memory": "512Gi"}},
}


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    process = subprocess.Popen([sys.executable, "-m", "lstqueue.embedded"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait(timeout=10)
        process.stdout.close()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _job(number: int) -> dict[str, object]:
    group = {"name": "worker", "replicas": 4, "template": {"spec": {"containers": [_CONTAINER]}}}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": f"job-{number}"},
        "spec": {"queue": "default", "deadlineIn": "4h", "groups": [group]},
    }


def _status(number: int) -> bytes:
    window = {"earliest": "2026-01-01T00:00:00Z", "latest": f"2026-01-01T01:{number % 60:02}:00Z"}
    condition = {
        "type": "Admitted",
        "status": "False",
        "reason": "NoCapacity",
        "message": "needs 4 nodes with 8 free GPUs each",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    verdict = {"level": "OnTime", "reason": "Fits", "forecastStart": window, "forecastFinish": window}
    status = {"phase": "Pending", "attempt": number, "verdict": verdict, "conditions": [condition]}
    return orjson.dumps({"status": status})


async def _watch(session: aiohttp.ClientSession, url: str, ready: asyncio.Event) -> None:
    """Read events until every object and every write has been seen."""
    left = _OBJECTS + _WRITES
    async with session.get(url + _PATH, params={"watch": "1"}) as answer:
        ready.set()
        while left > 0:
            left -= (await answer.content.readany()).count(b"\n")


async def _write(session: aiohttp.ClientSession, url: str, numbers: Iterator[int]) -> None:
    for number in numbers:
        target = f"{url}{_PATH}/job-{number % _OBJECTS}/status"
        async with session.patch(target, data=_status(number), headers=_MERGE) as answer:
            await answer.read()
            assert answer.status == 200


async def test_status_writes_from_another_process(server: tuple[str, int]) -> None:
    url, pid = server
    connector = aiohttp.TCPConnector(limit=_CLIENTS + 1)
    async with aiohttp.ClientSession(connector=connector) as session:
        for number in range(_OBJECTS):
            async with session.post(url + _PATH, json=_job(number)) as answer:
                assert answer.status == 201, await answer.text()
        ready = asyncio.Event()
        watcher = asyncio.create_task(_watch(session, url, ready))
        await ready.wait()
        numbers = iter(range(_WRITES))
        cpu, start = _cpu_seconds(pid), time.perf_counter()
        await asyncio.gather(*[_write(session, url, numbers) for _ in range(_CLIENTS)])
        took, cpu = time.perf_counter() - start, _cpu_seconds(pid) - cpu
        async with asyncio.timeout(30):
            await watcher
    print(
        f"\n{_WRITES} status merge patches of a {len(str(_job(0)))}-byte DeadlineJob, {_CLIENTS} clients, "
        f"one watcher: {_WRITES / took:.0f} writes/s, {cpu / _WRITES * 1e6:.0f} µs of server CPU per write"
    )
