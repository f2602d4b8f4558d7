"""Step 7, second half: how likely each deadline is to hold, in one word with a reason.

| level | when |
|---|---|
| IMPOSSIBLE | the gang could not fit even if nothing else ran, or now + lo + o > D |
| UNLIKELY | the forecast with expected run times ends after D, or sees no start |
| AT_RISK | the latest of the three forecasts ends after D, or the job is given up for now |
| LIKELY | all three hold |
| UNKNOWN | no deadline, no estimate, or not forecast |

Between forecasts a verdict stays as it was published, except that time alone makes it IMPOSSIBLE.
"""

from __future__ import annotations

import dataclasses

from lstqueue.engine import fit, model, words
from lstqueue.engine.outlook import Outlook
from lstqueue.engine.standing import Standing

NOT_JUDGED = frozenset(
    (
        model.Code.HELD_BACK,
        model.Code.QUEUE_NOT_FOUND,
        model.Code.IMPORTANCE_TOO_HIGH,
        model.Code.QUEUE_HELD,
        *fit.NEVER_FITS,
    )
)
"""Codes of jobs that take no part in a forecast."""
_NO_DEADLINE = "It has no deadline to judge."
_NO_ESTIMATE = "It has no estimate; set spec.estimatedDuration."


def wants_forecast(here: Standing) -> bool:
    """Whether a job that can be forecast needs it in this pass: it is new, or what it was told is no more."""
    told = here.job.published
    if told.verdict is None or told.code in NOT_JUDGED:
        return True
    if told.band is model.Band.SHED and here.band is not model.Band.SHED:
        return True
    return told.verdict.level is model.Level.IMPOSSIBLE and not here.hopeless


def running(here: Standing, start: int) -> model.Verdict:
    """Verdict of a job that owns its capacity, from its own estimate alone."""
    finish, deadline = here.finish, here.job.deadline
    if finish is None:
        reason = _NO_DEADLINE if deadline is None else _NO_ESTIMATE
        return model.Verdict(model.Level.UNKNOWN, reason, start=(start, start))
    ends = (finish.lo, finish.hi)
    if deadline is None:
        level, reason = model.Level.UNKNOWN, _NO_DEADLINE
    elif here.hopeless:
        over, more = words.duration(finish.lo - deadline), _remedy(deadline, finish.hi)
        level, reason = model.Level.IMPOSSIBLE, f"At its fastest it ends {over} after its deadline{more}."
    else:
        level, reason = _level(deadline, finish.mid, finish.hi, finish.hi)
    return model.Verdict(level, reason, (start, start), ends, finish.hi)


def waiting(here: Standing, code: model.Code | None, outlook: Outlook | None) -> model.Verdict:
    """Verdict of a job that waits.

    Args:
        here: The job as refreshed.
        code: Why it waits.
        outlook: Its forecast, when this pass made one.

    Returns:
        The verdict, with no reason where the code's own sentence is the reason.
    """
    if code in fit.NEVER_FITS:
        level = model.Level.UNKNOWN if here.job.deadline is None else model.Level.IMPOSSIBLE
        return model.Verdict(level)
    told = here.job.published.verdict
    if outlook is None:
        return _between_forecasts(here, code, told)
    made = model.Verdict(model.Level.UNKNOWN, "", outlook.start, outlook.finish, outlook.feasible)
    return _leveled(made, here, outlook)


def unless_given_up(judged: model.Verdict, here: Standing) -> model.Verdict:
    """The verdict, AT_RISK at best while the job is given up: forecasts know nothing of those yet to come."""
    if here.band is not model.Band.SHED or judged.level not in (model.Level.LIKELY, model.Level.UNKNOWN):
        return judged
    return dataclasses.replace(judged, level=model.Level.AT_RISK)


def given_up(judged: model.Verdict, reason: str) -> model.Verdict:
    """The verdict of a job that is given up, with that as its reason unless something worse is."""
    worse = judged.level is model.Level.IMPOSSIBLE
    return judged if worse else dataclasses.replace(judged, reason=reason)


