"""How long a gang still runs: when it would finish, as three quantiles in absolute time.

An estimate is the run time of the whole gang from its first start; what suspensions left of its progress
(`Job.saved`) is done, so the rest of it remains. A job that waits would finish at now + launch cost + what
remains; one that was admitted finishes at its start + what remained then, where the start is when it ran in
full, or until that is known its admission + launch cost. What remains is told for the best place; in one that
is slower (`Job.slowdown`) it takes as much longer. Nothing is killed by prediction: an estimate that
was outrun grows, whether it was outrun in one run or over several.
"""

from __future__ import annotations

from typing import NamedTuple

from lstqueue.engine import model
from lstqueue.topology import slowdown

LEAST = model.MINUTE
"""What remains of a job that saved all it was expected to need, unless its whole estimate is less."""


class Finish(NamedTuple):
    """Optimistic, expected and pessimistic end of a job in ms since the epoch; lo <= mid <= hi."""

    lo: int
    mid: int
    hi: int


def spread(mid: int, config: model.Config) -> model.Estimate:
    """Quantiles for a run time of `mid` ms of which nothing else is known (docs/engine.md, Estimates)."""
    return model.Estimate(
        lo=min(mid, max(1, int(mid * config.lo_factor))), mid=mid, hi=max(mid, int(mid * config.hi_factor))
    )


def bounded(known: model.Estimate, limit: int | None) -> model.Estimate:
    """Return an estimate of a job that is ended after `limit` ms of run time, None for never."""
    if limit is None or known.hi <= limit:
        return known
    return model.Estimate(min(known.lo, limit), min(known.mid, limit), limit)


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


def remaining(job: model.Job, config: model.Config) -> model.Estimate | None:
    """What a start of `job` has before it: its estimate less what is saved. None without an estimate."""
    if not job.saved:
        return job.estimate
    totals = _totals(job, 0, config)
    if totals is None:
        return None
    return model.Estimate(totals.lo - job.saved, totals.mid - job.saved, totals.hi - job.saved)


def finish(job: model.Job, now: int, config: model.Config) -> Finish | None:
    """When `job` would finish: started now if it waits, as it runs otherwise. None without an estimate."""
    placed = is_placed(job)
    if not placed and not job.saved:  # nothing is outrun; so it is for nearly all of a long line
        if (whole := job.estimate) is None:
            return None
        begin, mid = now + job.overhead, whole.mid
        return Finish(begin + min(whole.lo, mid), begin + mid, begin + max(whole.hi, mid))
    begin = start(job) if placed else now + job.overhead
    slower = placed and job.slowdown != slowdown.PPM
    elapsed = done(job, now) if slower else now - begin
    totals = _totals(job, elapsed if placed else 0, config)
    if totals is None:
        return None
    if slower:
        left = [total - job.saved for total in (totals.lo, totals.mid, totals.hi)]
        return Finish(*[begin + slowdown.stretched(time, job.slowdown) for time in left])
    first = begin - job.saved  # as if everything saved had been done in this one run
    return Finish(first + totals.lo, first + totals.mid, first + totals.hi)


def next_outrun(job: model.Job, now: int, config: model.Config) -> int | None:
    """When the finish of an admitted job moves next because a quantile is outrun. None: never."""
    if job.estimate is None or not is_placed(job):
        return None
    quantiles = (job.estimate.lo, job.estimate.mid, job.estimate.hi)
    if job.slowdown == slowdown.PPM:
        begin = start(job)
        return begin - job.saved + min(_total(job, one, now - begin, config) for one in quantiles) + 1
    least = min(_total(job, quantile, done(job, now), config) for quantile in quantiles)
    return start(job) + slowdown.stretched(least - job.saved + 1, job.slowdown)


def done(job: model.Job, now: int) -> int:
    """What of its work (ms on the best place) an admitted job has done in this run; negative before it."""
    elapsed = now - start(job)
    return elapsed if elapsed < 0 else slowdown.shrunk(elapsed, job.slowdown)


def _totals(job: model.Job, elapsed: int, config: model.Config) -> model.Estimate | None:
    """The estimate as saved work and `elapsed` ms of this run have outrun it."""
    if job.estimate is None:
        return None
    mid = _total(job, job.estimate.mid, elapsed, config)
    lo = min(mid, _total(job, job.estimate.lo, elapsed, config))
    hi = max(mid, _total(job, job.estimate.hi, elapsed, config))
    return model.Estimate(lo, mid, hi)


def _total(job: model.Job, quantile: int, elapsed: int, config: model.Config) -> int:
    saved, factor = job.saved, config.outrun_factor
    if not saved:
        return grown(quantile, elapsed, factor)
    least = saved + min(quantile, LEAST)
    return grown(max(grown(quantile, saved, factor), least), saved + elapsed, factor)


def is_placed(job: model.Job) -> bool:
    """Whether the job owns its capacity: admitted or running."""
    return job.state is model.State.ADMITTED or job.state is model.State.RUNNING
