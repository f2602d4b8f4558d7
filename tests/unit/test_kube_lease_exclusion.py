"""Many electors, an unreliable server and processes that freeze: never do two lead, and one soon does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, frozen, wires
from lstqueue.embedded import backend, clock, memory, store
from lstqueue.kube import lease, port

REPLICAS = 3
SOON = 30.0
"""Seconds within which one leads once all is well."""


@dataclass
class Replica:
    """One process, started again when it loses the Lease."""

    state: backend.Backend
    now: Callable[[], int]
    name: str
    off: int
    freezer: frozen.Freezer = field(default_factory=frozen.Freezer)
    lives: int = 0
    task: asyncio.Task[None] | None = None
    wire: wires.Wire = field(init=False)
    elector: lease.Elector = field(init=False)

    def start(self) -> None:
        self.lives += 1
        self.wire = wires.Wire(memory.MemoryApi(self.state))
        terms = lease.Terms("system", "elected", f"{self.name}-{self.lives}")
        self.elector = lease.Elector(self.wire, terms, now=lambda: self.now() + self.off)
        self.task = self.freezer.start(self.run(), name=self.name)

    async def run(self) -> None:
        await self.elector.acquire()
        with contextlib.suppress(lease.LostError):
            await self.elector.hold(asyncio.Event().wait)

    async def end(self, *, kill: bool) -> None:
        if kill:
            self.wire.cut()
        self.freezer.thaw()
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        self.wire.deliver()


EVENTS = st.tuples(
    st.sampled_from(["cut", "mend", "stall", "deliver", "freeze", "thaw", "kill", "stop", "delete", "empty"]),
    st.integers(0, REPLICAS - 1),
    st.sampled_from([0.0, 0.3, 1.0, 2.0, 3.7, 8.0, 9.9, 14.0, 21.0]),
)


@settings(max_examples=effort.examples(15), deadline=None)
@given(
    events=st.lists(EVENTS, max_size=25), offs=st.lists(st.integers(-(10**8), 10**8), min_size=3, max_size=3)
)
def test_never_two_lead_and_soon_one_does(events: list[tuple[str, int, float]], offs: list[int]):
    clock.run(play(events, offs), horizon=1e5)


async def play(events: list[tuple[str, int, float]], offs: list[int]) -> None:
    now = clock.VirtualClock(asyncio.get_running_loop()).now
    state = backend.Backend(store.Store(now=now))
    state.store.create(port.NAMESPACES, None, {"metadata": {"name": "system"}})
    replicas = [Replica(state, now, f"r{number}", off) for number, off in enumerate(offs)]
    for replica in replicas:
        replica.start()
    try:
        for event, number, pause in events:
            await apply(event, replicas[number], state)
            await watch(replicas, pause)
        for replica in replicas:
            replica.wire.mend()
            replica.wire.deliver()
            replica.freezer.thaw()
        await watch(replicas, SOON)
        leads = [replica.elector.leading for replica in replicas]
        assert leads.count(True) == 1, leads
    finally:
        for replica in replicas:
            await replica.end(kill=True)


async def apply(event: str, replica: Replica, state: backend.Backend) -> None:
    match event:
        case "cut":
            replica.wire.cut()
        case "mend":
            replica.wire.mend()
        case "stall":
            replica.wire.stall(lambda _verb, _resource: True)
        case "deliver":
            replica.wire.deliver()
        case "freeze":
            replica.freezer.freeze()
        case "thaw":
            replica.freezer.thaw()
        case "kill" | "stop":
            await replica.end(kill=event == "kill")
            replica.start()
        case "delete" | "empty":
            with contextlib.suppress(port.NotFoundError):
                if event == "delete":
                    state.store.delete(port.LEASES, "system", "elected")
                else:
                    body = {"spec": {"holderIdentity": ""}}
                    state.store.patch(port.LEASES, "system", "elected", body)


async def watch(replicas: list[Replica], seconds: float) -> None:
    """Let time pass; nobody may find two leaders at any moment of it."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        for replica in replicas:
            if replica.task is not None and replica.task.done() and not replica.freezer.frozen:
                replica.task.result()
                down = replica.wire.down
                replica.wire.deliver()
                replica.start()
                replica.wire.down = down
        leading = [replica.elector.terms.identity for replica in replicas if replica.elector.leading]
        assert len(leading) <= 1, leading
        left = until - asyncio.get_running_loop().time()
        if left <= 0:
            return
        await asyncio.sleep(min(0.25, left))