def worded(judged: model.Verdict, message: str) -> model.Verdict:
    """The verdict with `message` as its reason where it has none of its own."""
    return judged if judged.reason else dataclasses.replace(judged, reason=message)


def reads_differently(told: model.Verdict | None, new: model.Verdict) -> bool:
    """Whether the reason is in other words, however little the figures moved."""
    return told is None or told.reason != new.reason


def differs(told: model.Verdict | None, new: model.Verdict, tolerance: int) -> bool:
    """Whether `new` is worth publishing: another level, or a figure that moved by `tolerance` ms or more."""
    if told is new:
        return False
    if told is None or told.level is not new.level:
        return True
    before, after = _figures(told), _figures(new)
    for old, fresh in zip(before, after, strict=True):
        if (old is None) != (fresh is None):
            return True
        if old is not None and fresh is not None and abs(old - fresh) >= tolerance:
            return True
    return False


def _between_forecasts(here: Standing, code: model.Code | None, told: model.Verdict | None) -> model.Verdict:
    if here.hopeless:
        if told is not None and told.level is model.Level.IMPOSSIBLE and told.earliest_feasible is not None:
            return told
        base = told or model.Verdict(model.Level.IMPOSSIBLE)
        reason = _too_late(here, base.earliest_feasible)
        return dataclasses.replace(base, level=model.Level.IMPOSSIBLE, reason=reason)
    if code in NOT_JUDGED:
        return model.Verdict(model.Level.UNKNOWN)
    if here.job.published.band is model.Band.SHED and here.band is not model.Band.SHED:
        told = None  # it said that the job is given up
    return told or model.Verdict(model.Level.UNKNOWN, "More jobs are ahead of it than a forecast follows.")


def _leveled(made: model.Verdict, here: Standing, outlook: Outlook) -> model.Verdict:
    deadline = here.job.deadline
    if here.hopeless:
        level, reason = model.Level.IMPOSSIBLE, _too_late(here, made.earliest_feasible)
    elif deadline is None or here.job.estimate is None:
        level = model.Level.UNKNOWN
        reason = _NO_DEADLINE if deadline is None else _NO_ESTIMATE
    elif outlook.finish is None or outlook.expected is None:
        level = model.Level.UNLIKELY
        more = _remedy(deadline, outlook.feasible)
        reason = f"No start can be foreseen: jobs without an estimate or foreign pods hold its room{more}."
    else:
        level, reason = _level(deadline, outlook.expected, outlook.finish[1], outlook.feasible)
    return model.Verdict(level, reason, made.start, made.finish, made.earliest_feasible)


def _level(deadline: int, expected: int, latest: int, feasible: int | None) -> tuple[model.Level, str]:
    more = _remedy(deadline, feasible)
    if expected > deadline:
        over = words.duration(expected - deadline)
        return model.Level.UNLIKELY, f"With expected run times it ends {over} after its deadline{more}."
    if latest > deadline:
        over = words.duration(latest - deadline)
        return model.Level.AT_RISK, f"With pessimistic run times it ends {over} after its deadline{more}."
    early = words.duration(deadline - latest)
    return model.Level.LIKELY, f"With pessimistic run times it ends {early} before its deadline."


def _too_late(here: Standing, feasible: int | None) -> str:
    over, more = words.duration(-(here.slack_lo or 0)), _remedy(here.job.deadline, feasible)
    return f"Even started now and at its fastest it would end {over} after its deadline{more}."


def _remedy(deadline: int | None, feasible: int | None) -> str:
    """How much later a deadline would be LIKELY, where one is known; rounded up, so that it is enough."""
    if deadline is None or feasible is None or feasible <= deadline:
        return ""
    return f"; ask for at least {words.at_least(feasible - deadline)} more to be LIKELY"


def _figures(verdict: model.Verdict) -> tuple[int | None, ...]:
    start = verdict.start or (None, None)
    finish = verdict.finish or (None, None)
    return (*start, *finish, verdict.earliest_feasible)
