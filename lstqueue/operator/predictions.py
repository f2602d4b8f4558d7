"""How long a job is expected to run, by the first source that says so.

What it says of its own progress, then the history of its like, then its user, then its queue. Whatever says
so, a job that is ended at a limit does not run longer.
"""

from __future__ import annotations

from typing import NamedTuple

from lstqueue.api import deadlinejob_status
from lstqueue.engine import estimate as estimates
from lstqueue.engine import history, model
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, lenient

PROGRESS = deadlinejob_status.EstimateSource.PROGRESS.value
QUEUE_DEFAULT = deadlinejob_status.EstimateSource.QUEUE_DEFAULT.value


class Expected(NamedTuple):
    """An estimate and its source as `status.estimate.source` says it, "" for none."""

    estimate: model.Estimate | None
    source: str = ""


def expected(record: caches.Record, cache: caches.Cache, config: model.Config) -> Expected:
    """Return how long a job is expected to run in all."""
    found = record.track.estimate
    if found is not None:
        return Expected(estimates.bounded(found, limit(record)), PROGRESS)
    return before_progress(record, cache, config)


def before_progress(record: caches.Record, cache: caches.Cache, config: model.Config) -> Expected:
    """Return the same without what it says of its progress in this process."""
    job, most = record.ledger, limit(record)
    if job.spec is None:
        return Expected(None)
    if (told := told_by_progress(job)) is not None:
        return Expected(estimates.bounded(told, most), PROGRESS)
    asked = history.Asked(job.spec.estimate, most)
    if (predicted := cache.histories.predict(job, asked, config)) is not None:
        return Expected(predicted.estimate, predicted.source.value)
    queue = cache.queues.get(cache.queue_of(job))
    if queue is None or queue.default_estimate is None:
        return Expected(None)
    return Expected(estimates.bounded(estimates.spread(queue.default_estimate, config), most), QUEUE_DEFAULT)


def limit(record: caches.Record) -> int | None:
    """Return after how much run time (ms) in all a job is ended, None for never; limits count per run."""
    job = record.ledger
    own = job.spec.max_run if job.spec is not None else None
    limits = [most for most in (own, job.work.limit) if most is not None]
    return job.status.saved + min(limits) if limits else None


def told_by_progress(job: ledger.Ledger) -> model.Estimate | None:
    """Return what an earlier process made of a job's progress, as its status says, None for nothing."""
    said = lenient.mapping(job.spoken.get("estimate"))
    if said.get("source") != PROGRESS:
        return None
    lo, mid, hi = sorted(lenient.duration(said.get(key)) for key in ("lo", "mid", "hi"))
    return model.Estimate(lo, mid, hi) if lo > 0 else None
