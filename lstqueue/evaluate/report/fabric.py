"""The interconnect of a replay: its domains from the outermost level to the node, and how full each was.

How full is the part of a domain's GPUs that gangs held, as the mean over all of the replay: what stood idle
shows, and a rush at the end does not. A level is drawn where each of its domains has a few pixels; a drawing
says which levels it leaves out, and the table has as many of them as can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lstqueue.evaluate.report import axes, gantt, plot, series, svg, words
from lstqueue.topology import domains
from lstqueue.topology.table import Ints

LEAST = 4.0
"""Units that a domain needs of a drawing's width to be seen."""
TABLE = 200
"""Rows of the table at most; levels are in it whole or not at all."""
NODE = "node"
_HIGH = 36.0
_LONGEST = 14


@dataclass(frozen=True, slots=True)
class Level:
    """One level. Domain i has the nodes `starts[i]:ends[i]`, and `gpus[i]` GPUs.

    `used` and `out` are the parts of these that gangs held and that were out of service, means over the
    replay. `names` are full paths.
    """

    name: str
    names: tuple[str, ...]
    starts: Ints
    ends: Ints
    gpus: series.Floats
    used: series.Floats
    out: series.Floats


def levels(seen: series.Recorded, found: domains.Domains) -> list[Level]:
    """The levels, outermost first: all nodes as one, those of the interconnect, and the nodes themselves."""
    count = len(found.nodes)
    place = {name: index for index, name in enumerate(found.nodes)}
    gpus, used, out = np.zeros(count), np.zeros(count), np.zeros(count)
    for name, index in place.items():
        gpus[index] = seen.record.nodes.get(name, 0)
    for stay in seen.record.stays:
        for name, held in stay.places:
            used[place[name]] += held * (stay.until - stay.since)
    for outage in seen.record.outages:
        out[place[outage.node]] += outage.gpus * (outage.until - outage.since)
    whole = [np.concatenate([[0.0], np.cumsum(part)]) for part in (gpus, used, out)]

    def summed(name: str, names: tuple[str, ...], starts: Ints, ends: Ints) -> Level:
        have, held, lost = (part[ends] - part[starts] for part in whole)
        time = np.maximum(have, 1.0) * seen.length * 1000
        return Level(name, names, starts, ends, have, held / time, lost / time)

    ones = np.arange(count, dtype=np.int64)
    return [
        summed("all", ("all nodes",), np.array([0], dtype=np.int64), np.array([count], dtype=np.int64)),
        *[summed(level.name, level.names, level.starts, level.ends) for level in found.levels],
        summed(NODE, found.nodes, ones, ones + 1),
    ]


def fullness(seen: series.Recorded, found: domains.Domains) -> plot.Plot:
    """The tree: a row for a level, a box for a domain, as wide as it has nodes, darker the fuller it was."""
    rows = levels(seen, found)
    said = _said(rows)
    note = "The mean of GPUs that gangs held over all of the replay, of those that a domain has. "
    note += "A domain stands below the one that it is part of, as wide as it has nodes."
    if any(int((row.ends - row.starts).sum()) < len(found.nodes) for row in rows):
        note += " Where a row has a gap, nodes are in no domain of that level."
    listed, unlisted = _listed(rows)
    if unlisted:
        note += f" The table leaves out {_counted(unlisted)}."
    table = [
        (
            words.short(row.names[index], 60), words.short(row.name, 40),
            f"{row.ends[index] - row.starts[index]:,}", f"{row.gpus[index]:,.0f}",
            words.share(float(row.used[index])), words.share(float(row.out[index])),
        )
        for row in listed for index in range(len(row.names))
    ]  # fmt: skip
    return plot.Plot(
        "interconnect", "How full the interconnect's domains were", said, note,
        lambda width: _draw(rows, width, _in_all(rows)),
        ("domain", "level", "nodes", "GPUs", "in use", "out of service"), tuple(table), wide=True,
    )  # fmt: skip


def kept(seen: series.Recorded, found: domains.Domains) -> dict[str, Any] | None:
    """How full the domains were of the innermost level that can be told in a comparison, for its JSON."""
    told = [row for row in levels(seen, found)[1:] if 1 < len(row.names) <= TABLE]
    if not told:
        return None
    row = told[-2] if len(told) > 1 and told[-1].name == NODE else told[-1]
    return {
        "level": row.name,
        "names": list(row.names),
        "starts": row.starts.tolist(),
        "ends": row.ends.tolist(),
        "gpus": row.gpus.tolist(),
        "used": [round(float(used), 6) for used in row.used],
    }


def compared(key: str, title: str, told: Mapping[str, Sequence[Mapping[str, Any]]]) -> plot.Plot:
    """A row for each of several kinds of replays, a box for a domain; `told` by kind has each one's `kept`.

    How full a domain was is the mean of all replays of a kind.
    """
    rows = []
    for name, runs in told.items():
        first = runs[0]
        gpus = np.array(first["gpus"], dtype=np.float64)
        used = np.array([run["used"] for run in runs], dtype=np.float64).mean(axis=0)
        starts, ends = (np.array(first[end], dtype=np.int64) for end in ("starts", "ends"))
        rows.append(Level(name, tuple(first["names"]), starts, ends, gpus, used, np.zeros(len(used))))
    said = "; ".join(
        f"{words.short(row.name, 40)} {words.share(float(row.used.min()))} to "
        f"{words.share(float(row.used.max()))}"
        for row in rows
    )
    note = "A box for each domain, as wide as it has nodes, darker the fuller it was over all of the replay."
    level = words.short(next(iter(told.values()))[0]["level"], 40)
    table = [
        (words.short(row.name, 40), words.short(name, 60), f"{gpus:,.0f}", words.share(float(used)))
        for row in rows
        for name, gpus, used in zip(row.names, row.gpus.tolist(), row.used.tolist(), strict=True)
    ]
    return plot.Plot(
        key, title, f"In use of each {level}: {said}.", note,
        lambda width: _draw(rows, width, "How full domains were."),
        ("replay", "domain", "GPUs", "in use"), tuple(table), wide=True,
    )  # fmt: skip


