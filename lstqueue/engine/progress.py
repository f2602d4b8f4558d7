"""What a job's own reports of progress say about how long it takes in all.

A report is a fraction of the whole work and when it was seen. From two of one run follows a pace: so much run
time for so much of the work. A pace seen over little of it is unsure, so what was expected before counts
beside it as if it had been seen over `progress_prior` of the work. A report
that is there when a run is looked at first may be of any age, and only begins the count; so does one that
went back, after work was lost. One that repeats says nothing: what is expected stands until it is outrun
(`engine.estimate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lstqueue.engine import estimate, model

WHOLE = 1_000_000
"""All of the work, in ppm."""

Report = tuple[int, int]
"""A fraction of the work in ppm, and for how long (ms) the run had worked when it was seen."""


@dataclass(frozen=True, slots=True)
class Track:
    """What is known of a job's progress.

    `attempt` is the run it is about, -1 for none, and `prior` what was expected when that began. `first` and
    `last` are reports of that run; None where it began without one, and with work done before. `estimate` is
    what follows for the whole job, earlier runs included; it outlives the run.
    """

    attempt: int = -1
    prior: model.Estimate | None = None
    first: Report | None = None
    last: Report | None = None
    estimate: model.Estimate | None = None


NONE = Track()


def read(text: str) -> int | None:
    """Return a reported fraction in ppm, None for what is no number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value * WHOLE) if math.isfinite(value) and 0 <= value <= 1 else None


def begun(
    track: Track, attempt: int, found: Report | None, *, prior: model.Estimate | None, fresh: bool
) -> Track:
    """Return the track of a run that is looked at for the first time.

    Args:
        track: of the run before it, if any.
        attempt: its number.
        found: what is reported already.
        prior: what is expected so far.
        fresh: It is the job's first run: without a report nothing was done when it began.
    """
    first = found or ((0, 0) if fresh else None)
    return Track(attempt, prior, first, first, track.estimate)


def reported(track: Track, report: Report, *, saved: int, config: model.Config) -> Track:
    """Return the track after a report; `saved` is the run time (ms) of earlier runs that was not lost."""
    fraction, ran = report
    if track.last is not None and fraction == track.last[0]:
        return track
    first, last = track.first, track.last
    if first is None or last is None or fraction < last[0] or ran <= first[1]:
        return replace(track, first=report, last=report)
    track = replace(track, last=report)
    seen, spent = fraction - first[0], ran - first[1]
    pace = _pace(seen, spent, track.prior, config)
    if pace is None:
        return track
    left = max(pace * (WHOLE - fraction) // WHOLE, min(estimate.LEAST, pace))
    found = _around(saved + ran, left, seen, config)
    return track if _stands(track.estimate, found, left) else replace(track, estimate=found)


def _pace(seen: int, spent: int, prior: model.Estimate | None, config: model.Config) -> int | None:
    """Return in how many ms the whole would be done; None: too little was seen, and nothing was expected.

    The geometric mean of what was seen and of the prior, weighted as if that had been seen over
    `progress_prior` of the work: errors of both are factors, which an arithmetic mean takes from one side.
    """
    observed = max(1.0, spent * WHOLE / seen)
    if prior is None:
        return round(observed) if seen >= config.progress_prior * WHOLE else None
    share = seen / (seen + config.progress_prior * WHOLE)
    return max(1, round(math.exp(share * math.log(observed) + (1 - share) * math.log(max(1, prior.mid)))))


def _around(done: int, left: int, seen: int, config: model.Config) -> model.Estimate:
    """Return what is `done` and `left`; the doubt about that falls as the root of what was seen."""
    doubt = math.sqrt(config.progress_doubt / (config.progress_doubt + seen / WHOLE))
    factor = config.lo_factor**-doubt
    return model.Estimate(
        lo=done + min(left, max(1, int(left / factor))),
        mid=done + left,
        hi=done + max(left, int(left * factor)),
    )


_NEWS = 0.05
"""An estimate stands while none of its quantiles moves by more than this share of what is left."""


def _stands(old: model.Estimate | None, new: model.Estimate, left: int) -> bool:
    """Whether a new estimate is no news, so that plans stand still."""
    if old is None:
        return False
    moves = (abs(old.lo - new.lo), abs(old.mid - new.mid), abs(old.hi - new.hi))
    return max(moves) <= _NEWS * left
