"""A server with a namespace for a Lease, and what tests do to it."""

from __future__ import annotations

import asyncio
from typing import Any

from cases import wires
from lstqueue.embedded import backend, clock, memory, store
from lstqueue.kube import lease, port

NAMESPACE, NAME = "system", "elected"


class Place:
    """A server with a namespace, and what tests do to the Lease."""

    def __init__(self) -> None:
        clock_of_server = clock.VirtualClock(asyncio.get_running_loop())
        self.now = clock_of_server.now
        self.state = backend.Backend(store.Store(now=self.now))
        self.store = self.state.store
        self.store.create(port.NAMESPACES, None, {"metadata": {"name": NAMESPACE}})

    def wire(self) -> wires.Wire:
        return wires.Wire(memory.MemoryApi(self.state))

    def elector(self, identity: str = "me", *, wire: port.KubeApi | None = None) -> lease.Elector:
        terms = lease.Terms(NAMESPACE, NAME, identity)
        return lease.Elector(wire or self.wire(), terms, now=self.now, jitter=lambda _key, _number: 0.0)

    def spec(self) -> dict[str, Any]:
        return dict(self.store.get(port.LEASES, NAMESPACE, NAME)["spec"])

    def put(self, **spec: Any) -> None:
        body = {"metadata": {"name": NAME}, "spec": {"leaseDurationSeconds": 15, **spec}}
        self.store.create(port.LEASES, NAMESPACE, body)

    def edit(self, **spec: Any) -> None:
        self.store.patch(port.LEASES, NAMESPACE, NAME, {"spec": spec})
