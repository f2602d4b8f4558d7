"""What goes wrong in the middle of a run: a node falls silent, and the operator dies between two writes.

Both come at the first moment after a given time at which they hurt: the node is one of the widest gang that
runs, and the operator goes when it has announced things and not done them yet. How they are got over is left
to the operator, the next one included; here it is only remembered when they happened and to whom.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lstqueue.api import durations
from lstqueue.demo import meter as meters
from lstqueue.embedded import world
from lstqueue.kube import port

OPERATOR_AT, NODE_AT = 0.34, 0.45
"""Parts of the time in which jobs arrive, after which each is due."""
PATIENCE = 12 * durations.HOUR
"""How long (ms) to wait for a moment that hurts; then any will do."""
DOWN = 6 * durations.HOUR
"""Ms until the node is back."""
AWAY = 20 * durations.SECOND
"""Ms until there is another operator."""
_LOOK = 60.0
_BUSY = 2
"""So many jobs are half-way when the operator is killed, and one of them is being suspended."""


class Killed(port.FencedError):
    """The operator's process is gone."""


@dataclass(slots=True)
class Loss:
    """A node that fell silent at `at` under the jobs `hit` (UIDs), and is `back`. Times as the meter's."""

    node: str
    at: int
    hit: tuple[str, ...]
    back: int | None = None


@dataclass(slots=True)
class Crash:
    """An operator that died at `at` with these (UID, phase) half-way; the next one came at `back`."""

    at: int
    half_way: tuple[tuple[str, str], ...]
    back: int | None = None


@dataclass(slots=True)
class Trap:
    """Kills the operator once, after `due`: give its `spring` as the fence before each write."""

    meter: meters.Meter
    now: Callable[[], int]
    due: int
    crash: Crash | None = None

    def spring(self) -> None:
        """Let a write pass, or end the one who wants to write.

        Raises:
            Killed: the time has come.
        """
        now = self.now()
        if self.crash is not None or now < self.due:
            return
        found = self.meter.half_way()
        busy = len(found) >= _BUSY and any(life.phase == "Suspending" for life in found)
        if busy or (found and now >= self.due + PATIENCE):
            self.crash = Crash(now, tuple((life.uid, life.phase) for life in found))
            raise Killed

    async def pause(self) -> None:
        """Wait until it is time for the next operator."""
        assert self.crash is not None, "nobody was killed"
        await asyncio.sleep(max(0, self.crash.at + AWAY - self.now()) / 1000)
        self.crash.back = self.now()


@dataclass(slots=True)
class Node:
    """Loses one node of a cluster after `due`, and brings it back."""

    cluster: world.World
    meter: meters.Meter
    due: int
    loss: Loss | None = None

    async def run(self) -> None:
        """Do it; to be cancelled when the run is over before."""
        await asyncio.sleep((self.due - self.cluster.now()) / 1000)
        while (chosen := self._choose()) is None:  # noqa: ASYNC110 - time is virtual, a look a minute is cheap
            await asyncio.sleep(_LOOK)
        node, hit = chosen
        self.loss = Loss(node, self.cluster.now(), hit)
        self.cluster.fail_node(node, how="silent")
        await asyncio.sleep(DOWN / 1000)
        self.cluster.heal_node(node)
        self.loss.back = self.cluster.now()

    def _choose(self) -> tuple[str, tuple[str, ...]] | None:
        """Return the last node of the widest job that runs, and all jobs on it."""
        where = meters.occupied(self.cluster.store.list(port.PODS))
        runs = [life for uid in where if (life := self.meter.lives.get(uid)) and life.phase == "Running"]
        widest = max(runs, key=lambda life: (len(where[life.uid]), life.name), default=None)
        if widest is None or (len(where[widest.uid]) < 2 and self.cluster.now() < self.due + PATIENCE):
            return None
        node = max(where[widest.uid])
        return node, tuple(sorted(uid for uid in where if node in where[uid]))
