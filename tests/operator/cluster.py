"""The whole operator on an embedded cluster in virtual time, and what must hold at the end of every scenario.

`run` starts a world with nodes and one operator over the in-process API. Scenarios talk to it as users and
other controllers would: they create, edit and delete objects, wait for what a user could see, and inject
faults. On leaving, everything that is not over yet is deleted, and then nothing may be left: no pod, no held
capacity, no breach of the audit, no error of a controller, no dead operator, and no flood of requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import ledger_of_calls
import seen
from manifests import group, own, pod_spec, pool
from seen import NAMESPACE

from lstqueue.api import durations, names, times
from lstqueue.embedded import backend, clock, eventlog, faults, memory, patches, world
from lstqueue.kube import port
from lstqueue.operator import app
from lstqueue.operator import settings as all_settings

Object = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")

QUEUE = "research"
FINAL = frozenset({"Succeeded", "Failed", "Rejected"})

HORIZON = 10 * 86_400.0
SETTLING = 30.0
"""Seconds in which a cluster with nothing left to do must come to rest."""

SETTINGS = all_settings.Settings(watch_seconds=3600, inactivity_timeout=900.0)


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in a virtual loop of its own."""

    @functools.wraps(test)
    def run_it(*args: P.args, **kwargs: P.kwargs) -> None:
        alone(lambda: test(*args, **kwargs))

    return run_it


