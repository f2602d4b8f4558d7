"""What a job that owns room waits for: pods of its own that do not start, or do not leave. Words only.

A start takes seconds, and nobody is told of it. One that takes minutes is told some few times and no more,
however the pods turn: `TOLD` says when.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.api import durations
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger, lenient, members, steps

Phase = ledger.Phase

TOLD = (model.MINUTE, 5 * model.MINUTE, 20 * model.MINUTE)
"""Ms after an admission or a suspension at which it is told what it waits for."""


def beside(kind: steps.Kind, gang: members.Gang, step: steps.Step, now: int) -> steps.Step:
    """Return the next step of a gang, or, with nothing to do, the one that tells what it waits for."""
    told = _told(kind, gang, now) if step.idle and not gang.ledger.deleting else None
    if told is None or not told.idle:
        return step if told is None else told
    wakes = [at for at in (step.wake, told.wake) if at is not None]
    return replace(step, wake=min(wakes, default=None))


def _told(kind: steps.Kind, gang: members.Gang, now: int) -> steps.Step | None:
    status = gang.ledger.status
    if status.phase is Phase.ADMITTED and status.admission is not None:
        code, since, what = lenient.STARTING, status.admission.at, "admission"
    elif status.phase is Phase.SUSPENDING and status.since:
        code, since, what = lenient.STOPPING, status.since, "suspension"
    else:
        return _untimely(gang) if status.phase is Phase.RUNNING else None
    past = [length for length in TOLD if now >= since + length]
    coming = steps.Step(wake=since + TOLD[len(past)]) if len(past) < len(TOLD) else None
    if not past:
        return coming
    begins = f"{durations.format(past[-1])} after its {what} "
    if status.slow[0] == code and status.slow[1].startswith(begins):
        return coming
    words = _starting(kind, gang) if code == lenient.STARTING else _stopping(gang)
    return steps.Step(status=replace(status, slow=(code, begins + words)), why=code) if words else coming


def _untimely(gang: members.Gang) -> steps.Step | None:
    """Tell once of a run that is to be over by our clock, and goes on; and once that this is past."""
    status = gang.ledger.status
    told = status.slow[0] == lenient.UNTIMELY
    if bool(gang.untimely) is told:
        return None
    slow = lenient.NOT_SLOW
    if gang.untimely:
        slow = lenient.UNTIMELY, f"its time is over by the clock of lstqueue, and it goes on: {gang.untimely}"
    return steps.Step(status=replace(status, slow=slow), why=lenient.UNTIMELY)


def _starting(kind: steps.Kind, gang: members.Gang) -> str:
    who = kind.standing(gang)
    total = len(who.expected)
    runs = [pod for pod in who.found.values() if pod.ready or pod.succeeded]
    if not total or len(runs) >= total:
        return ""
    said = f"{len(runs)} of {total} pods run"
    late = next((pod for pod in who.found.values() if not (pod.ready or pod.succeeded)), None)
    if late is not None:
        return f"{said}; pod {_pod(late)}"
    if who.strays:
        return f"{said}; pod {_pod(who.strays[0])}, and is of an earlier run"
    return f"{said}; rank {min(who.expected - set(who.found))} has no pod, see the events of its Job"


def _stopping(gang: members.Gang) -> str:
    left = gang.staying()
    if not left:
        return ""
    return f"{len(left)} of its pods {'have' if len(left) > 1 else 'has'} not ended; pod {_pod(left[0])}"


def _pod(pod: views.PodView) -> str:
    where = f" on node {pod.node}" if pod.node else ""
    what = "is being deleted" if pod.deleting else f"is {pod.phase}"
    why = f" ({pod.words})" if pod.words else " (not ready)" if pod.phase == "Running" else ""
    return f"{pod.name} {what}{where}{why}"
