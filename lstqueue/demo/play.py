"""One run of the demo: a virtual cluster, the real operator under kopf, and the trace fed in on time.

Runs in a process of its own, with its own event loop on virtual time; what it returns is plain data. The
figures come from the objects in the store and from the audit, not from the operator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lstqueue.api import times
from lstqueue.demo import scenario, trace
from lstqueue.embedded import clock, eventlog, world
from lstqueue.engine import model
from lstqueue.kube import client, port
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings

SPARE = 30 * 86_400
"""Virtual seconds more than all jobs need one after the other; when they are over, something hangs."""

_EXACT = model.Config(lo_factor=1.0, hi_factor=1.0)
"""The demo states true run times, so nothing is gained by doubting them."""

_SETTINGS = all_settings.Settings(
    watch_seconds=6 * 3600,
    inactivity_timeout=2 * 3600.0,
    sweep_interval=6 * 3600.0,
    queue_status_interval=600.0,
    engine=_EXACT,
)
_BOOKMARKS = 3600.0
_FINAL = frozenset({"Succeeded", "Failed", "Rejected"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: an order for the queue, the first `jobs` of the trace that fit, and on how many nodes."""

    order: str
    jobs: int
    nodes: int
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `met` counts jobs that succeeded by their deadline, `met_gpu_hours` their work.

    `gpu_use` is the share of all GPUs that pods held between the first submission and the last.
    """

    order: str
    jobs: int
    met: int
    met_gpu_hours: float
    gpu_hours: float
    unfinished: int
    suspensions: int
    gpu_use: float
    checks: int
    violations: tuple[str, ...]
    requests: dict[str, int]
    wall_s: float
    virtual_s: float


@dataclass(slots=True)
class Meter:
    """Counts what the store shows while it happens: finished jobs, suspensions and GPU time."""

    finished: int = 0
    suspensions: int = 0
    gpu_ms: int = 0
    held: int = 0
    since: int = 0
    until: int = 0

    def see(self, event: eventlog.Event, now: int) -> None:
        """Take in a write."""
        if event.resource is port.DEADLINE_JOBS:
            before, after = _phase(event.old), _phase(event.object)
            self.finished += after in _FINAL and before not in _FINAL
            self.suspensions += after == "Suspending" and before != "Suspending"
        elif event.resource is port.PODS:
            self.advance(now)
            gone = None if event.type == "DELETED" else event.object
            self.held += _gpus(gone) - _gpus(event.old)

    def advance(self, now: int) -> None:
        """Add up GPU time until now, but none after `until`."""
        end = min(now, self.until)
        if end > self.since:
            self.gpu_ms += self.held * (end - self.since)
            self.since = end


def play(plan: Plan, report: Callable[[int, int, float], None]) -> Outcome:
    """Run to the end. `report(finished, running GPUs, virtual seconds)` is called as jobs finish."""
    jobs = scenario.fitting(trace.load(seed=plan.seed, jobs=plan.jobs), nodes=plan.nodes)
    horizon = SPARE + (jobs[-1].submit + sum(job.duration for job in jobs)) // 1000
    return clock.run(_play(plan, jobs, horizon, report), horizon=horizon)


async def _play(
    plan: Plan, jobs: list[trace.TraceJob], horizon: int, report: Callable[[int, int, float], None]
) -> Outcome:
    began, loop = time.monotonic(), asyncio.get_running_loop()
    async with world.World(bookmark_s=_BOOKMARKS) as cluster:
        cluster.add_nodes(plan.nodes, gpus=scenario.GPUS_PER_NODE)
        api = await client.connect(url=cluster.url)

        async def make() -> app.Operator:
            return app.Operator(
                await client.connect(url=cluster.url), now=cluster.now, settings=_SETTINGS, fed=True
            )

        operator = shell.Shell(make=make, access=api.credentials)
        running = asyncio.create_task(operator.run())
        await operator.running.wait()
        assert operator.operator is not None
        epoch = cluster.now()
        gpus = plan.nodes * scenario.GPUS_PER_NODE
        meter = Meter(since=epoch, until=epoch + jobs[-1].submit)

        def seen(event: eventlog.Event) -> None:
            finished = meter.finished
            meter.see(event, cluster.now())
            if meter.finished != finished:
                report(meter.finished, meter.held, loop.time())

        cluster.store.subscribe(seen)
        await api.create(port.GPU_QUEUES, None, scenario.queue(plan.order, gpus=gpus))
        feeding = asyncio.create_task(_feed(api, jobs, epoch=epoch))
        await cluster.until(lambda: meter.finished == len(jobs) or running.done(), within=horizon)
        virtual = loop.time()
        await feeding
        requests = operator.operator.api.requests
        operator.stop.set()
        await running
        await api.close()
    return _outcome(plan, jobs, cluster, meter, epoch, requests, time.monotonic() - began, virtual)


async def _feed(api: port.KubeApi, jobs: list[trace.TraceJob], *, epoch: int) -> None:
    """Submit every job at its time."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for job in jobs:
        await asyncio.sleep(max(0.0, start + job.submit / 1000 - loop.time()))
        await api.create(port.DEADLINE_JOBS, scenario.NAMESPACE, scenario.deadline_job(job, epoch=epoch))


def _outcome(
    plan: Plan,
    jobs: list[trace.TraceJob],
    cluster: world.World,
    meter: Meter,
    epoch: int,
    requests: Any,
    wall: float,
    virtual: float,
) -> Outcome:
    stored = {raw["metadata"]["name"]: raw for raw in cluster.store.list(port.DEADLINE_JOBS)}
    met = []
    for job in jobs:
        status = stored[f"trace-{job.number:03}"].get("status") or {}
        done = status.get("completionTime", "")
        if status.get("phase") == "Succeeded" and times.parse(done) <= epoch + job.deadline:
            met.append(job)
    capacity = plan.nodes * scenario.GPUS_PER_NODE * jobs[-1].submit
    return Outcome(
        order=plan.order,
        jobs=len(jobs),
        met=len(met),
        met_gpu_hours=_gpu_hours(met),
        gpu_hours=_gpu_hours(jobs),
        unfinished=sum(_phase(raw) not in _FINAL for raw in stored.values()),
        suspensions=meter.suspensions,
        gpu_use=meter.gpu_ms / capacity if capacity else 0.0,
        checks=cluster.audit.checks,
        violations=tuple(str(violation) for violation in cluster.audit.violations),
        requests={f"{verb} {kind}": count for (verb, kind), count in sorted(requests.items())},
        wall_s=wall,
        virtual_s=virtual,
    )


def _gpu_hours(jobs: list[trace.TraceJob]) -> float:
    return sum(job.gpus * job.duration for job in jobs) / 3_600_000


def _phase(raw: Any) -> str:
    return str(((raw or {}).get("status") or {}).get("phase") or "")


def _gpus(raw: Any) -> int:
    """GPUs that a stored pod holds."""
    if not raw or not raw["spec"].get("nodeName") or _phase(raw) in ("Succeeded", "Failed"):
        return 0
    return sum(
        int(container["resources"]["limits"].get(scenario.GPU, 0)) for container in raw["spec"]["containers"]
    )
