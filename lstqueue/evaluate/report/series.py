"""Curves of a replay from its record: GPUs in use and asked for, slack of who waits, losses, waits by width.

Every curve is a mean over bins of equal width, worked out from intervals and not from samples, so a bin tells
what happened in all of it and the bins add up to the whole. Times in s since the first submission.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lstqueue.engine import model
from lstqueue.evaluate import figures, lives, replay
from lstqueue.evaluate.report import record

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float, float]
"""From, to, and the weight that counts meanwhile."""

SLACKS = (("cannot be met", None, 0), ("below 1 h", 0, 1), ("1 to 4 h", 1, 4), ("4 h to 1 day", 4, 24))
SLACK_NAMES = (*[name for name, _, _ in SLACKS], "1 day and more")
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A replay and its record, with the clock that plots show: s since the first submission."""

    outcome: replay.Outcome
    record: record.Recorder

    @property
    def length(self) -> float:
        """Of the whole replay, in s; never 0."""
        return max((self.outcome.ended - self.outcome.began) / 1000, 1.0)

    @property
    def gpus(self) -> int:
        """Of the whole cluster."""
        return sum(self.record.nodes.values())

    def clock(self, at: int) -> float:
        """Time of a plot."""
        return (at - self.outcome.began) / 1000

    def edges(self, bins: int) -> Floats:
        """Ends of so many equal bins."""
        return np.linspace(0.0, self.length, bins + 1)


def means(intervals: Iterable[Interval], edges: Floats) -> Floats:
    """Return the mean, in each bin, of the sum of the weights of all intervals."""
    table = np.array(list(intervals), dtype=np.float64).reshape(-1, 3)
    if not len(table):
        return np.zeros(len(edges) - 1)
    times = np.concatenate([table[:, 0], table[:, 1]])
    changes = np.concatenate([table[:, 2], -table[:, 2]])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(changes[order])
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    until = np.interp(edges, times, area)
    found: Floats = np.maximum(np.diff(until) / np.diff(edges), 0.0)
    return found


def sums(points: Iterable[tuple[float, float]], edges: Floats) -> Floats:
    """Return the sum of the weights of the points in each bin."""
    table = np.array(list(points), dtype=np.float64).reshape(-1, 2)
    found: Floats = np.histogram(table[:, 0], bins=edges, weights=table[:, 1])[0].astype(np.float64)
    return found


def in_use(seen: Recorded, edges: Floats) -> Floats:
    """GPUs that gangs hold, their starts and departures included."""
    stays = seen.record.stays
    return means(((seen.clock(s.since), seen.clock(s.until), s.life.work.gpus) for s in stays), edges)


def in_service(seen: Recorded, edges: Floats) -> Floats:
    """GPUs that could be used."""
    out = seen.record.outages
    lost = means(((seen.clock(o.since), seen.clock(o.until), o.gpus) for o in out), edges)
    found: Floats = seen.gpus - lost
    return found


def asked_for(seen: Recorded, edges: Floats) -> Floats:
    """GPUs that waiting gangs want."""
    waits = seen.record.waits
    return means(((seen.clock(w.since), seen.clock(w.until), w.life.work.gpus) for w in waits), edges)


def slacks(seen: Recorded, edges: Floats) -> list[Floats]:
    """Waiting jobs with a deadline, by slack: time to the deadline less run time still to do.

    Returns:
        One curve for each of `SLACK_NAMES`.
    """
    found: list[list[Interval]] = [[] for _ in SLACK_NAMES]
    for wait in seen.record.waits:
        deadline = wait.life.work.deadline
        if deadline is None:
            continue
        latest = deadline - wait.left
        # When each class begins, the tightest first: it lasts until the one before begins.
        begins = [latest, *[latest - hours * model.HOUR for _, _, hours in SLACKS[1:]]]
        until = wait.until
        for place, begin in enumerate([*begins, wait.since]):
            since = max(wait.since, min(begin, until))
            if until > since:
                found[place].append((seen.clock(since), seen.clock(until), 1.0))
            until = min(until, since)
    return [means(intervals, edges) for intervals in found]


@dataclass(frozen=True, slots=True)
class Losses:
    """In each bin: suspensions, runs that mishaps ended, GPU-hours done again, GPU-hours of restarts."""

    suspensions: Floats
    struck: Floats
    again: Floats
    restarts: Floats


def losses(seen: Recorded, edges: Floats) -> Losses:
    """What ended runs, and what that cost, when it is known to."""
    lost = seen.record.losses
    hour = model.HOUR
    return Losses(
        sums(((seen.clock(loss.at), 1.0) for loss in lost if loss.end is record.End.SUSPENDED), edges),
        sums(((seen.clock(loss.at), 1.0) for loss in lost if loss.end is record.End.STRUCK), edges),
        sums(((seen.clock(loss.at), loss.again / hour) for loss in lost), edges),
        sums(((seen.clock(loss.at), loss.restarts / hour) for loss in lost), edges),
    )


@dataclass(frozen=True, slots=True)
class Width:
    """Gangs of one width: its `name`, how many with a deadline and how many of them met it.

    `waits` are the 5, 25, 50, 75 and 95 % quantiles of the time until the first start in s; empty of nobody.
    """

    name: str
    jobs: int
    dated: int
    met: int
    waits: tuple[float, ...]


def widths(seen: Recorded) -> list[Width]:
    """Waits and deadlines by gang width, narrow first; widths that nobody has are left out."""
    groups: dict[int, list[lives.Life]] = {}
    for life in seen.outcome.lives:
        groups.setdefault(bisect.bisect_right(figures.WIDTHS, life.work.gpus) - 1, []).append(life)
    return [_width(groups[place]) for place in sorted(groups)]


@dataclass(frozen=True, slots=True)
class Margin:
    """`jobs` that ended as much before (`met`) or after their deadline as `name` says.

    `close` is within an hour.
    """

    name: str
    jobs: int
    met: bool
    close: bool = False


_MARGINS = (("below 1 h", model.HOUR), ("1 to 4 h", 4 * model.HOUR), ("4 h to 1 day", 24 * model.HOUR))
_LONGEST = "1 day and more"


def margins(seen: Recorded) -> list[Margin]:
    """Jobs with a deadline by their margin, from the earliest to those that never ended."""
    limits = [limit for _, limit in _MARGINS]
    names = [*[name for name, _ in _MARGINS], _LONGEST]
    early, late, never = [0] * len(names), [0] * len(names), 0
    for life in seen.outcome.lives:
        deadline, completed = life.work.deadline, life.completed
        if deadline is None:
            continue
        if completed is None:
            never += 1
        else:
            counts = early if completed <= deadline else late
            counts[bisect.bisect_right(limits, abs(deadline - completed))] += 1
    before = [Margin(f"{name} early", early[place], True, place == 0) for place, name in enumerate(names)]
    after = [Margin(f"{name} late", late[place], False, place == 0) for place, name in enumerate(names)]
    found = [*reversed(before), *after]
    return [*found, Margin("never ended", never, False)] if never else found


def _width(some: Sequence[lives.Life]) -> Width:
    dated = [life for life in some if life.work.deadline is not None]
    waits = sorted(
        (life.first_start - life.work.submit) / 1000 for life in some if life.first_start is not None
    )
    quantiles = (
        tuple(float(value) for value in np.quantile(waits, _QUANTILES, method="inverted_cdf"))
        if waits
        else ()
    )
    name = figures.width_name(some[0].work.gpus).replace("-", "–")
    met = sum(1 for life in dated if figures.in_time(life))
    return Width(name, len(some), len(dated), met, quantiles)
