"""What an inline gang needs next, as a pure function: the protocol of admission, finish and failure.

`step` looks at the ledger entry, the children and the pods, and returns the one thing to do now. It is
level-based: it never remembers what it asked for, so a restarted operator, or one that lost a reply, goes on
from whatever the API shows (docs/adr/0005-level-based-lifecycle.md). It neither calls the API nor decides
who is admitted.

The order of the writes keeps the invariants: the status commit comes before any child, children come gated,
gates are lifted only when every expected pod exists and no predecessor holds its place, and capacity returns
only when pods are gone. An admission is given up as soon as the gang cannot go on under it: from then on
only its pods are charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lstqueue.api import conditions, deadlinejob_status
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger, members

Phase = ledger.Phase
Gang = members.Gang


@dataclass(frozen=True, slots=True)
class Step:
    """The next thing to do: at most one of the actions is set; `wake` is when to look again, in ms."""

    status: ledger.Status | None = None
    why: str = ""
    create: tuple[tuple[str, int], ...] = ()
    suspend: tuple[views.ChildView, ...] = ()
    resume: tuple[views.ChildView, ...] = ()
    discard: tuple[views.ChildView, ...] = ()
    ungate: tuple[tuple[views.PodView, str, str, int], ...] = ()
    wake: int | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.status or self.create or self.suspend or self.resume or self.discard or self.ungate)


IDLE = Step()


def step(gang: Gang, now: int) -> Step:
    """Return what the gang needs next at `now` (ms)."""
    job = gang.ledger
    if job.spec is None:
        return IDLE
    if job.deleting:
        return _leaving(gang, now)
    found = _BY_PHASE[job.status.phase](gang, now)
    deadline = job.spec.deadline
    if not found.idle or job.final or deadline is None or missed(job.status):
        return found
    if now >= deadline:
        return Step(status=job.status, why="DeadlineMissed")
    return Step(wake=min(deadline, found.wake or deadline))


def _leaving(gang: Gang, now: int) -> Step:
    """Give the places back of a gang whose DeadlineJob is deleted and kept by somebody's finalizer."""
    status = gang.ledger.status
    if status.phase in (Phase.ADMITTED, Phase.RUNNING) or status.admission is not None:
        leaving = replace(
            status, phase=Phase.SUSPENDING, suspension=ledger.DELETED, since=now, admission=None
        )
        return Step(status=leaving, why="Deleted")
    return _stop(gang, now)


def missed(status: ledger.Status) -> bool:
    """Whether the status says already that the deadline was missed."""
    return conditions.is_true(status.conditions, conditions.Type.DEADLINE_MISSED)


def refused(gang: Gang, now: int, why: str) -> Step:
    """Return the step out of a start that the API server will not have: a failed start, no node to blame."""
    return Step(status=_failed_start(gang, (), now), why=why)


