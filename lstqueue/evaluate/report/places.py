"""How good the places of gangs were on the interconnect: how far spread, and how much slower for it.

Every placement counts, those that ended in a suspension too, of jobs with several pods. The fewest domains
are those that would hold as many GPUs were all of them free: a gang may be in more since others were there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.evaluate import figures
from lstqueue.evaluate.report import axes, bars, fabric, plot, record, series, svg, words
from lstqueue.topology import domains, slowdown

MORE = ((0, "as few as can be", "free"), (1, "1 more", "far"), (3, "2 or 3 more", "near"))
"""Classes of domains too many, by the most that counts, with their words and colour."""
MOST = ("4 or more", "tight")
SLOWER = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Upper ends of the classes of slowdown."""


@dataclass(frozen=True, slots=True)
class Spread:
    """By class of `MORE` and `MOST`, how many gangs were in so many more domains of a level than they need.

    `extra` has the number of each stay.
    """

    level: str
    counts: tuple[int, ...]
    extra: tuple[int, ...]


def gangs(seen: series.Recorded) -> list[record.Stay]:
    """The placements that count."""
    return [stay for stay in seen.record.stays if sum(pods.count for pods in stay.life.work.pods) > 1]


def spreads(seen: series.Recorded, found: domains.Domains) -> list[Spread]:
    """How far gangs were spread at every level with several domains, outermost first, nodes last."""
    stays = gangs(seen)
    made = []
    for level in fabric.levels(seen, found)[1:]:
        if len(level.names) < 2:
            continue
        of, sizes = _domains(level, found, seen)
        extra = []
        for stay in stays:
            used = len({of[node] for node, _ in stay.places})
            need = sum(gpus for _, gpus in stay.places)
            extra.append(max(0, used - 1 - int(np.searchsorted(sizes, need))))
        kinds = [_class(more) for more in extra]
        counts = tuple(kinds.count(kind) for kind in range(len(MORE) + 1))
        made.append(Spread(level.name, counts, tuple(extra)))
    return made


def _domains(
    level: fabric.Level, found: domains.Domains, seen: series.Recorded
) -> tuple[dict[str, int], series.Floats]:
    """The domain of every node, one of its own where it is in none; and GPUs of the 1, 2, ... largest."""
    of = {name: -1 - index for index, name in enumerate(found.nodes)}
    for domain, (start, end) in enumerate(zip(level.starts.tolist(), level.ends.tolist(), strict=True)):
        of.update(dict.fromkeys(found.nodes[start:end], domain))
    sizes: dict[int, int] = {}
    for name, domain in of.items():
        sizes[domain] = sizes.get(domain, 0) + seen.record.nodes.get(name, 0)
    largest: series.Floats = np.cumsum(sorted(sizes.values(), reverse=True)).astype(np.float64)
    return of, largest


def _class(more: int) -> int:
    return next((kind for kind, (most, _, _) in enumerate(MORE) if more <= most), len(MORE))


def spread(seen: series.Recorded, found: domains.Domains) -> plot.Plot:
    """Bars: at each level, the share of placements in as few domains as can be, and in more."""
    rows, count = spreads(seen, found), len(gangs(seen))
    kinds = [(colour, name) for _, name, colour in MORE] + [(MOST[1], MOST[0])]

    def draw(width: float) -> svg.Element:
        left = 16.0 + 7.2 * min(max(len(row.level) for row in rows), 14)
        right, top = width - 60, 8.0
        scale = axes.Scale(0, 1, left, right)
        height = top + bars.ROW * len(rows)
        drawn = axes.across(scale, [(value / 4, f"{value / 4:.0%}") for value in range(5)], top, height)
        for place, row in enumerate(rows):
            y, before = top + bars.ROW * place + 4, 0
            name = words.short(row.level, 14)
            drawn.append(svg.text(left - 8, y + 13, name, kind="label", anchor="end"))
            for (colour, kind), gone in zip(kinds, row.counts, strict=True):
                begin, before = scale(before / count), before + gone
                if gone:
                    tip = f"{name}: {gone:,} of {count:,} placements in {kind}"
                    drawn.append(svg.box(begin, y, scale(before / count) - begin, 18, colour, tip))
            drawn.append(svg.text(right + 8, y + 13, words.share(row.counts[0] / count), kind="value"))
        below, end = axes.legend(kinds, left if width > plot.NARROW else 0, height + 30, width)
        return svg.drawing(width, end, label, *drawn, *below)

    told = _told(rows)
    met = f"{words.share(told.counts[0] / count)} of {count:,}"
    label = f"{met} placements of gangs with several pods were in as few domains as can hold them."
    said = f"{label[:-1]}, of level {words.short(told.level, 40)}."
    note = "As few as would hold so many GPUs if nobody else were there; to the right, the share of these."
    if not communicates(seen):
        note += " No gang was said to communicate (--communication), so no place is slower than another."
    table = [
        (
            words.short(row.level, 40),
            *[f"{number:,}" for number in row.counts],
            words.share(row.counts[0] / count),
        )
        for row in rows
    ]
    return plot.Plot(
        "spread", "Gangs in as few domains as can be", said, note, draw,
        ("level", *[name for _, name in kinds], "share of the first"), tuple(table),
    )  # fmt: skip


