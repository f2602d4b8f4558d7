"""When a Job of a CronJob that we have ended may be deleted: only if that can take nothing from anybody.

A Job that is suspended for good never ends to Kubernetes, so that its CronJob would wait for it. Such a Job
is deleted in three steps, each of which survives a restart: it is suspended, and marked as ended by the same
write; its pods go; it is deleted. Whatever was not marked is not deleted. What its user resumed or suspended,
or what has completions without having been stopped as its end, is never marked (docs/adr/0012).
"""

from __future__ import annotations

from lstqueue.api import conditions
from lstqueue.jobs import existing
from lstqueue.operator import clocks, ledger, lenient, members

Gang = members.Gang
Phase = ledger.Phase

RESUMED = "resumed"
"""What is added to the mark of a Job that ran by its user's will, not by an admission of ours."""


def mark(status: ledger.Status) -> str:
    """Say why a Job was ended by us, and in which attempt: it stays ended when its DeadlineJob is deleted."""
    found = conditions.get(status.conditions, conditions.Type.FINISHED)
    return f"{found.reason if found is not None else status.phase.value}/{status.attempt}"


def spared(status: ledger.Status) -> str:
    """Return the mark of a Job that we have ended and that is not ours to delete."""
    return f"{mark(status)}/{RESUMED}"


def stopping(gang: Gang, view: existing.UnitView) -> str:
    """Return the mark that goes with the suspension of a Job which runs though it was ended."""
    status = gang.ledger.status
    if not _concerned(gang, view) or _by_right(gang, view):
        return mark(status)
    return spared(status)


def due(gang: Gang, view: existing.UnitView) -> str:
    """Return the mark to put on a Job that was suspended when it was ended and came to nothing, "" for none.

    To be written first, for only with it the Job is `removable`.
    """
    status = gang.ledger.status
    if not view.suspended or view.annotation("ended") or not _concerned(gang, view):
        return ""
    return mark(status) if _came_to_nothing(gang, view) else ""


def removable(gang: Gang, view: existing.UnitView) -> bool:
    """Whether we ended this very Job, in this attempt, and nothing of it is left."""
    marked = view.suspended and view.annotation("ended") == mark(gang.ledger.status)
    return marked and _concerned(gang, view) and not _has_pods(gang, view)


def unmarked(gang: Gang, view: existing.UnitView) -> str:
    """Return what to put in place of the mark of a Job that is left running, "" where there is nothing to do.

    Should its user suspend it later, it would be taken for one that we have stopped.
    """
    status = gang.ledger.status
    told = view.cron_job is not None and view.annotation("ended") == mark(status)
    return spared(status) if told and not view.suspended else ""


def _concerned(gang: Gang, view: existing.UnitView) -> bool:
    """Whether a CronJob waits for a Job that its DeadlineJob, one of ours, has ended.

    Who takes the label off has the Job back, as it is.
    """
    job, facts = gang.ledger, gang.unit
    ours = job.unit_uid == view.uid and not (job.deleting or facts.hands_off or facts.disputed)
    if view.cron_job is None or view.queue is None or not ours:
        return False
    # A Job that was rejected for what it is stays refused; another DeadlineJob, or manager, has a say in it.
    return job.status.phase in (Phase.FAILED, Phase.REJECTED) and not facts.refusal[0]


def _by_right(gang: Gang, view: existing.UnitView) -> bool:
    """Whether a Job that was ended runs by an admission of ours, which its end took from it.

    Its controller says when it was resumed: after its end that was by somebody else. One that was ended while
    it waited, or began, and has completions ran by the will of its user.
    """
    status, switched = gang.ledger.status, view.switched
    if status.phase is not Phase.FAILED or view.annotation("ended"):
        return False
    if (view.job, view.attempt) != (gang.ledger.uid, status.attempt):
        return False
    if switched is not None and (switched[0] or switched[1] > status.completed):
        return False
    if _ended_a_run(status):
        return True
    # A start that was never complete, of pods that all are ours.
    ours = all(pod.gated or pod.attempt == status.attempt for pod in members.present(gang.pods))
    return ours and not gang.unit.loose and not view.finished


def _ended_a_run(status: ledger.Status) -> bool:
    last = lenient.time(status.runs[-1].get("end")) if status.runs else 0
    return bool(last) and last // 1000 == status.completed // 1000


def _came_to_nothing(gang: Gang, view: existing.UnitView) -> bool:
    """Whether a Job waited, suspended since before its end, and nobody can want anything of it.

    One that we have never let go has been suspended since it was created; any other may wait because its user
    has paused it.
    """
    job, status = gang.ledger, gang.ledger.status
    if view.finished or _has_pods(gang, view):
        return False
    if view.switched is None:
        return not view.begun
    suspended, since = view.switched
    if not status.attempt:
        return suspended and not clocks.beyond(since, view.created)
    return suspended and since <= status.completed and job.spec is not None and job.spec.active


def _has_pods(gang: Gang, view: existing.UnitView) -> bool:
    return bool(view.active or gang.unit.loose or members.present(gang.pods))
