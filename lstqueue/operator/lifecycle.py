"""What a queued unit needs next, as a pure function: the protocol of admission, finish and suspension.

`step` looks at the ledger entry, what was made or found for it and the pods, and returns the one thing to do
now. It is level-based: it never remembers what it asked for, so a restarted operator, or one that lost a
reply, goes on from whatever the API shows (docs/adr/0005-level-based-lifecycle.md). It neither calls the API
nor decides who is admitted. What differs between kinds of units is behind `steps.Kind`.

The order of the writes keeps the invariants: the status commit comes before any write to a workload, pods
come gated, gates are lifted only when every expected pod exists and no predecessor holds its place, and
capacity returns only when pods are gone. An admission is given up as soon as the gang cannot go on under it:
from then on only its pods are charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lstqueue.api import conditions
from lstqueue.engine import model
from lstqueue.engine import words as engine_words
from lstqueue.operator import (
    clocks,
    deadlines,
    interruptions,
    ledger,
    lenient,
    lifecycle_inline,
    lifecycle_unit,
    members,
    starts,
    steps,
    sweeps,
)

Phase = ledger.Phase
Gang = members.Gang
Step = steps.Step
IDLE = steps.IDLE

_REPLACED_KEPT = model.HOUR
"""Ms for which the DeadlineJob of a Job is kept that its CronJob replaced: there may be one every minute."""
_JUDGED_SOON = 1_000
"""Ms after which to look again for a verdict of a pass of ours, which comes at once."""
_READ_LATE = model.MINUTE
"""Ms after its end for which a Job may still be known as it was before that."""


def kind_of(job: ledger.Ledger) -> steps.Kind:
    """Return what the unit of a DeadlineJob is led by."""
    return lifecycle_unit if job.spec is not None and job.spec.ref is not None else lifecycle_inline


def step(gang: Gang, now: int) -> Step:
    """Return what the gang needs next at `now` (ms)."""
    job = gang.ledger
    if job.spec is None:
        return IDLE
    kind = kind_of(job)
    if job.deleting:
        return _leaving(kind, gang, now)
    found = _meddled(kind, gang, now) or _cancelled(kind, gang, now)
    found = found or _BY_PHASE[job.status.phase](kind, gang, now)
    if found.idle and not job.final and gang.spare is not job.status.spare:
        why = sweeps.ENOUGH if gang.spare else sweeps.WANTED
        return Step(status=replace(job.status, spare=gang.spare), why=why)
    deadline = job.spec.deadline
    if not found.idle or job.final or deadline is None or job.status.spare:
        return found
    if now < deadline:
        return Step(wake=min(deadline, found.wake or deadline))
    if gang.untimely:
        return found
    if not missed(job.status):
        return Step(status=job.status, why="DeadlineMissed")
    return Step(wake=now + 1) if _cancels(job) and now == deadline else found


def _meddled(kind: steps.Kind, gang: Gang, now: int) -> Step | None:
    """Put right what only an editor of statuses can have written: who waits, or is over, holds nothing."""
    status = gang.ledger.status
    held = status.admission
    if status.phase in (Phase.PENDING, Phase.CLAIMING) and held is not None:
        return Step(status=replace(status, admission=None), why="NotAdmitted")
    if status.phase in ledger.FINAL and held is not None:
        ran = Phase.RUNNING if status.started >= held.at else Phase.ADMITTED
        return Step(status=replace(status, phase=ran, completed=0), why="NotOver")
    if status.phase is not Phase.SUCCEEDED or not kind.unfinished(gang):
        return None
    # A process that has just begun may have read the Job before its end, and this after it.
    if now < status.completed + _READ_LATE:
        return Step(wake=status.completed + _READ_LATE)
    stopped = steps.suspended(status, "NotOver", now)
    return Step(status=replace(stopped, completed=0), why="NotOver", words="its Job has not succeeded yet")


def _cancels(job: ledger.Ledger) -> bool:
    willing = job.status.best_effort or job.status.spare
    return job.spec is not None and job.spec.on_missed == "Cancel" and not willing


def _cancelled(kind: steps.Kind, gang: Gang, now: int) -> Step | None:
    """End a job that is of no use to its user after its deadline, unless its work is done."""
    job = gang.ledger
    assert job.spec is not None
    if job.final or not _cancels(job) or job.spec.deadline is None or now <= job.spec.deadline:
        return None
    if gang.untimely:
        return None
    if job.status.attempt and (kind.completed(gang, now) is not None or kind.succeeding(gang)):
        return None
    field = engine_words.field("spec.onMissed", labelled=bool(job.unit_uid))
    words = f"{field} is Cancel, and {deadlines.passed(job.spec)}"
    return Step(status=steps.over(job.status, Phase.FAILED, now), why=deadlines.MISSED, words=words)


def _leaving(kind: steps.Kind, gang: Gang, now: int) -> Step:
    """Give the places back of a gang whose DeadlineJob is deleted and kept by somebody's finalizer."""
    status = gang.ledger.status
    if status.phase in (Phase.ADMITTED, Phase.RUNNING) or status.admission is not None:
        return Step(status=steps.suspended(status, ledger.DELETED, now), why="Deleted")
    if status.phase is Phase.CLAIMING:
        return Step(status=steps.given_back(status), why="Deleted")
    return _at_rest(kind, gang, now)


