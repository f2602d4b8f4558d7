"""The decision pass: who starts now and where, who waits and why, and what becomes of every deadline.

The steps, by the numbers and names of docs/engine.md:

1. *Refresh*: estimates, slack and band of every job.
2. *Shed*: in an overload, those given up for now so that the others hold.
3. *Order*: one total order of those who wait.
4. *Fit*: in that order quota, then the whole gang on nodes; what fits is admitted, beside the room that is
   kept for others. Before that *claims*: owners whose victims have left start where they claimed, the
   victims of the others are suspended.
5. *Preempt*: for those at their last moment others are to be suspended; they claim their place.
6. *Reserve*: for the first who wait for others to leave, the place that they will have is kept.
7. *Verdict*: forecast, and how likely each deadline is to hold.
8. *Explain*: on demand, `explain.explain`, from what the pass kept.

The invariants the pass keeps: every admission is of a whole gang that waits, within its queue's quota and on
nodes that have the room, all of them together; nobody is suspended for a job that would not then fit
completely. Same snapshot, time and configuration, same plan.
"""

from __future__ import annotations

import functools

from lstqueue.engine import (
    agenda,
    claims,
    estimate,
    fit,
    foresight,
    kept,
    model,
    obstacles,
    order,
    overload,
    preempt,
    promises,
    reasons,
    reserve,
    room,
    share,
    shed,
    slack,
    slots,
    standing,
    verdict,
    windows,
)
from lstqueue.engine import memory as memories

DEFAULTS = model.Config()


def decide(
    snapshot: model.Snapshot,
    now: int,
    config: model.Config = DEFAULTS,
    memory: memories.Memory | None = None,
) -> model.Plan:
    """Decide one pass.

    Args:
        snapshot: The world as seen; the order of its tuples does not matter.
        now: ms since the epoch.
        config: Figures and, for evaluations, the policy.
        memory: What earlier passes left, of whatever snapshots; it makes the pass faster and changes
            nothing about the plan. None: nothing.

    Returns:
        The changes to make, and when to ask again though nothing happens.

    Raises:
        ValueError: The snapshot contradicts itself; names the object and the field.
    """
    # 1. Refresh
    world = (memories.Memory() if memory is None else memory).recall(snapshot, config)
    known = kept.survey(snapshot, world, now)

    known.safe = share.protect(known)
    slots.read(known)

    # 2. Shed
    known.shedding = shed.step(_scene(known))
    known.placed = list(map(known.standings.__getitem__, known.owning))

    # Claims
    known.claims = claims.settle(known)
    known.drained = claims.drain(known)

    # Slots
    promises.renew(known)
    slots.start(known)

    # 3. Order
    trying = []
    for uid in known.waiting:
        here = known.standings[uid]
        if (code := _barred(known, here.job)) is not None:
            known.codes[uid] = code
        elif uid not in known.claims.admit and uid not in known.promised.claim:
            trying.append(here)
    known.heads = share.find(known, trying)
    known.line = order.line_up(trying, known.queues, known.gangs, config, world.ranks, share.favoured(known))
    _rouse_the_urgent(known)
    _rouse_for_windows(known)

    # 4. Fit
    known.guests = reserve.settle(known)
    keep = functools.partial(share.keep, known)
    if config.switches.backfill is not None:
        known.fitted = agenda.walk(known)
    else:
        known.fitted = fit.walk(
            known.line, known.free, known.possible, now, keep, known.guests, known.windows
        )
    known.codes |= known.fitted.codes

    # 5. Preempt
    known.preempted = preempt.step(known)
    share.let_go(known)

    # 6. Reserve
    known.reservations = reserve.step(known)

    # 7. Verdict and promise
    promises.step(known)
    stale, forecast = foresight.step(known)
    known.updates = _updates(known)

    return model.Plan(
        now=now,
        admit=_admissions(known),
        claim=_claims(known),
        suspend=(*known.drained, *known.promised.suspend, *_victims(known)),
        drop=tuple(known.claims.drop.values()),
        reserve=tuple(known.reservations.made.values()),
        unreserve=tuple(known.reservations.lost.values()),
        promise=tuple(known.promised.made.values()),
        revoke=tuple(known.promised.lost.values()),
        updates=tuple(known.updates.values()),
        wake_at=_wake_at(known, forecast_pending=stale and not forecast),
        forecast=forecast,
        sheds=bool(known.shedding.given),
        counts=_counts(known),
        kept=known,
    )


def _rouse_the_urgent(known: kept.Kept) -> None:
    """Look again when the first of those who wait becomes urgent, where a policy has such a rule."""
    urgent = known.config.switches.urgent
    for turn in known.line if urgent is not None else ():
        if turn.standing.slack is not None and urgent is not None:
            known.rouse(known.now + turn.standing.slack - urgent)


def _rouse_for_windows(known: kept.Kept) -> None:
    """Look again when one of those who wait would not be through any more before a window begins."""
    for turn in known.line:
        until = windows.until(turn.standing)
        if until is not None and known.windows.concern(turn.gang.queue):
            for crossing in known.windows.crossings(turn.gang.queue, until - known.now):
                known.rouse(crossing)


