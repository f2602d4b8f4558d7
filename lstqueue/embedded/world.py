"""A whole embedded cluster in one object: API, controllers, nodes and audit, in the running loop.

`World` is what the demo and the operator's tests start. In a `clock.VirtualLoop` its time is virtual; in any
other loop it is real. It knows nothing of the operator, which talks to `url` like to any cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from lstqueue.api import names
from lstqueue.embedded import audit, clock, server, watches
from lstqueue.embedded.controllers import (
    cronjobs,
    garbage,
    jobs,
    kubelet,
    leases,
    nodes,
    pytorchjobs,
    scheduler,
)
from lstqueue.embedded.eventlog import Event
from lstqueue.embedded.store import Store
from lstqueue.kube import port

GPU = "nvidia.com/gpu"
NODES_PER_RACK = 16
RACKS_PER_ZONE = 4


class _Controller(Protocol):
    def close(self) -> None: ...


_CONTROLLERS: tuple[Callable[[Store, list[Exception]], _Controller], ...] = (
    jobs.JobController,
    cronjobs.CronJobController,
    pytorchjobs.PyTorchJobController,
    scheduler.Scheduler,
    kubelet.Kubelets,
    garbage.GarbageCollector,
)


class World:
    """Use as an async context manager; everything starts on entry and stops on exit.

    Args:
        epoch_ms: wall time (ms since the Unix epoch) at the loop's second 0.
        seed: of uids and generated names.
        serve: whether to listen on loopback; without, only `store` and `server.backend` can be used.
        reaction_s: seconds the audit grants the operator to react.
        bookmark_s: seconds between the bookmarks of a watch.
        watch_s: seconds that a watch lives when it does not say.
        node_leases: whether nodes renew Leases, which costs events all the time.

    Attributes:
        store: the objects.
        server: the API server; its `faults` and `backend` are for tests.
        audit: what is checked after every write.
        errors: exceptions of controllers; raised together on exit if nothing else is.
    """

    def __init__(
        self,
        *,
        epoch_ms: int = clock.DEFAULT_EPOCH_MS,
        seed: int = 0,
        serve: bool = True,
        reaction_s: float = audit.REACTION_S,
        bookmark_s: float = 60.0,
        watch_s: float = watches.DEFAULT_TIMEOUT_S,
        node_leases: bool = False,
    ) -> None:
        self._clock = clock.VirtualClock(asyncio.get_running_loop(), epoch_ms=epoch_ms)
        self._serve = serve
        self._kinds = (*_CONTROLLERS, leases.NodeLeases) if node_leases else _CONTROLLERS
        self._controllers: list[_Controller] = []
        self._nodes = 0
        self.errors: list[Exception] = []
        self.store = Store(now=self._clock.now, random_seed=seed)
        self.server = server.ApiServer(self.store, bookmark_s=bookmark_s, watch_s=watch_s)
        self.audit = audit.Audit(self.store, self.errors, reaction_s=reaction_s)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self.server.url

    def now(self) -> int:
        """Return wall time, ms since the epoch."""
        return self._clock.now()

    async def start(self) -> None:
        """Start controllers and API server, and install what comes with lstqueue's CRDs."""
        self._controllers = [kind(self.store, self.errors) for kind in self._kinds]
        self.store.create(
            port.PRIORITY_CLASSES,
            None,
            {"metadata": {"name": names.PRIORITY_CLASS}, "value": 0, "preemptionPolicy": "Never"},
        )
        if self._serve:
            await self.server.start()

    async def stop(self) -> None:
        """Stop everything; the objects and what the audit found stay."""
        if self._serve:
            await self.server.stop()
        for controller in self._controllers:
            controller.close()
        self.audit.close()

    async def __aenter__(self) -> World:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if self.errors and error is None:
            raise ExceptionGroup("controllers of the embedded cluster failed", self.errors)

    # What a test or a demo does to the cluster

    def add_nodes(
        self,
        count: int,
        *,
        gpus: int = 8,
        cpu: str = "128",
        memory: str = "1Ti",
        max_pods: int = 256,
        labels: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Add ready nodes and return their names; racks and zones are filled one after the other."""
        added = []
        for _ in range(count):
            name, rack = f"node-{self._nodes:04d}", self._nodes // NODES_PER_RACK
            self._nodes += 1
            capacity = {"cpu": cpu, "memory": memory, "pods": str(max_pods), "ephemeral-storage": "1Ti"}
            if gpus:
                capacity[GPU] = str(gpus)
            own = {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/rack": f"rack-{rack:03d}",
                "topology.kubernetes.io/zone": f"z{rack // RACKS_PER_ZONE}",
            }
            body = {
                "metadata": {"name": name, "labels": {**own, **(labels or {})}},
                "status": {"capacity": capacity, "allocatable": dict(capacity)},
            }
            self.store.create(port.NODES, None, body)
            added.append(name)
        return added

    def fail_node(self, name: str, *, how: str = "crashed") -> None:
        """Take a node down; "silent" or "unknown" makes it stop reporting instead of reporting trouble."""
        self.store.patch(port.NODES, None, name, {"metadata": {"annotations": {nodes.DOWN: how}}})

    def heal_node(self, name: str) -> None:
        """Bring a node back; its pods go on where they were."""
        self.store.patch(port.NODES, None, name, {"metadata": {"annotations": {nodes.DOWN: None}}})

    def cordon(self, name: str, *, cordoned: bool = True) -> None:
        """Keep new pods off a node, or let them on again; those that are there stay."""
        self.store.patch(port.NODES, None, name, {"spec": {"unschedulable": cordoned or None}})

    def taint(self, name: str, key: str, *, effect: str = "NoExecute", value: str = "") -> None:
        """Add a taint to a node."""
        added = {"key": key, "effect": effect, **({"value": value} if value else {})}
        found = self.store.get(port.NODES, None, name)
        taints = [*(found.get("spec", {}).get("taints") or ()), added]
        self.store.patch(port.NODES, None, name, {"spec": {"taints": taints}})

    def untaint(self, name: str, key: str) -> None:
        """Take the taints with this key off a node."""
        found = self.store.get(port.NODES, None, name)
        left = [taint for taint in found.get("spec", {}).get("taints") or () if taint["key"] != key]
        self.store.patch(port.NODES, None, name, {"spec": {"taints": left or None}})

    async def until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Wait until a condition on the stored objects holds; it is looked at after each write.

        Args:
            condition: must be cheap and may not write.
            within: seconds.

        Raises:
            TimeoutError: it did not hold in time.
        """
        if condition():
            return
        held = asyncio.Event()

        def look(_: Event) -> None:
            if condition():
                held.set()

        unsubscribe = self.store.subscribe(look)
        try:
            async with asyncio.timeout(within):
                await held.wait()
        finally:
            unsubscribe()