def back_off(count: int, slack: int | None) -> int:
    """Return the wait in ms after the `count`-th failed start in a row (docs/engine.md, back-off).

    1 min, doubling to 30 min, capped by a quarter of the slack, while there is any, but never below 30 s.
    """
    doubled = model.MINUTE << min(count - 1, 16)
    wait = min(doubled, _LONGEST_BACK_OFF)
    if slack is not None and slack > 0:
        wait = min(wait, slack // 4)
    return max(wait, model.MINUTE // 2)


_LONGEST_BACK_OFF = 30 * model.MINUTE
_CLOCK_ERROR = model.MINUTE
"""Times further ahead than this, in ms, were written by a clock that was wrong."""


def avoided_until(failed: ledger.BackOff) -> int:
    """Return when the nodes that failed a gang may be tried again: as long after the back-off as it was.

    For ever would be for good where there are no other nodes; each failure in a row doubles it.
    """
    return failed.until + back_off(failed.count, None)


def _pending(gang: Gang, now: int) -> Step:
    """Nothing runs; make sure that the next admission finds children that can run."""
    status = gang.ledger.status
    stop = _stop(gang, now)
    if not stop.idle:
        return stop
    if any(child.failed for child in members.current(gang).values()):
        # A Job that failed while it was being stopped cannot be resumed; that is no failure of the gang.
        return Step(status=_next_restart(status, counted=False), why="JobsSpent")
    if status.back_off.until > now + _LONGEST_BACK_OFF:
        # The clock was wrong when this was written.
        sooner = replace(status.back_off, until=now + back_off(status.back_off.count, None))
        return Step(status=replace(status, back_off=sooner), why="ClockMoved")
    if not status.back_off.avoid:
        return IDLE
    until = avoided_until(status.back_off)
    if now < until:
        return Step(wake=until)
    return Step(status=replace(status, back_off=replace(status.back_off, avoid=())), why="NodesForgiven")


def _stop(gang: Gang, now: int) -> Step:
    """Outside an admission nothing may run: suspend what does."""
    running = tuple(
        child
        for child in gang.children
        if not (child.suspended or child.deleting or child.complete or child.failed)
    )
    return Step(suspend=running) if running else IDLE


def _admitted(gang: Gang, now: int) -> Step:
    status = gang.ledger.status
    if status.admission is None:
        return Step(status=replace(status, phase=Phase.PENDING), why="AdmissionMissing")
    if status.admission.at > now + _CLOCK_ERROR:
        # Or the time to start would never be over.
        return Step(status=replace(status, admission=replace(status.admission, at=now)), why="ClockMoved")
    ended = _ended(gang, now)
    if ended:
        return ended
    tried = gang.ungated_at >= status.admission.at
    if not tried and not members.let_go(gang) and not _still_fits(gang):
        # No pod was released to a node, nor may one have been without our knowledge: rolling back is free.
        return Step(status=_given_back(status), why="NodeUnfit")
    who = members.standing(gang)
    ready_by = status.admission.at + gang.ready_timeout
    if now >= ready_by and not who.ready:
        return _not_started(gang, who, now)
    return _prepare(gang, ready_by) or _start(gang, who, ready_by, now)


def _prepare(gang: Gang, ready_by: int) -> Step | None:
    """Return what the children of this restart need before their pods matter, None when all of them run."""
    status, children = gang.ledger.status, members.current(gang)
    stale = tuple(
        child
        for child in gang.children
        if child.restart < status.restarts and not (child.failed or child.complete or child.deleting)
    )
    if stale:
        # What did not fail has nothing to show; what did keeps the logs of its pods.
        return Step(discard=stale)
    groups = gang.ledger.gang().groups
    missing = tuple((name, status.restarts) for name, _ in groups if name not in children)
    if missing:
        return Step(create=missing)
    if any(child.deleting for child in children.values()):
        return Step(wake=ready_by)
    stopped = tuple(child for child in children.values() if child.suspended and not child.complete)
    return Step(resume=stopped) if stopped else None


def _start(gang: Gang, who: members.Standing, ready_by: int, now: int) -> Step:
    """Children run: ungate when all are there, then wait for the gang to be bound and ready."""
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
    if any(_unbound(pod) for pod in who.found.values()):
        # Gates that were lifted before this admission, or by another process, are no measure.
        lifted = max(gang.ungated_at, status.admission.at) if gang.ungated_at else now
        until = min(ready_by, lifted + gang.bind_timeout)
    return Step(wake=until) if now < until else _not_started(gang, who, now)


def _running(gang: Gang, now: int) -> Step:
    return _ended(gang, now) or IDLE


def _ended(gang: Gang, now: int) -> Step | None:
    """Return the step out of an admission when the gang succeeded or a member failed, else None."""
    status = gang.ledger.status
    at = members.completed(gang, now)
    if at is not None:
        return Step(status=_over(status, Phase.SUCCEEDED, at), why="Succeeded")
    if members.succeeding(gang):
        # What fails now, with its leader gone, fails after the success.
        return None
    pods = members.of_run(gang)
    refused = [pod for pod in pods if pod.refused and not pod.disrupted]
    if refused:
        first = refused[0]
        words = f"node {first.node} refused pod {first.name}: {first.reason} {first.message}".strip()
        return Step(status=_failed_start(gang, (pod.node for pod in refused), now), why=words)
    reason, words = _broken(gang)
    if not reason:
        return None
    if reason == ledger.GANG_DISRUPTED and status.phase is Phase.ADMITTED:
        # A node that evicts what has not even started would do so again at once: back off, go elsewhere.
        nodes = (pod.node for pod in pods if _evicted(pod))
        return Step(status=_failed_start(gang, nodes, now), why=words)
    return Step(status=_suspended(gang, reason, now), why=words)


def _broken(gang: Gang) -> tuple[str, str]:
    """Return why the gang cannot go on and which member it was, ("", "") when all is well."""
    pods, children = members.of_run(gang), members.current(gang)
    for pod in pods:
        if _evicted(pod):
            return ledger.GANG_DISRUPTED, f"pod {pod.name} was evicted from node {pod.node or '-'}"
    for pod in pods:
        if pod.phase == "Failed":
            words = f"pod {pod.name} failed on node {pod.node or '-'}: {pod.reason} {pod.message}"
            return ledger.GANG_FAILED, words.strip()
    for name, child in children.items():
        if child.failed:
            return ledger.GANG_FAILED, f"group {name} failed: {child.reason} {child.message}".strip()
    words = _meddled(gang)
    return (ledger.GANG_FAILED, words) if words else ("", "")


def _meddled(gang: Gang) -> str:
    """Say what somebody else did to the Jobs of the gang that it cannot live with, "" when nothing."""
    children, running = members.current(gang), gang.ledger.status.phase is Phase.RUNNING
    # All Jobs were there when the first pod was let go.
    begun = running or members.let_go(gang)
    for name, replicas in gang.ledger.gang().groups:
        child = children.get(name)
        if child is None or (child.deleting and not child.complete):
            if begun:
                return f"the Job of group {name} was deleted by somebody else"
        elif child.parallelism != replicas and not child.complete:
            return f"the parallelism of Job {child.name} was changed to {child.parallelism} by somebody else"
        elif running and child.suspended and not child.complete:
            return f"the Job of group {name} was suspended by somebody else"
    return ""


def _suspending(gang: Gang, now: int) -> Step:
    status = gang.ledger.status
    at = members.completed(gang, now)
    if at is not None:
        return Step(status=_over(status, Phase.SUCCEEDED, at), why="Succeeded")
    stop = _stop(gang, now)
    if not stop.idle:
        return stop
    if members.present(gang.pods) or members.succeeding(gang):
        return IDLE
    if status.suspension not in (ledger.GANG_FAILED, ledger.GANG_DISRUPTED):
        return Step(status=_given_back(status), why="Suspended")
    return _restart(gang, now)


def _restart(gang: Gang, now: int) -> Step:
    """All pods of a failed gang are gone: begin again under the same hold, or give up."""
    status = gang.ledger.status
    if _exhausted(gang, status.suspension):
        return Step(status=_over(status, Phase.FAILED, now), why="BackoffLimitExceeded")
    again = _next_restart(status, counted=status.suspension == ledger.GANG_FAILED)
    again = replace(again, suspension="", since=0)
    if status.admission is None or not members.intact(gang):
        # Somebody else may have the room of a member that had succeeded: only a new admission is whole.
        return Step(status=_given_back(again), why="GangRequeued")
    if not _still_fits(gang):
        return Step(status=_given_back(again), why="NodeUnfit")
    admission = replace(status.admission, at=now)
    return Step(status=replace(again, phase=Phase.ADMITTED, admission=admission), why="GangRestarted")


def _suspended(gang: Gang, reason: str, now: int) -> ledger.Status:
    """Stop a gang that failed; it keeps its hold only if it will be started again under it."""
    status = gang.ledger.status
    keeps = members.intact(gang) and _still_fits(gang) and not _exhausted(gang, reason)
    admission = status.admission if keeps else None
    return replace(status, phase=Phase.SUSPENDING, suspension=reason, since=now, admission=admission)


def _exhausted(gang: Gang, reason: str) -> bool:
    """Whether a failure for this reason is one too many; disruptions are not counted."""
    status, spec = gang.ledger.status, gang.ledger.spec
    assert spec is not None
    return reason == ledger.GANG_FAILED and status.restarts - status.disruptions >= spec.backoff_limit


def _still_fits(gang: Gang) -> bool:
    """Whether the admission is for this very gang, places all of it, and its nodes may take its pods."""
    admission, spec = gang.ledger.status.admission, gang.ledger.spec
    if admission is None or spec is None or admission.shape != spec.shape:
        return False
    if admission.places().keys() != set(range(gang.ledger.gang().size)):
        return False
    return all(gang.fit_node(group.name, node) for group in admission.groups for node, _ in group.nodes)


def _not_started(gang: Gang, who: members.Standing, now: int) -> Step:
    """The time to start is over: name the member that was stuck, in the words of whoever held it."""
    admission = gang.ledger.status.admission
    assert admission is not None
    places = admission.places()
    unbound = {rank: pod for rank, pod in who.found.items() if _unbound(pod)}
    unready = {rank: pod for rank, pod in who.found.items() if pod.node and not (pod.ready or pod.succeeded)}
    # Ranks wait for each other to be ready: what is bound is not to blame for what is not.
    stuck = unbound or (unready if who.whole else {})
    blamed = {pod.node or places[rank][1] for rank, pod in stuck.items() if not _held(pod) and rank in places}
    return Step(status=_failed_start(gang, blamed, now), why=_stuck(gang, who, stuck))


def _stuck(gang: Gang, who: members.Standing, stuck: dict[int, views.PodView]) -> str:
    for rank, pod in stuck.items():
        where = f"on node {pod.node}" if pod.node else "not bound"
        return f"rank {rank} (pod {pod.name}, {where}) did not start: {pod.reason} {pod.message}".strip()
    lost = min(who.expected - set(who.found), default=None)
    if lost is not None:
        return f"rank {lost} of {gang.ledger.key} has no pod; see the events of its Job"
    if who.strays:
        return f"pod {who.strays[0].name} of an earlier start has not left node {who.strays[0].node or '-'}"
    return f"the pods of {gang.ledger.key} could not be let go in time"


def _unbound(pod: views.PodView) -> bool:
    return not pod.node and not pod.gated and not pod.gone


def _held(pod: views.PodView) -> bool:
    """Whether a gate of somebody else kept a pod from its node."""
    return pod.reason == "SchedulingGated"


def _evicted(pod: views.PodView) -> bool:
    return pod.disrupted and (pod.deleting or pod.phase == "Failed")


def _failed_start(gang: Gang, blamed: Iterable[str], now: int) -> ledger.Status:
    """Leave an admission that did not start: suspend, and avoid the nodes that failed."""
    status, spec = gang.ledger.status, gang.ledger.spec
    slack = spec.deadline - now - (spec.estimate or 0) if spec and spec.deadline is not None else None
    count = status.back_off.count + 1
    spent = any(pod.phase == "Failed" or _evicted(pod) for pod in members.of_run(gang))
    if spent or any(child.failed for child in members.current(gang).values()):
        # A Job that failed with a pod cannot be resumed; that is no failure of the gang.
        status = _next_restart(status, counted=False)
    avoid = sorted({*status.back_off.avoid, *blamed})[: deadlinejob_status.NODES]
    return replace(
        status,
        back_off=ledger.BackOff(until=now + back_off(count, slack), count=count, avoid=tuple(avoid)),
        phase=Phase.SUSPENDING,
        suspension=ledger.FAILED_START,
        since=now,
        admission=None,
    )


def _next_restart(status: ledger.Status, *, counted: bool) -> ledger.Status:
    """Children of the next restart get new names; only counted ones use up `backoffLimit`."""
    return replace(
        status, restarts=status.restarts + 1, disruptions=status.disruptions + (0 if counted else 1)
    )


def _given_back(status: ledger.Status) -> ledger.Status:
    return replace(status, phase=Phase.PENDING, admission=None, suspension="", since=0)


def _over(status: ledger.Status, phase: Phase, at: int) -> ledger.Status:
    return replace(status, phase=phase, completed=at, suspension="", since=0, admission=None)


_BY_PHASE: dict[Phase, Callable[[Gang, int], Step]] = {
    Phase.PENDING: _pending,
    Phase.ADMITTED: _admitted,
    Phase.RUNNING: _running,
    Phase.SUSPENDING: _suspending,
    Phase.SUCCEEDED: _stop,
    Phase.FAILED: _stop,
    Phase.REJECTED: _stop,
}
