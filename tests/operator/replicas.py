"""Replicas of the operator that elect a leader, on one embedded cluster in virtual time.

Each has its own way to the server, its own clock, and can be killed, stopped, frozen and woken. One that lost
the Lease is started again after a while, as a kubelet does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import cluster
from manifests import group

from cases import frozen, wires
from lstqueue.embedded import eventlog, memory, world
from lstqueue.kube import lease, port
from lstqueue.operator import app

NAMESPACE, NAME = "lstqueue", "lstqueue-operator"
RESTART = 10.0
"""Seconds until a process that ended by itself runs again."""


class Replica:
    """One pod of the operator.

    Attributes:
        losses: what each of its processes said when it lost the Lease, with the time.
        led_at: times at which it began to lead.
    """

    def __init__(self, made: world.World, name: str, *, clock_off: int) -> None:
        self._world = made
        self.name = name
        self._clock_off = clock_off
        self._lives = 0
        self.freezer = frozen.Freezer()
        self.losses: list[tuple[float, str]] = []
        self.led_at: list[float] = []
        self.task: asyncio.Task[None] | None = None
        self.operator: app.Operator | None = None
        self._begin()

    def now(self) -> int:
        return self._world.now() + self._clock_off

    @property
    def leading(self) -> bool:
        return self.operator is not None and self.elector.leading

    def start(self) -> None:
        if self._lives:
            self._begin()
        self.task = self.freezer.start(self._run(), name=self.name)

    def _begin(self) -> None:
        """A new process."""
        self.wire = wires.Wire(memory.MemoryApi(self._world.server.backend))
        terms = lease.Terms(NAMESPACE, NAME, f"{self.name}_{self._lives}")
        self.elector = lease.Elector(self.wire, terms, now=self.now)
        self.operator = None

    async def _run(self) -> None:
        while True:
            self._lives += 1
            try:
                await self.elector.acquire()
                self.led_at.append(asyncio.get_running_loop().time())
                self.operator = app.Operator(
                    self.wire, now=self.now, settings=cluster.SETTINGS, fence=self.elector.check
                )
                await self.elector.hold(self.operator.run)
            except lease.LostError as error:
                self.losses.append((asyncio.get_running_loop().time(), str(error)))
            down = self.wire.down
            self._begin()
            self.wire.down = down
            await asyncio.sleep(RESTART)

    async def kill(self) -> None:
        """As SIGKILL does: what it sent arrives, and nothing else is sent."""
        self.wire.cut()
        await self._end()

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self._end()

    async def _end(self) -> None:
        self.freezer.thaw()
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            if not self.task.cancelled():
                raise AssertionError(f"{self.name} ended by itself") from self.task.exception()
        self.task = self.operator = None


class Pair(cluster.Cluster):
    """A cluster whose operator has replicas."""

    def __init__(self, made: world.World, offsets: dict[str, int]) -> None:
        super().__init__(made, cluster.SETTINGS)
        self.replicas = [Replica(made, name, clock_off=off) for name, off in offsets.items()]
        self.overlaps: list[float] = []
        made.store.subscribe(self._look)

    def _look(self, _: eventlog.Event) -> None:
        if len(self.leaders) > 1:
            self.overlaps.append(asyncio.get_running_loop().time())

    @property
    def leaders(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.leading]

    @property
    def leader(self) -> Replica:
        [leader] = self.leaders
        return leader

    @property
    def follower(self) -> Replica:
        return next(replica for replica in self.replicas if not replica.leading)

    @property
    def operator(self) -> app.Operator:
        operator = self.leader.operator
        assert operator is not None
        return operator

    async def start(self) -> None:
        """Start all; the first one leads."""
        for replica in self.replicas:
            if replica.task is None:
                replica.start()
        self._task = asyncio.create_task(asyncio.Event().wait())
        await self.leads(self.replicas[0])

    async def kill(self) -> None:
        for replica in self.replicas:
            if replica.leading:
                self.calls.passes += self.operator.loop.passes
            if replica.task is not None:
                await replica.kill()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def judge_operator(self) -> None:
        for replica in self.replicas:
            if replica.task is not None and replica.task.done():
                raise AssertionError(f"{replica.name} ended by itself") from replica.task.exception()

    async def leads(self, replica: Replica, *, within: str = "1m") -> None:
        """Wait until a replica leads and has read everything."""
        async with asyncio.timeout(cluster.seconds(within)):
            # Leading is no event: it is a time, which may pass unnoticed.
            while not (replica.leading and replica.operator and replica.operator.synced.is_set()):  # noqa: ASYNC110 - it comes to lead in another task
                await asyncio.sleep(0.05)

    async def finish(self) -> None:
        await super().finish()
        assert self.overlaps == [], f"two led at once, {self.overlaps}"

    # The Lease

    def lease(self) -> dict[str, Any]:
        return self.store.get(port.LEASES, NAMESPACE, NAME)

    def edit_lease(self, **spec: Any) -> None:
        self.store.patch(port.LEASES, NAMESPACE, NAME, {"spec": spec})

    def delete_lease(self) -> None:
        self.store.delete(port.LEASES, NAMESPACE, NAME)


@contextlib.asynccontextmanager
async def run(
    nodes: int = 2, *, slack: int = 80, reaction: str = "1m", **offsets: int
) -> AsyncIterator[Pair]:
    """A cluster and two replicas; keywords are their clocks' errors in ms."""
    made_of = {"a": 0, "b": 0} | offsets
    async with world.World(serve=False, bookmark_s=300.0, reaction_s=cluster.seconds(reaction)) as made:
        made.add_nodes(nodes)
        made.store.create(port.NAMESPACES, None, {"metadata": {"name": NAMESPACE}})
        pair = Pair(made, made_of)
        pair.calls.slack = slack
        try:
            await pair.start()
            yield pair
            await pair.finish()
        except BaseException:
            with contextlib.suppress(AssertionError):
                await pair.kill()
            raise


# A scenario of most tests


async def has_running_and_waiting(made: Pair) -> None:
    """Two nodes, taken for 40 minutes, and a gang that waits for them."""
    made.queue()
    made.submit("runs", group("worker", 2, run_for="40m"))
    await made.until_phase("runs", "Running")
    made.submit("waits", group("worker", 2, run_for="10m"))
    await made.until_phase("waits", "Pending")


async def both_end(made: Pair) -> None:
    await made.until_all("Succeeded", "runs", "waits", within="3h")
    assert [made.status(name)["attempt"] for name in ("runs", "waits")] == [1, 1]
