"""A pass put into words: the plan of what its steps have decided. Decides nothing itself."""

from __future__ import annotations

from lstqueue.engine import claims, kept, model, room, siting, standing


def plan(known: kept.Kept, *, forecast: bool, stale: bool) -> model.Plan:
    """Return what a pass has decided.

    Args:
        known: The pass, after its last step.
        forecast: Whether all who wait were forecast.
        stale: Whether published forecasts are out of date.
    """
    return model.Plan(
        now=known.now,
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
        round=known.promised.round,
        counts=_counts(known),
        kept=known,
    )


def _admissions(known: kept.Kept) -> tuple[model.Admission, ...]:
    """Owners of claims first, then the line."""
    owners = known.claims.admit.values()
    found = [_admission(known, stake.here.job, stake.claim.groups) for stake in owners]
    for uid, taken in known.fitted.placed.items():
        job, groups = known.jobs[uid], room.by_group(taken, known.nodes)
        placed = tuple(groups[index] for index in range(len(job.groups)))
        found.append(_admission(known, job, placed))
    return tuple(found)


def _admission(known: kept.Kept, job: model.Job, groups: tuple[model.GroupPlacement, ...]) -> model.Admission:
    stage = known.world.stage
    words, domain = siting.told(stage, job, groups)
    slower = siting.slowdown_of(stage, job, groups)
    return model.Admission(job.uid, job.queue, groups, words, slower, domain)


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
    states = known.world.states
    starting = len(known.fitted.placed) + len(known.promised.claim) + len(known.preempted.claim)
    return (
        ("waiting", states[model.State.WAITING] - starting),
        ("held_back", states[model.State.HELD_BACK]),
        ("admitted", states[model.State.ADMITTED]),
        ("running", states[model.State.RUNNING]),
        ("ending", states[model.State.ENDING]),
        ("claiming", len(known.going())),
        ("admitting", len(known.fitted.placed) + len(known.claims.admit)),
        ("suspending", len(known.drained) + len(known.promised.suspend) + len(_victims(known))),
        ("fits_tried", known.fitted.tries),
        ("victim_searches", known.preempted.searches),
        ("forecast", len(known.outlooks)),
        ("shed", len(known.shedding.given)),
        ("node_sets_merged", known.shedding.merged),
    )
