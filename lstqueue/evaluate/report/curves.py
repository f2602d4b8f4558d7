"""Plots over time: GPUs in use and asked for, slack of who waits, suspensions and their cost."""

from __future__ import annotations

import numpy as np

from lstqueue.evaluate.report import axes, plot, series, svg, words

ROWS = 12
"""Rows of the tables that stand for curves."""
SLACK_KINDS = ("late", "tight", "near", "far", "free")
"""Classes of `series.SLACK_NAMES`."""


def gpus(seen: series.Recorded) -> plot.Plot:
    """Two areas over time: GPUs in use, and GPUs that waiting gangs ask for."""

    def draw(width: float) -> svg.Element:
        left, right = 52.0, width - 16
        edges = seen.edges(plot.bins(width))
        used, wanted = series.in_use(seen, edges), series.asked_for(seen, edges)
        clock = axes.Scale(0, seen.length, left, right)
        full = axes.Scale(0, seen.gpus * 1.04, 170, 24)
        most = axes.round_up(max(float(wanted.max()), 1.0))
        asked = axes.Scale(0, most, 316, 226)
        dates = axes.times(0, seen.length, plot.ticks(width))
        drawn = [svg.text(0, 12, "GPUs in use", kind="label")]
        drawn += axes.up(full, _capacity_steps(seen.gpus), left, right)
        drawn += axes.across(clock, dates, 24, 170, said=False)
        drawn += _area(edges, used, clock, full, "met")
        drawn.append(svg.path(_steps(edges, series.in_service(seen, edges), clock, full), "bound-line"))
        drawn.append(svg.text(right, 18, limit, kind="value", anchor="end"))
        drawn.append(svg.text(0, 214, "GPUs that waiting gangs ask for", kind="label"))
        drawn += axes.up(asked, axes.whole_steps(most, 4), left, right)
        drawn += axes.across(clock, dates, 226, 316)
        drawn += _area(edges, wanted, clock, asked, "missed")
        drawn += [*_arrivals(seen, clock, 24, 170), *_arrivals(seen, clock, 226, 316)]
        return svg.drawing(width, 340, said, *drawn)

    limit = f"all {seen.gpus:,} GPUs" if not seen.record.outages else f"in service, of {seen.gpus:,}"
    rough, fine = seen.edges(ROWS), seen.edges(plot.bins(plot.NARROW + 1))
    used, wanted = series.in_use(seen, rough), series.asked_for(seen, rough)
    mean, most_asked = float(series.in_use(seen, seen.edges(1))[0]), float(series.asked_for(seen, fine).max())
    said = (
        f"On average {mean:,.0f} of {seen.gpus:,} GPUs were in use from the first submission to the last "
        f"end, {words.share(mean / max(seen.gpus, 1))}; waiting gangs asked for up to {most_asked:,.0f} more."
    )
    if seen.record.outages:
        out = seen.gpus - float(series.in_service(seen, seen.edges(1))[0])
        said += f" {words.count(round(out, 1))} were out of service on average."
    table = [(*_when(rough, row), f"{used[row]:,.1f}", f"{wanted[row]:,.1f}") for row in range(ROWS)]
    return plot.Plot(
        "gpus", "GPUs in use and asked for over time", said,
        _per_bin(seen, "After the dotted line nobody was submitted any more."), draw,
        ("from", "to", "GPUs in use", "GPUs asked for"), tuple(table), wide=True,
    )  # fmt: skip


