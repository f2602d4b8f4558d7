"""Whose deadline a pass may promise, and in which order it looks for their slots.

Decides nothing about room: `promises` finds the slots. Who is new has its chance first, since its verdict is
to say what is promised; the others, who may have lost a promise, come after (`rounds`).
"""

from __future__ import annotations

from collections.abc import Iterator

from lstqueue.engine import fit, kept, model, order, verdict
from lstqueue.engine.gangs import PPM
from lstqueue.engine.standing import Standing


def in_order(known: kept.Kept) -> Iterator[order.Turn]:
    """Those of the line for whom a slot is looked for, or the deadline for which there would be one."""
    yield from (turn for turn in known.line if is_new(turn) and judged(known, turn))


def is_new(turn: order.Turn) -> bool:
    """Whether a job has its first verdict, or the first of an edit or since it may start, to come."""
    told = turn.job.published
    return told.verdict is None or told.code in verdict.NOT_JUDGED


def judged(known: kept.Kept, turn: order.Turn) -> bool:
    """Whether a job may be promised some deadline, its own or a later one."""
    here, job = known.here(turn), turn.job
    if job.slot is not None or job.deadline is None or here.left is None or here.finish is None:
        return False
    if turn.strict or not known.queues[job.queue].promises:
        return False  # where only the head of a line may start nobody behind it is promised to
    late = here.hopeless and job.failed_starts < known.config.failed_starts_most
    if turn.observed or not (here.band is model.Band.DEADLINE or late):
        return False
    if known.codes.get(job.uid) in fit.NEVER_FITS:
        return False
    return known.queues[job.queue].promise_budget > 0 or quiet(known) or small(known, here)


def in_time(here: Standing) -> bool:
    """Whether a job may be promised its own deadline: it would hold, were the job alone."""
    deadline = here.job.deadline
    ends = here.finish is not None and deadline is not None and here.finish.hi <= deadline
    return ends and here.band is model.Band.DEADLINE and not here.hopeless


def small(known: kept.Kept, here: Standing) -> bool:
    """Whether a job asks for so little that it needs no budget to be promised."""
    if here.left is None:
        return False
    return known.world.gang(here.job).share * here.left.hi <= known.config.promise_area * PPM * model.HOUR


def quiet(known: kept.Kept) -> bool:
    """Whether nobody was given up for long enough, so that much of a queue may be promised (`budget`)."""
    at = known.snapshot.shed_at
    return not known.shedding.given and (not at or known.now - at >= known.config.promise_quiet)
