"""The topology of Alibaba's Lingjun dataset of 2023: a line a host, with its three switches, top first."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from lstqueue.topology.domains import LeftOut
from lstqueue.topology.found import Found, Said, TopologyError, known, within

_HEADER = ["ip", "DSW", "PSW", "ASW"]
_LEVELS = ("fabric", "block", "leafgroup")


def read(lines: Iterable[str]) -> Found:
    """Read the lines of a file.

    Raises:
        TopologyError: It has another header, or no host.
    """
    rows = csv.reader(lines, strict=True)
    columns: tuple[dict[str, str], ...] = tuple({} for _ in _LEVELS)
    nodes: dict[str, None] = {}
    left_out = []
    try:
        if next(rows, None) != _HEADER:
            raise TopologyError("line 1", f"is not {','.join(_HEADER)}; give topo.csv of the dataset")
        for row in rows:
            where = f"line {rows.line_num}"
            if len(row) != len(_HEADER) or known(row[0]) is None:
                left_out.append(LeftOut(where, f"is not {','.join(_HEADER)}; mend or remove it"))
            elif row[0] in nodes:
                left_out.append(LeftOut(f"{row[0]} ({where})", "is there twice, and the first counts"))
            else:
                nodes[row[0]] = None
                for column, value in zip(columns, row[1:], strict=True):
                    if (name := known(value)) is not None:
                        column[row[0]] = name
    except csv.Error as error:
        raise TopologyError(f"line {rows.line_num}", f"is no CSV ({error}); mend that") from error
    if not nodes:
        raise TopologyError("", "has no host; give topo.csv of the dataset")
    within(nodes)
    said = tuple(Said(level, column) for level, column in zip(_LEVELS, columns, strict=True))
    return Found(tuple(nodes), said=said, left_out=tuple(left_out))