def slack(seen: series.Recorded) -> plot.Plot:
    """Areas on top of each other over time: waiting jobs with a deadline by slack."""

    def draw(width: float) -> svg.Element:
        left, right, top, bottom = 52.0, width - 16, 12.0, 230.0
        edges = seen.edges(plot.bins(width))
        curves = series.slacks(seen, edges)
        most = max(float(np.sum(curves, axis=0).max()), 1.0)
        scale, clock = axes.Scale(0, most * 1.04, bottom, top), axes.Scale(0, seen.length, left, right)
        drawn = axes.up(scale, axes.whole_steps(most, 5), left, right)
        drawn += axes.across(clock, axes.times(0, seen.length, plot.ticks(width)), top, bottom)
        base = edges[:-1] * 0
        for kind, curve in zip(SLACK_KINDS, curves, strict=True):
            drawn += _area(edges, base + curve, clock, scale, kind, base)
            base = base + curve
        drawn += _arrivals(seen, clock, top, bottom)
        names = list(zip(SLACK_KINDS, series.SLACK_NAMES, strict=True))
        below, end = axes.legend(names, left, bottom + 34, width)
        return svg.drawing(width, end, said, *drawn, *below)

    rough = seen.edges(ROWS)
    curves = series.slacks(seen, rough)
    late = float(curves[0].sum()) / max(float(sum(curve.sum() for curve in curves)), 1e-9)
    said = (
        f"Slack of waiting jobs that have a deadline: the time until it, less the run time still to do. "
        f"{words.share(late)} of their waiting was beyond hope."
    )
    table = [(*_when(rough, row), *[f"{curve[row]:,.1f}" for curve in curves]) for row in range(ROWS)]
    return plot.Plot(
        "slack", "Jobs that wait, by their slack, over time", said,
        _per_bin(seen, "By the run times that came true, without what a start costs."), draw,
        ("from", "to", *series.SLACK_NAMES), tuple(table), wide=True,
    )  # fmt: skip


def losses(seen: series.Recorded) -> plot.Plot:
    """Two rows of bars over time: suspensions, and the GPU-hours that they cost."""
    rough = seen.edges(ROWS)
    found = series.losses(seen, rough)
    again, restarts = float(found.again.sum()), float(found.restarts.sum())
    mishaps = int(found.struck.sum())
    said = (
        f"{_suspensions(int(found.suspensions.sum()))} for other jobs{_struck(mishaps)} cost "
        f"{again + restarts:,.0f} GPU hours: {again:,.0f} of work since the last checkpoint, done "
        f"again, and {restarts:,.0f} of restarts."
    )
    table = [
        (
            *_when(rough, row),
            f"{found.suspensions[row] + found.struck[row]:,.0f}",
            f"{found.again[row]:,.1f}",
            f"{found.restarts[row]:,.1f}",
        )
        for row in range(ROWS)
    ]
    return plot.Plot(
        "losses", "Suspensions and what they cost, over time", said,
        "A cost counts when the run that it belongs to is suspended or ends.",
        lambda width: _losses(seen, width, said),
        ("from", "to", _what(found), "GPU hours done again", "GPU hours of restarts"), tuple(table),
        wide=True,
    )  # fmt: skip


