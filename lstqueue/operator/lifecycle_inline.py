"""Inline gangs: one child Job per group and restart, made by us, without retries of its own.

Any failed member stops the whole gang, which begins again with new Jobs under the same hold while that is
still whole; suspension and resume keep the Jobs. See `steps.Kind` for what each function is asked.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.api import conditions
from lstqueue.jobs import views
from lstqueue.operator import ledger, members, starts, steps, units

Gang = members.Gang
Phase = ledger.Phase
Step = steps.Step


def stop(gang: Gang) -> Step | None:
    """Suspend the Jobs that run."""
    running = tuple(
        child
        for child in gang.children
        if not (child.suspended or child.deleting or child.complete or child.failed)
    )
    return Step(suspend=running) if running else None


def hindrance(_: Gang) -> units.Told:
    """Its Jobs are made when it is admitted; before that they can keep it from nothing."""
    return ("", "")


def waiting(gang: Gang) -> Step | None:
    """A Job that failed while it was being stopped cannot be resumed; that is no failure of the gang."""
    if any(child.failed for child in members.current(gang).values()):
        return Step(status=steps.next_restart(gang.ledger.status, counted=False), why="JobsSpent")
    return None


def completed(gang: Gang, now: int) -> int | None:
    """Return when the gang succeeded, in ms, None when it has not. Its Jobs have the word."""
    return members.completed(gang, now)


def succeeding(gang: Gang) -> bool:
    """Whether all pods that matter have succeeded and their Jobs only need a moment to say so."""
    return members.succeeding(gang)


def failed(gang: Gang, now: int) -> Step | None:
    """Return the step out of an admission when a member was refused, evicted, stopped or failed."""
    status, pods = gang.ledger.status, members.of_run(gang)
    refused = [pod for pod in pods if pod.refused and not pod.disrupted]
    if refused:
        first = refused[0]
        words = f"node {first.node} refused pod {first.name}: {first.words}"
        blamed = (pod.node for pod in refused)
        return Step(status=starts.failed(gang, blamed, now, spent=spent(gang)), why=words)
    reason, words = _broken(gang)
    if not reason:
        return None
    if reason == ledger.GANG_DISRUPTED and status.phase is Phase.ADMITTED:
        # A node that evicts what has not even started would do so again at once: back off, go elsewhere.
        blamed = (pod.node for pod in pods if members.evicted(pod))
        return Step(status=starts.failed(gang, blamed, now, spent=spent(gang)), why=words)
    # It keeps its hold only if it will be started again under it, and at once.
    over = _exhausted(gang, reason)
    wait = 0 if over else starts.before_restart(gang, now)
    keeps = members.intact(gang) and fits(gang) and not (over or wait)
    stopped_ = steps.suspended(status, reason, now, keeps=keeps)
    if wait:
        stopped_ = replace(stopped_, back_off=replace(status.back_off, until=now + wait))
    return Step(status=stopped_, why=words)


def released(gang: Gang) -> bool:
    """Whether a pod was let go in this run, also without our knowledge."""
    return members.let_go(gang)


def fits(gang: Gang) -> bool:
    """Whether the admission is for this very gang, places all of it, and its nodes may take its pods."""
    admission, spec = gang.ledger.status.admission, gang.ledger.spec
    if admission is None or spec is None or admission.shape != spec.shape:
        return False
    if admission.places().keys() != set(range(gang.ledger.gang().size)):
        return False
    return all(gang.fit_node(group.name, node) for group in admission.groups for node, _ in group.nodes)


def prepare(gang: Gang, ready_by: int) -> Step | None:
    """Return what the Jobs of this restart need before their pods matter, None when all of them run."""
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
    halted = tuple(child for child in children.values() if child.suspended and not child.complete)
    return Step(resume=halted) if halted else None


def standing(gang: Gang) -> members.Standing:
    """Return who stands for which rank now."""
    return members.standing(gang)


def spent(gang: Gang) -> bool:
    """Whether a Job failed with a pod, or is about to: it cannot be resumed."""
    if any(pod.phase == "Failed" or members.evicted(pod) for pod in members.of_run(gang)):
        return True
    return any(child.failed for child in members.current(gang).values())


def exposed(gang: Gang) -> tuple[views.PodView, ...]:
    """Return the pods of this run that were let go and have not ended: every one is needed."""
    return tuple(pod for pod in members.of_run(gang) if not (pod.gated or pod.gone))


def paused(gang: Gang) -> str:
    """Say which Job somebody suspended: while it starts, only once its pods were let go in this attempt."""
    status = gang.ledger.status
    if status.phase is not Phase.RUNNING:
        present = (pod for pod in members.of_run(gang) if not (pod.gated or pod.gone))
        if not any(pod.attempt == status.attempt for pod in present):
            return ""
    for name, child in members.current(gang).items():
        if child.suspended and not (child.complete or child.failed or child.deleting):
            return f"the Job of group {name} was suspended by somebody else"
    return ""


def unfinished(_: Gang) -> bool:
    """Its Jobs are its own affair: where one is missing nobody can tell."""
    return False


def outlasts(_: Gang) -> bool:
    """Its Jobs are owned by the DeadlineJob and go with it."""
    return False


def stopped(gang: Gang, now: int) -> Step:
    """All pods are gone: begin again under the same hold after a failure, or give up, or queue again."""
    status = gang.ledger.status
    if status.suspension not in (ledger.GANG_FAILED, ledger.GANG_DISRUPTED):
        # A Job that lost a pod to a dead node, or has a member that is through, cannot bring the world back.
        lost = status.suspension == ledger.NODE_LOST or gang.stuck()
        whole = status.suspension == ledger.FAILED_START or members.intact(gang)
        if lost or not whole:
            status = steps.next_restart(status, counted=False)
        return Step(status=steps.given_back(status), why="Suspended")
    if _exhausted(gang, status.suspension):
        over = steps.over(status, Phase.FAILED, now)
        return Step(status=over, why="BackoffLimitExceeded", words=_last_straw(gang))
    again = steps.next_restart(status, counted=status.suspension == ledger.GANG_FAILED)
    if status.admission is None or not members.intact(gang):
        # Somebody else may have the room of a member that had succeeded: only a new admission is whole.
        return Step(status=steps.given_back(again), why="GangRequeued")
    if not fits(gang):
        return Step(status=steps.given_back(again), why="NodeUnfit")
    admission = replace(status.admission, at=now)
    again = replace(again, phase=Phase.ADMITTED, admission=admission, suspension="", since=0)
    return Step(status=again, why="GangRestarted")


def _last_straw(gang: Gang) -> str:
    """Say which failure was one too many: as it was told when the gang stopped, or as it still shows."""
    status, spec = gang.ledger.status, gang.ledger.spec
    assert spec is not None
    stopped = conditions.get(status.conditions, conditions.Type.SUSPENDED)
    told = stopped.message if stopped is not None and stopped.reason == ledger.GANG_FAILED else ""
    words = told or _broken(gang)[1] or "a member failed"
    again = status.restarts - status.disruptions
    times = "once" if again == 1 else f"{again} times"
    return f"{words}; it was restarted {times}, and spec.backoffLimit is {spec.backoff_limit}"


def _broken(gang: Gang) -> tuple[str, str]:
    """Return why the gang cannot go on and which member it was, ("", "") when all is well."""
    pods, children = members.of_run(gang), members.current(gang)
    for pod in pods:
        if members.evicted(pod):
            return ledger.GANG_DISRUPTED, f"pod {pod.name} was evicted from node {pod.node or '-'}"
    for pod in pods:
        if pod.phase == "Failed":
            return ledger.GANG_FAILED, members.failure(pod)
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
    return ""


def _exhausted(gang: Gang, reason: str) -> bool:
    """Whether a failure for this reason is one too many; disruptions are not counted."""
    status, spec = gang.ledger.status, gang.ledger.spec
    assert spec is not None
    return reason == ledger.GANG_FAILED and status.restarts - status.disruptions >= spec.backoff_limit
