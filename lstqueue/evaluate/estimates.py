"""What the operator is told about run times, which it never sees itself: models of who says so and how wrong.

| model | estimate |
|---|---|
| `exact` | the real run time, without doubt |
| `user` | what the trace's user asked for; none where that is unknown |
| `lognormal:SIGMA` | the real run time × exp(SIGMA × N(0, 1)), drawn for each job from the seed and its key |
| `last-two` | as the operator: the mean of the last two run times of like work; without a history as `user` |

The quantiles beside a single figure are its `lo_factor` and `hi_factor` of the configuration. `last-two`
learns them too (`engine.history`). It learns from jobs that have ended only, as a live cluster does.
"""

from __future__ import annotations

import math
import random
from typing import Protocol

from lstqueue.engine import estimate, history, model
from lstqueue.evaluate import workload

FORMS = "exact, user, lognormal:SIGMA or last-two"
EXACT = "exact"
USERS_KNOWN = ("lstqueue", "swf")
"""Formats of traces in which users may say how long their jobs take, so that no estimate need be exact."""
WILDEST = 5.0
"""The largest sigma: a factor of 150 at one standard deviation."""


class EstimateError(ValueError):
    """A model that cannot be read; the message says what to write."""


class Estimator(Protocol):
    """Says, at its submission, how long a job will run."""

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the estimate for a job that is being submitted; None: nothing is known."""
        ...

    def key(self, work: workload.Work) -> str | None:
        """Return what jobs have in common that are to be asked of anew when one ends; None: nothing."""
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
    if text == EXACT:
        return Exact()
    if text == "user":
        return User(config)
    if text == "last-two":
        return LastTwo(config)
    raise EstimateError(f"{text!r} is no model of estimates; it must be {FORMS}")


def flattery(named: str, trace: str) -> str | None:
    """What to mind where a replay is told run times that a cluster would have to guess; None elsewhere.

    Args:
        named: The model, as the command line names it.
        trace: The trace, FORMAT:PATH.
    """
    if named != EXACT or trace.partition(":")[0] not in USERS_KNOWN:
        return None
    return (
        "Estimates are exact: the policy is told how long each job will run, which nobody knows beforehand, "
        "and looks better than it would be. --estimates last-two predicts as the operator does, --estimates "
        "user takes what users said."
    )


class Exact:
    """Knows the run time."""

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the run time."""
        return model.Estimate(work.duration, work.duration, work.duration)

    def key(self, work: workload.Work) -> None:
        """Says the same whoever ends."""

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Has nothing to learn."""


class User:
    """Repeats what the user asked for."""

    def __init__(self, config: model.Config) -> None:
        self._config = config

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Return the user's figure."""
        return None if work.requested is None else estimate.spread(work.requested, self._config)

    def key(self, work: workload.Work) -> None:
        """Says the same whoever ends."""

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

    def key(self, work: workload.Work) -> None:
        """Says the same whoever ends."""

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Has nothing to learn."""


class LastTwo:
    """Predicts from what has ended, with the operator's own predictor (`engine.history`).

    Work is alike that has the same user and width: a trace knows no templates.
    """

    def __init__(self, config: model.Config) -> None:
        self._config = config
        self._book = history.Book()

    def ask(self, work: workload.Work) -> model.Estimate | None:
        """Predict a job's run time and how far that may be off."""
        told = self._book.predict(self.key(work), history.Asked(work.requested), self._config)
        return told.estimate if told is not None else None

    def key(self, work: workload.Work) -> str:
        """Return what work is alike."""
        return f"{work.user}/{work.gpus}"

    def ended(self, work: workload.Work, ran_ms: int) -> None:
        """Learn the run time, and how far the prediction was off."""
        self._book.learn(self.key(work), history.Asked(work.requested), ran_ms)


def _sigma(text: str, whole: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = math.nan
    if not 0 <= sigma <= WILDEST:
        raise EstimateError(f"{whole!r} has {text!r} as its sigma; it must be 0 to {WILDEST:.0f}")
    return sigma
