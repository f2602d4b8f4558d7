"""Scales and their ticks: values to places in a drawing, on round numbers, as many as there is room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lstqueue.evaluate.report import svg, words

HOUR, DAY = 3600.0, 86_400.0
CHARACTER = 6.6
"""Width of a character of a tick, at most, in units of a drawing."""
BEYOND = 14
"""How far words may stick out to the right of an axis; every drawing leaves that much."""
_TIMES = (
    1, 2, 5, 10, 30, 60, 300, 600, 1800,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY,
    20 * DAY, 50 * DAY, 100 * DAY, 200 * DAY, 500 * DAY, 1000 * DAY,
)  # fmt: skip
_SPANS = (
    (10, "10 s"), (60, "1 min"), (600, "10 min"), (HOUR, "1 h"), (6 * HOUR, "6 h"), (DAY, "1 day"),
    (7 * DAY, "7 days"), (30 * DAY, "30 days"), (365 * DAY, "1 year"),
)  # fmt: skip
"""Round times for a logarithmic axis, in s."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` to places from `begin` to `end`; `log` by their logarithms."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value is; those beyond an end are at that end."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.0
        return self.begin + share * (self.end - self.begin)


def round_up(value: float) -> float:
    """The smallest of 1, 2, 2.5, 5 × a power of ten that is not below; 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def steps(low: float, high: float, most: int) -> list[float]:
    """At most `most` + 1 round values in [low, high]."""
    step = round_up((high - low) / max(most, 1))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def whole_steps(high: float, most: int) -> list[float]:
    """The same from 0 for counts: no fractions."""
    return [value for value in steps(0, high, most) if float(value).is_integer()]


def times(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round times in [low, high], in s since the first submission, with their words."""
    step = next((step for step in _TIMES if (high - low) / step <= most), _TIMES[-1])
    first = math.ceil(low / step)
    places = [number * step for number in range(first, math.floor(high / step) + 1)]
    return [(place, _clock(place, step)) for place in places]


def _clock(at: float, step: float) -> str:
    day, rest = divmod(at, DAY)
    if step >= DAY or not rest:
        return f"day {day:.0f}"
    minutes, seconds = divmod(rest % HOUR, 60)
    clock = f"{rest // HOUR:02.0f}:{minutes:02.0f}"
    return clock if step >= 60 else f"{clock}:{seconds:02.0f}"


def spans(high: float) -> list[tuple[float, str]]:
    """Round lengths of time for a logarithmic axis that ends at `high` s or a bit above."""
    return [(value, name) for value, name in _SPANS if value <= high]


def across(
    scale: Scale, ticks: Sequence[tuple[float, str]], top: float, bottom: float, *, said: bool = True
) -> list[svg.Element]:
    """Draw an axis along the bottom; words that would touch the last ones are left out.

    Args:
        scale: Of x.
        ticks: Values and their words.
        top: Upper end of the lines.
        bottom: Lower end.
        said: With the words; without, it is the upper one of two drawings that share an axis.
    """
    drawn: list[svg.Element] = []
    free = -math.inf
    for value, label in ticks:
        x = scale(value)
        drawn.append(svg.line(x, top, x, bottom, "grid"))
        half = len(label) * CHARACTER / 2
        middle = min(x, scale.end + BEYOND - half)
        if said and middle - half >= free:
            drawn.append(svg.text(middle, bottom + 16, label, kind="tick", anchor="middle"))
            free = middle + half + CHARACTER
    return drawn


def up(
    scale: Scale,
    ticks: Sequence[float],
    left: float,
    right: float,
    said: Callable[[float], str] = words.count,
) -> list[svg.Element]:
    """Draw an axis along the left, its lines to `right`."""
    drawn: list[svg.Element] = []
    for value in ticks:
        y = scale(value)
        drawn.append(svg.line(left, y, right, y, "grid"))
        drawn.append(svg.text(left - 6, y + 4, said(value), kind="tick", anchor="end"))
    return drawn


def legend(
    items: Sequence[tuple[str, str]], left: float, top: float, right: float
) -> tuple[list[svg.Element], float]:
    """Draw a legend of (class, words) in as many rows as it needs; return it and where it ends."""
    drawn: list[svg.Element] = []
    x, y = left, top
    for kind, label in items:
        wide = 18 + len(label) * 7.4 + 16
        if x > left and x + wide - 16 > right:
            x, y = left, y + 20
        drawn.append(svg.box(x, y, 12, 12, kind))
        drawn.append(svg.text(x + 18, y + 11, label, kind="label"))
        x += wide
    return drawn, y + 20
