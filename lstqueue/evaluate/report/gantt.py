"""The nodes over time: all of a replay as a map of how full they were, and a part of it gang by gang.

A long trace has more gangs than a page has pixels. So the map, which shows means and says so, covers every
node and all of the time, nodes in groups where they are many. The gangs themselves are drawn for a stretch of
time around the longest queue, as long as it can be with at most `GANGS` bars, on at most `NODES` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.evaluate import figures
from lstqueue.evaluate.report import axes, plot, record, series, svg, words

GANGS = 900
NODES = 32
MAP_ROWS = 48
LONGEST = 22
"""Characters of a node's name that are shown."""
LEVELS = 5
_LENGTHS = (30, 14, 7, 4, 2, 1, 0.5, 0.25, 1 / 12, 1 / 24)
"""Stretches of time to choose from, in days."""
WIDE = 900.0
"""Units that a drawing of gangs is wide at least; a narrower screen scrolls it."""


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch from `begin` to `end`, in s since the first submission, and who held nodes in it."""

    begin: float
    end: float
    stays: tuple[record.Stay, ...]


class Map:
    """How full each row was: one node, or as many as it takes for at most `MAP_ROWS` rows."""

    def __init__(self, seen: series.Recorded) -> None:
        names = list(seen.record.nodes)
        self.size = -(-len(names) // MAP_ROWS)
        self._seen = seen
        self._groups = [names[first : first + self.size] for first in range(0, len(names), self.size or 1)]
        place = {name: index for index, group in enumerate(self._groups) for name in group}
        self._held: list[list[series.Interval]] = [[] for _ in self._groups]
        self._out: list[list[series.Interval]] = [[] for _ in self._groups]
        for outage in seen.record.outages:
            since, until = seen.clock(outage.since), seen.clock(outage.until)
            self._out[place[outage.node]].append((since, until, outage.gpus))
        for stay in seen.record.stays:
            for node, gpus in stay.places:
                self._held[place[node]].append((seen.clock(stay.since), seen.clock(stay.until), gpus))

    @property
    def names(self) -> list[str]:
        """Of the rows."""
        return [group[0] if len(group) == 1 else f"{group[0]} …" for group in self._groups]

    def out(self, columns: int) -> list[series.Floats]:
        """The part of each row's GPUs that was out of service, by column."""
        return self._parts(self._out, columns)

    def shares(self, columns: int) -> list[series.Floats]:
        """The part of each row's GPUs that was in use, by column."""
        return self._parts(self._held, columns)

    def _parts(self, of: Sequence[Sequence[series.Interval]], columns: int) -> list[series.Floats]:
        edges, nodes = self._seen.edges(columns), self._seen.record.nodes
        capacities = [max(sum(nodes[name] for name in group), 1) for group in self._groups]
        return [series.means(held, edges) / gpus for held, gpus in zip(of, capacities, strict=True)]


def fullness(seen: series.Recorded) -> plot.Plot:
    """A map: one row for a node or some, one column for a stretch of time, darker with more GPUs in use."""
    full = Map(seen)
    means = [float(row[0]) for row in full.shares(1)]
    said = (
        f"How full {len(seen.record.nodes):,} nodes with {seen.gpus:,} GPUs were, from "
        f"{words.share(min(means, default=0))} to {words.share(max(means, default=0))} of all of the time, "
        "by row."
    )
    grouped = "one node a row" if full.size <= 1 else f"up to {full.size} nodes a row"
    fine = words.span(seen.length / plot.bins(WIDE))
    return plot.Plot(
        "nodes", "How full the nodes were", said,
        f"All of the replay, {grouped}; a cell is the mean over {fine} or more.",
        lambda width: _map(seen, full, width, said), ("nodes", "GPUs in use"),
        tuple((name, words.share(mean)) for name, mean in zip(full.names, means, strict=True)), wide=True,
    )  # fmt: skip


def _map(seen: series.Recorded, full: Map, width: float, said: str) -> svg.Element:
    names, columns = full.names, plot.bins(width)
    left, right, top = _margin(names), width - 16, 8.0
    high = 18 if len(names) <= 20 else 11
    bottom = top + high * len(names)
    clock = axes.Scale(0, seen.length, left, right)
    drawn = [svg.box(left, top, right - left, bottom - top, "empty")]
    drawn += axes.across(clock, axes.times(0, seen.length, plot.ticks(width)), top, bottom)
    wide = (right - left) / columns
    drawn += _out(full.out(columns), left, wide, top, high)
    drawn += _cells(full.shares(columns), left, wide, top, high)
    for index in range(0, len(names), 1 if high > 12 else 2):
        y = top + high * index + high / 2 + 4
        drawn.append(svg.text(left - 6, y, words.short(names[index], LONGEST), kind="tick", anchor="end"))
    kinds = [("empty", "none"), ("heat1", f"below {1 / LEVELS:.0%}")]
    kinds += [(f"heat{to}", f"{(to - 1) / LEVELS:.0%} to {to / LEVELS:.0%}") for to in list(_levels())[1:]]
    kinds += [("out", "out of service")] if seen.record.outages else []
    below, end = axes.legend(kinds, left if width > plot.NARROW else 0, bottom + 32, width)
    return svg.drawing(width, end, said, *drawn, *below)