def alone(scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run one scenario in a virtual loop of its own."""
    return clock.run(scenario(), horizon=HORIZON)


def seconds(duration: str) -> float:
    return durations.parse(duration) / 1000


class Cluster(seen.Seen):
    """A world and its operator. Everything that takes time takes virtual time.

    `defects` says that the scenario has the operator trip over objects, which else is a failure of its test.
    """

    def __init__(self, made: world.World, settings: all_settings.Settings) -> None:
        super().__init__(made)
        self.faults = made.server.faults
        self.settings = settings
        self.calls = ledger_of_calls.Calls(made)
        self.defects = False
        self.connect: Callable[[backend.Backend], port.KubeApi] = memory.MemoryApi
        self._task: asyncio.Task[None] | None = None
        self._operator: app.Operator | None = None

    # The operator

    @property
    def operator(self) -> app.Operator:
        assert self._operator is not None, "the operator is not running"
        return self._operator

    async def start(self) -> None:
        """Start an operator that knows nothing but what the API tells it."""
        assert self._task is None, "one operator at a time"
        self.api = self.connect(self.world.server.backend)
        self._operator = app.Operator(self.api, now=self.world.now, settings=self.settings)
        self._task = asyncio.create_task(self._operator.run(), name="operator")

    async def kill(self) -> None:
        """Stop it wherever it is, as a crash does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self.judge_operator()
            self.calls.passes += self.operator.loop.passes
            self._task = self._operator = None

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    def judge_operator(self) -> None:
        """Raise what ended the operator, if something did."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            raise AssertionError("the operator ended by itself") from error
        if self._operator is not None and not self.defects:
            left_aside = dict(self._operator.cache.guard.counts)
            assert left_aside == {}, f"objects were left aside, as the log says: {left_aside}"

    def kill_at(self, number: int, *, before: bool) -> asyncio.Event:
        """Stop the operator at its `number`-th write from now, before or after the write takes effect."""
        killed = asyncio.Event()
        left = number

        def look(call: faults.Call) -> None:
            nonlocal left
            if self._task is None or killed.is_set() or not ledger_of_calls.about_gangs(call):
                return
            left -= 1
            if left == 0:
                self._task.cancel()
                killed.set()
                if before:
                    raise asyncio.CancelledError

        self.calls.listeners.append(look)
        return killed

    # What users do

    def queue(
        self, name: str = QUEUE, *, gpus: int = 1000, pools: list[Object] | None = None, **spec: Any
    ) -> None:
        pools = pools or [pool("all", gpus=gpus)]
        self.create(port.GPU_QUEUES, own("GPUQueue", name, {"pools": pools, **spec}))

    def submit(self, name: str, *groups: Object, queue: str = QUEUE, **spec: Any) -> str:
        """Create a DeadlineJob and return its UID."""
        return self.submit_spec(name, {"queue": queue, "groups": list(groups) or [group()], **spec})

    def submit_spec(self, name: str, spec: Object) -> str:
        """Create a DeadlineJob with just this spec and return its UID."""
        return str(self.create(port.DEADLINE_JOBS, own("DeadlineJob", name, spec))["metadata"]["uid"])

    def patch_queue(self, name: str = QUEUE, **spec: Any) -> None:
        self.patch(port.GPU_QUEUES, name, {"spec": spec})

    def create(self, resource: port.Resource, body: Object) -> Object:
        return self.store.create(resource, NAMESPACE if resource.namespaced else None, body)

    def edit(self, name: str, **spec: Any) -> None:
        self.patch(port.DEADLINE_JOBS, name, {"spec": spec})

    def patch(self, resource: port.Resource, name: str, body: Object) -> None:
        self.store.patch(resource, NAMESPACE if resource.namespaced else None, name, body)

    def smuggle(self, resource: port.Resource, name: str, spec: Object) -> None:
        """Change a spec without anybody looking at it, as a definition of another version lets through."""
        kind = self.store.kind(resource)
        old = self.store.get(resource, NAMESPACE if resource.namespaced else None, name)
        new = patches.merge(patches.copy_json(old), {"spec": spec})
        new["metadata"]["generation"] += 1
        self.store._commit(eventlog.MODIFIED, kind, new, old)

    def delete(self, name: str, resource: port.Resource = port.DEADLINE_JOBS) -> None:
        self.store.delete(resource, NAMESPACE if resource.namespaced else None, name)

    def calm(self) -> None:
        """End all faults."""
        self.faults.clear()
        self.calls.attach()

    def foreign_pod(self, name: str, node: str, *, gpus: int = 8) -> None:
        """Somebody else's pod, bound at once, as by another scheduler."""
        self.create(port.PODS, {"metadata": {"name": name}, "spec": {**pod_spec(gpus), "nodeName": node}})

    def evict(self, pod: Object) -> None:
        """Ask a pod to leave, as a drain does."""
        meta = pod["metadata"]
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        conditions = [*pod["status"]["conditions"], target]
        self.store.patch(
            port.PODS,
            meta["namespace"],
            meta["name"],
            {"status": {"conditions": conditions}},
            subresource="status",
        )
        self.delete(meta["name"], port.PODS)

    def end_pod(self, pod: Object, phase: str = "Failed") -> None:
        """Have the process of a pod exit, with an error or without."""
        meta = pod["metadata"]
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": times.format(self.world.now())}
        status = {"phase": phase, "conditions": [ready]}
        self.store.patch(port.PODS, meta["namespace"], meta["name"], {"status": status}, subresource="status")

    # Waiting

    async def until(self, condition: Callable[[], Any], what: str, *, within: str = "1h") -> None:
        """Wait until something a user can see is so."""
        try:
            await self.world.until(lambda: bool(condition()), within=seconds(within))
        except TimeoutError:
            self.judge_operator()
            raise AssertionError(f"not within {within}: {what}; {self.summary()}") from None

    async def until_phase(self, name: str, *phases: str, within: str = "1h") -> None:
        await self.until(
            lambda: self.phase(name) in phases, f"{name} is {' or '.join(phases)}", within=within
        )

    async def until_all(self, phase: str, *jobs: str, within: str = "1h") -> None:
        await self.until(
            lambda: all(self.phase(name) == phase for name in jobs), f"{jobs} are {phase}", within=within
        )

    async def rest(self, duration: str) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds(duration))
        self.judge_operator()

    # The end

    async def finish(self) -> None:
        """Delete what is not over, wait for rest, and judge the whole run."""
        if self._task is None:
            await self.start()
        self.calm()
        for resource in (port.JOBS, port.PYTORCH_JOBS):
            for raw in list(self.store.list(resource)):
                if not raw["metadata"].get("ownerReferences"):
                    # Or its DeadlineJob would be written anew.
                    name, namespace = raw["metadata"]["name"], raw["metadata"]["namespace"]
                    self.store.delete(resource, namespace, name, propagation="Background")
        for raw in list(self.store.list(port.DEADLINE_JOBS)):
            if (raw.get("status") or {}).get("phase") not in FINAL:
                self.delete(raw["metadata"]["name"])
        await self.until(lambda: not self.staying(), "every pod of ours ends")
        await self.rest(f"{SETTLING}s")
        self._judge_capacity()
        await self.kill()
        self.calls.judge()
        violations = [str(violation) for violation in self.world.audit.violations]
        assert violations == [], violations
        assert self.world.errors == [], self.world.errors

    def _judge_capacity(self) -> None:
        """The operator itself believes that nothing of ours is charged any more, on any node or queue."""
        snapshot = self.operator.loop.snapshot
        assert snapshot is not None, "the operator never made a pass"
        charged = {job.name: job.assigned for job in snapshot.jobs if job.assigned}
        assert charged == {}, charged
        foreign: Counter[str] = Counter()
        for raw in self.store.list(port.PODS):
            ended = (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            if not ended and names.LABEL_JOB not in (raw["metadata"].get("labels") or {}):
                foreign[raw["spec"].get("nodeName", "")] += 1
        used = {node.name: dict(node.used).get("pods", 0) for node in snapshot.nodes}
        assert used == {node.name: foreign[node.name] for node in snapshot.nodes}


@contextlib.asynccontextmanager
async def run(
    nodes: int = 2,
    *,
    gpus: int = 8,
    settings: all_settings.Settings = SETTINGS,
    start: bool = True,
    slack: int = 0,
    reaction: str = "1m",
    node_leases: bool = False,
) -> AsyncIterator[Cluster]:
    """A cluster with nodes and an operator.

    `slack` is how many requests more than usual the scenario costs, `reaction` how long the operator may do
    nothing about what happens: a minute, unless it is stopped or cut off for longer.
    """
    async with world.World(
        serve=False, bookmark_s=300.0, reaction_s=seconds(reaction), node_leases=node_leases
    ) as made:
        made.add_nodes(nodes, gpus=gpus)
        cluster = Cluster(made, settings)
        cluster.calls.slack = slack
        if start:
            await cluster.start()
        try:
            yield cluster
            await cluster.finish()
        except BaseException:
            with contextlib.suppress(AssertionError):
                await cluster.kill()
            raise
