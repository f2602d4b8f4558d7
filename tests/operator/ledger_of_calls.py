"""Every request that the operator makes, and how many a calm operator would have made."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from lstqueue.embedded import eventlog, faults, world
from lstqueue.kube import port

FLOOD = 20_000
"""Requests after which a scenario is stopped: something spins, perhaps without virtual time passing."""

PER_JOB = 14
"""Status writes, questions and readings that a DeadlineJob costs however it goes."""
PER_ROUND = 12
"""The same for each admission and each restart."""
PER_GROUP = 4
"""Writes to the child Job of a group, in each round."""


def about_gangs(call: faults.Call) -> bool:
    """Whether a request writes anything for a DeadlineJob; dry runs count, as they may be lost too."""
    return faults.writes(call) and call.resource not in (port.GPU_QUEUES, port.EVENTS)


@dataclass(slots=True)
class _Size:
    """What is known of a DeadlineJob's cost; kept after it is deleted."""

    pods: int
    groups: int
    rounds: int = 1

    @property
    def cost(self) -> int:
        return PER_JOB + self.rounds * (PER_ROUND + self.groups * PER_GROUP + self.pods)


class Calls:
    """Listens to the server's requests, in process and over HTTP alike."""

    def __init__(self, made: world.World) -> None:
        self._faults = made.server.faults
        self._store = made.store
        self._sizes: dict[str, _Size] = {}
        self._began = asyncio.get_running_loop().time()
        self.seen: list[faults.Call] = []
        self.listeners: list[Callable[[faults.Call], None]] = []
        self.slack = 0
        self.passes = 0
        self._events = 0
        made.store.subscribe(self._learn)
        self.attach()

    def attach(self) -> None:
        """Begin, or go on after the faults were cleared."""
        self._faults.delay(0, when=self._note)

    def _note(self, call: faults.Call) -> bool:
        if call.resource == port.LEASES:
            return False  # as many as there are seconds, and none for a job
        self.seen.append(call)
        assert len(self.seen) < FLOOD, f"{FLOOD} requests: {self.summary()}"
        for listener in self.listeners:
            listener(call)
        return False

    def _learn(self, event: eventlog.Event) -> None:
        self._events += 1
        if event.resource == port.DEADLINE_JOBS:
            raw = event.object
            groups = raw["spec"].get("groups") or [{"replicas": self._pods_of(raw)}]
            pods = sum(item.get("replicas", 1) for item in groups)
            size = self._sizes.setdefault(raw["metadata"]["uid"], _Size(pods, len(groups)))
            status = raw.get("status") or {}
            size.rounds = max(size.rounds, 1 + status.get("attempt", 0) + status.get("restarts", 0))

    def _pods_of(self, raw: port.Object) -> int:
        """How many pods a user's own Job may have in one round: retries are few, each with a relabelling."""
        job = self._store.find(port.JOBS, raw["metadata"]["namespace"], raw["spec"]["jobRef"]["name"])
        spec = job["spec"] if job is not None else {}
        return 2 * max(spec.get("completions") or 0, spec.get("parallelism", 1))

    def count(self, verb: str = "", resource: port.Resource | None = None) -> int:
        match = faults.calls(verb=verb, resource=resource)
        return sum(match(call) for call in self.seen)

    def about_gangs(self) -> int:
        return sum(about_gangs(call) for call in self.seen)

    def writes(self) -> int:
        """How often anything was written so far."""
        return sum(faults.writes(call) for call in self.seen)

    def summary(self) -> str:
        counted = Counter(f"{call.verb} {call.resource.plural} {call.subresource}" for call in self.seen)
        return str(dict(counted.most_common()))

    def judge(self) -> None:
        """Refuse a run in which the operator asked or wrote far more than its jobs called for."""
        hours = (asyncio.get_running_loop().time() - self._began) / 3600
        about_jobs = [call for call in self.seen if call.verb not in ("list", "watch")]
        queues = [call for call in about_jobs if call.resource in (port.GPU_QUEUES, port.INTERCONNECTS)]
        words = [call for call in about_jobs if call.resource == port.EVENTS]
        allowed = sum(size.cost for size in self._sizes.values()) + self.slack
        # A waiting job may be told a new forecast now and then.
        allowed += len(self._sizes) * math.ceil(hours)
        assert len(words) <= 10 + allowed, f"too many events: {self.summary()}"
        rest = len(about_jobs) - len(queues) - len(words)
        assert rest <= allowed, f"more than {allowed} requests: {self.summary()}"
        assert len(queues) <= 4 + 4 * allowed, f"too many reports on queues and cables: {self.summary()}"
        # Each event and each answer may cause a pass, and so may an hour's changes of slack and forecast.
        likely = 30 + 2 * (self._events + len(about_jobs)) + 30 * math.ceil(hours) * max(1, len(self._sizes))
        assert self.passes <= likely, f"{self.passes} passes over {self._events} events"
        watching = len(self.seen) - len(about_jobs)
        assert watching <= 52 + 28 * hours + self.slack, f"too much listing and watching: {self.summary()}"
