"""The operator against a real control plane, with a record of everything it and the cluster did."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import replay

from lstqueue.kube import client, port, reflector
from lstqueue.operator import app, command, shell
from lstqueue.operator import settings as all_settings

Object = dict[str, Any]

Before = Callable[[port.Resource, str, Object], Awaitable[None]]
"""Awaited before each patch that the operator sends: the kind, the name and the body."""

REFUSED = "is forbidden: User"
"""How the API server begins to say who may not do what; other refusals with 403 do not name a user."""

PROMPT = all_settings.Settings(writes_per_second=0, retry_first=0.2, intake_retry=1.0)
IMPATIENT = dataclasses.replace(PROMPT, look_at_pods=0.5, force_after=2.0)


class Record:
    """Every version of every object of a few kinds in one namespace, in the order of the server.

    `seen` are (resourceVersion, event, object), `at` the times (ms) at which they were seen.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, Object]] = []
        self.at: list[int] = []
        self.changed = asyncio.Event()

    def note(self, event: str, raw: Object) -> None:
        self.seen.append((int(raw["metadata"]["resourceVersion"]), event, raw))
        self.at.append(command.now_ms())
        self.changed.set()

    def violations(self) -> list[str]:
        """What the auditor has to say of it, in words."""
        rows = zip(self.at, self.seen, strict=True)
        return replay.violations([(at, *row) for at, row in rows])

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
    """Record DeadlineJobs, Jobs, PyTorchJobs and pods of a namespace, beside all nodes and queues."""
    made = Record()

    def noting(kind: str) -> Callable[[str, Object], None]:
        return lambda event, raw: made.note(event, {"kind": kind, **raw})

    kinds = (port.NODES, port.GPU_QUEUES, port.DEADLINE_JOBS, port.JOBS, port.PYTORCH_JOBS, port.PODS)
    sources = [
        reflector.Reflector(
            api,
            kind,
            on_event=noting(kind.kind),
            namespace=namespace if kind.namespaced else None,
        )
        for kind in kinds
    ]
    tasks = [asyncio.create_task(source.run()) for source in sources]
    for source in sources:
        # Where a kind is not served there is nothing of it to record.
        await source.answered.wait()
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def operator(
    kubeconfig: str,
    settings: all_settings.Settings = PROMPT,
    *,
    before: Before | None = None,
    may_not: tuple[str, ...] = (),
) -> AsyncIterator[app.Operator]:
    """Run the operator under kopf, as `lstqueue operator` does, until the block ends.

    It must have been refused nothing for want of permission, but for the kinds that it `may_not` read.
    """
    api = await client.connect(kubeconfig=kubeconfig)
    if before is not None:
        _have_awaited(api, before)

    async def make() -> app.Operator:
        return app.Operator(api, now=command.now_ms, settings=settings, fed=True)

    refused = _Refused()
    logging.getLogger("lstqueue").addHandler(refused)
    running = shell.Shell(make=make, access=api.credentials)
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            await running.running.wait()
            assert running.operator is not None
            await running.operator.synced.wait()
        yield running.operator
        strange = [said for said in refused.found if not said.startswith(may_not or ("nothing",))]
        assert not strange, strange[0]
    finally:
        running.stop.set()
        await task
        logging.getLogger("lstqueue").removeHandler(refused)


class _Refused(logging.Handler):
    """Collects what the operator says of being refused for want of permission."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if REFUSED in record.getMessage():
            self.found.append(record.getMessage())


def _have_awaited(api: client.KubeClient, before: Before) -> None:
    """Let a test do something between a decision of the operator and its write."""
    inner = api.patch

    async def patch(resource: port.Resource, namespace: str | None, name: str, body: Object) -> Object:
        await before(resource, name, body)
        return await inner(resource, namespace, name, body)

    api.patch = patch


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
