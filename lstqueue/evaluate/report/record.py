"""What the plots of a report need of a replay: who waited and when, who held which GPUs, what was lost.

A witness of the world, so a replay without a report has nothing to do for it. It keeps two short records for
each attempt of a job and judges nothing; curves are made of them afterwards, exactly, not from samples.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lstqueue.engine import model
from lstqueue.evaluate import lives, workload
from lstqueue.topology import domains, slowdown


@dataclass(frozen=True, slots=True)
class Wait:
    """A job had no room from `since` to `until`, in ms since the epoch, and `left` ms still to run."""

    life: lives.Life
    since: int
    until: int
    left: int


@dataclass(slots=True)
class Stay:
    """A gang held `places`, (node, GPUs), from `since` to `until`; ms since the epoch.

    `works` is when it was to begin its work. `stopped` is when it was told to leave, None when it left by
    itself; `struck` says that a mishap of a node ended it. While it is there `until` is -1. `slowdown` (ppm)
    is what its place makes of its run time.
    """

    life: lives.Life
    since: int
    works: int
    places: tuple[tuple[str, int], ...]
    stopped: int | None = None
    struck: bool = False
    until: int = -1
    slowdown: int = slowdown.PPM


@dataclass(slots=True)
class Outage:
    """So many GPUs of a node could not be used from `since` to `until`; ms since the epoch."""

    node: str
    gpus: int
    since: int
    until: int = -1


class End(enum.Enum):
    """What ended a run."""

    DONE = "done"
    SUSPENDED = "suspended"  # for another job
    STRUCK = "struck"  # by a mishap of a node


@dataclass(frozen=True, slots=True)
class Loss:
    """GPU time in ms that turns out to be lost `at` the end of a run: done again, or spent on restarts."""

    at: int
    again: int
    restarts: int
    end: End


class Recorder:
    """A witness of a `world.World`; `finish` before reading `waits`, `stays`, `losses` and `outages`.

    `nodes` are the GPUs of every node that was ever there, by name and in the cluster's order. `domains` are
    those of their interconnect, None without one.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.domains: domains.Domains | None = None
        self._there = 0
        self.waits: list[Wait] = []
        self.stays: list[Stay] = []
        self.losses: list[Loss] = []
        self.outages: list[Outage] = []
        self._out: dict[str, Outage] = {}
        self._waiting: dict[str, tuple[lives.Life, int]] = {}
        self._staying: dict[str, Stay] = {}
        self._counted: dict[str, tuple[int, int]] = {}

    def planned(self, snapshot: model.Snapshot, plan: model.Plan) -> None:
        """Look which nodes there are, wherever their number is another."""
        self.domains = snapshot.domains
        if len(snapshot.nodes) == self._there:
            return
        self._there = len(snapshot.nodes)
        for node in snapshot.nodes:
            self.resized(node.name, dict(node.allocatable).get(workload.GPU, 0))

    def arrived(self, life: lives.Life, at: int) -> None:
        """It waits since its submission, whenever that became known."""
        self._waiting[life.uid] = (life, life.work.submit)

    def admitted(self, life: lives.Life, at: int) -> None:
        """It waits no more, and holds its places."""
        self._waited(life.uid, at)
        places: dict[str, int] = {}
        for part in life.assigned:
            per_pod = dict(life.groups[part.group].shape.requests).get(workload.GPU, 0)
            places[part.node] = places.get(part.node, 0) + per_pod * (part.bound + part.held)
        stay = Stay(life, at, life.starts_at, tuple(places.items()), slowdown=life.slowdown)
        self._staying[life.uid] = stay
        self.stays.append(stay)

    def suspended(self, life: lives.Life, at: int, order: model.Suspend, kept: int) -> None:
        """It was told to leave; what this cost is known."""
        self._staying[life.uid].stopped = at
        self._lost(life, at, End.SUSPENDED)

    def struck(self, life: lives.Life, at: int, kept: int) -> None:
        """A mishap ended it."""
        self._staying[life.uid].struck = True
        self._lost(life, at, End.STRUCK)

    def resized(self, node: str, gpus: int) -> None:
        """A node counts by what it has when it is whole."""
        self.nodes[node] = max(self.nodes.get(node, 0), gpus)

    def serves(self, node: str, gpus: int, at: int) -> None:
        """What it lacks of what it has when it is whole is out of service."""
        if (before := self._out.pop(node, None)) is not None:
            before.until = at
        if lacking := self.nodes.get(node, gpus) - gpus:
            self._out[node] = Outage(node, lacking, at)
            self.outages.append(self._out[node])

    def released(self, life: lives.Life, at: int) -> None:
        """Its places are free."""
        self._staying.pop(life.uid).until = at
        self._waiting[life.uid] = (life, at)

    def ended(self, life: lives.Life, at: int) -> None:
        """It is through and waits for nothing."""
        del self._waiting[life.uid]
        self._lost(life, at, End.DONE)

    def finish(self, at: int) -> None:
        """Close what is open at the end of a replay, `at` ms since the epoch."""
        for uid in list(self._waiting):
            self._waited(uid, at)
        for stay in self._staying.values():
            stay.until = at
        for stay in list(self._staying.values()):
            self._lost(stay.life, at, End.DONE)
        self._staying.clear()
        for outage in self._out.values():
            outage.until = at

    def _waited(self, uid: str, until: int) -> None:
        life, since = self._waiting.pop(uid)
        if until > since:
            self.waits.append(Wait(life, since, until, life.work.duration - life.saved))

    def _lost(self, life: lives.Life, at: int, end: End) -> None:
        again, restarts = self._counted.get(life.uid, (0, 0))
        gpus = life.work.gpus
        more = Loss(at, gpus * (life.lost - again), gpus * (life.restoring - restarts), end)
        self._counted[life.uid] = (life.lost, life.restoring)
        if end is not End.DONE or more.again or more.restarts:
            self.losses.append(more)
