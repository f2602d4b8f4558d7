"""Traces that are CSV tables with a header: rows by column name, and errors that name line and column."""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lstqueue.evaluate.traces import cells, text

T = TypeVar("T")


class Row:
    """One row; each reading method names the cell in its error."""

    __slots__ = ("_cells", "_columns", "_path", "line")

    def __init__(self, path: pathlib.Path, columns: dict[str, int], row: list[str], line: int) -> None:
        self._path = path
        self._columns = columns
        self._cells = row
        self.line = line

    def has(self, column: str) -> bool:
        """Whether the table has the column."""
        return column in self._columns

    def text(self, column: str) -> str:
        """The cell as it stands; empty where there is no such column."""
        index = self._columns.get(column)
        return "" if index is None else self._cells[index].strip()

    def name(self, column: str) -> str:
        """The cell as a name (`cells.name`)."""
        return self.read(column, cells.name)

    def ms(self, column: str, unit: int) -> int | None:
        """The cell as a time in units of `unit` ms (`cells.ms`)."""
        return self.read(column, lambda cell: cells.ms(cell, unit))

    def count(self, column: str) -> int | None:
        """The cell as a whole number (`cells.count`)."""
        return self.read(column, cells.count)

    def read(self, column: str, reader: Callable[[str], T]) -> T:
        """Read a cell with `reader`; what it raises as a `cells.CellError` gets the place."""
        try:
            return reader(self.text(column))
        except cells.CellError as error:
            raise text.problem(self._path, str(error), line=self.line, column=column) from error


def rows(path: pathlib.Path, required: Sequence[str], known: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows below the header; empty lines are passed over.

    Args:
        path: The file.
        required: Columns it must have.
        known: When given, it may have no others than these.

    Raises:
        TraceError: No header, a column missing or there twice, a row of another length, or broken quoting.
    """
    table = csv.reader(text.lines(path), strict=True)
    try:
        header = next((row for row in table if row), None)
        columns = _columns(path, header, required, known)
        for row in table:
            if not row:
                continue
            if len(row) != len(columns):
                what = f"it has {len(row)} cells and the header {len(columns)}; the row is cut off or broken"
                raise text.problem(path, what, line=table.line_num)
            yield Row(path, columns, row, table.line_num)
    except csv.Error as error:
        what = f"is no CSV ({error}); look for an unbalanced quote or old line ends"
        raise text.problem(path, what, line=max(1, table.line_num)) from error


def _columns(
    path: pathlib.Path, header: list[str] | None, required: Sequence[str], known: Sequence[str]
) -> dict[str, int]:
    """Where each column of the header is."""
    needs = f"its first line must name the columns {', '.join(required)}"
    if header is None:
        raise text.problem(path, f"is empty; {needs}")
    names = [name.strip() for name in header]
    if missing := [name for name in required if name not in names]:
        shown = ", ".join(name[:40] for name in names[:20])
        what = f"has no column {', '.join(missing)} (it has: {shown}); {needs}; or name another format"
        raise text.problem(path, what, line=1)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise text.problem(path, f"names the column {twice[0]!r} twice; remove one", line=1)
    if known and (strange := [name for name in names if name not in known]):
        what = f"has a column {strange[0]!r} that means nothing here; known are {', '.join(known)}"
        raise text.problem(path, what, line=1)
    return {name: index for index, name in enumerate(names)}
