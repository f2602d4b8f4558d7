"""The domains of an interconnect, as a tree for people and as JSON for scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import console, text, tree

from lstqueue.interconnect.sources import Gpus, Source
from lstqueue.topology.domains import Domains, LeftOut, Level, Merged

_LAST = re.compile(r"(?<!\\)/")
WIDTH = 4096
"""Columns to print for: names are cut by nobody, and a terminal wraps by itself."""
_NAMED = 3
"""Names that stand for all of those of one reason."""
_DRAWN = 1000
"""Domains that a tree shows; a page of more is read by nobody."""
_REASONS = 20
"""Reasons that are told; the others are in the JSON."""


def document(source: Source) -> dict[str, Any]:
    """Return all there is, for JSON. Rates are MB/s one way, null where unknown."""
    made = source.domains
    return {
        "source": source.name,
        "levels": {level.name: len(level.names) for level in made.levels},
        "nodes": [
            {"name": name, "link": int(made.link[place]) or None, **_gpus(source.within(place, place + 1))}
            for place, name in enumerate(made.nodes)
        ],
        "domains": [
            item for depth, level in enumerate(made.levels) for item in _listed(source, depth, level)
        ],
        "left_out": [{"name": item.name, "reason": item.reason} for item in made.left_out],
        "merged": [{"name": item.name, "reason": item.reason} for item in made.merged],
        "notes": list(source.notes),
    }


def _gpus(has: Gpus | None) -> dict[str, int]:
    return {} if has is None else {"free": has.free, "gpus": has.whole}


def _listed(source: Source, depth: int, level: Level) -> list[dict[str, Any]]:
    made, found = source.domains, []
    for index, name in enumerate(level.names):
        parent = int(level.parents[index])
        found.append(
            {
                "level": level.name,
                "name": name,
                "parent": made.levels[depth - 1].names[parent] if parent >= 0 else None,
                "start": int(level.starts[index]),
                "end": int(level.ends[index]),
                "uplink": int(level.uplink[index]) or None,
                **_gpus(source.within(int(level.starts[index]), int(level.ends[index]))),
            }
        )
    return found


def write(terminal: console.Console, source: Source) -> None:
    """Print the tree, and what was left out or merged."""
    made = source.domains
    counts = ", ".join(f"{level.name} {len(level.names):,}" for level in made.levels) or "no levels"
    whole = _free(source.within(0, len(made.nodes)))
    root = tree.Tree(_text(f"{source.name}: {_nodes(len(made.nodes))}{whole}; {counts}"))
    _Drawing(source).branches(root, depth=0, start=0, end=len(made.nodes))
    terminal.print(root)
    for note in source.notes:
        terminal.print(_text(f"note: {note}."))
    _reasons(terminal, "merged", made.merged)
    _reasons(terminal, "left out", made.left_out)


@dataclass(slots=True)
class _Drawing:
    """A tree as far as it is drawn: the first `_DRAWN` domains of it."""

    source: Source
    drawn: int = 0

    @property
    def made(self) -> Domains:
        """The domains."""
        return self.source.domains

    def branches(self, root: tree.Tree, *, depth: int, start: int, end: int) -> None:
        """Add the domains within a slice, outer levels first, and the nodes that are in no finer one."""
        if self.drawn > _DRAWN:
            return
        if depth == len(self.made.levels):
            if end > start:
                root.add(_text(_members(self.source, start, end)))
            return
        level = self.made.levels[depth]
        at = start
        first, last = (int(level.starts.searchsorted(bound)) for bound in (start, end))
        for index in range(first, last):
            begin, stop = int(level.starts[index]), int(level.ends[index])
            if begin > at:
                self.branches(root, depth=depth + 1, start=at, end=begin)
            self.drawn += 1
            if self.drawn > _DRAWN:
                root.add("… and so on; -o json has all")
                return
            branch = root.add(_text(_domain(self.source, level, index)))
            self.branches(branch, depth=depth + 1, start=begin, end=stop)
            at = stop
        if at < end:
            self.branches(root, depth=depth + 1, start=at, end=end)


def _domain(source: Source, level: Level, index: int) -> str:
    up = f", {rate(int(level.uplink[index]))} up" if level.uplink[index] else ""
    start, end = int(level.starts[index]), int(level.ends[index])
    free = _free(source.within(start, end))
    return f"{level.name} {_LAST.split(level.names[index])[-1]}: {_nodes(end - start)}{free}{up}"


def _free(has: Gpus | None) -> str:
    return "" if has is None else f", {has.free:,} of {has.whole:,} GPUs free"


def _named(source: Source, name: str) -> str:
    has = source.gpus.get(name) if source.gpus is not None else None
    return name if has is None else f"{name} ({has.free} of {has.whole})"


def _members(source: Source, start: int, end: int) -> str:
    made = source.domains
    names = [_named(source, name) for name in made.nodes[start:end]]
    shown = " ".join(names) if len(names) <= _NAMED else f"{names[0]} {names[1]} … {names[-1]}"
    links = made.link[start:end]
    low, high = int(links.min()), int(links.max())
    if not high:
        return shown
    speed = rate(high) if low == high else f"{rate(low) if low else 'unknown'} to {rate(high)}"
    return f"{shown}, {speed} each"


def rate(bandwidth: int) -> str:
    """MB/s as networks are called: 50,000 is 400 Gb/s."""
    gigabits = bandwidth * 8 / 1000
    return f"{gigabits:,.0f} Gb/s" if gigabits < 10_000 else f"{gigabits / 1000:,.1f} Tb/s"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"


def _reasons(terminal: console.Console, title: str, items: Sequence[LeftOut | Merged]) -> None:
    """Tell each reason once, with some of those that have it."""
    names: dict[str, list[str]] = {}
    for item in items:
        names.setdefault(item.reason, []).append(item.name)
    for reason, count in Counter({reason: len(its) for reason, its in names.items()}).most_common(_REASONS):
        some = ", ".join(names[reason][:_NAMED]) + (f" and {count - _NAMED:,} more" if count > _NAMED else "")
        terminal.print(_text(f"{title}: {some}: {reason}."))
    if len(names) > _REASONS:
        terminal.print(f"{title}: {len(names) - _REASONS:,} more reasons; -o json has all of them.")


def _text(said: str) -> text.Text:
    """Text that is no markup, and in which nothing of a file moves the cursor."""
    return text.Text("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in said))