def gangs(seen: series.Recorded) -> plot.Plot:
    """Bars: gangs on the GPUs of their nodes, around the time of the longest queue."""
    chosen = window(seen)
    names = list(seen.record.nodes)[:NODES]
    widest = max([seen.record.nodes[name] for name in names], default=1)
    lanes = _lanes(chosen.stays, names, widest)

    def draw(width: float) -> svg.Element:
        seen_at_once, width = width, max(width, WIDE)
        left, right, top = _margin(names), width - 16, 8.0
        lane = max(2.0, min(5.0, 26 / widest))
        high = lane * widest + 4
        bottom = top + high * len(names)
        clock = axes.Scale(chosen.begin, chosen.end, left, right)
        drawn = [svg.box(left, top, right - left, bottom - top, "empty")]
        drawn += axes.across(clock, axes.times(chosen.begin, chosen.end, 10), top, bottom)
        for index, name in enumerate(names):
            y = top + high * index
            drawn.append(
                svg.text(left - 6, y + high / 2 + 4, words.short(name, LONGEST), kind="tick", anchor="end")
            )
            drawn.append(svg.line(left, y + high - 1, right, y + high - 1, "grid"))
        drawn += _outages(seen, chosen, names, clock, top, lane, high)
        for stay, node, first, count in lanes:
            drawn.append(_bar(seen, stay, clock, top + high * node + 1 + lane * first, lane * count))
        below, end = axes.legend(
            _kinds(seen, chosen), min(left, seen_at_once / 10), bottom + 32, seen_at_once
        )
        return svg.drawing(width, end, said, *drawn, *below, least=WIDE)

    suspended = sum(1 for stay in chosen.stays if stay.stopped is not None)
    said = (
        f"{len(chosen.stays):,} runs of gangs on {len(names):,} nodes over "
        f"{words.span(chosen.end - chosen.begin)}, from day {chosen.begin / axes.DAY:.1f} on; {suspended:,} "
        "of them end in a suspension."
    )
    whole = chosen.begin <= 0 and chosen.end >= seen.length
    note = "All of the replay." if whole else (
        f"A part: around the time at which most GPUs were waited for, as long as {GANGS:,} bars allow."
    )  # fmt: skip
    if len(names) < len(seen.record.nodes):
        note += f" The first {len(names):,} of {len(seen.record.nodes):,} nodes."
    table = [_row(seen, stay) for stay in chosen.stays[:40]]
    if len(chosen.stays) > len(table):
        note += f" The table has the first {len(table)}."
    return plot.Plot(
        "gangs", "Gangs on their nodes", said,
        f"{note} Each bar is a gang on the GPUs of a node that it holds; which of them is not known.",
        draw, ("job", "GPUs", "from", "for", "then"), tuple(table), wide=True,
    )  # fmt: skip


def _kinds(seen: series.Recorded, chosen: Window) -> list[tuple[str, str]]:
    """What the colours of bars mean, of those that there are."""
    kinds = [("met", "meets its deadline"), ("missed", "misses it"), ("none", "has none")]
    kinds += [("starting swatch", "starts up"), ("stopped", "ends in a suspension")]
    kinds += [("late", "ends in a mishap")] if any(stay.struck for stay in chosen.stays) else []
    return kinds + ([("out", "out of service")] if seen.record.outages else [])


def window(seen: series.Recorded) -> Window:
    """Choose the longest stretch around the longest queue that `GANGS` bars can show."""
    edges = seen.edges(400)
    asked = series.asked_for(seen, edges)
    at = float(edges[int(np.argmax(asked))] + edges[int(np.argmax(asked)) + 1]) / 2
    shown = set(list(seen.record.nodes)[:NODES])
    found = Window(0.0, seen.length, ())
    for length in (seen.length, *[days * axes.DAY for days in _LENGTHS if days * axes.DAY < seen.length]):
        begin = min(max(0.0, at - length / 2), seen.length - length)
        found = Window(begin, begin + length, _within(seen, begin, begin + length, shown))
        if sum(1 for stay in found.stays for node, _ in stay.places if node in shown) <= GANGS:
            break
    return found


def _within(seen: series.Recorded, begin: float, end: float, names: set[str]) -> tuple[record.Stay, ...]:
    return tuple(
        stay
        for stay in seen.record.stays
        if seen.clock(stay.since) < end
        and seen.clock(stay.until) > begin
        and any(node in names for node, _ in stay.places)
    )


def _lanes(
    stays: Sequence[record.Stay], names: Sequence[str], per_node: int
) -> list[tuple[record.Stay, int, int, int]]:
    """Give each stay GPUs of its nodes to be drawn on: (stay, node, first GPU, GPUs), neighbours as one.

    Which GPUs of a node a gang has is not known, so these are merely free ones.
    """
    place = {name: index for index, name in enumerate(names)}
    free = [[-1] * per_node for _ in names]  # until when (ms) each GPU is taken
    found: list[tuple[record.Stay, int, int, int]] = []
    for stay in sorted(stays, key=_since):
        for name, gpus in stay.places:
            if name not in place:
                continue
            node = place[name]
            takes = [gpu for gpu in range(per_node) if free[node][gpu] <= stay.since][:gpus]
            for gpu in takes:
                free[node][gpu] = stay.until
                last = found[-1] if found else None
                if last and last[0] is stay and last[1] == node and last[2] + last[3] == gpu:
                    found[-1] = (stay, node, last[2], last[3] + 1)
                else:
                    found.append((stay, node, gpu, 1))
    return found


