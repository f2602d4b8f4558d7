"""Step 7, what every status should say: an update for each that says something else, and for no other."""

from __future__ import annotations

from lstqueue.engine import estimate, kept, model, obstacles, reasons, shed, slack, standing, verdict


def step(known: kept.Kept) -> dict[str, model.Update]:
    """What every status should say, where it says something else."""
    world, given, promised = known.world, known.shedding.given, known.promised
    quiet, lasting, codes = world.quiet, known.lasting, known.codes
    renewed = known.outlooks.keys() | known.snapshot.restate | promised.made.keys() | promised.lost.keys()
    renewed |= promised.soonest.keys() | promised.doubts.keys()
    found: dict[str, model.Update] = {}
    # Of those that own room only these can have changed: no code is said of them.
    some = {*world.roster.fresh, *world.muffled, *given, *renewed}
    for uid in known.waiting:
        said = quiet.get(uid)  # of a pass that had nothing to say
        if said is None or said[2] is not codes.get(uid) or said[0] is not lasting[uid]:
            some.add(uid)
    for uid in sorted(some & lasting.keys()):
        one, said, code, news = lasting[uid], quiet.get(uid), codes.get(uid), uid in renewed
        band = model.Band.SHED if uid in given else one.here.band
        if not news and said is not None and said[0] is one and said[1] is band and said[2] is code:
            continue
        if (update := _update(known, known.standings[uid])) is not None:
            found[uid] = update
        elif not news and (code is not None or one.placed):  # others start now, and are news
            world.hush(uid, one, band, code)
    return found


def _update(known: kept.Kept, here: standing.Standing) -> model.Update | None:
    """What the job's status should say, when it says something else."""
    job, told = here.job, here.job.published
    code = known.codes.get(job.uid)
    bucket = slack.bucket(here.slack)
    restate, placed = job.uid in known.snapshot.restate, estimate.is_placed(job)
    if placed:
        judged = verdict.running(here, job.since)
    elif job.uid in known.fitted.placed or job.uid in known.claims.admit:
        judged = verdict.running(here, known.now)
    else:
        seen = known.outlooks.get(job.uid)
        judged_by_it = job.deadline is not None and here.slack is not None and not here.hopeless
        unseen = judged_by_it and seen is not None and seen.finish is None
        why = obstacles.unforeseen(known, job) if unseen else ""
        judged = verdict.waiting(here, code, seen, why, promised=_soonest(known, job))
    judged = verdict.unless_given_up(judged, here)
    doubt = verdict.CLOSED if code in verdict.CLOSES else known.promised.doubts.get(job.uid)
    holds = known.promised.holds(job.uid)
    judged = verdict.promised(judged, job.deadline, known.now, holds=holds, doubt=doubt)
    since = job.since if placed else known.now
    closely = restate or (placed and judged.level in verdict.BY_EARLIER_ENDS)
    moved = verdict.differs(told.verdict, judged, since=since, config=known.config, closely=closely)
    same = not moved and (here.band, code, bucket) == (told.band, told.code, told.slack)
    if same and not restate:
        return None
    message = reasons.message(known, job, code)  # costly for thousands, so only for those who may need it
    if (given := known.shedding.given.get(job.uid)) is not None:
        judged = verdict.given_up(judged, shed.sentence(given, job, known.now))
    said = verdict.worded(judged, message)
    if same and message == job.words:
        turned = (here.band is model.Band.SHED) is not (told.band is model.Band.SHED)
        renew = restate or turned or not judged.reason
        if not (renew and verdict.reads_differently(told.verdict, said)):
            return None
    return model.Update(job.uid, here.band, code, message, said, bucket)


def _soonest(known: kept.Kept, job: model.Job) -> int | None:
    """The earliest deadline that would be promised to a job that waits, as far as anybody looked for it."""
    if not known.config.promising or known.codes.get(job.uid) in verdict.NOT_JUDGED:
        return None
    told = job.published.verdict
    return known.promised.soonest.get(job.uid, None if told is None else told.earliest_promised)