def several(rows: list[Level]) -> Level:
    """The innermost level of the interconnect that has several domains; the nodes where none has."""
    return next((row for row in reversed(rows[:-1]) if len(row.names) > 1), rows[-1])


def _said(rows: list[Level]) -> str:
    told = several(rows)
    text = f"{_in_all(rows)} Domains: {_counted(rows[1:])}."
    full, idle = int(np.argmax(told.used)), int(np.argmin(told.used))
    if full == idle:
        return text
    fullest, emptiest = (
        f"{words.short(told.names[at], 40)} with {words.share(float(told.used[at]))}" for at in (full, idle)
    )
    level = words.short(told.name, 40)
    return f"{text} Of level {level} the fullest was {fullest}, the emptiest {emptiest}."


def _in_all(rows: list[Level]) -> str:
    # Without a name from elsewhere: it labels the drawing, which is to be valid XML as well.
    return f"Gangs held {words.share(float(rows[0].used[0]))} of {rows[0].gpus[0]:,.0f} GPUs."


def _counted(rows: list[Level]) -> str:
    return ", ".join(f"{len(row.names):,} of level {words.short(row.name, 40)}" for row in rows)


def _listed(rows: list[Level]) -> tuple[list[Level], list[Level]]:
    """The levels that the table has, and those that it leaves out."""
    listed: list[Level] = []
    for row in rows:
        if sum(len(other.names) for other in listed) + len(row.names) <= TABLE:
            listed.append(row)
    return listed, [row for row in rows if row not in listed]


def _draw(rows: list[Level], width: float, said: str) -> svg.Element:
    left = 12.0 + 7.2 * min(max(len(row.name) for row in rows), _LONGEST)
    right, top = width - 16, 8.0
    scale = axes.Scale(0, max(1.0, *(float(row.ends.max()) for row in rows)), left, right)
    shown = [row for row in rows if len(row.names) * LEAST <= right - left or row is rows[0]]
    drawn: list[svg.Element] = []
    for index, row in enumerate(shown):
        y = top + _HIGH * index
        name = words.short(row.name, _LONGEST)
        drawn.append(svg.text(left - 8, y + _HIGH / 2 + 4, name, kind="tick", anchor="end"))
        drawn += [_box(row, number, scale, y) for number in range(len(row.names))]
    y = top + _HIGH * len(shown)
    for row in rows:
        if row not in shown:
            y += 18
            text = f"Too many to draw here: {len(row.names):,} of level {words.short(row.name, _LONGEST)}."
            drawn.append(svg.text(8, y, text, kind="tick"))
    heats = [("empty", "none"), ("heat1", f"below {1 / gantt.LEVELS:.0%}")]
    heats += [
        (f"heat{to}", f"{(to - 1) / gantt.LEVELS:.0%} to {to / gantt.LEVELS:.0%}")
        for to in range(2, gantt.LEVELS + 1)
    ]
    below, end = axes.legend(heats, left if width > plot.NARROW else 0, y + 16, width)
    return svg.drawing(width, end, f"{said} A box for each domain, by level.", *drawn, *below)


def _box(row: Level, number: int, scale: axes.Scale, y: float) -> svg.Element:
    """A domain with as much of its name and its figure as there is room for."""
    begin, end = scale(float(row.starts[number])), scale(float(row.ends[number]))
    used = float(row.used[number])
    heat = min(gantt.LEVELS, int(np.ceil(used * gantt.LEVELS - 1e-9)))
    share = words.share(used)
    tip = (
        f"{words.short(row.names[number], 60)}: {share} of {row.gpus[number]:,.0f} GPUs in use, "
        f"{row.ends[number] - row.starts[number]:,} nodes"
    )
    if row.out[number] > 0:
        tip += f", {words.share(float(row.out[number]))} out of service"
    wide = max(end - begin - 1, 1.0)
    made = svg.el("g", {}, svg.el("title", {}, tip))
    made.append(svg.box(begin, y, wide, _HIGH - 2, f"heat{heat}" if heat else "empty"))
    name = words.short(_last(row.names[number]), 24)
    over = "onheat" if heat > 3 else "label"
    middle = begin + wide / 2
    lines = [text for text in (name, share) if len(text) * axes.CHARACTER + 4 <= wide]
    for line, text in enumerate(lines):
        at = y + _HIGH / 2 + 3 + (14 * line - 7 if len(lines) == 2 else 0)
        made.append(svg.text(middle, at, text, kind=over, anchor="middle"))
    return made


def _last(path: str) -> str:
    """The last part of a domain's path, which is its own name."""
    return re.split(r"(?<!\\)/", path)[-1].replace("\\/", "/").replace("\\\\", "\\") or path
