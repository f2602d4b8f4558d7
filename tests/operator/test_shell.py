"""The operator under kopf and over HTTP, as it runs in a cluster, with its probes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp
import cluster
import pytest
from manifests import group

from lstqueue.embedded import faults, world
from lstqueue.kube import client, port
from lstqueue.operator import app, shell


@dataclass
class Stage:
    """A cluster without an operator in process, and the shell beside it."""

    cluster: cluster.Cluster
    shell: shell.Shell
    task: asyncio.Task[None]

    async def get(self, path: str) -> tuple[int, str]:
        assert self.shell.probes is not None
        url = f"http://127.0.0.1:{self.shell.probes.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status, await reply.text()

    async def figure(self, line: str) -> float:
        """One figure of /metrics by its full name with labels."""
        _, text = await self.get("/metrics")
        found = [row for row in text.splitlines() if row.startswith(f"{line} ")]
        return float(found[0].rpartition(" ")[2]) if found else 0.0


@contextlib.asynccontextmanager
async def stage(
    nodes: int = 2, *, before: Callable[[cluster.Cluster], None] | None = None
) -> AsyncIterator[Stage]:
    async with world.World(bookmark_s=300.0) as made:
        made.add_nodes(nodes)
        inside = cluster.Cluster(made, cluster.SETTINGS)
        if before is not None:
            before(inside)
        api = await client.connect(url=made.url)

        async def make() -> app.Operator:
            return app.Operator(
                await client.connect(url=made.url), now=made.now, settings=cluster.SETTINGS, fed=True
            )

        under_kopf = shell.Shell(make=make, access=api.credentials, probe_port=0)
        task = asyncio.create_task(under_kopf.run())
        await under_kopf.running.wait()
        try:
            yield Stage(inside, under_kopf, task)
        finally:
            under_kopf.stop.set()
            await asyncio.gather(task, return_exceptions=True)
            await api.close()
        inside.calls.judge()
        assert [str(violation) for violation in made.audit.violations] == []


@cluster.virtual
async def test_gangs_run_under_kopf_and_the_probes_tell_how_it_goes() -> None:
    async with stage() as here:
        made = here.cluster
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"), deadlineIn="1h", estimatedDuration="10m")
        made.submit("waits", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Running")
        await made.until_phase("waits", "Pending")
        await made.rest("1s")
        assert await here.get("/livez") == (200, "ok\n")
        assert await here.get("/readyz") == (200, "ok\n")
        where = 'namespace="default",queue="research"'
        assert await here.figure(f"lstqueue_admissions_total{{{where}}}") == 1
        assert await here.figure('lstqueue_jobs{state="running"}') == 1
        assert await here.figure('lstqueue_jobs{state="waiting"}') == 1
        assert await here.figure('lstqueue_api_requests{kind="jobs",verb="create"}') == 1
        await made.until_all("Succeeded", "gang", "waits")
        await made.rest("10s")
        ended = 'namespace="default",phase="Succeeded",queue="research"'
        met = f'lstqueue_finished_total{{deadline="met",{ended}}}'
        none = f'lstqueue_finished_total{{deadline="none",{ended}}}'
        assert (await here.figure(met), await here.figure(none)) == (1, 1)
        assert await here.figure('lstqueue_jobs{state="running"}') == 0


@cluster.virtual
async def test_why_tells_with_numbers_who_is_in_the_way() -> None:
    async with stage() as here:
        made = here.cluster
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"), deadlineIn="1h", estimatedDuration="10m")
        await made.until_phase("gang", "Running")
        made.submit("waits", group("worker", 2, run_for="10m"))
        await made.until_phase("waits", "Pending")
        await made.rest("1s")
        status, text = await here.get("/why/default/waits")
        told = json.loads(text)
        assert (status, told["code"]) == (200, "NoRoom")
        assert told["needed"]["nvidia.com/gpu"] == "16"
        assert [blocker["name"] for blocker in told["blockers"]] == ["gang"]
        assert (await here.get("/why/default/nobody"))[0] == 404


@cluster.virtual
async def test_kopf_writes_nothing_to_anybodys_objects() -> None:
    async with stage() as here:
        made = here.cluster
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Succeeded")
        for raw in (made.job("gang"), made.store.get(port.GPU_QUEUES, None, cluster.QUEUE)):
            assert "finalizers" not in raw["metadata"]
            assert "annotations" not in raw["metadata"]
        assert made.store.list(port.EVENTS) == []


@cluster.virtual
async def test_it_is_alive_but_not_ready_while_lists_are_missing() -> None:
    def refuse(made: cluster.Cluster) -> None:
        made.faults.fail(
            503, "ServiceUnavailable", when=faults.calls(verb="list", resource=port.NODES), times=6
        )

    async with stage(before=refuse) as here:
        assert (await here.get("/livez"))[0] == 200
        status, text = await here.get("/readyz")
        assert (status, "nodes" in text) == (503, True)
        here.cluster.queue()
        here.cluster.submit("gang", group(run_for="10m"))
        await here.cluster.until_phase("gang", "Succeeded")
        assert (await here.get("/readyz"))[0] == 200


@cluster.virtual
async def test_it_says_which_of_our_own_kinds_it_may_not_read() -> None:
    def refuse(made: cluster.Cluster) -> None:
        for kind in (port.DEADLINE_JOBS, port.GPU_QUEUES):
            made.faults.fail(403, "Forbidden", when=faults.calls(verb="list", resource=kind), times=6)

    async with stage(before=refuse) as here:
        await here.cluster.rest("1s")
        status, text = await here.get("/readyz")
        assert (status, "deadlinejobs (403 Forbidden" in text, "gpuqueues" in text) == (503, True, True)
        here.cluster.queue()
        here.cluster.submit("gang", group(run_for="10m"))
        await here.cluster.until_phase("gang", "Succeeded")
        assert await here.get("/readyz") == (200, "ok\n")


def outage(made: cluster.Cluster) -> None:
    """End all watches; by the time they can begin anew, what they missed is no longer to be had."""
    made.faults.fail(503, "ServiceUnavailable", when=faults.calls(verb="watch"), times=24)
    made.faults.cut_watches()


def counted(made: cluster.Cluster) -> tuple[int, int]:
    """What the status of the queue says of jobs that wait and that run."""
    status = made.store.get(port.GPU_QUEUES, None, cluster.QUEUE).get("status") or {}
    return status.get("pending", 0), status.get("running", 0)


@cluster.virtual
async def test_a_deadlinejob_that_was_deleted_unseen_is_known_to_be_gone_with_the_next_list() -> None:
    async with stage(nodes=1) as here:
        made = here.cluster
        made.calls.slack = 40
        made.queue()
        made.submit("holder", group(run_for="2h"))
        await made.until_phase("holder", "Running")
        made.submit("deleted", group())
        await made.until(lambda: counted(made) == (1, 1), "both are counted", within="1m")
        outage(made)
        made.delete("deleted")
        made.faults.compact()
        kind = 'lstqueue_reflector_relists{kind="deadlinejobs"}'
        await made.until(lambda: counted(made) == (0, 1), "it is counted no more", within="1m")
        assert await here.figure(kind) == 1


@cluster.virtual
async def test_a_queue_whose_deletion_kopfs_watch_loses_is_found_missing_by_the_relist() -> None:
    async with stage(nodes=1) as here:
        made = here.cluster
        made.calls.slack = 40
        made.queue()
        made.queue("second")
        made.submit("holder", group(run_for="2h"))
        await made.until_phase("holder", "Running")
        made.submit("stays", group(), queue="second")
        await made.until_phase("stays", "Pending")
        outage(made)
        made.delete("second", port.GPU_QUEUES)
        made.faults.compact()
        await made.until(lambda: made.code("stays") == "QueueNotFound", "the queue is gone", within="10m")


@cluster.virtual
async def test_an_outage_of_an_hour_does_not_end_the_process() -> None:
    async with stage(nodes=2) as here:
        made = here.cluster
        made.calls.slack = 2000
        made.queue()
        made.submit("first", group(run_for="2h"))
        await made.until_phase("first", "Running")
        made.faults.fail(503, "ServiceUnavailable", times=None, when=faults.any_call)
        made.faults.cut_watches()
        made.faults.compact()
        await made.rest("1h")
        made.submit("second", group(run_for="10m"))
        assert not here.task.done()
        assert (await here.get("/livez"))[0] == 200
        made.calm()
        await made.until_phase("second", "Succeeded", within="30m")
        await made.until_phase("first", "Succeeded", within="2h")


@cluster.virtual
async def test_an_error_of_a_part_ends_the_whole_and_is_raised() -> None:
    async with stage() as here:
        assert here.shell.operator is not None

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a part is broken")

        here.shell.operator.metrics.passed = broken
        here.cluster.queue()
        here.cluster.submit("gang", group())
        with pytest.raises(ExceptionGroup) as raised:
            await here.task
        assert raised.group_contains(RuntimeError, match="a part is broken")
