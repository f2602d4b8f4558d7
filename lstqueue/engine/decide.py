"""The decision pass: who starts now and where, who waits and why, and what becomes of every deadline.

The steps, by the numbers and names of docs/engine.md:

1. *Refresh*: estimates, slack and band of every job.
3. *Order*: one total order of those who wait.
4. *Fit*: in that order quota, then the whole gang on nodes; what fits is admitted.
7. *Verdict*: forecast, and how likely each deadline is to hold.
8. *Explain*: on demand, `explain.explain`, from what the pass kept.

Steps 2 (shed), 5 (preempt) and 6 (reserve) are not built: nothing is suspended for another job, no room is
kept for one. The invariant the pass keeps: every admission is of a whole gang that waits, within its queue's
quota and on nodes that have the room, all of them together. Same snapshot, time and configuration, same plan.
"""

from __future__ import annotations

from lstqueue.engine import (
    estimate,
    fit,
    kept,
    model,
    order,
    outlook,
    reasons,
    room,
    slack,
    standing,
    verdict,
)

DEFAULTS = model.Config()


def decide(snapshot: model.Snapshot, now: int, config: model.Config = DEFAULTS) -> model.Plan:
    """Decide one pass.

    Args:
        snapshot: The world as seen; the order of its tuples does not matter.
        now: ms since the epoch.
        config: Figures and, for evaluations, the policy.

    Returns:
        The changes to make, and when to ask again though nothing happens.

    Raises:
        ValueError: The snapshot contradicts itself; names the object and the field.
    """
    # 1. Refresh
    jobs = sorted(snapshot.jobs, key=lambda job: job.uid)
    active = [job for job in jobs if job.state is not model.State.ENDING]
    standings = {job.uid: standing.refresh(job, now, config) for job in active}
    known = kept.survey(snapshot, standings, now, config)

    # 3. Order
    waiting = [here for here in standings.values() if not estimate.is_placed(here.job)]
    for here in waiting:
        if (code := order.barred(here.job, known.queues)) is not None:
            known.codes[here.job.uid] = code
    trying = [here for here in waiting if here.job.uid not in known.codes]
    known.line = order.line_up(trying, known.queues, known.gangs, config)

    # 4. Fit
    known.fitted = fit.walk(known.line, known.free, known.possible, now)
    known.codes |= known.fitted.codes
    admissions = tuple(
        _admission(known, turn) for turn in known.line if turn.standing.job.uid in known.fitted.placed
    )

    # 7. Verdict
    stale, forecast = _forecast(known, jobs)
    for here in standings.values():
        if (update := _update(known, here)) is not None:
            known.updates[here.job.uid] = update

    return model.Plan(
        now=now,
        admit=admissions,
        updates=tuple(known.updates.values()),
        wake_at=_wake_at(known, forecast_pending=stale and not forecast),
        forecast=forecast,
        counts=_counts(known, jobs),
        kept=known,
    )


def _admission(known: kept.Kept, turn: order.Turn) -> model.Admission:
    job = turn.standing.job
    groups = room.by_group(known.fitted.placed[job.uid], known.nodes)
    return model.Admission(job.uid, job.queue, tuple(groups[index] for index in range(len(job.groups))))


def _forecast(known: kept.Kept, jobs: list[model.Job]) -> tuple[bool, bool]:
    """Forecast for whom this pass must answer: everybody in line now and then, else those who are new.

    Returns:
        (whether published forecasts are out of date, whether this pass forecast everybody in line).
    """
    snapshot, now, config = known.snapshot, known.now, known.config
    line = _foreseeable(known)
    if not line:
        return False, False
    stale = snapshot.changed or any(_outran(job, snapshot.forecast_at, now, config) for job in jobs)
    due = stale and now - snapshot.forecast_at >= config.forecast_interval
    asked = [turn.standing.job.uid for turn in line if due or verdict.wants_forecast(turn.standing)]
    if asked:
        placed = known.fitted.placed
        scene = outlook.Scene(known.free, known.nodes, jobs, known.standings, line, placed, now, config)
        known.outlooks = outlook.foresee(scene, frozenset(asked))
    return stale, len(asked) == len(line)


def _foreseeable(known: kept.Kept) -> list[order.Turn]:
    """Those at the front of the line who stay in it and could fit some day, as many as a forecast follows."""
    found: list[order.Turn] = []
    for turn in known.line:
        if len(found) == known.config.forecast_depth:
            break
        uid = turn.standing.job.uid
        if uid not in known.fitted.placed and known.codes.get(uid) not in fit.NEVER_FITS:
            found.append(turn)
    return found


def _outran(job: model.Job, since: int, now: int, config: model.Config) -> bool:
    moved = estimate.next_outrun(job, since, config)
    return moved is not None and moved <= now


def _update(known: kept.Kept, here: standing.Standing) -> model.Update | None:
    """What the job's status should say, when it says something else."""
    job, told = here.job, here.job.published
    code = known.codes.get(job.uid)
    bucket = slack.bucket(here.slack)
    if estimate.is_placed(job):
        judged = verdict.running(here, job.since)
    elif job.uid in known.fitted.placed:
        judged = verdict.running(here, known.now)
    else:
        judged = verdict.waiting(here, code, known.outlooks.get(job.uid))
    moved = verdict.differs(told.verdict, judged, known.config.forecast_tolerance)
    same = not moved and (here.band, code, bucket) == (told.band, told.code, told.slack)
    restate = job.uid in known.snapshot.restate
    if same and not restate:
        return None
    message = reasons.message(known, job, code)  # costly for thousands, so only for those who may need it
    said = verdict.worded(judged, message)
    renew = (restate or not judged.reason) and verdict.reads_differently(told.verdict, said)
    if same and not renew and message == job.words:
        return None
    if not moved and not renew:
        said = told.verdict or said
    return model.Update(job.uid, here.band, code, message, said, bucket)


def _wake_at(known: kept.Kept, *, forecast_pending: bool) -> int | None:
    """The next time at which time alone can change a plan made of this snapshot."""
    times = [
        time for here in known.standings.values() for time in standing.wakes(here, known.now, known.config)
    ]
    if forecast_pending:
        times.append(known.snapshot.forecast_at + known.config.forecast_interval)
    return min((time for time in times if time > known.now), default=None)


def _counts(known: kept.Kept, jobs: list[model.Job]) -> tuple[tuple[str, int], ...]:
    states = [job.state for job in jobs]
    return (
        ("waiting", states.count(model.State.WAITING) - len(known.fitted.placed)),
        ("held_back", states.count(model.State.HELD_BACK)),
        ("admitted", states.count(model.State.ADMITTED)),
        ("running", states.count(model.State.RUNNING)),
        ("ending", states.count(model.State.ENDING)),
        ("admitting", len(known.fitted.placed)),
        ("fits_tried", known.fitted.tries),
        ("forecast", len(known.outlooks)),
    )
