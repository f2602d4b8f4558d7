"""A shell whose watch tells nothing: the relist takes in what is there, and the operator ends itself."""

from __future__ import annotations

import asyncio

import cluster
import pytest
from manifests import group, own, pool

from lstqueue.embedded import memory, world
from lstqueue.kube import port
from lstqueue.operator import app


@cluster.virtual
async def test_two_relists_that_find_what_nobody_told_end_the_operator() -> None:
    async with world.World(serve=False) as made:
        made.add_nodes(1)
        api = memory.MemoryApi(made.server.backend)
        # It is fed by nobody: a shell that hears nothing.
        running = asyncio.create_task(app.Operator(api, now=made.now, fed=True).run())
        await asyncio.sleep(100)
        made.store.create(port.GPU_QUEUES, None, own("GPUQueue", cluster.QUEUE, {"pools": [pool("all")]}))
        body = {"queue": cluster.QUEUE, "groups": [group(run_for="1m")]}
        made.store.create(port.DEADLINE_JOBS, "default", own("DeadlineJob", "first", body))
        await asyncio.sleep(290)

        def phase() -> str:
            return str(made.store.get(port.DEADLINE_JOBS, "default", "first")["status"]["phase"])

        assert not running.done()
        await made.until(lambda: phase() == "Succeeded", within=300)
        made.store.create(port.GPU_QUEUES, None, own("GPUQueue", "second", {"pools": [pool("all")]}))
        with pytest.raises(ExceptionGroup) as ended:
            await asyncio.wait_for(running, 900)
        assert ended.group_contains(app.DeafError, depth=None)