def _losses(seen: series.Recorded, width: float, said: str) -> svg.Element:
    """Suspensions and mishaps above, what they cost below; of mishaps only where there were any."""
    left, right = 52.0, width - 16
    edges = seen.edges(plot.bins(width) // 2)
    found = series.losses(seen, edges)
    clock = axes.Scale(0, seen.length, left, right)
    lost = found.again + found.restarts
    ended = found.suspensions + found.struck
    most, dear = max(float(ended.max()), 1.0), max(float(lost.max()), 1.0)
    upper, lower = axes.Scale(0, most * 1.05, 116, 24), axes.Scale(0, dear * 1.05, 262, 170)
    length = words.span(seen.length / (len(edges) - 1))
    drawn = [svg.text(0, 12, f"{_what(found).capitalize()} in {length}", kind="label")]
    dates = axes.times(0, seen.length, plot.ticks(width))
    drawn += axes.up(upper, axes.whole_steps(most, 4), left, right)
    drawn += axes.across(clock, dates, 24, 116, said=False)
    drawn += _bars(edges, ended, clock, upper, "late")
    drawn += _bars(edges, found.suspensions, clock, upper, "free")
    drawn.append(svg.text(0, 158, f"GPU hours lost in {length}", kind="label"))
    drawn += axes.up(lower, axes.steps(0, dear, 4), left, right)
    drawn += axes.across(clock, dates, 170, 262)
    drawn += _bars(edges, lost, clock, lower, "missed")
    drawn += _bars(edges, found.restarts, clock, lower, "near")
    drawn += [*_arrivals(seen, clock, 24, 116), *_arrivals(seen, clock, 170, 262)]
    kinds = [("missed", "work done again"), ("near", "restarts")]
    kinds += [("free", "suspensions"), ("late", "mishaps")] if found.struck.any() else []
    below, end = axes.legend(kinds, left, 294, width)
    return svg.drawing(width, end, said, *drawn, *below)


def _what(found: series.Losses) -> str:
    return "suspensions and mishaps" if found.struck.any() else "suspensions"


def _suspensions(count: int) -> str:
    return "One suspension" if count == 1 else f"{count:,} suspensions"


def _struck(mishaps: int) -> str:
    if not mishaps:
        return ""
    return " and one run that a mishap ended" if mishaps == 1 else f" and {mishaps:,} runs that mishaps ended"


def _per_bin(seen: series.Recorded, more: str) -> str:
    fine, rough = (words.span(seen.length / plot.bins(width)) for width in (plot.NARROW + 1, plot.NARROW))
    means = f"Each point is the mean over {fine} (on narrow screens {rough})"
    return f"{means}, so shorter peaks are flattened. {more}"


def _when(edges: series.Floats, row: int) -> tuple[str, str]:
    return f"day {edges[row] / axes.DAY:.1f}", f"day {edges[row + 1] / axes.DAY:.1f}"


def _capacity_steps(gpus_: int) -> list[float]:
    """Ticks of a capacity: quarters where these are whole."""
    return [gpus_ * part / 4 for part in range(5)] if gpus_ % 4 == 0 else axes.whole_steps(gpus_, 4)


def _area(
    edges: series.Floats,
    curve: series.Floats,
    clock: axes.Scale,
    scale: axes.Scale,
    kind: str,
    base: series.Floats | None = None,
) -> list[svg.Element]:
    """A stepped area from `base`, or from 0, to a curve; nothing where there is none."""
    floor = curve * 0 if base is None else base
    if not (curve > floor).any():
        return []
    upper = _steps(edges, curve, clock, scale)
    return [svg.path([*upper, *reversed(_steps(edges, floor, clock, scale))], kind, closed=True)]


def _steps(
    edges: series.Floats, curve: series.Floats, clock: axes.Scale, scale: axes.Scale
) -> list[tuple[float, float]]:
    """The corners of a curve that is constant within bins, without those in line with their neighbours."""
    corners: list[tuple[float, float]] = []
    for place, value in enumerate(curve):
        y = scale(float(value))
        if corners and abs(corners[-1][1] - y) < 0.05:
            corners[-1] = (clock(float(edges[place + 1])), corners[-1][1])
        else:
            corners += [(clock(float(edges[place])), y), (clock(float(edges[place + 1])), y)]
    return corners


def _bars(
    edges: series.Floats, heights: series.Floats, clock: axes.Scale, scale: axes.Scale, kind: str
) -> list[svg.Element]:
    """Bars from 0; one path for all of them."""
    parts, floor = [], f"{scale(0):.1f}"
    for place, value in enumerate(heights):
        if value > 0:
            left, right = clock(float(edges[place])), clock(float(edges[place + 1]))
            gap = min((right - left) * 0.15, 1.0)
            parts.append(f"M{left + gap:.1f} {floor}V{scale(float(value)):.1f}H{right - gap:.1f}V{floor}Z")
    return [svg.el("path", {"d": "".join(parts), "class": kind})] if parts else []


def _arrivals(seen: series.Recorded, clock: axes.Scale, top: float, bottom: float) -> list[svg.Element]:
    """A line where the last job was submitted, unless that is the end all but."""
    last = clock(seen.clock(seen.outcome.last_submit))
    return [svg.line(last, top, last, bottom, "last")] if clock.end - last > 3 else []
