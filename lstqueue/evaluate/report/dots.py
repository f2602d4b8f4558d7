"""Plots of means with their intervals: one row for a policy, a dot for each seed, all on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstqueue.evaluate.report import axes, plot, svg, words

_ROW = 34.0


@dataclass(frozen=True, slots=True)
class Row:
    """A policy: its mean, half of its 95 % interval (None of one seed), its value for each seed."""

    name: str
    mean: float
    half: float | None
    values: tuple[float, ...]

    @property
    def low(self) -> float:
        """The least of all that is drawn."""
        return min([self.mean - (self.half or 0), *self.values])

    @property
    def high(self) -> float:
        """The most of it."""
        return max([self.mean + (self.half or 0), *self.values])


def means(
    key: str, title: str, rows: Sequence[Row], *, figure: str, bound: float | None = None, note: str = ""
) -> plot.Plot:
    """Policies by a figure, `figure` its key in the JSON; `bound` is what no policy can better."""
    said = "; ".join(f"{row.name} {_said(figure, row)}" for row in rows)
    if bound is not None:
        said += f"; no policy could have more than {words.said(figure, bound)}"

    def draw(width: float) -> svg.Element:
        low, high = min(row.low for row in rows), max([row.high for row in rows] + [bound or 0])
        return _dots(
            rows,
            width,
            _Axis(figure, low, high, bound=bound),
            [words.said(figure, row.mean) for row in rows],
            said,
        )

    return plot.Plot(key, title, f"{said}.", note, draw, _HEAD, _table(figure, rows, signed=False))


def differences(key: str, title: str, rows: Sequence[Row], *, figure: str, note: str = "") -> plot.Plot:
    """By how much policies are above one of them, seed by seed."""
    said = "; ".join(f"{row.name} {_said(figure, row, signed=True)}" for row in rows)

    def draw(width: float) -> svg.Element:
        low, high = min([0.0, *[row.low for row in rows]]), max([0.0, *[row.high for row in rows]])
        labels = [words.change(figure, row.mean).removesuffix(" points") for row in rows]
        return _dots(rows, width, _Axis(figure, low, high, signed=True), labels, said)

    return plot.Plot(key, title, f"{said}.", note, draw, _HEAD, _table(figure, rows, signed=True))


_HEAD = ("policy", "mean", "± 95 % interval", "seeds")


@dataclass(frozen=True, slots=True)
class _Axis:
    figure: str
    low: float
    high: float
    bound: float | None = None
    signed: bool = False

    def words(self, value: float) -> str:
        """A tick. Ticks are round, so they have no decimals that they do not need."""
        if self.part:
            sign = "−" if value < 0 else "+" if self.signed and value else ""
            number = f"{abs(value) * 100:.4f}".rstrip("0").rstrip(".")
            return f"{sign}{number}" if self.signed else f"{sign}{number}%"
        if self.signed and value:
            return words.change(self.figure, value)
        return words.said(self.figure, value)

    @property
    def part(self) -> bool:
        """Whether the figure is a part of one."""
        return words.said(self.figure, 0.5).endswith("%")


def _dots(rows: Sequence[Row], width: float, axis: _Axis, labels: Sequence[str], said: str) -> svg.Element:
    longest = min(max(len(row.name) for row in rows), 16)
    left, right, top = 12 + 7.2 * longest, width - (90 if width > plot.NARROW else 74), 8.0
    span = (axis.high - axis.low) or abs(axis.high) or 1.0
    low, high = axis.low - span * 0.06, axis.high + span * 0.06
    if axis.part and not axis.signed:
        low, high = max(low, 0.0), min(high, 1.0)
    scale = axes.Scale(low, high, left, right)
    bottom = top + _ROW * len(rows)
    ticks = axes.steps(scale.low, scale.high, 5 if width > plot.NARROW else 3)
    drawn = axes.across(scale, [(value, axis.words(value)) for value in ticks], top, bottom)
    if axis.signed:
        drawn.append(svg.line(scale(0), top, scale(0), bottom, "zero"))
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = top + _ROW * place + _ROW / 2
        drawn.append(svg.text(left - 8, y + 4, words.short(row.name, 16), kind="label", anchor="end"))
        for value in row.values:
            drawn.append(svg.el("circle", {"cx": scale(value), "cy": y + 9, "r": 2.2, "class": "none"}))
        if row.half is not None:
            begin, end = scale(row.mean - row.half), scale(row.mean + row.half)
            drawn.append(svg.line(begin, y, end, y, "interval"))
            drawn += [svg.line(x, y - 4, x, y + 4, "interval") for x in (begin, end)]
        drawn.append(svg.el("circle", {"cx": scale(row.mean), "cy": y, "r": 5.0, "class": "met"}))
        drawn.append(svg.text(right + 8, y + 4, label, kind="value"))
    kinds = [("met", "mean, and its 95 % interval"), ("none", "each seed")]
    if axis.bound is not None:
        drawn.append(svg.line(scale(axis.bound), top, scale(axis.bound), bottom, "bound"))
        kinds.append(("bounds", "no policy could have more"))
    below, end = axes.legend(kinds, 8, bottom + 30, width)
    return svg.drawing(width, end, said, *drawn, *below)


def _said(figure: str, row: Row, *, signed: bool = False) -> str:
    mean = words.change(figure, row.mean) if signed else words.said(figure, row.mean)
    return mean if row.half is None else f"{mean} ± {words.width(figure, row.half)}"


def _table(figure: str, rows: Sequence[Row], *, signed: bool) -> tuple[tuple[str, ...], ...]:
    mean = words.change if signed else words.said
    return tuple(
        (
            row.name, mean(figure, row.mean),
            words.NOTHING if row.half is None else words.width(figure, row.half), f"{len(row.values)}",
        )
        for row in rows
    )  # fmt: skip
