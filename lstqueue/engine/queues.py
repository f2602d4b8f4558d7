"""A GPUQueue as the engine sees it: its pools, their quotas, and whom its jobs may displace."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lstqueue.engine.config import MINUTE, Order
from lstqueue.topology.model import Toleration


class Preemption(enum.Enum):
    """Whom a job at its last moment may have suspended within its own queue."""

    NEVER = "Never"
    NO_HARM = "NoHarm"  # those of a lower band, and those whose deadline holds all the same
    TIER = "Tier"  # beside these, any job of a lower tier


@dataclass(frozen=True, slots=True)
class Pool:
    """A share of the nodes a queue may use: those that match `selector`; `nominal` is its quota there.

    cpu, memory, ephemeral-storage and pods that are not listed are limited by the nodes alone; an extended
    resource that is not listed is refused. `tolerations` are added to the pods placed here. `limits` are how
    much may be borrowed from others of the cohort; of a resource that is not among them whatever they lend.
    Nodes of a `spot` pool may go at any time: nothing is promised there.
    """

    name: str
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    nominal: tuple[tuple[str, int], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    spot: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` until `end` (ms since the epoch) `keep_free` (ppm) of a queue's quotas is not used."""

    start: int
    end: int
    keep_free: int


@dataclass(frozen=True, slots=True)
class Queue:
    """A GPUQueue as the engine sees it.

    `min_run` (ms) and `cap` (suspensions for others in 24 h) protect its jobs from preemption. `held`: nobody
    is admitted; `drained`: moreover, everybody is suspended; `observed`: forecasts only. `best_effort_share`
    (ppm of what it has) is kept for jobs that have no deadline to meet, `promises`
    whether anything new is promised, `promise_budget` (ppm of the
    same) may be owed to promises in an overload, beside what is small. `windows` come one after the other,
    as far ahead as anybody looks.

    Queues of one `cohort` lend each other nominal quota that they do not use; of two that contradict each
    other the older (`created`, ms since the epoch) counts. `reclaims`: its jobs take back what others borrow,
    whose minimum runs protect them for `reclaim_grace` ms at most, and once per that. `conflict` says, in
    words, why a queue admits nobody and shares with nobody; `cohorts.settle` sets it, nobody else.
    """

    name: str
    order: Order = Order.LST
    pools: tuple[Pool, ...] = ()
    max_importance: int | None = None
    preemption: Preemption = Preemption.NO_HARM
    min_run: int = 15 * MINUTE
    cap: int = 4
    shedding: bool = True
    best_effort_share: int = 50_000
    promises: bool = True
    promise_budget: int = 0
    held: bool = False
    drained: bool = False
    observed: bool = False
    windows: tuple[Window, ...] = ()
    cohort: str = ""
    reclaims: bool = True
    reclaim_grace: int = 15 * MINUTE
    created: int = 0
    conflict: str = ""

    @property
    def account(self) -> str:
        """By whose name its quota is kept: two queues of one account share it."""
        return f"cohort/{self.cohort}" if self.cohort and not self.conflict else self.name
