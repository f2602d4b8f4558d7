"""What the end of a run leaves behind: the history, the work that is kept, and who may not be displaced.

A job saves its work every `checkpoint` ms of useful run time, and when it is suspended if it says so. What
it saved counts from its first start; a failure keeps only what a checkpoint had.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.api import deadlinejob_status
from lstqueue.operator import ledger, lenient, statuses
from lstqueue.topology import slowdown

Phase = ledger.Phase


def restoring(spec: ledger.Spec | None, *, restored: bool) -> int:
    """Return for how long (ms) a run works for nobody: one that is not the first reads what was saved."""
    return spec.restart_overhead if spec is not None and restored else 0


def kept(spec: ledger.Spec | None, ran: int, *, restored: bool, asked: bool) -> int:
    """Return how much of a run of `ran` ms outlives it.

    `restored`: it was not the first, and so began with `restart_overhead`, which is work for nobody. `asked`:
    it was suspended and could save its work.
    """
    if spec is None:
        return 0
    useful = max(0, ran - restoring(spec, restored=restored))
    if asked and spec.saves_on_suspend:
        return useful
    return useful // spec.checkpoint * spec.checkpoint if spec.checkpoint else 0


def ended(
    before: ledger.Status,
    after: ledger.Status,
    *,
    spec: ledger.Spec | None,
    end: int,
    reason: str,
    min_run: int,
    window: int,
    words: str = "",
) -> ledger.Status:
    """Return `after`, which follows `before`, with what the run leaves behind that ends between them, if any.

    Args:
        before: a run ends when the phase Running is left.
        after: where it goes.
        spec: with the defaults of the queue.
        end: of the run, in ms.
        reason: in one word.
        words: the same in a sentence, as far as there is one.
        min_run: ms of work after which it may make room for itself again at the cost of whom it had to give
            way to.
        window: ms in which suspensions for others count.
    """
    full, suspended = False, after.phase is Phase.SUSPENDING
    if before.phase is Phase.RUNNING and after.phase is not Phase.RUNNING and before.started:
        ran = max(0, end - before.started)
        full = ran - restoring(spec, restored=bool(before.runs)) >= min_run
        asked = suspended and after.suspension not in _ABRUPT
        saved = kept(spec, ran, restored=bool(before.runs), asked=asked)
        succeeded = after.phase is Phase.SUCCEEDED
        if succeeded:
            saved = max(0, ran - restoring(spec, restored=bool(before.runs)))  # all of it was of use
        after = statuses.with_run(
            before, after, end=end, reason=reason, lost=0 if succeeded else max(0, ran - saved), words=words
        )
        # What is saved, as what is expected, is told for the best place.
        saved = slowdown.shrunk(saved, before.admission.slowdown if before.admission else slowdown.PPM)
        wasted = before.wasted + 1 if after.suspension in FOR_OTHERS else before.wasted
        after = replace(after, saved=before.saved + saved, wasted=0 if saved or succeeded else wasted)
    return _gave_way(before, after, end=end, full=full, window=window)


FOR_OTHERS = frozenset({ledger.PREEMPTED, ledger.RECLAIMED})
"""Suspensions by which a job makes room for another."""
_ABRUPT = frozenset({ledger.GANG_FAILED, ledger.GANG_DISRUPTED, ledger.NODE_LOST, ledger.FAILED_START})
"""Suspensions before which nobody could save anything."""


def preempted_at(status: ledger.Status) -> tuple[int, ...]:
    """Return when a job was suspended for others, in ms since the epoch, as far back as it matters.

    Until it is suspended once more, a status of a version that kept no times tells it by what its history of
    runs still shows. A run without an end counts from its start; one that nobody can tell was long ago.
    """
    return status.preempted_at or tuple(
        lenient.time(run.get("end")) or lenient.time(run.get("start"))
        for run in status.runs
        if run.get("reason") in FOR_OTHERS
    )


def movable(status: ledger.Status) -> bool:
    """Whether it may be suspended for another: not while all of those to whom it is owed are remembered."""
    return len(status.displaced_by) < deadlinejob_status.DISPLACED_BY


def _gave_way(
    before: ledger.Status, after: ledger.Status, *, end: int, full: bool, window: int
) -> ledger.Status:
    """Forget after a full run who it had to give way to; remember who it gives way to now, and when.

    A start that was never complete is one it gave away too, though no run is left of it.
    """
    known, kept_times = () if full else before.displaced_by, before.preempted_at
    if after.suspended_for and after.suspended_for != before.suspended_for:
        known = (*(uid for uid in known if uid != after.suspended_for), after.suspended_for)
        recent = (at for at in preempted_at(before) if end - at < window)
        kept_times = (*recent, end)[-deadlinejob_status.SUSPENSIONS :]
    return replace(after, displaced_by=known[-deadlinejob_status.DISPLACED_BY :], preempted_at=kept_times)
