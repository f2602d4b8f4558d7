"""How many watch events a second an intake takes over HTTP, and what a list of 10,000 pods costs.

The server is another process that replays bytes made beforehand, so that the reflector's side is what is
measured; with two cores it is still held up by it now and then.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import time
from multiprocessing import connection

import orjson
import pytest
from aiohttp import web

from lstqueue.kube import client, port, reflector

EVENTS = 40_000
PODS = 10_000
PAGE = 500

pytestmark = pytest.mark.benchmark


def realistic_pod(number: int, version: int) -> port.Object:
    """A pod of about 4 KB with managedFields, as a server sends them."""
    fields = {f"f:field-{index}": {".": {}, "f:value": {}} for index in range(45)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"train-worker-0-{number}-x7k2p",
            "namespace": "research",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "labels": {f"label-{index}.example.org/name": f"value-{index}" for index in range(8)},
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": fields}}
            ],
        },
        "spec": {
            "nodeName": f"node-{number % 700}",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.org/research/train:2026.7",
                    "env": [{"name": f"VARIABLE_{index}", "value": "x" * 24} for index in range(16)],
                    "resources": {"limits": {"nvidia.com/gpu": "8"}},
                }
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}] * 4},
    }


def serve(pipe: connection.Connection) -> None:
    listed = [orjson.dumps(realistic_pod(number, number + 1)) for number in range(PODS)]
    events = [
        b'{"type":"MODIFIED","object":' + orjson.dumps(realistic_pod(number % PODS, PODS + number)) + b"}\n"
        for number in range(1, EVENTS + 1)
    ]
    chunks = [b"".join(events[start : start + 16]) for start in range(0, EVENTS, 16)]

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            start = int(request.query.get("continue", 0))
            after = str(start + PAGE) if start + PAGE < PODS else ""
            body = b",".join(listed[start : start + PAGE])
            metadata = orjson.dumps({"resourceVersion": str(PODS), "continue": after})
            return web.Response(body=b'{"metadata":' + metadata + b',"items":[' + body + b"]}")
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        await asyncio.sleep(3600)
        return response

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.sleep(3600)

    asyncio.run(main())


async def measure(port_number: int) -> dict[str, float]:
    api = await client.connect(url=f"http://127.0.0.1:{port_number}")
    enough = asyncio.Event()
    projected: dict[str, tuple[str, str, str]] = {}

    def on_event(_: str, item: port.Object) -> None:
        projected[item["metadata"]["uid"]] = (
            item["metadata"]["name"],
            item["spec"]["nodeName"],
            item["status"]["phase"],
        )
        if subject.counts.events >= EVENTS:
            enough.set()

    subject = reflector.Reflector(api, port.PODS, on_event=on_event, page_size=PAGE)
    started, cpu = time.perf_counter(), time.process_time()
    task = asyncio.create_task(subject.run())
    await subject.synced.wait()
    listed, cpu_listed = time.perf_counter(), time.process_time()
    await enough.wait()
    ended, cpu_ended = time.perf_counter(), time.process_time()
    task.cancel()
    await asyncio.wait([task])
    await api.close()
    assert len(projected) == PODS
    return {
        "list of 10,000, s": listed - started,
        "CPU per listed pod, µs": (cpu_listed - cpu) / PODS * 1e6,
        "watch events/s": EVENTS / (ended - listed),
        "CPU per event, µs": (cpu_ended - cpu_listed) / EVENTS * 1e6,
        "peak RSS of this process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def test_reflector_intake():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        size = len(orjson.dumps(realistic_pod(1, 1)))
        print(f"\npod of {size} bytes; {EVENTS} events")
        port_number = ours.recv()
        for attempt in range(3):
            figures = asyncio.run(measure(port_number))
            print(
                f"run {attempt + 1}: " + ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())
            )
    finally:
        server.kill()
        server.join()
