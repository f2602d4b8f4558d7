"""What the operator is told about run times, which it never sees itself: models of who says so and how wrong.

| model | estimate |
|---|---|
| `exact` | the real run time, without doubt |
| `user` | what the trace's user asked for; none where that is unknown |
| `lognormal:SIGMA` | the real run time × exp(SIGMA × N(0, 1)), drawn for each job from the seed and its key |
| `last-two` | the mean of the last two run times of the same user and width, at most what the user asked for; without a history as `user` |

The quantiles beside a single figure are its `lo_factor` and `hi_factor` of the configuration. `last-two`
learns them: from how far its own predictions for the same user and width were off, or those of the same
source for anybody while these are too few. It learns from jobs that have ended only, as a live cluster does.
"""  # noqa: E501 - a table's row is one line

from __future__ import annotations

import collections
import math
import random
from typing import Protocol

from lstqueue.engine import estimate, model
from lstqueue.evaluate import workload

FORMS = "exact, user, lognormal:SIGMA or last-two"
WILDEST = 5.0
"""The largest sigma: a factor of 150 at one standard deviation."""

HISTORY = 2
OWN_LEAST, OWN_MOST = 5, 50
"""Residuals of a user and width: from how many on they count, and how many are kept."""
ALL_LEAST, ALL_MOST = 30, 500
"""The same for those of a source."""
LOW, HIGH = 0.05, 0.95
"""Which quantiles of the residuals lo and hi are."""


class EstimateError(ValueError):
    """A model that cannot be read; the message says what to write."""


class Estimator(Protocol):
    """Says, at its submission, how long a job will run."""

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the estimate for a job that is being submitted; None: nothing is known."""
        ...

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Learn that a job has ended after running for `ran_ms` in all, lost time not counted."""
        ...


def parse(text: str, *, seed: int, config: model.Config) -> Estimator:
    """Build the model that the command line names.

    Raises:
        EstimateError: No such model, or a sigma it cannot have.
    """
    name, colon, argument = text.partition(":")
    if name == "lognormal" and colon:
        return Lognormal(_sigma(argument, text), seed=seed, config=config)
    if text == "exact":
        return Exact()
    if text == "user":
        return User(config)
    if text == "last-two":
        return LastTwo(config)
    raise EstimateError(f"{text!r} is no model of estimates; it must be {FORMS}")


class Exact:
    """Knows the run time."""

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the run time."""
        return model.Estimate(work.duration, work.duration, work.duration)

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Has nothing to learn."""


class User:
    """Repeats what the user asked for."""

    def __init__(self, config: model.Config) -> None:
        self._config = config

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the user's figure."""
        return None if work.requested is None else estimate.spread(work.requested, self._config)

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Users are not seen to learn."""


class Lognormal:
    """Is wrong by a log-normal factor."""

    def __init__(self, sigma: float, *, seed: int, config: model.Config) -> None:
        self._sigma = sigma
        self._seed = seed
        self._config = config

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the run time times the job's own draw."""
        draw = random.Random(f"{self._seed}/{work.key}")  # noqa: S311 - a simulation, no secret
        factor = math.exp(self._sigma * draw.gauss(0, 1))
        return estimate.spread(max(1, int(work.duration * factor)), self._config)

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Has nothing to learn."""


class LastTwo:
    """Predicts from the history of the user and width (after Tsafrir, Etsion and Feitelson, TPDS 2007)."""

    def __init__(self, config: model.Config) -> None:
        self._config = config
        self._ran: dict[_Like, collections.deque[int]] = {}
        self._own: dict[_Like, collections.deque[float]] = {}
        self._all = {source: collections.deque[float](maxlen=ALL_MOST) for source in ("history", "user")}
        self._told: dict[str, tuple[int, str]] = {}

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Predict a job's run time and how far that may be off."""
        predicted = self._predict(work)
        if predicted is None:
            return None
        self._told[work.key] = predicted
        mid, source = predicted
        low, high = self._factors(_like(work), source)
        return model.Estimate(max(1, min(mid, int(mid * low))), mid, max(mid, int(mid * high)))

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Learn the run time, and how far the prediction was off."""
        like = _like(work)
        self._ran.setdefault(like, collections.deque(maxlen=HISTORY)).append(ran_ms)
        if told := self._told.pop(work.key, None):
            mid, source = told
            self._all[source].append(ran_ms / mid)
            if source == "history":
                self._own.setdefault(like, collections.deque(maxlen=OWN_MOST)).append(ran_ms / mid)

    def _predict(self, work: workload.Work) -> tuple[int, str] | None:
        """The figure and where it comes from."""
        ran = self._ran.get(_like(work))
        if ran is None:
            return None if work.requested is None else (work.requested, "user")
        mean = max(1, sum(ran) // len(ran))
        return (mean if work.requested is None else min(mean, work.requested)), "history"

    def _factors(self, like: _Like, source: str) -> tuple[float, float]:
        """What lo and hi are of mid."""
        own = self._own.get(like, ())
        if source == "history" and len(own) >= OWN_LEAST:
            return _quantiles(own)
        anybody = self._all[source]
        if len(anybody) >= ALL_LEAST:
            return _quantiles(anybody)
        return self._config.lo_factor, self._config.hi_factor


_Like = tuple[str, int]
"""User and width."""


def _like(work: workload.Work) -> _Like:
    return work.user, work.gpus


def _quantiles(residuals: collections.deque[float] | tuple[float, ...]) -> tuple[float, float]:
    """The quantiles `LOW` and `HIGH`, rounded outwards to a residual that was seen."""
    ranked = sorted(residuals)
    last = len(ranked) - 1
    return ranked[math.floor(LOW * last)], ranked[math.ceil(HIGH * last)]


def _sigma(text: str, whole: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = math.nan
    if not 0 <= sigma <= WILDEST:
        raise EstimateError(f"{whole!r} has {text!r} as its sigma; it must be 0 to {WILDEST:.0f}")
    return sigma
