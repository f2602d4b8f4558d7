"""Two replicas as processes run them: under kopf, over HTTP, with probes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import cluster
import pytest
from manifests import group

from lstqueue.embedded import faults, world
from lstqueue.kube import client, lease, port
from lstqueue.operator import app, shell

NAMESPACE, NAME = "default", "lstqueue-operator"


@dataclass
class Process:
    """One replica."""

    api: client.KubeClient
    elector: lease.Elector
    shell: shell.Shell
    task: asyncio.Task[None]

    async def get(self, path: str) -> tuple[int, str]:
        assert self.shell.probes is not None
        url = f"http://127.0.0.1:{self.shell.probes.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status, await reply.text()

    async def leads(self) -> bool:
        _, text = await self.get("/metrics")
        assert ("\nlstqueue_leader 1.0\n" in text) != ("\nlstqueue_leader 0.0\n" in text)
        return "\nlstqueue_leader 1.0\n" in text


async def process(made: world.World, name: str) -> Process:
    api = await client.connect(url=made.url)
    elector = lease.Elector(api, lease.Terms(NAMESPACE, NAME, name), now=made.now)

    async def make() -> app.Operator:
        return app.Operator(api, now=made.now, settings=cluster.SETTINGS, fed=True, fence=elector.check)

    running = shell.Shell(make=make, access=api.credentials, probe_port=0, elector=elector)
    task = asyncio.create_task(running.run())
    return Process(api, elector, running, task)


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[tuple[cluster.Cluster, Process, Process]]:
    """A cluster with a leader and a follower."""
    async with world.World(bookmark_s=300.0) as made:
        made.add_nodes(2)
        inside = cluster.Cluster(made, cluster.SETTINGS)
        inside.calls.slack = 200
        first = await process(made, "first")
        await made.until(lambda: bool(made.store.list(port.LEASES)), within=5)
        # Begun before kopf is: at its end, that takes every task begun after it for its own, and ends it.
        second = await process(made, "second")
        await first.shell.running.wait()
        await asyncio.sleep(3)
        try:
            yield inside, first, second
        finally:
            for replica in (first, second):
                replica.shell.stop.set()
                await asyncio.gather(replica.task, return_exceptions=True)
                await replica.api.close()
        inside.calls.judge()
        assert [str(violation) for violation in made.audit.violations] == []


@cluster.virtual
async def test_a_follower_is_ready_says_who_leads_and_reads_nothing() -> None:
    async with stage() as (made, first, second):
        watches = made.calls.count("watch")
        await made.rest("1m")
        assert await first.get("/readyz") == (200, "ok, leader\n")
        told = "the Lease default/lstqueue-operator is held by first"
        assert await second.get("/readyz") == (200, f"ok, follower: {told}\n")
        assert await second.get("/livez") == (200, "ok\n")
        assert await second.get("/why/default/gang") == (503, f"this process decides nothing yet; {told}\n")
        assert (await first.leads(), await second.leads()) == (True, False)
        assert made.calls.count("watch") == watches


@cluster.virtual
async def test_a_leader_that_is_told_to_stop_hands_over_at_once() -> None:
    async with stage() as (made, first, second):
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Running")
        first.shell.stop.set()
        made.submit("waits", group("worker", 2, run_for="10m"))
        stopped = made.now()
        await made.until_phase("waits", "Pending", within="5s")
        assert made.now() - stopped <= 4_000
        await first.task
        assert await second.leads()
        await made.until_all("Succeeded", "gang", "waits")


@cluster.virtual
async def test_a_leader_that_may_not_renew_ends_and_says_why() -> None:
    async with stage() as (made, first, second):
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Running")
        made.faults.fail(
            403,
            "Forbidden",
            message="no more",
            when=faults.calls(verb="update", resource=port.LEASES),
            times=8,
        )
        began = made.now()
        with pytest.raises(lease.LostError, match=r"not renewed within 10 s \(403 Forbidden: no more\)"):
            await first.task
        assert made.now() - began <= 16_000
        made.submit("waits", group("worker", 2, run_for="10m"))
        await made.until_all("Succeeded", "gang", "waits", within="1h")
        assert await second.leads()


@cluster.virtual
async def test_a_follower_can_be_stopped() -> None:
    async with stage() as (made, first, second):
        second.shell.stop.set()
        await asyncio.wait_for(second.task, 1)
        assert await first.leads()
        assert made.store.get(port.LEASES, NAMESPACE, NAME)["spec"]["holderIdentity"] == "first"