def _scene(known: kept.Kept) -> overload.Scene:
    world = known.world
    return overload.Scene(
        lasting=known.lasting,
        standings=known.standings,
        queues=known.queues,
        gangs=known.gangs,
        possible=known.possible,
        nodes=known.nodes,
        resources=world.resources,
        allocatable=world.allocatable,
        used=known.used,
        bound=world.bound,
        kinds=world.kinds,
        counted=world.counted,
        stuck=world.stuck,
        safe=known.safe,
        wake=known.wake,
        now=known.now,
        config=known.config,
    )


def _barred(known: kept.Kept, job: model.Job) -> model.Code | None:
    """Why a job does not stand in line; None when it does, or starts where it claimed."""
    if job.state is not model.State.CLAIMING:
        return order.barred(job, known.queues)
    return None if job.uid in known.claims.admit else model.Code.CLAIMING


def _admissions(known: kept.Kept) -> tuple[model.Admission, ...]:
    """Owners of claims first, then the line."""
    found: list[model.Admission] = []
    for uid, stake in known.claims.admit.items():
        found.append(model.Admission(uid, stake.here.job.queue, stake.claim.groups))
    for turn in known.line:
        job = turn.standing.job
        if job.uid in known.fitted.placed:
            groups = room.by_group(known.fitted.placed[job.uid], known.nodes)
            placed = tuple(groups[index] for index in range(len(job.groups)))
            found.append(model.Admission(job.uid, job.queue, placed))
    return tuple(found)


def _claims(known: kept.Kept) -> tuple[model.Claiming, ...]:
    back = known.preempted.reclaims
    return tuple(
        model.Claiming(uid, stake.here.job.queue, stake.claim, uid in back)
        for uid, stake in (known.promised.claim | known.preempted.claim).items()
    )


def _victims(known: kept.Kept) -> list[model.Suspend]:
    """Those suspended for claims, without those who are drained in any case."""
    drained = {suspend.uid for suspend in known.drained}
    return [suspend for suspend in known.claims.suspend if suspend.uid not in drained]


def _updates(known: kept.Kept) -> dict[str, model.Update]:
    """What every status should say, where it says something else."""
    world, given, promised = known.world, known.shedding.given, known.promised
    quiet, lasting, codes = world.quiet, known.lasting, known.codes
    renewed = known.outlooks.keys() | known.snapshot.restate | promised.made.keys() | promised.lost.keys()
    found: dict[str, model.Update] = {}
    # Of those that own room only these can have changed: no code is said of them.
    some = {*known.waiting, *world.roster.fresh, *world.muffled, *given, *renewed}
    for uid in sorted(some & known.standings.keys()):
        here = known.standings[uid]
        said, code, news = quiet.get(uid), codes.get(uid), uid in renewed
        same = said is not None and said[0] is lasting[uid] and said[1] is here.band and said[2] is code
        if same and not news:
            continue  # nothing has changed since a pass that had nothing to say
        if (update := _update(known, here)) is not None:
            found[uid] = update
        elif not news and (code is not None or lasting[uid].placed):  # others start now, and are news
            world.hush(uid, lasting[uid], here.band, code)
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
        judged = verdict.waiting(here, code, seen, obstacles.unforeseen(known, job) if unseen else "")
    judged = verdict.unless_given_up(judged, here)
    judged = verdict.promised(judged, holds=known.promised.holds(job.uid))
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


def _wake_at(known: kept.Kept, *, forecast_pending: bool) -> int | None:
    """The next time at which time alone can change a plan made of this snapshot."""
    if forecast_pending:
        known.rouse(known.snapshot.forecast_at + known.config.forecast_interval)
    if known.shedding.wake is not None:
        known.rouse(known.shedding.wake)
    for stake in known.going():
        if stake.claim.committed:
            known.rouse(claims.expiry(stake))
    return None if known.wake == standing.NEVER else known.wake


def _counts(known: kept.Kept) -> tuple[tuple[str, int], ...]:
    states = [job.state for job in known.jobs.values()]
    return (
        (
            "waiting",
            states.count(model.State.WAITING) - len(known.fitted.placed) - len(known.preempted.claim),
        ),
        ("held_back", states.count(model.State.HELD_BACK)),
        ("admitted", states.count(model.State.ADMITTED)),
        ("running", states.count(model.State.RUNNING)),
        ("ending", states.count(model.State.ENDING)),
        ("claiming", len(known.going())),
        ("admitting", len(known.fitted.placed) + len(known.claims.admit)),
        ("suspending", len(known.drained) + len(_victims(known))),
        ("fits_tried", known.fitted.tries),
        ("victim_searches", known.preempted.searches),
        ("forecast", len(known.outlooks)),
        ("shed", len(known.shedding.given)),
        ("node_sets_merged", known.shedding.merged),
    )
