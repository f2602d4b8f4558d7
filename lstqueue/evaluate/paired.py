"""Means over seeds and how sure they are, and differences of policies that met the same seeds.

The interval is Student's: mean ± t(0.975, n - 1) · s / √n. For differences it is of the differences, seed by
seed, so that what a seed does to all policies alike is no doubt about them. One trace at a time: traces are
no sample of anything that an average over them would tell about.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

T = (
    12.7063, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282,
    2.2010, 2.1789, 2.1605, 2.1448, 2.1315, 2.1200, 2.1099, 2.1010, 2.0931, 2.0860,
    2.0797, 2.0739, 2.0687, 2.0639, 2.0596, 2.0556, 2.0519, 2.0485, 2.0453, 2.0423,
)  # fmt: skip
"""t(0.975) for 1 to 30 degrees of freedom, rounded up; beyond 30 the last one serves, which is wider."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % interval; `half` is None of fewer than two values, which say nothing about it."""

    mean: float
    half: float | None
    values: tuple[float, ...]

    @property
    def sure(self) -> bool:
        """Whether 0 lies outside."""
        return self.half is not None and abs(self.mean) > self.half


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of values, one for each seed, and how sure it is.

    Raises:
        ValueError: There are none.
    """
    if not values:
        raise ValueError("values is empty; give one for each seed")
    mean, count = math.fsum(values) / len(values), len(values)
    if count < 2:
        return Interval(mean, None, tuple(values))
    t = T[min(count - 1, len(T)) - 1]
    return Interval(mean, t * statistics.stdev(values) / math.sqrt(count), tuple(values))


def difference(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Interval | None:
    """Return by how much `ours` is above `theirs`, seed by seed; None where a seed has no figure.

    Raises:
        ValueError: They are of different seeds.
    """
    pairs: list[tuple[float, float]] = []
    for mine, other in zip(ours, theirs, strict=True):
        if mine is None or other is None:
            return None
        pairs.append((mine, other))
    return interval([mine - other for mine, other in pairs]) if pairs else None
