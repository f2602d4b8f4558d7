"""Tables of policies by figures for terminals of any width: what does not fit beside goes into a table below.

Nothing is cut: a figure without its end, or two policies whose names begin alike, would mislead.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich import table

LONGEST = 32
"""Characters of a policy's name in one line, at most; longer ones go on in the next."""
_EDGES = 3
"""Characters that a column takes beside what is in it."""


def tables(
    title: str, caption: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int
) -> Iterator[table.Table]:
    """Return tables of some columns each, all with the names.

    Args:
        title: Of each.
        caption: Of the last.
        heads: Of the columns beside the names.
        rows: A name, and a cell for each of `heads`.
        width: Characters of a line.
    """
    left = min(LONGEST, max(len(name) for name, _ in rows))
    names = ["\n".join(textwrap.wrap(name, left, break_on_hyphens=False)) for name, _ in rows]
    columns = [[cells[number] for _, cells in rows] for number in range(len(heads))]
    widths = [_width(head, cells) for head, cells in zip(heads, columns, strict=True)]
    first = 0
    while first < len(heads):
        last, room = first + 1, width - left - _EDGES - 1 - widths[first] - _EDGES
        while last < len(heads) and (room := room - widths[last] - _EDGES) >= 0:
            last += 1
        shown = table.Table(title=title, caption=caption if last == len(heads) else None)
        shown.add_column("policy", no_wrap=True)
        for number in range(first, last):
            head = "\n".join(textwrap.wrap(heads[number], widths[number]))
            shown.add_column(head, justify="right", no_wrap=True)
        for row, name in enumerate(names):
            shown.add_row(name, *[column[row] for column in columns[first:last]])
        yield shown
        first = last


def _width(head: str, cells: Sequence[str]) -> int:
    lines = [line for cell in cells for line in cell.splitlines()]
    return max(len(part) for part in (*lines, *head.split()))
