"""What the lifecycle may ask for, and the moves of a status that all kinds of units share.

A step is one thing to do; the moves are pure functions from status to status. Who makes them, and when, is
the business of `lifecycle` and of the kinds behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lstqueue.api import base
from lstqueue.engine import model
from lstqueue.jobs import existing, views
from lstqueue.kube import port
from lstqueue.operator import ledger, members, units

Phase = ledger.Phase


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of an existing object; what it was decided for is in its resourceVersion."""

    resource: port.Resource
    namespace: str
    name: str
    body: port.Object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """The next thing to do: at most one of the actions is set; `wake` is when to look again, in ms.

    `why` is the reason of a status in one word (or, for a suspension, a sentence), `words` says more. `pause`
    sets `active` to false in the spec, `remove` deletes the DeadlineJob. `patches` are writes to an existing
    job and its pods: a `start` cannot do without them, and a `sudden` one suspends what runs without us.
    `clear` deletes an existing job that its CronJob would wait for.
    """

    status: ledger.Status | None = None
    why: str = ""
    words: str = ""
    create: tuple[tuple[str, int], ...] = ()
    suspend: tuple[views.ChildView, ...] = ()
    resume: tuple[views.ChildView, ...] = ()
    discard: tuple[views.ChildView, ...] = ()
    ungate: tuple[tuple[views.PodView, str, str, int], ...] = ()
    patches: tuple[Patch, ...] = ()
    clear: existing.UnitView | None = None
    start: bool = False
    sudden: bool = False
    pause: bool = False
    remove: bool = False
    wake: int | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write."""
        writes = self.create or self.suspend or self.resume or self.discard or self.ungate
        return not (self.status or writes or self.patches or self.clear or self.pause or self.remove)


IDLE = Step()


class Kind(Protocol):
    """What the shared machine asks of a kind of unit (a module: `lifecycle_inline`, ...).

    None means that there is nothing to do and the machine goes on.
    """

    def stop(self, gang: members.Gang) -> Step | None:
        """Suspend what runs while it may not; asked outside of admissions, until nothing runs."""

    def hindrance(self, gang: members.Gang) -> units.Told:
        """Say what of its own keeps a unit that waits from being admitted now, ("", "") for nothing."""

    def waiting(self, gang: members.Gang) -> Step | None:
        """Return what the unit needs so that its next admission finds something that can run."""

    def completed(self, gang: members.Gang, now: int) -> int | None:
        """Return when the unit succeeded (ms), None when it has not."""

    def succeeding(self, gang: members.Gang) -> bool:
        """Whether its pods have done all work and only their controllers need a moment to say so."""

    def failed(self, gang: members.Gang, now: int) -> Step | None:
        """Return the step out of an admission because a member, or the unit itself, failed."""

    def released(self, gang: members.Gang) -> bool:
        """Whether a pod was let go under this admission: rolling back to Pending is not free any more."""

    def fits(self, gang: members.Gang) -> bool:
        """Whether the admission is for this very unit, places all of it, and its nodes may take its pods."""

    def prepare(self, gang: members.Gang, ready_by: int) -> Step | None:
        """Return what must be created, resumed or removed before pods matter; `ready_by` is in ms."""

    def standing(self, gang: members.Gang) -> members.Standing:
        """Return who stands for which rank now."""

    def spent(self, gang: members.Gang) -> bool:
        """Whether what was made for this run cannot run again, so that the next one needs new objects."""

    def exposed(self, gang: members.Gang) -> tuple[views.PodView, ...]:
        """Return the pods that were let go in this run and whose node the whole unit cannot lose."""

    def paused(self, gang: members.Gang) -> str:
        """Say what somebody suspended by hand while the unit was to run, "" for nothing."""

    def unfinished(self, gang: members.Gang) -> bool:
        """Whether it can be seen that the unit has not succeeded, whatever its status says."""

    def outlasts(self, gang: members.Gang) -> bool:
        """Whether the unit would be queued anew if its DeadlineJob, which is over, were deleted."""

    def stopped(self, gang: members.Gang, now: int) -> Step:
        """Return the step out of Suspending: everything is stopped and no pod blocks any more."""


def next_restart(status: ledger.Status, *, counted: bool) -> ledger.Status:
    """Objects of the next restart get new names; only counted ones use up `backoffLimit`."""
    return replace(
        status, restarts=status.restarts + 1, disruptions=status.disruptions + (0 if counted else 1)
    )


def given_back(status: ledger.Status) -> ledger.Status:
    """Queue it again, with nothing left of its admission."""
    return replace(
        status,
        phase=Phase.PENDING,
        admission=None,
        claim=None,
        reservation=None,
        suspension="",
        suspended_for="",
        since=0,
    )


def over(status: ledger.Status, phase: Phase, at: int) -> ledger.Status:
    """End it for good at `at` (ms)."""
    return replace(
        status,
        phase=phase,
        completed=at,
        suspension="",
        suspended_for="",
        since=0,
        admission=None,
        claim=None,
        reservation=None,
        slot=None,
    )


def suspended(
    status: ledger.Status, reason: str, now: int, *, keeps: bool = False, for_uid: str = ""
) -> ledger.Status:
    """Have it stop; with `keeps` its admission goes on holding room for the next start."""
    return replace(
        status,
        phase=Phase.SUSPENDING,
        suspension=reason,
        suspended_for=for_uid,
        since=now,
        admission=status.admission if keeps else None,
        claim=None,
        reservation=None,
    )


def placed(job: ledger.Ledger, admission: model.Admission, *, at: int, unit: str = "") -> ledger.Admission:
    """Return the admission that gives every rank its node, ascending along the nodes as placed.

    `unit` is the UID of the existing object that it is for.
    """
    assert job.spec is not None
    groups, rank = [], 0
    for (name, _), placement in zip(job.spec.groups, admission.groups, strict=True):
        nodes = []
        for node, count in placement.nodes:
            nodes.append((node, tuple(range(rank, rank + count))))
            rank += count
        groups.append(ledger.GroupAdmission(name, placement.pool, tuple(nodes)))
    return ledger.Admission(
        at=at,
        queue=admission.queue,
        shape=job.spec.shape,
        groups=tuple(groups),
        job_uid=unit,
        topology=admission.topology,
        slowdown=admission.slowdown,
        domain=admission.domain if len(admission.domain) <= base.TEXT_LENGTH else "",
    )
