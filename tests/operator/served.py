"""The operator as it runs in a cluster, under kopf and over HTTP, on an embedded cluster in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import cluster

from lstqueue.embedded import world
from lstqueue.kube import client
from lstqueue.operator import app, shell


class Served(cluster.Cluster):
    """A cluster whose operator is a process of its own, as far as that can be without one.

    At its end, kopf takes every task for its own that was begun after it, and ends it: whoever stops or kills
    the operator does so from the task in which the scenario runs.
    """

    def __init__(self, made: world.World) -> None:
        super().__init__(made, cluster.SETTINGS)
        self._shell: shell.Shell | None = None
        self._kopf: asyncio.Task[None] | None = None
        self.ends: list[BaseException | None] = []

    async def start(self) -> None:
        assert self._kopf is None, "one operator at a time"
        api = await client.connect(url=self.world.url)

        async def make() -> app.Operator:
            return app.Operator(api, now=self.world.now, settings=self.settings, fed=True)

        self._shell = shell.Shell(make=make, access=api.credentials)
        self._kopf = asyncio.create_task(self._shell.run(), name="kopf")
        await self._shell.running.wait()
        self._task, self._operator = self._shell._task, self._shell.operator

    async def kill(self) -> None:
        await super().kill()
        if self._kopf is not None and self._shell is not None:
            self._shell.stop.set()
            await asyncio.gather(self._kopf, return_exceptions=True)
            self._kopf = self._shell = None

    async def revive(self) -> bool:
        """Start it again if it ended by itself, as a kubelet does; whether it had."""
        if self._kopf is None or not self._kopf.done():
            return False
        assert self._operator is not None
        assert self._task is not None
        assert self._task.done(), "kopf is over, and the operator still writes"
        self.ends.append(self._kopf.exception())
        self._kopf = self._shell = self._task = self._operator = None
        await self.start()
        return True


@contextlib.asynccontextmanager
async def run(nodes: int = 2, *, slack: int = 0, reaction: str = "1m") -> AsyncIterator[Served]:
    """A cluster with nodes that is served over HTTP, and an operator."""
    async with world.World(bookmark_s=300.0, reaction_s=cluster.seconds(reaction)) as made:
        made.add_nodes(nodes)
        inside = Served(made)
        inside.calls.slack = slack
        await inside.start()
        try:
            yield inside
            await inside.finish()
        except BaseException:
            with contextlib.suppress(AssertionError):
                await inside.kill()
            raise
