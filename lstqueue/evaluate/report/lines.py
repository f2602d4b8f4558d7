"""Plots of a figure over the values of an option: a line for each policy, and its intervals.

Values that are numbers stand where they belong on the axis, others side by side. A policy is told from the
others by its dashes and its mark as well as by its colour, and named at its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lstqueue.evaluate.report import axes, plot, svg, words

MOST = 6
"""Kinds of lines; a seventh policy looks like the first, and is still named."""
_HEIGHT, _GAP = 250.0, 15.0


@dataclass(frozen=True, slots=True)
class Point:
    """A policy at one value of the option: its mean, and half of its 95 % interval (None of one seed)."""

    mean: float
    half: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A policy and its points, one for each value, None where it has no figure."""

    name: str
    points: tuple[Point | None, ...]


def numbers(values: Sequence[str]) -> list[float]:
    """Where values stand: at the last number in them if each has one and all differ, else side by side."""
    found = [re.search(r"[0-9.]+$", value) for value in values]
    places = [float(one.group()) for one in found if one and one.group().count(".") < 2]
    plain = all(re.fullmatch(r"([a-z-]+:)?[0-9.]+", value) for value in values)
    if plain and len(set(places)) == len(values):
        return places
    return [float(index) for index in range(len(values))]


def curves(
    key: str,
    title: str,
    option: str,
    values: Sequence[str],
    rows: Sequence[Line],
    *,
    figure: str,
    bounds: Sequence[float | None] = (),
    note: str = "",
) -> plot.Plot:
    """Policies by a figure, `figure` its key in the JSON; `bounds` are what no policy can better."""
    limits = [bound for bound in bounds if bound is not None]

    def draw(width: float) -> svg.Element:
        return _drawn(width, option, values, rows, figure, bounds if limits else (), said)

    said = "; ".join(f"{row.name} {_ends(figure, values, row)}" for row in rows)
    head = ("policy", *[f"{option} {value}" for value in values])
    table = [(row.name, *[_cell(figure, point) for point in row.points]) for row in rows]
    if limits:
        table.append(("no policy could have more", *[words.said(figure, bound) for bound in bounds]))
    return plot.Plot(key, title, f"{said}.", note, draw, head, tuple(table))


def _ends(figure: str, values: Sequence[str], row: Line) -> str:
    """The figure at the first and the last value."""
    there = [(value, point) for value, point in zip(values, row.points, strict=True) if point is not None]
    if not there:
        return words.NOTHING
    (first, begin), (last, end) = there[0], there[-1]
    return f"{words.said(figure, begin.mean)} at {first}, {words.said(figure, end.mean)} at {last}"


def _cell(figure: str, point: Point | None) -> str:
    if point is None:
        return words.NOTHING
    half = "" if point.half is None else f" ± {words.width(figure, point.half)}"
    return f"{words.said(figure, point.mean)}{half}"


def _drawn(
    width: float,
    option: str,
    values: Sequence[str],
    rows: Sequence[Line],
    figure: str,
    bounds: Sequence[float | None],
    said: str,
) -> svg.Element:
    longest = min(max(len(row.name) for row in rows), 20)
    wide = width > plot.NARROW
    left, right, top = 62.0, width - (20 + 7.0 * longest if wide else 14), 10.0
    x, y = _scales(values, rows, figure, bounds, left, right, top)
    unit = axes.HOUR if figure.endswith("_s") and y.high > 2 * axes.HOUR else 1.0
    steps = [value * unit for value in axes.steps(y.low / unit, y.high / unit, 6)]
    drawn = axes.up(y, steps, left, right, lambda value: _tick(figure, value))
    ticks = list(zip(numbers(values), values, strict=True))
    drawn += axes.across(x, ticks, top, y.begin)
    drawn.append(svg.text((left + right) / 2, y.begin + 34, f"--{option}", kind="label", anchor="middle"))
    if bounds:
        limit = [(x(at), y(b)) for at, b in zip(numbers(values), bounds, strict=True) if b is not None]
        drawn.append(svg.path(limit, "bound-line"))
    for index, row in enumerate(rows):
        drawn += _line(index, row, [x(at) for at in numbers(values)], y, figure, values)
    if wide:
        drawn += _names(rows, right, y)
    kinds = [] if wide else [(f"fill{index % MOST}", row.name) for index, row in enumerate(rows)]
    kinds += [("bounds", "no policy could have more")] if bounds else []
    below, end = axes.legend(kinds, 8, y.begin + 48, width)
    return svg.drawing(width, end, said, *drawn, *below)