def _told(rows: Sequence[Spread]) -> Spread:
    """The innermost level above the node, as long as there is one."""
    return rows[-2] if len(rows) > 1 else rows[-1]


def communicates(seen: series.Recorded) -> bool:
    """Whether a place can make any gang slower."""
    return any(stay.life.locality.communication for stay in gangs(seen))


def slower(seen: series.Recorded, found: domains.Domains) -> plot.Plot:
    """Bars: how many placements make a gang how much slower than the best place would."""
    values = [stay.slowdown / slowdown.PPM for stay in gangs(seen)]
    kinds = [int(np.searchsorted(SLOWER, value - 1e-9)) for value in values]
    counts = [kinds.count(kind) for kind in range(len(SLOWER) + 1)]
    names = ["not slower", *[f"up to {end:g} ×" for end in SLOWER[1:]], f"above {SLOWER[-1]:g} ×"]

    def draw(width: float) -> svg.Element:
        left, right, top = 98.0, width - 60, 8.0
        scale = axes.Scale(0, max(counts), left, right)
        height = top + bars.ROW * len(names)
        ticks = [(value, words.count(value)) for value in axes.whole_steps(max(counts), 4)]
        drawn = axes.across(scale, ticks, top, height)
        for place, (name, count) in enumerate(zip(names, counts, strict=True)):
            y = top + bars.ROW * place + 4
            drawn.append(svg.text(left - 8, y + 13, name, kind="label", anchor="end"))
            tip = f"{name}: {count:,} of {len(values):,} placements"
            drawn.append(svg.box(left, y, scale(count) - left, 18, "far" if place else "free", tip))
            drawn.append(svg.text(scale(count) + 8, y + 13, f"{count:,}", kind="value"))
        return svg.drawing(width, height + 24, label, *drawn)

    all_ = figures.spread(values)
    label = (
        f"Gangs with several pods run {all_.mean or 0:.2f} times as long in their place as in the best, by "
        f"mean; 95 of 100 at most {all_.p95 or 0:.2f} times."
    )
    said = label + _by_spread(values, _told(spreads(seen, found)))
    table = [
        (name, f"{count:,}", words.share(count / len(values)))
        for name, count in zip(names, counts, strict=True)
    ]
    return plot.Plot(
        "slower", "How much slower a place makes a gang", said,
        "As predicted of a placement's bandwidth, and as the replay has them run; once for each placement.",
        draw, ("run time, of that in the best place", "placements", "share"), tuple(table),
    )  # fmt: skip


def _by_spread(values: Sequence[float], told: Spread) -> str:
    """What being in more domains than need be costs, in words."""
    few = [value for value, more in zip(values, told.extra, strict=True) if not more]
    many = [value for value, more in zip(values, told.extra, strict=True) if more]
    if not few or not many:
        return ""
    return (
        f" Where they are in as few domains of level {words.short(told.level, 40)} as can be it is "
        f"{sum(few) / len(few):.2f} times, and in more {sum(many) / len(many):.2f}."
    )
