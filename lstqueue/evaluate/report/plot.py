"""What a plot is: a title, a drawing, words for who cannot see it, and a table for who wants the numbers.

A plot is drawn twice, for wide and for narrow screens, since a drawing that is only scaled down cannot be
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lstqueue.evaluate.report import svg

NARROW = 500
"""Drawings up to this width are for narrow screens: fewer bins and ticks, values below instead of beside."""
_BINS = 220
_TICKS = 12


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: `said` says in a sentence what it shows, `note` how it was made; `draw` takes a width.

    Widths are in pixels. `head` and `rows` are the table. A `wide` plot takes a row of its own. `key` is its
    name in the page.
    """

    key: str
    title: str
    said: str
    note: str
    draw: Callable[[float], svg.Element]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide: bool = False


def bins(width: float) -> int:
    """How many bins of a curve suit a drawing: each some pixels wide."""
    return _BINS if width > NARROW else _BINS // 3


def ticks(width: float) -> int:
    """How many times suit an axis, at most."""
    return _TICKS if width > NARROW else _TICKS // 3