def _bar(seen: series.Recorded, stay: record.Stay, clock: axes.Scale, y: float, high: float) -> svg.Element:
    """A gang on a node: its start-up paler, a suspension at its end as a dark edge."""
    begin, works, end = (clock(seen.clock(at)) for at in (stay.since, stay.works, stay.until))
    wide = max(end - begin, 0.5)
    drawn = svg.el("g", {}, svg.el("title", {}, ", ".join(_row(seen, stay))))
    drawn.append(svg.box(begin, y, wide, high - 0.5, f"{_kind(stay)} bar"))
    if works - begin > 0.5:
        drawn.append(svg.box(begin, y, min(works - begin, wide), high - 0.5, "starting"))
    if (stay.struck or stay.stopped is not None) and wide > 1.5 and clock.end > end:
        drawn.append(svg.box(end - 1.5, y, 1.5, high - 0.5, "late" if stay.struck else "stopped"))
    return drawn


def _outages(
    seen: series.Recorded,
    chosen: Window,
    names: Sequence[str],
    clock: axes.Scale,
    top: float,
    lane: float,
    high: float,
) -> list[svg.Element]:
    """What of the nodes could not be used, behind the gangs; of a lost GPU the last lane."""
    place = {name: index for index, name in enumerate(names)}
    drawn = []
    for outage in seen.record.outages:
        since, until = seen.clock(outage.since), seen.clock(outage.until)
        if outage.node not in place or until <= chosen.begin or since >= chosen.end:
            continue
        bottom = top + high * place[outage.node] + 1 + lane * seen.record.nodes[outage.node]
        begin, end = clock(since), clock(until)
        tall = lane * outage.gpus
        tip = f"{outage.node}: {outage.gpus:,} GPUs out of service for {words.span(until - since)}"
        drawn.append(svg.box(begin, bottom - tall, max(end - begin, 1.0), tall, "out", tip))
    return drawn


def _out(
    rows: Sequence[series.Floats], left: float, wide: float, top: float, high: float
) -> list[svg.Element]:
    """Cells of a map most of which was out of service."""
    parts = [
        f"M{left + wide * column:.1f} {top + high * index:.1f}h{wide:.2f}v{high - 1}h-{wide:.2f}z"
        for index, row in enumerate(rows)
        for column in (row > 0.5).nonzero()[0].tolist()
    ]
    return [svg.el("path", {"d": "".join(parts), "class": "out"})] if parts else []


def _kind(stay: record.Stay) -> str:
    if stay.life.work.deadline is None:
        return "none"
    return "met" if figures.in_time(stay.life) else "missed"


def _row(seen: series.Recorded, stay: record.Stay) -> tuple[str, ...]:
    """What a table or a tip says of a stay."""
    kind = {"none": "no deadline", "met": "deadline met", "missed": "deadline missed"}[_kind(stay)]
    return (
        words.short(stay.life.work.key, 60),
        f"{stay.life.work.gpus:,} GPUs",
        f"day {seen.clock(stay.since) / axes.DAY:.2f}",
        words.span((stay.until - stay.since) / 1000),
        f"{'ended by a mishap' if stay.struck else 'suspended'}, {kind}" if _cut(stay) else kind,
    )


def _cut(stay: record.Stay) -> bool:
    return stay.struck or stay.stopped is not None


def _cells(
    rows: Sequence[series.Floats], left: float, wide: float, top: float, high: float
) -> list[svg.Element]:
    """The cells of a map, those of a level as one path, neighbours in a row as one rectangle."""
    paths: dict[int, list[str]] = {level: [] for level in _levels()}
    for index, row in enumerate(rows):
        # A cell with anything in it is at least at the first level.
        levels = [min(LEVELS, int(np.ceil(value * LEVELS - 1e-9))) for value in row]
        begin = 0
        for column in range(1, len(levels) + 1):
            if column < len(levels) and levels[column] == levels[begin]:
                continue
            if levels[begin]:
                x, width = left + wide * begin, wide * (column - begin)
                y = top + high * index
                paths[levels[begin]].append(f"M{x:.1f} {y:.1f}h{width:.1f}v{high - 1}h-{width:.1f}z")
            begin = column
    return [
        svg.el("path", {"d": "".join(parts), "class": f"heat{level}"})
        for level, parts in paths.items()
        if parts
    ]


def _levels() -> range:
    return range(1, LEVELS + 1)


def _margin(names: Sequence[str]) -> float:
    """Room for names of nodes to the left of a drawing."""
    return 8.0 + 7.2 * min(max([len(name) for name in names], default=0), LONGEST)


def _since(stay: record.Stay) -> int:
    return stay.since
