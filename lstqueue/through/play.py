"""One run of a trace by the real operator: a virtual cluster with the trace's own time, fed job by job.

Runs in a process of its own, with its own event loop on virtual time; what it returns is plain data.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.api import durations, quantities
from lstqueue.demo import meter as meters
from lstqueue.demo import operators, processes
from lstqueue.embedded import clock, eventlog, memory, world
from lstqueue.engine import model
from lstqueue.evaluate import inventory, lives, replay, teams, workload
from lstqueue.evaluate import world as pure
from lstqueue.kube import port
from lstqueue.through import manifests, seen
from lstqueue.topology import model as topology

NAMESPACE = "default"
AHEAD = 10 * durations.MINUTE
"""How long before the first submission the cluster is there: the operator is up and idle by then."""
APART = durations.SECOND
"""Between the creations of two queues, so that it is known which is older."""
SPARE = 30 * 86_400
"""Virtual seconds more than all jobs need one after the other; when they are over, something hangs."""
WRITES = frozenset({"create", "patch", "patch_status", "replace", "delete"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: jobs with what is estimated of them by key, the queues, and what things cost.

    `several` says who works where if there is more than one queue; `counted` are the first and last ms of
    submissions that count.

    `pass_every` is in ms, `engine` what the operator's settings have of the engine.
    """

    name: str
    load: workload.Workload
    estimated: Mapping[str, model.Estimate | None]
    shape: pure.Shape
    queues: Sequence[Mapping[str, Any]]
    several: teams.Teams | None
    counted: tuple[int, int]
    costs: lives.Costs
    engine: model.Config
    pass_every: int

    def play(self, report: processes.Report) -> Played:
        """Run to the end."""
        works = self.load.works
        spare = sum(work.duration for work in works) + works[-1].submit - works[0].submit
        horizon = SPARE + spare // 1000
        return clock.run(_play(self, horizon, report), horizon=horizon + 86_400)


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a run.

    `outcome` is what `evaluate.figures` works out. `checks` of the audit, `violations` in words. `requests`
    are the operator's, by verb and kind. `told_otherwise` are jobs whose condition DeadlineMissed says
    another thing than their pods. Memory and CPU are those of this process.
    """

    outcome: replay.Outcome
    checks: int
    violations: tuple[str, ...]
    requests: Mapping[str, int]
    told_otherwise: tuple[str, ...]
    digest: str
    peak_rss_mib: float
    cpu_s: float

    @property
    def writes(self) -> int:
        """How many writes the operator made."""
        return sum(count for key, count in self.requests.items() if key.partition(" ")[0] in WRITES)


async def _play(plan: Plan, horizon: int, report: processes.Report) -> Played:
    loop, works = asyncio.get_running_loop(), plan.load.works
    began, (since, until) = works[0].submit, plan.counted
    epoch = began - AHEAD - int(loop.time() * 1000)
    async with world.World(epoch_ms=epoch, bookmark_s=operators.BOOKMARKS) as cluster:
        for machine in plan.shape.machines:
            cluster.add_nodes(1, gpus=machine.gpus, **_offered(machine))
        known = seen.Seen(
            jobs=seen.jobs_of(plan.load, plan.estimated, plan.several),
            meter=meters.Meter(since=since, until=until),
            gpus=plan.shape.gpus,
            restart=plan.costs.restore - plan.costs.launch,
        )

        def see(event: eventlog.Event) -> None:
            finished = known.meter.finished
            known.see(event, cluster.now())
            if known.meter.finished != finished:
                report(known.meter.finished, known.meter.held, (cluster.now() - began) / 1000)

        cluster.store.subscribe(see)
        settings = operators.settings(plan.engine, pass_every=plan.pass_every / 1000)
        running = operators.Operators(cluster, settings)
        stuck = await _until_all_end(plan, cluster, known, running, horizon)
        ended = cluster.now()
    outcome = replay.Outcome(
        lives=[job.life for job in known.jobs.values()],
        began=began,
        ended=ended,
        last_submit=works[-1].submit,
        passes=sum(operator.loop.passes for operator in running.made),
        held_loaded=known.meter.gpu_ms,
        idle_wanted=known.idle_wanted,
        stuck=stuck,
        counted=plan.counted,
    )
    return _played(known, cluster, running, outcome)


def _offered(machine: inventory.Machine) -> dict[str, Any]:
    """What a node has beside GPUs, as far as its list says."""
    offers = dict(machine.offers)
    told: dict[str, Any] = {
        name: quantities.format(name, offers[name]) for name in ("cpu", "memory") if name in offers
    }
    if topology.PODS in offers:
        told["max_pods"] = offers[topology.PODS]
    return told


async def _until_all_end(
    plan: Plan, cluster: world.World, known: seen.Seen, running: operators.Operators, horizon: int
) -> bool:
    """Run; return whether some jobs have not come to an end by the horizon."""
    stuck = False
    async with asyncio.TaskGroup() as group:
        operating = group.create_task(running.run())
        feeding = group.create_task(_feed(plan, cluster, known))
        try:
            await cluster.until(
                lambda: known.meter.finished == len(known.jobs) or operating.done(), within=horizon
            )
        except TimeoutError:
            stuck = True
        await feeding
        running.stop()
    return stuck


async def _feed(plan: Plan, cluster: world.World, known: seen.Seen) -> None:
    """Submit every job at its time; not over HTTP, since kopf cancels such connections when it ends."""
    api = memory.MemoryApi(cluster.server.backend)
    for queue in plan.queues:
        await api.create(port.GPU_QUEUES, None, dict(queue))
        await asyncio.sleep(APART / 1000)
    for name, job in known.jobs.items():
        work = job.life.work
        await asyncio.sleep(max(0, work.submit - cluster.now()) / 1000)
        body = manifests.job(job.life, name, plan.costs)
        await api.create(port.DEADLINE_JOBS, NAMESPACE, body)


def _played(
    known: seen.Seen, cluster: world.World, running: operators.Operators, outcome: replay.Outcome
) -> Played:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Played(
        outcome=outcome,
        checks=cluster.audit.checks,
        violations=tuple(str(violation) for violation in cluster.audit.violations),
        requests=running.requests(),
        told_otherwise=tuple(
            job.life.work.key
            for job in known.jobs.values()
            if job.life.completed is not None and job.told_missed is not _late(job.life)
        ),
        digest=known.log.digest(),
        peak_rss_mib=used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        cpu_s=used.ru_utime + used.ru_stime,
    )


def _late(life: lives.Life) -> bool:
    return life.work.deadline is not None and (life.completed or 0) > life.work.deadline
