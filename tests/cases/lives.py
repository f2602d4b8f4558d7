"""A gang at one moment of its life: what the ledger says and what there is of it, asked for its next step."""

from __future__ import annotations

import dataclasses
from typing import Any

from cases import raw
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger, lifecycle

Object = raw.Object
Phase = ledger.Phase
BIND_TIMEOUT = 2 * raw.MINUTE
READY_TIMEOUT = 30 * raw.MINUTE


class Life:
    """One gang. Ranks count through `groups` in order; every rank has a node of its own, `node(rank)`."""

    def __init__(self, groups: dict[str, int] | None = None, **spec: Any) -> None:
        self.groups = groups or {"worker": 2}
        self.job = raw.deadline_job(groups=self.groups, **spec)
        self.seen = ledger.read(self.job)
        self.children: dict[tuple[str, int], Object] = {}
        self.pods: list[Object] = []
        self.unfit: set[str] = set()
        self.lost: dict[str, str] = {}
        self.stale: set[str] = set()
        self.unready_since = 0
        self.ungated_at = 0

    @property
    def size(self) -> int:
        return sum(self.groups.values())

    @property
    def status(self) -> ledger.Status:
        return self.seen.status

    def node(self, rank: int) -> str:
        return f"gpu-{rank}"

    def set(self, **changes: Any) -> None:
        """Change what the status says."""
        status = dataclasses.replace(self.seen.status, **changes)
        self.seen = dataclasses.replace(self.seen, status=status)

    def admitted(self, *, at: int = raw.NOW, **more: Any) -> Life:
        """Commit an admission, and nothing else."""
        assert self.seen.spec is not None
        nodes = {self.node(rank): 1 for rank in range(self.size)}
        placed = raw.admission(self.seen.gang(), self.seen.spec.shape, nodes, at=at)
        self.set(**{"phase": Phase.ADMITTED, "attempt": 1, "admission": placed, **more})
        return self

    def claiming(self, *, expires: int = raw.NOW + 5 * raw.MINUTE, **more: Any) -> Life:
        """Have it own the room that a victim is to leave."""
        assert self.seen.spec is not None
        groups, rank = [], 0
        for _, count in self.seen.spec.groups:
            nodes = tuple((self.node(rank + index), 1) for index in range(count))
            groups.append(model.GroupPlacement("a100", nodes))
            rank += count
        claim = model.Claim(tuple(groups), (model.Victim("uid-victim", 1),), expires)
        self.set(phase=Phase.CLAIMING, claim=claim, **more)
        return self

    def started(self, *, ready: bool = True, **more: Any) -> Life:
        """Admit it, make its children and let all its pods go, bound and ready or not."""
        self.admitted(**more)
        self.make()
        self.pods = [self.let_go(rank, ready=ready) for rank in range(self.size)]
        return self

    def running(self, **more: Any) -> Life:
        self.started(**more)
        self.set(phase=Phase.RUNNING, started=raw.NOW)
        return self

    def suspending(self, reason: str, **more: Any) -> Life:
        """Make it stop for a reason, its children suspended and its pods still there."""
        self.running()
        self.suspend_all()
        self.set(phase=Phase.SUSPENDING, suspension=reason, since=raw.NOW, **more)
        return self

    def make(self, *, restart: int | None = None, suspend: bool = False, **status: Any) -> None:
        """Make the child Jobs of a restart."""
        restart = self.status.restarts if restart is None else restart
        for group in self.groups:
            made = raw.child(self.job, group, restart=restart, suspend=suspend, **status)
            self.children[group, restart] = made

    def suspend_all(self) -> None:
        """Have all child Jobs be suspended."""
        self.children = {key: raw.suspended(item) for key, item in self.children.items()}

    def end(self, group: str, kind: str, **more: Any) -> None:
        """Have a child Job be Complete or Failed."""
        key = group, self.status.restarts
        self.children[key] = raw.touched(self.children[key], status=raw.ended(kind, **more))

    def member(self, rank: int) -> tuple[str, int]:
        for group, count in self.groups.items():
            if rank < count:
                return group, rank
            rank -= count
        raise IndexError(rank)

    def gated(self, rank: int, **more: Any) -> Object:
        """Return a rank's pod as its Job makes it."""
        group, index = self.member(rank)
        return raw.pod(self.children[group, self.status.restarts], index, **more)

    def let_go(self, rank: int, *, bound: bool = True, ready: bool = False, **more: Any) -> Object:
        """Return a rank's pod after it was let go."""
        aim = self.node(rank)
        given = {"phase": "Running" if ready else "Pending", "node": aim if bound else "", **more}
        return raw.ungated(self.gated(rank), attempt=self.status.attempt, aim=aim, ready=ready, **given)

    def replace_pod(self, rank: int, *pods: Object) -> None:
        """Put these in place of a rank's pod."""
        self.pods[rank : rank + 1] = pods

    def gang(self) -> lifecycle.Gang:
        return lifecycle.Gang(
            ledger=self.seen,
            children=[views.child(item) for item in self.children.values()],
            pods=[views.pod(item) for item in self.pods],
            ungated_at=self.ungated_at,
            bind_timeout=BIND_TIMEOUT,
            ready_timeout=READY_TIMEOUT,
            fit_node=lambda _, node: node not in self.unfit,
            lost=lambda pod: self.lost.get(pod.node or pod.aim, ""),
            stale=lambda node: node in self.stale,
            unready_since=self.unready_since,
        )

    def step(self, now: int = raw.NOW) -> lifecycle.Step:
        return lifecycle.step(self.gang(), now)

    def outcome(self, now: int = raw.NOW) -> ledger.Status:
        """Return the status that the next step writes."""
        found = self.step(now).status
        assert found is not None, "the next step writes no status"
        return found