def missed(status: ledger.Status) -> bool:
    """Whether the status says already that the deadline was missed."""
    return conditions.is_true(status.conditions, conditions.Type.DEADLINE_MISSED)


def requeues(job: ledger.Ledger, found: Step) -> bool:
    """Whether a step does nothing but queue a gang again whose room has gone back with its pods.

    Nothing is held until that is written, so it can wait for the words that go with it.
    """
    before, after = job.status, found.status
    returns = after is not None and after.phase is Phase.PENDING and before.phase is Phase.SUSPENDING
    return returns and before.admission is None and not job.deleting


def refused(gang: Gang, now: int, why: str) -> Step:
    """Return the step out of a start that the API server will not have: a failed start, no node to blame."""
    spent = kind_of(gang.ledger).spent(gang)
    return Step(status=starts.failed(gang, (), now, spent=spent), why=why)


def _pending(kind: steps.Kind, gang: Gang, now: int) -> Step:
    """Nothing runs; make sure that the next admission finds something that can run."""
    status = gang.ledger.status
    found = kind.stop(gang) or kind.waiting(gang) or _infeasible(gang, now)
    if found:
        return found
    sooner = starts.put_right(status.back_off, now)
    if sooner is not None:
        return Step(status=replace(status, back_off=sooner), why="ClockMoved")
    if not status.back_off.avoid:
        return IDLE
    until = starts.avoided_until(status.back_off)
    if now < until:
        return Step(wake=until)
    counted = replace(status.back_off, avoid=(), avoid_until=0)
    forgiven = counted if counted.count or counted.until > now else ledger.NO_BACK_OFF
    return Step(status=replace(status, back_off=forgiven), why="NodesForgiven")


def _infeasible(gang: Gang, now: int) -> Step | None:
    """Do what the user wants where the verdict on this very spec is that no plan meets the deadline.

    Only what was never admitted is rejected: a job that has run was feasible once, and has work to lose.
    """
    job, status = gang.ledger, gang.ledger.status
    verdict = status.published.verdict
    assert job.spec is not None
    if verdict is None or verdict.level is not model.Level.IMPOSSIBLE or status.observed < job.generation:
        return None
    if job.spec.deadline is None or status.best_effort or job.spec.on_infeasible == "Queue":
        return None
    if gang.untimely:
        return None
    if not gang.judged:
        # Another process may have found that out, or this one, by a clock that was wrong.
        return Step(wake=now + _JUDGED_SOON)
    if job.spec.on_infeasible == "BestEffort":
        return Step(status=replace(status, best_effort=True), why=deadlines.GIVEN_UP)
    if job.spec.on_infeasible == "Reject" and not status.attempt:
        words = verdict.reason or "the deadline cannot be met"
        return Step(status=steps.over(status, Phase.REJECTED, now), why="Infeasible", words=words)
    return None


def _claiming(kind: steps.Kind, gang: Gang, now: int) -> Step:
    """It owns room and waits for others to leave it: until then nothing of it runs."""
    job = gang.ledger
    assert job.spec is not None
    if not job.spec.active:
        return Step(status=steps.given_back(job.status), why="Inactive")
    if job.status.claim is None:
        return Step(status=steps.given_back(job.status), why="ClaimMissing")
    return kind.stop(gang) or kind.waiting(gang) or IDLE


def _at_rest(kind: steps.Kind, gang: Gang, now: int) -> Step:
    """Outside an admission nothing may run: suspend what does."""
    return kind.stop(gang) or IDLE


def _over(kind: steps.Kind, gang: Gang, now: int) -> Step:
    """It will not run again; its object goes when its user said so."""
    found, spec, status = _at_rest(kind, gang, now), gang.ledger.spec, gang.ledger.status
    if not found.idle or spec is None or spec.ttl is None or not status.completed or gang.counts:
        return found
    if kind.outlasts(gang) or gang.untimely:
        return found
    finished = conditions.get(status.conditions, conditions.Type.FINISHED)
    replaced = finished is not None and finished.reason == lenient.REPLACED
    until = status.completed + (min(spec.ttl, _REPLACED_KEPT) if replaced else spec.ttl)
    return Step(wake=until) if now < until else Step(remove=True, why="TTLExpired")


