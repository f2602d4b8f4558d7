"""Step 7, second half: how likely each deadline is to hold, in one word with a reason.

| level | when |
|---|---|
| IMPOSSIBLE | the gang could not fit even if nothing else ran, or now + lo + o > D |
| UNLIKELY | the forecast with expected run times ends after D, or sees no start |
| AT_RISK | the latest of the three forecasts ends after D, the job is given up, or its slot is in doubt |
| LIKELY | all three hold |
| FEASIBLE | it owns a slot (`promises`); its forecast ends by D, whatever it would be without the slot |
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
        model.Code.QUEUE_CONFLICT,
        *fit.NEVER_FITS,
    )
)
"""Codes of jobs that take no part in a forecast."""
CLOSED = ""
"""In doubt by nothing but why it waits."""
CLOSES = frozenset(
    (
        model.Code.HELD_BACK,
        model.Code.IMPORTANCE_TOO_HIGH,
        model.Code.QUEUE_HELD,
        model.Code.QUEUE_CONFLICT,
        model.Code.OBSERVING,
    )
)
"""Codes of jobs that may not start whatever room there is: those who own a slot lose it when that begins."""
BY_EARLIER_ENDS = frozenset((model.Level.UNLIKELY, model.Level.IMPOSSIBLE))
"""Levels whose reason counts from the expected or the earliest end of a job that runs."""
_NO_DEADLINE = "It has no deadline to judge."
_TOO_FAR = model.Verdict(model.Level.UNKNOWN, "More jobs are ahead of it than a forecast follows.")
_PROMISED = "Promised: room is kept in which it ends by its deadline, whatever arrives later."
_IN_DOUBT = "It loses its promise unless this changes by the time of its slot: "
_EXPIRED = "Its deadline was past already when it was submitted; is the year right?"


def wants_forecast(here: Standing) -> bool:
    """Whether a job that can be forecast needs it in this pass: it is new, or what it was told is no more."""
    told = here.job.published
    if told.verdict is None or told.code in NOT_JUDGED:
        return True
    if told.band is model.Band.SHED and here.band is not model.Band.SHED:
        return True
    if tells_of_slot(told.verdict) and here.job.slot is None:
        return True
    return told.verdict.level is model.Level.IMPOSSIBLE and not here.hopeless


def tells_of_slot(told: model.Verdict) -> bool:
    """Whether a verdict says of a job that it owns a slot, be that in doubt or not."""
    return told.level is model.Level.FEASIBLE or told.reason.startswith(_IN_DOUBT)


def tells_no_start(told: model.Verdict | None) -> bool:
    """Whether a verdict is that no start can be foreseen: its reason names what stands in the way."""
    return told is not None and told.level is model.Level.UNLIKELY and told.finish is None


def running(here: Standing, start: int) -> model.Verdict:
    """Verdict of a job that owns its capacity, from its own estimate alone."""
    finish, deadline = here.finish, here.job.deadline
    if finish is None:
        return model.Verdict(model.Level.UNKNOWN, _unknown(here.job), start=(start, start))
    ends = (finish.lo, finish.hi)
    if deadline is None:
        level, reason = model.Level.UNKNOWN, _unknown(here.job)
    elif here.hopeless:
        over, more = words.duration(finish.lo - deadline), _remedy(deadline, finish.hi)
        said = f"At its fastest it ends {over} after its deadline{more}."
        level, reason = model.Level.IMPOSSIBLE, _EXPIRED if here.job.expired else said
    else:
        level, reason = _level(deadline, finish.mid, finish.hi, _remedy(deadline, finish.hi))
    return model.Verdict(level, reason, (start, start), ends, finish.hi)


def waiting(
    here: Standing,
    code: model.Code | None,
    outlook: Outlook | None,
    unforeseen: str = "",
    *,
    promised: int | None = None,
) -> model.Verdict:
    """Verdict of a job that waits.

    Args:
        here: The job as refreshed.
        code: Why it waits.
        outlook: Its forecast, when this pass made one.
        unforeseen: Why that sees no start.
        promised: The earliest deadline that would be promised, in ms since the epoch, where one is known.

    Returns:
        The verdict, with no reason where the code's own sentence is the reason.
    """
    if code in fit.NEVER_FITS:
        level = model.Level.UNKNOWN if here.job.deadline is None else model.Level.IMPOSSIBLE
        return model.Verdict(level)
    told = here.job.published.verdict
    if outlook is None:
        return _between_forecasts(here, code, told, promised)
    made = model.Verdict(model.Level.UNKNOWN, "", outlook.start, outlook.finish, outlook.feasible, promised)
    return _leveled(made, here, outlook, unforeseen)


def unless_given_up(judged: model.Verdict, here: Standing) -> model.Verdict:
    """The verdict, AT_RISK at best while the job is given up: forecasts know nothing of those yet to come."""
    if here.band is not model.Band.SHED or judged.level not in (model.Level.LIKELY, model.Level.UNKNOWN):
        return judged
    return _as(judged, model.Level.AT_RISK, judged.reason)


def promised(
    judged: model.Verdict, deadline: int | None, now: int, *, holds: bool, doubt: str | None = None
) -> model.Verdict:
    """The verdict of a job that owns a slot, or of one that owns none, whatever it was told before.

    As long as it could not have the slot as things are (`doubt` says why) its deadline is as good as at risk.
    """
    if holds and doubt is not None:
        worse = judged.level is model.Level.IMPOSSIBLE
        return judged if worse else _as(judged, model.Level.AT_RISK, _IN_DOUBT + doubt if doubt else "", None)
    if holds:
        return _as(_in_time(judged, deadline, now), model.Level.FEASIBLE, _PROMISED, None)
    return _TOO_FAR if tells_of_slot(judged) else judged


def _in_time(judged: model.Verdict, deadline: int | None, now: int) -> model.Verdict:
    """The verdict with a forecast that ends by the deadline, and starts as much earlier as that takes.

    A forecast plays the line without its slots, so of who owns one it may be later than what is promised.
    """
    if deadline is None or judged.finish is None or judged.finish[1] <= deadline:
        return judged
    finish, start = (min(judged.finish[0], deadline), deadline), judged.start
    if start is not None and start[1] > now:
        latest = max(now, start[1] - (judged.finish[1] - deadline))
        start = (min(start[0], latest), latest)
    return dataclasses.replace(judged, start=start, finish=finish)


def given_up(judged: model.Verdict, reason: str) -> model.Verdict:
    """The verdict of a job that is given up, with that as its reason unless something worse is."""
    worse = judged.level is model.Level.IMPOSSIBLE
    return judged if worse else _as(judged, judged.level, reason)


def worded(judged: model.Verdict, message: str) -> model.Verdict:
    """The verdict with `message` as its reason where it has none of its own."""
    return judged if judged.reason else _as(judged, judged.level, message)


def _as(judged: model.Verdict, level: model.Level, reason: str, *promised: int | None) -> model.Verdict:
    """The verdict in other words; a tenth of the cost of `dataclasses.replace`, for tens of thousands.

    `promised` is the earliest deadline that would be, if that is another.
    """
    soonest = promised[0] if promised else judged.earliest_promised
    return model.Verdict(level, reason, judged.start, judged.finish, judged.earliest_feasible, soonest)


def reads_differently(told: model.Verdict | None, new: model.Verdict) -> bool:
    """Whether the reason is in other words, however little the figures moved."""
    return told is None or told.reason != new.reason


def differs(
    told: model.Verdict | None,
    new: model.Verdict,
    *,
    since: int,
    config: model.Config,
    closely: bool = False,
) -> bool:
    """Whether `new` is worth publishing: another level, or a time that moved by more than is tolerated.

    Tolerated is a share of the time from `since` to what was told, at least `forecast_tolerance`: what is
    far away moves most, and matters least. Of a range its latest end counts, for the earliest moves with the
    clock; of starts those that are ahead.

    Args:
        told: What was published.
        new: What holds now.
        since: Now, or when a job that owns its room began, for which time alone must change nothing; ms.
        config: The figures.
        closely: Compare earliest ends too, and tolerate the least only.
    """
    if told is new:
        return False
    if told is None or told.level is not new.level:
        return True
    pairs = [(told.finish, new.finish), (_point(told.earliest_feasible), _point(new.earliest_feasible))]
    pairs.append((_point(told.earliest_promised), _point(new.earliest_promised)))
    if new.start is None or new.start[1] > since:
        pairs.append((told.start, new.start))
    for old, fresh in pairs:
        if old is None or fresh is None:
            if old is not fresh:
                return True
            continue
        share = 0.0 if closely else config.forecast_share
        tolerated = max(config.forecast_tolerance, int(share * (old[1] - since)))
        if abs(fresh[1] - old[1]) >= tolerated or (closely and abs(fresh[0] - old[0]) >= tolerated):
            return True
    return False


def _point(at: int | None) -> tuple[int, int] | None:
    return None if at is None else (at, at)


def _between_forecasts(
    here: Standing, code: model.Code | None, told: model.Verdict | None, promised: int | None
) -> model.Verdict:
    if here.hopeless:
        if told is not None and told.level is model.Level.IMPOSSIBLE and told.earliest_feasible is not None:
            return told
        base = told or model.Verdict(model.Level.IMPOSSIBLE)
        reason = _too_late(here, base.earliest_feasible, promised)
        return _as(base, model.Level.IMPOSSIBLE, reason, promised)
    if code in NOT_JUDGED:
        return model.Verdict(model.Level.UNKNOWN)
    if here.job.published.band is model.Band.SHED and here.band is not model.Band.SHED:
        told = None  # it said that the job is given up
    base = told or _TOO_FAR
    return base if base.earliest_promised == promised else _as(base, base.level, base.reason, promised)


def _leveled(made: model.Verdict, here: Standing, outlook: Outlook, unforeseen: str) -> model.Verdict:
    deadline, promised = here.job.deadline, made.earliest_promised
    if here.hopeless:
        level, reason = model.Level.IMPOSSIBLE, _too_late(here, made.earliest_feasible, promised)
    elif deadline is None or here.job.estimate is None:
        level, reason = model.Level.UNKNOWN, _unknown(here.job)
    elif outlook.finish is None or outlook.expected is None:
        level = model.Level.UNLIKELY
        more = _remedy(deadline, outlook.feasible, promised)
        reason = f"No start can be foreseen: {unforeseen}{more}."
    else:
        more = _remedy(deadline, outlook.feasible, promised)
        level, reason = _level(deadline, outlook.expected, outlook.finish[1], more)
    return _as(made, level, reason)


def _level(deadline: int, expected: int, latest: int, more: str) -> tuple[model.Level, str]:
    if expected > deadline:
        over = words.duration(expected - deadline)
        return model.Level.UNLIKELY, f"With expected run times it ends {over} after its deadline{more}."
    if latest > deadline:
        over = words.duration(latest - deadline)
        return model.Level.AT_RISK, f"With pessimistic run times it ends {over} after its deadline{more}."
    early = words.duration(deadline - latest)
    return model.Level.LIKELY, f"With pessimistic run times it ends {early} before its deadline{more}."


def _unknown(job: model.Job) -> str:
    """Why a deadline cannot be judged."""
    if job.spare:
        name = job.sweep.partition("/")[2]
        return f'Its sweep "{name}" has enough without it; it runs when others leave room.'
    if job.deadline is None:
        return _NO_DEADLINE
    if job.expired:
        return _EXPIRED
    return f"It has no estimate; set {words.field('spec.estimatedDuration', labelled=job.labelled)}."


def _too_late(here: Standing, feasible: int | None, promised: int | None) -> str:
    if here.job.expired:
        return _EXPIRED
    over, more = words.duration(-(here.slack_lo or 0)), _remedy(here.job.deadline, feasible, promised)
    return f"Even started now and at its fastest it would end {over} after its deadline{more}."


def _remedy(deadline: int | None, feasible: int | None, promised: int | None = None) -> str:
    """How much later a deadline would be LIKELY or promised, where one is known; rounded up, to be enough."""
    if deadline is None:
        return ""
    likely = "" if feasible is None or feasible <= deadline else words.at_least(feasible - deadline)
    sure = "" if promised is None or promised <= deadline else words.at_least(promised - deadline)
    if likely and sure and feasible is not None and promised is not None and feasible < promised:
        return f"; ask for at least {likely} more to be LIKELY, {sure} more to be promised"
    if sure:
        return f"; ask for at least {sure} more to be promised"
    return f"; ask for at least {likely} more to be LIKELY" if likely else ""
