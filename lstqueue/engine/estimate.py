"""How long a gang still runs: when it would finish, as three quantiles in absolute time.

An estimate is the run time of the whole gang from its start. A job that waits would finish at now + launch
cost + estimate; one that was admitted finishes at its start + estimate, where the start is when it ran in
full, or until that is known its admission + launch cost. Nothing is killed by prediction: an estimate that
was outrun grows.
"""

from __future__ import annotations

from typing import NamedTuple

from lstqueue.engine import model


class Finish(NamedTuple):
    """Optimistic, expected and pessimistic end of a job in ms since the epoch; lo <= mid <= hi."""

    lo: int
    mid: int
    hi: int


def spread(mid: int, config: model.Config) -> model.Estimate:
    """Quantiles for a run time of `mid` ms of which nothing else is known (docs/engine.md, Estimates)."""
    return model.Estimate(
        lo=min(mid, int(mid * config.lo_factor)), mid=mid, hi=max(mid, int(mid * config.hi_factor))
    )


def grown(total: int, elapsed: int, factor: float) -> int:
    """Return an estimate that `elapsed` has not outrun: `total` times the smallest power of `factor`.

    At the moment a job outruns its estimate the new total is `factor` times what has elapsed (1.5 × elapsed,
    after Tsafrir et al.'s upward correction). Growing in steps keeps plans still between them.

    Args:
        total: Estimate in ms.
        elapsed: Time since the start in ms; negative before it.
        factor: Growth per step, above 1.
    """
    while total < elapsed:
        total = max(total + 1, int(total * factor))
    return total


def start(job: model.Job) -> int:
    """When an admitted job started or will have: `since`, plus the launch cost while it is not running."""
    return job.since + job.overhead if job.state is model.State.ADMITTED else job.since


def finish(job: model.Job, now: int, config: model.Config) -> Finish | None:
    """When `job` would finish: started now if it waits, as it runs otherwise. None without an estimate."""
    estimate = job.estimate
    if estimate is None:
        return None
    if not is_placed(job):
        begin = now + job.overhead
        return Finish(begin + estimate.lo, begin + estimate.mid, begin + estimate.hi)
    begin = start(job)
    elapsed, factor = now - begin, config.outrun_factor
    mid = grown(estimate.mid, elapsed, factor)
    lo = min(mid, grown(estimate.lo, elapsed, factor))
    hi = max(mid, grown(estimate.hi, elapsed, factor))
    return Finish(begin + lo, begin + mid, begin + hi)


def next_outrun(job: model.Job, now: int, config: model.Config) -> int | None:
    """When the finish of an admitted job moves next because a quantile is outrun. None: never."""
    if job.estimate is None or not is_placed(job):
        return None
    begin = start(job)
    elapsed, factor = now - begin, config.outrun_factor
    quantiles = (job.estimate.lo, job.estimate.mid, job.estimate.hi)
    return begin + min(grown(quantile, elapsed, factor) for quantile in quantiles) + 1


def is_placed(job: model.Job) -> bool:
    """Whether the job owns its capacity: admitted or running."""
    return job.state is model.State.ADMITTED or job.state is model.State.RUNNING
