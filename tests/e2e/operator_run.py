"""The operator against a real control plane, with a record of everything it and the cluster did."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from lstqueue.kube import client, port, reflector
from lstqueue.operator import app, command, shell
from lstqueue.operator import settings as all_settings

Object = dict[str, Any]

PROMPT = all_settings.Settings(writes_per_second=0, retry_first=0.2, intake_retry=1.0)


class Record:
    """Every version of every object of a few kinds in one namespace, in the order of the server."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, Object]] = []
        self.changed = asyncio.Event()

    def note(self, event: str, raw: Object) -> None:
        self.seen.append((int(raw["metadata"]["resourceVersion"]), event, raw))
        self.changed.set()

    def of(self, kind: str) -> list[Object]:
        """All versions of a kind, oldest first."""
        rows = sorted((row for row in self.seen if row[2].get("kind") == kind), key=lambda row: row[0])
        return [raw for _, event, raw in rows if event != "DELETED"]

    async def until(self, found: Callable[[], Any], *, what: str, within_s: float = 60.0) -> Any:
        """Wait until `found` returns something true, looking again whenever an object changed."""
        try:
            async with asyncio.timeout(within_s):
                while not (value := found()):
                    self.changed.clear()
                    await self.changed.wait()
                return value
        except TimeoutError:
            last = [raw.get("status") for raw in self.of("DeadlineJob")[-1:]]
            raise AssertionError(f"not within {within_s:g} s: {what}; last status: {last}") from None


@contextlib.asynccontextmanager
async def record(api: port.KubeApi, namespace: str) -> AsyncIterator[Record]:
    """Record DeadlineJobs, Jobs and pods of a namespace."""
    made = Record()

    def noting(kind: str) -> Callable[[str, Object], None]:
        return lambda event, raw: made.note(event, {"kind": kind, **raw})

    kinds = (port.DEADLINE_JOBS, port.JOBS, port.PODS)
    sources = [
        reflector.Reflector(api, kind, on_event=noting(kind.kind), namespace=namespace) for kind in kinds
    ]
    tasks = [asyncio.create_task(source.run()) for source in sources]
    for source in sources:
        await source.synced.wait()
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def operator(kubeconfig: str, settings: all_settings.Settings = PROMPT) -> AsyncIterator[app.Operator]:
    """Run the operator under kopf, as `lstqueue operator` does, until the block ends."""
    api = await client.connect(kubeconfig=kubeconfig)

    async def make() -> app.Operator:
        return app.Operator(api, now=command.now_ms, settings=settings, fed=True)

    running = shell.Shell(make=make, access=api.credentials)
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            await running.running.wait()
            assert running.operator is not None
            await running.operator.synced.wait()
        yield running.operator
    finally:
        running.stop.set()
        await task


def queue(name: str, *, gpus: int = 32, **spec: Any) -> Object:
    pool = {"name": "all", "resources": [{"name": "nvidia.com/gpu", "nominal": gpus}]}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "GPUQueue",
        "metadata": {"name": name},
        "spec": {"pools": [pool], **spec},
    }


def group(name: str, replicas: int, *, gpus: int = 8, **simulation: str) -> Object:
    """A worker group whose keywords are the `sim/` annotations of its pods, dashes as underscores."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    annotations = {f"sim/{key.replace('_', '-')}": value for key, value in simulation.items()}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}},
    }


def deadline_job(name: str, queue_name: str, groups: list[Object], **spec: Any) -> Object:
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name},
        "spec": {"queue": queue_name, "groups": groups, **spec},
    }
