"""What stops an admitted unit of any kind besides its own end: its user, its nodes, its limits.

None of these is a failure of the gang, none is counted in `backoffLimit`, and none is retried under the same
hold: the room is given back and the unit queued again, or ended where its user said so. They are looked at
before failures, which often are only their consequence: pods of a dead node are evicted in the end.
"""

from __future__ import annotations

from lstqueue.api import durations
from lstqueue.engine import words as engine_words
from lstqueue.operator import ledger, members, starts, steps

Phase = ledger.Phase
Step = steps.Step


def found(kind: steps.Kind, gang: members.Gang, now: int) -> Step | None:
    """Return the step out of an admission that must not go on; None when it may."""
    job, status = gang.ledger, gang.ledger.status
    assert job.spec is not None
    if not job.spec.active:
        return _leave(kind, gang, ledger.INACTIVE, now, why="Inactive")
    by_hand = kind.paused(gang)
    if by_hand:
        return Step(pause=True, why=by_hand)
    # All pods of a group share the fate of their node.
    there = {(pod.node or pod.aim, pod.group): pod for pod in kind.exposed(gang)}
    lost = {node: (pod, words) for (node, _), pod in there.items() if (words := gang.lost(pod))}
    if lost:
        node = min(lost)
        pod, words = lost[node]
        stopped = starts.avoiding(steps.suspended(status, ledger.NODE_LOST, now), lost, now)
        return Step(status=stopped, why=f"node {node} of pod {pod.name} {words}")
    return _limits(kind, gang, now) if status.phase is Phase.RUNNING else None


def wakes(gang: members.Gang) -> list[int]:
    """Return the times (ms) at which time alone stops a running unit."""
    status, spec = gang.ledger.status, gang.ledger.spec
    times = []
    if spec is not None and spec.max_run is not None:
        times.append(status.started + spec.max_run)
    if gang.unready_since:
        times.append(gang.unready_since + gang.recovery_timeout)
    return times


def _limits(kind: steps.Kind, gang: members.Gang, now: int) -> Step | None:
    """Return the step out of a run that lasts too long, or has been incomplete for too long."""
    status, spec = gang.ledger.status, gang.ledger.spec
    assert spec is not None
    if not gang.untimely and spec.max_run is not None and now >= status.started + spec.max_run:
        field = engine_words.field("spec.maxRunTime", labelled=bool(gang.ledger.unit_uid))
        words = f"it ran longer than {field}, {durations.format(spec.max_run)}"
        return Step(status=steps.over(status, Phase.FAILED, now), why="MaxRunTimeExceeded", words=words)
    if gang.unready_since and now >= gang.unready_since + gang.recovery_timeout:
        blamed, words = _unready(kind, gang)
        stopped = steps.suspended(status, ledger.NOT_READY, now)
        return Step(status=starts.avoiding(stopped, blamed, now), why=words)
    return None


def _unready(kind: steps.Kind, gang: members.Gang) -> tuple[set[str], str]:
    """Return the nodes to blame for a run that stays incomplete, and which pod it waits for, in words."""
    minutes = gang.recovery_timeout // 60_000
    waited_for = [pod for pod in kind.standing(gang).found.values() if not (pod.ready or pod.succeeded)]
    if not waited_for:
        return set(), f"a member has not been ready for {minutes} min"
    # Others may have taken the node of a replacement before it was bound; who is bound only waits for it.
    not_bound = [pod for pod in waited_for if starts.unbound(pod)]
    stuck = not_bound or waited_for
    first, blamed = stuck[0], {pod.node or pod.aim for pod in stuck if not starts.held(pod)} - {""}
    if not_bound and first.words:
        where = f"is not bound to node {first.aim or '-'} after {minutes} min: {first.words}"
        return blamed, f"pod {first.name} {where}"
    return blamed, f"pod {first.name} on node {first.node or '-'} has not been ready for {minutes} min"


def _leave(kind: steps.Kind, gang: members.Gang, reason: str, now: int, *, why: str) -> Step:
    """Give up an admission: at once where no pod was let go, else when its pods are gone."""
    status = gang.ledger.status
    untouched = status.phase is Phase.ADMITTED and not (
        status.admission is not None and gang.ungated_at >= status.admission.at
    )
    if untouched and not kind.released(gang):
        return Step(status=steps.given_back(status), why=why)
    return Step(status=steps.suspended(status, reason, now), why=why)
