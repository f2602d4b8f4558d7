"""What earlier runs of the same work say about the next one: the one predictor of run times.

A key stands for work that is alike; whoever keeps the history says what that means. The prediction is the
mean of the last two run times of the key (Tsafrir, Etsion and Feitelson, TPDS 2007), at most the user's
figure; without a history it is that. How far that may be off is learnt too: from by how much predictions of
the same key missed, or those of the same source for anybody while these are too few. Nothing here knows where
histories are kept or when jobs end: the operator and the replays do, and ask the same questions.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lstqueue.engine import estimate, model

RUNS = 2
"""How many run times are averaged."""
OWN_LEAST, OWN_MOST = 5, 50
"""Misses of a key: from how many on they count, and how many are kept."""
ALL_LEAST, ALL_MOST = 30, 500
"""The same for those of a source."""
LOW, HIGH = 50, 950
"""Which quantiles of the misses lo and hi are, in per mille."""
WHOLE = 1000
"""A miss is run time / prediction in per mille: this much is none."""
WILDEST = 1_000_000
"""The largest miss that is told from larger ones."""


CLOSE = 0.1
"""A prediction that moves by no more than this share is no news, so that plans stand still."""


class Source(enum.StrEnum):
    """Where a prediction comes from, as `status.estimate.source` says it."""

    HISTORY = "History"
    USER = "User"


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of a key: its last run times in ms and its last misses in per mille, the newest last."""

    runs: tuple[int, ...] = ()
    misses: tuple[int, ...] = ()


NOTHING = Past()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a job says of its run time, in ms: the user's `figure`, and the `limit` at which it is ended."""

    figure: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A prediction and its source."""

    estimate: model.Estimate
    source: Source


class Book:
    """Histories by key, and the misses of each source over all keys; whoever stores them reads both."""

    def __init__(self) -> None:
        self.pasts: dict[str, Past] = {}
        self.misses: dict[Source, tuple[int, ...]] = {}

    def predict(self, key: str, asked: Asked, config: model.Config) -> Told | None:
        """Predict how long a job of a key runs. None: neither its past nor its user says."""
        expected = self._expect(key, asked)
        if expected is None:
            return None
        mid, source = expected
        misses = self._judge(key, source)
        if misses is None:
            found = estimate.spread(mid, config)
        else:
            low, high = _quantiles(misses)
            found = model.Estimate(max(1, min(mid, mid * low // WHOLE)), mid, max(mid, mid * high // WHOLE))
        return Told(estimate.bounded(found, asked.limit), source)

    def learn(self, key: str, asked: Asked, ran: int) -> None:
        """Take in that a job of a key has done all of its work in `ran` ms, above 0.

        The miss is that of what would be predicted now: what was told at its submission may have been told
        of many at once, before the first of them ended.
        """
        past = self.pasts.get(key, NOTHING)
        misses = past.misses
        if expected := self._expect(key, asked):
            mid, source = expected
            miss = min(ran * WHOLE // mid, WILDEST)
            self.misses[source] = (*self.misses.get(source, ()), miss)[-ALL_MOST:]
            if source is Source.HISTORY:
                misses = (*misses, miss)[-OWN_MOST:]
        self.pasts[key] = Past((*past.runs, ran)[-RUNS:], misses)

    def _expect(self, key: str, asked: Asked) -> tuple[int, Source] | None:
        """The expected run time in ms and where it comes from."""
        runs = self.pasts.get(key, NOTHING).runs
        if not runs and asked.figure is None:
            return None
        figures = [sum(runs) // len(runs)] if runs else []
        figures += [said for said in (asked.figure, asked.limit) if said is not None]
        return max(1, min(figures)), Source.HISTORY if runs else Source.USER

    def _judge(self, key: str, source: Source) -> tuple[int, ...] | None:
        """The misses to judge a prediction by, None while they are too few."""
        own = self.pasts.get(key, NOTHING).misses
        if source is Source.HISTORY and len(own) >= OWN_LEAST:
            return own
        anybody = self.misses.get(source, ())
        return anybody if len(anybody) >= ALL_LEAST else None


def settled(old: model.Estimate | None, new: model.Estimate) -> model.Estimate:
    """Return what to go on with after a prediction was made anew: the old one while that says as much."""
    if old is None:
        return new
    pairs = ((old.lo, new.lo), (old.mid, new.mid), (old.hi, new.hi))
    return old if all(abs(a - b) <= CLOSE * max(a, b) for a, b in pairs) else new


def _quantiles(misses: tuple[int, ...]) -> tuple[int, int]:
    """The quantiles `LOW` and `HIGH`, rounded outwards to a miss that was seen."""
    ranked, last = sorted(misses), len(misses) - 1
    return ranked[LOW * last // 1000], ranked[-(-HIGH * last // 1000)]