def _tick(figure: str, value: float) -> str:
    """A tick: a round value, which needs no decimals."""
    said = words.said(figure, value)
    return said.replace(".0%", "%") if said.endswith("%") else said


def _scales(
    values: Sequence[str],
    rows: Sequence[Line],
    figure: str,
    bounds: Sequence[float | None],
    left: float,
    right: float,
    top: float,
) -> tuple[axes.Scale, axes.Scale]:
    places = numbers(values)
    inset = (right - left) * 0.03
    x = axes.Scale(min(places), max(places), left + inset, right - inset)
    shown = [point for row in rows for point in row.points if point is not None]
    low = min([point.mean - (point.half or 0) for point in shown])
    high = max([point.mean + (point.half or 0) for point in shown] + [b for b in bounds if b is not None])
    span = (high - low) or abs(high) or 1.0
    low, high = low - span * 0.05, high + span * 0.05
    part = words.said(figure, 0.5).endswith("%")
    low, high = max(low, 0.0), min(high, 1.0) if part else high
    return x, axes.Scale(low, high, top + _HEIGHT, top)


def _line(
    index: int, row: Line, xs: Sequence[float], y: axes.Scale, figure: str, values: Sequence[str]
) -> list[svg.Element]:
    kind = index % MOST
    there = [
        (at, value, point)
        for at, value, point in zip(xs, values, row.points, strict=True)
        if point is not None
    ]
    drawn = [svg.path([(at, y(point.mean)) for at, _, point in there], f"line line{kind}")]
    # Side by side, so that intervals of policies that are equal do not hide each other.
    shift = (index - 2) * 1.5
    for at, value, point in there:
        if point.half is not None:
            low, high = y(point.mean - point.half), y(point.mean + point.half)
            drawn.append(svg.line(at + shift, low, at + shift, high, f"spread line{kind}"))
        drawn.append(_mark(kind, at, y(point.mean), f"{row.name} at {value}: {_cell(figure, point)}"))
    return drawn


def _mark(kind: int, x: float, y: float, tip: str) -> svg.Element:
    """A mark of one of six shapes."""
    r = 4.5
    shapes = (
        None,
        [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        [(x, y - r - 1), (x + r + 1, y + r), (x - r - 1, y + r)],
        [(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)],
        [(x, y + r + 1), (x + r + 1, y - r), (x - r - 1, y - r)],
        [(x - r, y - 2), (x + r, y - 2), (x + r, y + 2), (x - r, y + 2)],
    )
    shape = shapes[kind]
    made = (
        svg.el("circle", {"cx": x, "cy": y, "r": r, "class": f"fill{kind}"})
        if shape is None
        else svg.path(shape, f"fill{kind}", closed=True)
    )
    made.append(svg.el("title", {}, tip))
    return made


def _names(rows: Sequence[Line], right: float, y: axes.Scale) -> list[svg.Element]:
    """The policies' names beside their ends, moved apart where they would touch."""
    ends = sorted(
        (y(row.points[-1].mean), index, row.name)
        for index, row in enumerate(rows)
        if row.points and row.points[-1] is not None
    )
    drawn: list[svg.Element] = []
    free = -1e9
    for place, (at, index, name) in enumerate(ends):
        room = y.begin - (len(ends) - 1 - place) * _GAP
        at = max(min(at, room), free)
        free = at + _GAP
        drawn.append(svg.text(right + 4, at + 4, words.short(name, 20), kind=f"name fill{index % MOST}"))
    return drawn
