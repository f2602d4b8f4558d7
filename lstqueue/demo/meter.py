"""What a run shows while it happens: every change of phase, who ended how, and what the GPUs did.

Taken from the writes to the store, as anybody could who watches the API. Nothing comes from the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import durations, names, times
from lstqueue.demo import scenario
from lstqueue.embedded import eventlog
from lstqueue.embedded.controllers import pods
from lstqueue.kube import port

FINAL = frozenset({"Succeeded", "Failed", "Rejected"})
HALF_WAY = frozenset({"Claiming", "Admitted", "Suspending"})
"""Phases in which the operator has written what it will do, and not done all of it."""

Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A phase that began at `at` (ms since the Unix epoch); `reason` and `made_for` (UID) when suspended."""

    at: int
    phase: str
    reason: str = ""
    made_for: str = ""


@dataclass(slots=True)
class Life:
    """What became of one job: its changes in order, and its status when it had ended.

    `name` is that of the object which its user created.
    """

    uid: str
    name: str
    created: int
    changes: list[Change] = field(default_factory=list)
    end: Status | None = None

    @property
    def phase(self) -> str:
        """Where it stands, "" before anything was said."""
        return self.changes[-1].phase if self.changes else ""

    def since(self, at: int, *phases: str) -> int | None:
        """When it first came into one of the phases after `at`, None while it has not."""
        found = (change.at for change in self.changes if change.at >= at and change.phase in phases)
        return next(found, None)

    def last(self, at: int, phase: str) -> int:
        """When it last came into a phase until `at`; `at` when it never did."""
        found = (change.at for change in reversed(self.changes) if change.at <= at and change.phase == phase)
        return next(found, at)

    @property
    def wait(self) -> int | None:
        """Ms from its creation until it first ran as a whole, None if it never did."""
        began = self.since(0, "Running", "Succeeded")
        return None if began is None else began - self.created

    @property
    def lost(self) -> int:
        """Ms of run time that suspensions lost, as its status says."""
        runs = (self.end or {}).get("runs") or ()
        return sum(durations.parse(run["lost"]) for run in runs if run.get("lost"))


@dataclass(slots=True)
class Meter:
    """Feed it with every event; GPU time counts from `since` to `until` (ms since the Unix epoch)."""

    since: int = 0
    until: int = 0
    lives: dict[str, Life] = field(default_factory=dict)
    finished: int = 0
    gpu_ms: int = 0
    held: int = 0

    def see(self, event: eventlog.Event, now: int) -> None:
        """Take in a write."""
        if event.resource is port.DEADLINE_JOBS:
            if event.type != eventlog.DELETED:
                self._see_job(event.object, now)
        elif event.resource is port.PODS:
            self.advance(now)
            gone = None if event.type == eventlog.DELETED else event.object
            self.held += _gpus(gone) - _gpus(event.old)

    def advance(self, now: int) -> None:
        """Add up GPU time until now, but none after `until`."""
        end = min(now, self.until)
        if end > self.since:
            self.gpu_ms += self.held * (end - self.since)
            self.since = end

    def suspensions(self, reason: str = "") -> int:
        """How often jobs were suspended, for any reason or just this one."""
        return sum(
            change.phase == "Suspending" and reason in ("", change.reason)
            for life in self.lives.values()
            for change in life.changes
        )

    def half_way(self) -> list[Life]:
        """The jobs with which the operator is in the middle of something."""
        return [life for life in self.lives.values() if life.phase in HALF_WAY]

    def _see_job(self, raw: port.Object, now: int) -> None:
        meta, status = raw["metadata"], raw.get("status") or {}
        uid = meta["uid"]
        life = self.lives.get(uid)
        if life is None:
            ref = raw["spec"].get("jobRef") or {}
            created = times.parse(meta["creationTimestamp"])
            life = self.lives[uid] = Life(uid, ref.get("name") or meta["name"], created)
        phase = status.get("phase") or ""
        if phase != life.phase:
            why = (status.get("suspension") or {}) if phase == "Suspending" else {}
            life.changes.append(Change(now, phase, why.get("reason") or "", why.get("for") or ""))
            if phase in FINAL:
                self.finished += 1
        if phase in FINAL:
            life.end = status


def occupied(objects: Iterable[port.Object]) -> dict[str, set[str]]:
    """Return the nodes on which each job's pods are, by UID; pods that have ended are nowhere."""
    found: dict[str, set[str]] = {}
    for raw in objects:
        uid = (raw["metadata"].get("labels") or {}).get(names.LABEL_JOB)
        if uid and pods.node_of(raw) and not pods.finished(raw):
            found.setdefault(uid, set()).add(pods.node_of(raw))
    return found


def _gpus(raw: port.Object | None) -> int:
    """GPUs that a stored pod holds."""
    if raw is None or not pods.node_of(raw) or pods.finished(raw):
        return 0
    return pods.requests(raw["spec"]).get(scenario.GPU, 0)
