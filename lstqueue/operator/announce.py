"""What the user of an existing Job is told about it, as Events on the Job: the turns of its DeadlineJob.

A rendering of committed writes only: what is said here of a status is in it already, where programs read it,
and a CronJob hears of a Job that was deleted once it is. Inline gangs need none of it, since their users look
at the DeadlineJob itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lstqueue.api import conditions
from lstqueue.engine import model
from lstqueue.jobs import existing
from lstqueue.operator import events, holding, ledger, runs

Phase = ledger.Phase
_KINDS = conditions.Type
_FOR_SOMEBODY = frozenset(
    {
        model.Code.QUEUE_NOT_FOUND,
        model.Code.RESOURCE_NOT_IN_QUEUE,
        model.Code.IMPORTANCE_TOO_HIGH,
        model.Code.NO_MATCHING_NODES,
        model.Code.QUOTA_TOO_SMALL,
    }
)
"""Reasons to wait that waiting does not end: somebody has to change something."""


class Announcer:
    """Tells of what was written; `name_of` returns "namespace/name" of a DeadlineJob by UID, "" for none."""

    def __init__(self, tell: Callable[[events.Note], None], name_of: Callable[[str], str]) -> None:
        self._tell = tell
        self._name_of = name_of

    def wrote(self, before: ledger.Ledger, after: ledger.Ledger, queue: str) -> None:
        """Tell what a committed status write has changed for the Job that the DeadlineJob refers to."""
        ref = after.spec.ref if after.spec is not None else None
        uid = after.status.unit or after.unit_uid
        if ref is None or not uid:
            return
        subject = events.Subject(ref.api_version, ref.kind, after.namespace, ref.name, uid)
        for reason, words, warning in told(before, after, queue, self._name_of):
            self._tell(events.Note(subject, reason, words, warning=warning))

    def cleared(self, job: ledger.Ledger, view: existing.UnitView) -> None:
        """Tell a CronJob that a Job of it, which its DeadlineJob had ended, was deleted."""
        owner = view.cron_job
        if owner is not None:
            above = events.Subject(owner.api_version, owner.kind, job.namespace, owner.name, owner.uid)
            words = (
                f"Job {view.name} was ended by lstqueue ({_finished(job.status)}) and is removed, so that "
                f"the next may run; {_where(job)}"
            )
            self._tell(events.Note(above, "JobEnded", words, warning=True))


def told(
    before: ledger.Ledger, after: ledger.Ledger, queue: str, name_of: Callable[[str], str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield (reason, sentence, whether it is a warning) of what is new."""
    old, new = before.status, after.status
    if new.phase is not old.phase:
        yield from _turn(after, old.phase, queue, name_of)
    elif new.phase is Phase.PENDING and not old.observed and queue:
        yield "Queued", f"waits in queue {queue}; {_where(after)}", False
    elif old.admission is not None and new.admission is not None:
        was, now = old.admission.places(), new.admission.places()
        for rank in sorted(rank for rank in was.keys() & now.keys() if was[rank] != now[rank]):
            (_, left), (_, node) = was[rank], now[rank]
            words = f"the next pod of place {rank} goes to node {node}, since {left} takes no pods any more"
            yield ledger.RANK_MOVED, words, True
    said = (after.spoken.get("pending") or {}).get("message", "")
    if new.held and new.held != old.held:
        yield new.held, said, True
    code = new.published.code
    if code in _FOR_SOMEBODY and code is not old.published.code and new.phase is Phase.PENDING:
        yield code.value, said, True
    missed = conditions.get(new.conditions, _KINDS.DEADLINE_MISSED)
    if missed is not None and _missed(new) and not _missed(old) and _finished(new) != missed.reason:
        yield missed.reason, missed.message, True


def _turn(
    after: ledger.Ledger, old: Phase, queue: str, name_of: Callable[[str], str]
) -> Iterator[tuple[str, str, bool]]:
    status = after.status
    if status.admission is not None and status.phase is Phase.ADMITTED:
        nodes = len(status.admission.nodes)
        yield "Admitted", f"admitted in queue {queue} on {nodes} node{'s' if nodes > 1 else ''}", False
    elif status.phase is Phase.RUNNING and old is not Phase.ADMITTED:
        yield "Adopted", f"counted in queue {queue} where it runs; {_where(after)}", False
    elif status.phase is Phase.SUSPENDING and status.suspension in runs.FOR_OTHERS:
        whom = name_of(status.suspended_for)
        yield (
            status.suspension,
            f"suspended to make room for {f'DeadlineJob {whom}' if whom else 'another'}",
            True,
        )
    elif status.phase is Phase.SUSPENDING:
        words = _words(status, _KINDS.SUSPENDED) or _words(status, _KINDS.ADMITTED)
        if status.suspension == ledger.INACTIVE and not words:
            words = holding.paused(after)
        words = words or f"see DeadlineJob {after.name}"
        yield "Suspended", f"{status.suspension}: {words}", True
    elif status.phase in (Phase.FAILED, Phase.REJECTED):
        finished = conditions.get(status.conditions, _KINDS.FINISHED)
        reason = finished.reason if finished is not None else status.phase.value
        yield reason, _words(status, _KINDS.FINISHED) or f"{status.phase.value}; {_where(after)}", True


def _where(job: ledger.Ledger) -> str:
    return f"see DeadlineJob {job.name}"


def _words(status: ledger.Status, kind: conditions.Type) -> str:
    found = conditions.get(status.conditions, kind)
    return found.message if found is not None else ""


def _finished(status: ledger.Status) -> str:
    """Return the reason why it is over, "" when it is not."""
    found = conditions.get(status.conditions, _KINDS.FINISHED)
    return found.reason if found is not None and status.phase in ledger.FINAL else ""


def _missed(status: ledger.Status) -> bool:
    return conditions.is_true(status.conditions, _KINDS.DEADLINE_MISSED)
