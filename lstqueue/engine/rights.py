"""Step 5, first half: who may have others suspended, and from when on.

A job that waits for room has this right at its last moment only: while there is slack to wait, others leave
by themselves. A job that cannot meet its deadline any more, or that has failed to start again and again, has
no use for the room of others.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from lstqueue.engine import model, order
from lstqueue.engine.standing import Lasting, Standing


class Denial(enum.Enum):
    """Why nobody may be suspended for a job."""

    NEVER = "never"  # its queue does not have it
    NO_DEADLINE = "no-deadline"  # it is late, or has no deadline or no estimate
    FAILED_STARTS = "failed-starts"
    EARLY = "early"  # it has slack to wait


class Candidate(NamedTuple):
    """A job that may have others suspended: what the choice of victims depends on, whatever the time.

    Its slack is over at `latest` (ms since the epoch). `mid` is the run time in ms that it has before it,
    `tiers` whether a lower tier alone makes a victim; with a `rank` whoever stands behind that is one, and
    nothing else.
    """

    uid: str
    band: model.Band
    tier: int
    latest: int
    mid: int
    displaced_by: tuple[str, ...]
    tiers: bool
    rank: order.Rank | None = None


def trigger(here: Standing, config: model.Config) -> int:
    """Slack in ms at which a job may have others suspended.

    max(1 h, o_re + grace + 2 s) + 0.4 mid: by then it may have to come back once itself. The share of mid was
    found in replays: a long job has more to lose by waiting for the last hour.
    """
    mid = 0 if here.left is None else here.left.mid
    least = max(config.trigger_least, here.job.restore + here.job.grace + config.trigger_margin)
    return least + int(config.trigger_share * mid)


def denial(here: Standing, queue: model.Queue, config: model.Config) -> Denial | None:
    """Why nobody may be suspended for a job that waits; None when somebody may."""
    denied = refusal(here, queue, config)
    early = here.slack is not None and here.slack > trigger(here, config)
    if denied is None and early and not config.switches.by_rank:
        return Denial.EARLY
    return denied


def asks_from(one: Lasting, queue: model.Queue, config: model.Config) -> int | None:
    """From when on a job that waits may have others suspended (ms since the epoch); None: never.

    That holds as long as the standing lasts, and for whoever is given up as well.
    """
    here = one.here
    if refusal(here, queue, config) is not None:
        return None
    if config.switches.by_rank:
        return one.at
    return None if here.slack is None else one.at + here.slack - trigger(here, config)


def refusal(here: Standing, queue: model.Queue, config: model.Config) -> Denial | None:
    """Why nobody may be suspended for a job however long it waits; None when somebody may some day."""
    if queue.preemption is model.Preemption.NEVER:
        return Denial.NEVER
    if config.switches.by_rank:
        return Denial.FAILED_STARTS if here.job.failed_starts >= config.failed_starts_most else None
    if here.slack is None or here.left is None or here.hopeless:
        return Denial.NO_DEADLINE
    if here.job.failed_starts >= config.failed_starts_most:
        return Denial.FAILED_STARTS
    return Denial.NO_DEADLINE if here.band is model.Band.REST else None


def candidate(here: Standing, queue: model.Queue, now: int, *, rank: order.Rank | None = None) -> Candidate:
    """The job as the choice of victims sees it; ask `denial` first.

    Args:
        here: It, refreshed.
        queue: Its queue.
        now: When it was (ms since the epoch).
        rank: Its place in the order, where that alone decides (`Kept.rank_of`).

    Raises:
        ValueError: It has neither slack nor rank, so it can have no victims.
    """
    if rank is not None:
        latest, mid = now + (here.slack or 0), 0 if here.left is None else here.left.mid
        return Candidate(here.job.uid, here.band, order.tier(here), latest, mid, (), False, rank)
    if here.slack is None or here.left is None:
        raise ValueError(f"jobs[{here.job.uid}] has no deadline or no estimate; ask rights.denial first")
    return Candidate(
        uid=here.job.uid,
        band=here.band,
        tier=order.tier(here),
        latest=now + here.slack,
        mid=here.left.mid,
        displaced_by=here.job.displaced_by,
        tiers=queue.preemption is model.Preemption.TIER,
    )
