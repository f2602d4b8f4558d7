"""One run of the demo: a virtual cluster, the real operator under kopf, and the trace fed in on time.

Runs in a process of its own, with its own event loop on virtual time; what it returns is plain data. The
operator is killed once and started anew, in the same loop, with nothing but what the API tells it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import time
from dataclasses import dataclass

from lstqueue.demo import meter as meters
from lstqueue.demo import mix, operators, outcome, processes, scenario, story, trace, trouble
from lstqueue.embedded import clock, eventlog, memory, world
from lstqueue.engine import model
from lstqueue.kube import port
from lstqueue.record import book, reading, rows

SPARE = 30 * 86_400
"""Virtual seconds more than all jobs need one after the other; when they are over, something hangs."""

_EXACT = model.Config(lo_factor=1.0, hi_factor=1.0)
"""The demo states true run times, so nothing is gained by doubting them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: an order for the queue, the first `jobs` of the trace that fit, and on how many nodes.

    What ran is written to `record` as a trace.
    """

    order: str
    jobs: int
    nodes: int
    seed: int
    record: pathlib.Path | None = None

    @property
    def name(self) -> str:
        """The order."""
        return self.order

    def play(self, report: processes.Report) -> outcome.Outcome:
        """Run to the end."""
        return play(self, report)


@dataclass(slots=True)
class _Run:
    """A run while it lasts."""

    plan: Plan
    asks: list[mix.Ask]
    cluster: world.World
    meter: meters.Meter
    node: trouble.Node
    trap: trouble.Trap
    operators: operators.Operators
    queued: asyncio.Event
    """Set once the queue is there."""

    async def feed(self) -> None:
        """Submit every job at its time.

        Not over HTTP: kopf, when it ends, cancels the server's ends of all connections that were opened in
        its time, whoever has the other end.
        """
        api = memory.MemoryApi(self.cluster.server.backend)
        gpus = self.plan.nodes * scenario.GPUS_PER_NODE
        await api.create(port.GPU_QUEUES, None, scenario.queue(self.plan.order, gpus=gpus))
        self.queued.set()
        for ask in self.asks:
            await asyncio.sleep(max(0.0, (mix.EPOCH + ask.job.submit - self.cluster.now()) / 1000))
            resource, body = scenario.manifest(ask)
            await api.create(resource, scenario.NAMESPACE, body)


def play(plan: Plan, report: processes.Report) -> outcome.Outcome:
    """Run to the end. `report(finished, running GPUs, virtual seconds)` is called as jobs finish."""
    jobs = scenario.fitting(trace.load(seed=plan.seed, jobs=plan.jobs), nodes=plan.nodes)
    horizon = SPARE + (jobs[-1].submit + sum(job.duration for job in jobs)) // 1000
    asks = mix.ask(jobs, seed=plan.seed)
    return clock.run(_play(plan, asks, horizon, report), horizon=horizon)


async def _play(plan: Plan, asks: list[mix.Ask], horizon: int, report: processes.Report) -> outcome.Outcome:
    began, loop = time.monotonic(), asyncio.get_running_loop()
    last = asks[-1].job.submit
    async with world.World(bookmark_s=operators.BOOKMARKS) as cluster:
        cluster.add_nodes(plan.nodes, gpus=scenario.GPUS_PER_NODE)
        meter = meters.Meter(since=mix.EPOCH, until=mix.EPOCH + last)
        node = trouble.Node(cluster, meter, mix.EPOCH + int(trouble.NODE_AT * last))
        trap = trouble.Trap(meter, cluster.now, mix.EPOCH + int(trouble.OPERATOR_AT * last))
        running = operators.Operators(cluster, operators.settings(_EXACT), trap)
        run = _Run(plan, asks, cluster, meter, node, trap, running, asyncio.Event())

        def seen(event: eventlog.Event) -> None:
            finished = meter.finished
            meter.see(event, cluster.now())
            if meter.finished != finished:
                report(meter.finished, meter.held, loop.time())

        cluster.store.subscribe(seen)
        recording = None if plan.record is None else asyncio.create_task(_record(run, plan.record))
        await _until_all_end(run, horizon)
        virtual = loop.time()
        recorded = None
        if recording is not None:
            recording.cancel()
            recorded = await recording
    return dataclasses.replace(_outcome(run, time.monotonic() - began, virtual), recorded=recorded)


async def _record(run: _Run, path: pathlib.Path) -> outcome.Recorded:
    """Follow the cluster until cancelled: many DeadlineJobs are gone before the last has ended."""
    api = memory.MemoryApi(run.cluster.server.backend)
    with book.Book(path) as into:
        with contextlib.suppress(asyncio.CancelledError):
            await run.queued.wait()
        reader = reading.Reader(api, into, rows.Asked(await reading.defaults(api)))
        with contextlib.suppress(asyncio.CancelledError):
            await reader.following().run()
        await reader.once()
        return outcome.Recorded(into.written, dict(reader.left_out), len(reader.waiting))


async def _until_all_end(run: _Run, horizon: int) -> None:
    async with asyncio.TaskGroup() as group:
        operating = group.create_task(run.operators.run())
        troubling = group.create_task(run.node.run())
        feeding = group.create_task(run.feed())
        await run.cluster.until(
            lambda: run.meter.finished == len(run.asks) or operating.done(), within=horizon
        )
        await feeding
        troubling.cancel()
        run.operators.stop()


def _outcome(run: _Run, wall: float, virtual: float) -> outcome.Outcome:
    plan, meter, audit = run.plan, run.meter, run.cluster.audit
    capacity = plan.nodes * scenario.GPUS_PER_NODE * run.asks[-1].job.submit
    results = outcome.judge(run.asks, meter.lives.values())
    loss, crash = run.node.loss, run.trap.crash
    return outcome.Outcome(
        order=plan.order,
        jobs=len(run.asks),
        results=results,
        suspensions=meter.suspensions(),
        preemptions=meter.suspensions("Preempted"),
        suspensions_node_lost=meter.suspensions("NodeLost"),
        nodes_lost=int(loss is not None),
        restarts=len(run.operators.made) - 1,
        gpu_use=meter.gpu_ms / capacity if capacity else 0.0,
        checks=audit.checks,
        violations=tuple(str(violation) for violation in audit.violations),
        requests=run.operators.requests(),
        story=story.tell(run.asks, meter.lives, loss, crash),
        wall_s=wall,
        virtual_s=virtual,
    )