def _admitted(kind: steps.Kind, gang: Gang, now: int) -> Step:
    status = gang.ledger.status
    if status.admission is None:
        return Step(status=replace(status, phase=Phase.PENDING), why="AdmissionMissing")
    behind = clocks.beyond(gang.ledger.created, status.admission.at) and gang.ledger.created <= now
    if behind or clocks.beyond(status.admission.at, now):
        # Or the time to start would be over before it began, or never.
        return Step(status=replace(status, admission=replace(status.admission, at=now)), why="ClockMoved")
    ended = _ended(kind, gang, now)
    if ended:
        return ended
    tried = gang.ungated_at >= status.admission.at
    if not tried and not kind.released(gang):
        # No pod was released to a node, nor may one have been without our knowledge: rolling back is free.
        if not kind.fits(gang):
            return Step(status=steps.given_back(status), why="NodeUnfit")
        if crowded := gang.crowded():
            return Step(status=steps.given_back(status), why="RoomTaken", words=crowded)
    who = kind.standing(gang)
    ready_by = status.admission.at + gang.ready_timeout
    if now >= ready_by and not who.ready:
        return _not_started(kind, gang, who, now)
    return kind.prepare(gang, ready_by) or _start(kind, gang, who, ready_by, now)


def _start(kind: steps.Kind, gang: Gang, who: members.Standing, ready_by: int, now: int) -> Step:
    """What makes the pods runs: ungate when all are there, then wait for the gang to be bound and ready."""
    status = gang.ledger.status
    assert status.admission is not None
    if who.ready:
        running = replace(status, phase=Phase.RUNNING, started=now, back_off=ledger.NO_BACK_OFF)
        return Step(status=running, why="GangReady")
    if who.whole and not who.strays:
        places = status.admission.places()
        gated = [(rank, pod) for rank, pod in who.found.items() if pod.gated and rank in places]
        if gated:
            return Step(ungate=tuple((pod, *places[rank], rank) for rank, pod in gated))
    until = ready_by
    if any(starts.unbound(pod) for pod in who.found.values()):
        # Gates that were lifted before this admission, or by another process, are no measure.
        lifted = max(gang.ungated_at, status.admission.at) if gang.ungated_at else now
        until = min(ready_by, lifted + gang.bind_timeout)
    return Step(wake=until) if now < until else _not_started(kind, gang, who, now)


def _not_started(kind: steps.Kind, gang: Gang, who: members.Standing, now: int) -> Step:
    blamed, words = starts.out_of_time(gang, who)
    return Step(status=starts.failed(gang, blamed, now, spent=kind.spent(gang)), why=words)


def _running(kind: steps.Kind, gang: Gang, now: int) -> Step:
    moved = _clock_moved(gang, now)
    if moved is not None:
        return Step(status=moved, why="ClockMoved")
    ended = _ended(kind, gang, now)
    if ended:
        return ended
    return Step(wake=min(interruptions.wakes(gang), default=None))


def _clock_moved(gang: Gang, now: int) -> ledger.Status | None:
    """Return the status with its times put right that a wrong clock wrote, None where none did.

    A run that begins before its own job or its admission, or in the future, counts from now on: rather longer
    than its limit than ended for a time that never was. Of two times one must be known to be no later than
    now, or this would go on for as long as the clock is behind.
    """
    status, admission = gang.ledger.status, gang.ledger.status.admission
    if admission is not None and clocks.beyond(admission.at, now):
        admission = replace(admission, at=now)
    not_before = max(
        (at for at in (gang.ledger.created, admission.at if admission else 0) if at <= now), default=0
    )
    wrong = clocks.beyond(status.started, now) or clocks.beyond(not_before, status.started)
    if not wrong and admission is status.admission:
        return None
    return replace(status, started=now if wrong else status.started, admission=admission)


def _ended(kind: steps.Kind, gang: Gang, now: int) -> Step | None:
    """Return the step out of an admission when the gang succeeded, failed or must stop, else None."""
    at = kind.completed(gang, now)
    if at is not None:
        return Step(status=steps.over(gang.ledger.status, Phase.SUCCEEDED, at), why="Succeeded")
    if kind.succeeding(gang):
        # What fails now, with its leader gone, fails after the success.
        return None
    return interruptions.found(kind, gang, now) or kind.failed(gang, now)


def _suspending(kind: steps.Kind, gang: Gang, now: int) -> Step:
    at = kind.completed(gang, now)
    if at is not None:
        return Step(status=steps.over(gang.ledger.status, Phase.SUCCEEDED, at), why="Succeeded")
    found = kind.stop(gang)
    if found:
        return found
    if gang.staying() or kind.succeeding(gang):
        return IDLE
    return kind.stopped(gang, now)


_BY_PHASE: dict[Phase, Callable[[steps.Kind, Gang, int], Step]] = {
    Phase.PENDING: _pending,
    Phase.CLAIMING: _claiming,
    Phase.ADMITTED: _admitted,
    Phase.RUNNING: _running,
    Phase.SUSPENDING: _suspending,
    Phase.SUCCEEDED: _over,
    Phase.FAILED: _over,
    Phase.REJECTED: _over,
}
