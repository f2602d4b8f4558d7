"""Plots of counts and quantiles: deadlines met and waits by gang width, lateness, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.engine import model
from lstqueue.evaluate.report import axes, plot, series, svg, words

ROW = 26.0
"""Height of a bar with its gap."""
LEVELS = tuple(level.value for level in (model.Level.LIKELY, model.Level.AT_RISK, model.Level.UNLIKELY))
"""Verdicts as they are listed, the best first; any others after them."""
_LEFT = 98.0
"""Where bars begin whose names are widths of gangs."""
_QUARTERS = [(value / 4, f"{value / 4:.0%}") for value in range(5)]


def met_by_width(rows: Sequence[series.Width], bound: float | None) -> plot.Plot:
    """Bars: the share of deadlines met, by gang width."""
    shown = [row for row in rows if row.dated]
    whole = sum(row.dated for row in shown)
    met = sum(row.met for row in shown)
    bars = [(f"{row.name} GPU" + ("s" if row.name != "1" else ""), row.met, row.dated) for row in shown]
    bars = [("all jobs", met, whole), *bars]

    def draw(width: float) -> svg.Element:
        left, right, top = _LEFT, width - (104 if width > plot.NARROW else 54), 8.0
        scale = axes.Scale(0, 1, left, right)
        height = top + ROW * len(bars)
        drawn = axes.across(scale, _QUARTERS, top, height)
        for place, (name, good, all_) in enumerate(bars):
            y = top + ROW * place + 4
            share = good / all_ if all_ else 0.0
            drawn.append(svg.text(left - 8, y + 13, name, kind="label", anchor="end"))
            drawn.append(svg.box(left, y, right - left, 18, "missed", f"{name}: {all_ - good:,} missed"))
            drawn.append(svg.box(left, y, (right - left) * share, 18, "met", f"{name}: {good:,} met"))
            said = words.share(share) if all_ else words.NOTHING
            said += f" of {all_:,}" if width > plot.NARROW else ""
            drawn.append(svg.text(right + 8, y + 13, said, kind="value"))
        if bound is not None:
            drawn.append(svg.line(scale(bound), top, scale(bound), top + ROW, "bound"))
        kinds = [("met", "met"), ("missed", "missed")] + (
            [("bounds", "no policy could meet more")] if bound else []
        )
        below, end = axes.legend(kinds, left, height + 30, width)
        return svg.drawing(width, end, said_, *drawn, *below)

    worst = min(shown, key=lambda row: row.met / row.dated, default=None)
    said_ = f"{words.share(met / whole) if whole else words.NOTHING} of {whole:,} deadlines were met"
    if worst is not None:
        said_ += f"; least by gangs of {worst.name} GPUs, {words.share(worst.met / worst.dated)}"
    table = [
        (name, f"{good:,}", f"{all_:,}", words.share(good / all_ if all_ else None))
        for name, good, all_ in bars
    ]
    note = "Jobs that never completed count as missed."
    return plot.Plot(
        "met", "Deadlines met, by gang width", f"{said_}.", note, draw,
        ("gang", "met", "with a deadline", "share"), tuple(table),
    )  # fmt: skip


def waits_by_width(rows: Sequence[series.Width]) -> plot.Plot:
    """Boxes on a logarithmic axis: quantiles of the time until the first start, by gang width."""
    shown = [row for row in rows if row.waits]
    longest = max((row.waits[-1] for row in shown), default=60.0)
    least, most = 10.0, max(longest * 1.1, 120.0)

    def draw(width: float) -> svg.Element:
        left, right, top = _LEFT, width - (64 if width > plot.NARROW else 14), 8.0
        scale = axes.Scale(least, most, left, right, log=True)
        height = top + ROW * len(shown)
        labels = axes.spans(most)
        labels[0] = (least, f"≤ {words.span(least)}")
        drawn = axes.across(scale, labels, top, height)
        for place, row in enumerate(shown):
            y = top + ROW * place + 13
            low, first, middle, third, high = (scale(value) for value in row.waits)
            name = f"{row.name} GPU" + ("s" if row.name != "1" else "")
            tip = f"{name}, {row.jobs:,} jobs: {_quantiles(row.waits)}"
            drawn.append(svg.text(left - 8, y + 4, name, kind="label", anchor="end"))
            drawn.append(svg.line(low, y, high, y, "whisker"))
            drawn.append(svg.box(first, y - 7, max(third - first, 2), 14, "met", tip))
            drawn.append(svg.box(middle - 2, y - 9, 4, 18, "middle", tip))
            if width > plot.NARROW:
                drawn.append(svg.text(right + 8, y + 4, words.span(row.waits[2]), kind="value"))
        below, end = axes.legend(
            [("whiskers", "5 to 95 of 100 jobs"), ("met", "25 to 75"), ("middle", "half")],
            left,
            height + 30,
            width,
        )
        return svg.drawing(width, end, said, *drawn, *below)

    said = "Time from submission to the first start"
    if shown:
        slow = max(shown, key=lambda row: row.waits[-1])
        said += (
            f": longest for gangs of {slow.name} GPUs, of which half start within "
            f"{words.span(slow.waits[2])} and 95 of 100 within {words.span(slow.waits[4])}"
        )
    said += "."
    table = [(row.name, f"{row.jobs:,}", *[words.span(value) for value in row.waits]) for row in shown]
    return plot.Plot(
        "waits", "Wait until the first start, by gang width", said,
        "Logarithmic axis: each line is several times the one before. Jobs that never started are left out.",
        draw,
        ("GPUs", "jobs", "5 %", "25 %", "half", "75 %", "95 %"), tuple(table),
    )  # fmt: skip


def _quantiles(waits: Sequence[float]) -> str:
    names = ("5 %", "25 %", "half", "75 %", "95 %")
    return ", ".join(f"{name} {words.span(value)}" for name, value in zip(names, waits, strict=True))


def margins(rows: Sequence[series.Margin]) -> plot.Plot:
    """Bars: jobs with a deadline by how much earlier or later than it they ended."""
    most = max([1, *[row.jobs for row in rows]])

    def draw(width: float) -> svg.Element:
        left, right, top = 150.0, width - 62, 8.0
        scale = axes.Scale(0, most, left, right)
        height = top + ROW * len(rows)
        marks = [
            (value, words.count(value)) for value in axes.whole_steps(most, 4 if width > plot.NARROW else 2)
        ]
        drawn = axes.across(scale, marks, top, height)
        for place, row in enumerate(rows):
            y = top + ROW * place + 4
            kind = "met" if row.met else "missed"
            drawn.append(svg.text(left - 8, y + 13, row.name, kind="label", anchor="end"))
            drawn.append(svg.box(left, y, scale(row.jobs) - left, 18, kind, f"{row.name}: {row.jobs:,} jobs"))
            drawn.append(svg.text(scale(row.jobs) + 6, y + 13, f"{row.jobs:,}", kind="value"))
        below, end = axes.legend([("met", "met"), ("missed", "missed")], left, height + 30, width)
        return svg.drawing(width, end, said, *drawn, *below)

    close = sum(row.jobs for row in rows if not row.met and row.close)
    missed = sum(row.jobs for row in rows if not row.met)
    many = "1 deadline was" if missed == 1 else f"{missed:,} deadlines were"
    said = f"{many} missed, {close:,} of them by less than an hour."
    return plot.Plot(
        "margins", "How early or late jobs ended", said, "End of the job against its deadline.", draw,
        ("end", "jobs"), tuple((row.name, f"{row.jobs:,}") for row in rows),
    )  # fmt: skip


def verdicts(found: Mapping[str, Mapping[str, int]]) -> plot.Plot:
    """Bars: what a job was first told of its deadline, against what came of it."""
    order = [
        *[level for level in LEVELS if level in found],
        *[level for level in found if level not in LEVELS],
    ]
    rows = [(level, found[level].get("met", 0), found[level].get("missed", 0)) for level in order]

    def draw(width: float) -> svg.Element:
        left, right, top = 100.0, width - (158 if width > plot.NARROW else 12), 8.0
        scale, step = axes.Scale(0, 1, left, right), ROW if width > plot.NARROW else 44
        height = top + step * len(rows)
        drawn = axes.across(scale, _QUARTERS, top, height)
        for place, (level, met, missed) in enumerate(rows):
            y, whole = top + step * place + 4, max(met + missed, 1)
            edge = scale(met / whole)
            drawn.append(svg.text(left - 8, y + 13, level, kind="label", anchor="end"))
            drawn.append(svg.box(edge, y, right - edge, 18, "missed", f"told {level}: {missed:,} missed"))
            drawn.append(svg.box(left, y, edge - left, 18, "met", f"told {level}: {met:,} met"))
            said_ = f"{met:,} met, {missed:,} missed"
            if width > plot.NARROW:
                drawn.append(svg.text(right + 8, y + 13, said_, kind="value"))
            else:
                drawn.append(svg.text(left, y + 33, said_, kind="value"))
        below, end = axes.legend([("met", "met"), ("missed", "missed")], left, height + 30, width)
        return svg.drawing(width, end, said, *drawn, *below)

    said = " ".join(
        f"Told {level}: {met:,} met their deadline, {missed:,} missed it." for level, met, missed in rows
    )
    table = [
        (level, f"{met:,}", f"{missed:,}", words.share(met / max(met + missed, 1)))
        for level, met, missed in rows
    ]
    return plot.Plot(
        "verdicts", "What jobs were told at first, and what came of it", said,
        "The first verdict of each job with a deadline; jobs that got none are left out.", draw,
        ("told", "met", "missed", "share met"), tuple(table),
    )  # fmt: skip
