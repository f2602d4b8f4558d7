"""The decision pass: who starts now and where, who waits and why, and what becomes of every deadline.

The steps, by the numbers and names of docs/engine.md:

1. *Refresh*: estimates, slack and band of every job; which best-effort work is safe, which slots stand.
2. *Shed*: in an overload, those given up for now so that the others hold.
   Then *claims*: owners whose victims have left start where they claimed, the victims of the others are
   suspended; and *slots*: those that cannot stay move, and those whose time has come are claimed.
3. *Order*: one total order of those who wait.
4. *Fit*: in that order quota, then the whole gang on nodes; what fits is admitted, beside the room that is
   kept or owed to others.
5. *Preempt*: for those at their last moment, and for what was lent, others are to be suspended; they claim
   their place.
6. *Reserve*: for the first who wait for others to leave, the place that they will have is kept.
7. *Verdict and promise*: forecast, how likely each deadline is to hold, and slots for new jobs.
8. *Explain*: on demand, `explain.explain`, from what the pass kept.

The invariants the pass keeps: every admission is of a whole gang that waits, within its queue's quota and on
nodes that have the room, all of them together; nobody is suspended for a job that would not then fit
completely. Same snapshot, time and configuration, same plan.
"""

from __future__ import annotations

from lstqueue.engine import (
    agenda,
    claims,
    fit,
    foresight,
    kept,
    line,
    model,
    outcome,
    preempt,
    promises,
    relaxing,
    renewal,
    reserve,
    share,
    shed,
    slots,
    telling,
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

    known.sharing.safe = share.protect(known)
    slots.read(known)

    # 2. Shed
    known.shedding = shed.step(known.scene())

    # Claims
    known.claims = claims.settle(known)
    known.drained = claims.drain(known)

    # Slots
    renewal.step(known)
    slots.start(known)

    # 3. Order
    line.step(known)

    # 4. Fit
    known.keepings = reserve.settle(known)
    known.fitted = _fit(known)
    known.codes |= known.fitted.codes

    # 5. Preempt
    known.preempted = preempt.step(known)
    share.let_go(known)

    # 6. Reserve
    known.reservations = reserve.step(known)

    # 7. Verdict and promise
    promises.step(known)
    stale, forecast = foresight.step(known)
    known.updates = telling.step(known)

    return outcome.plan(known, forecast=forecast, stale=stale)


def _fit(known: kept.Kept) -> fit.Fitted:
    """Walk the line, as the policy has it."""
    if known.config.switches.backfill is not None:
        return agenda.walk(known)
    keep, relax = share.Keeper(known).keep, relaxing.Relaxing(known).until
    return fit.walk(
        known.line,
        known.free,
        known.possible,
        known.now,
        keep,
        reserve.guests_of(known),
        known.windows,
        known.until,
        relax,
    )
