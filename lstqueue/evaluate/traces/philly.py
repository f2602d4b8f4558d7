"""Jobs of Microsoft's Philly clusters (Jeon et al., ATC 2019), in the short list that other papers carry.

Columns used: timestamp (of the submission, YYYY-MM-DD HH:MM:SS by the wall clock there), duration (s),
num_gpus, cluster (the virtual cluster, which stands for the user). There are no ids: a job is called by its
row. The trace's zero is the Monday, 00:00, before the first submission, so weekdays and hours are the real
ones; where clocks were changed a day is an hour off.
"""

from __future__ import annotations

import datetime
import pathlib
import re

from lstqueue.evaluate.traces import cells, collect, tables

REQUIRED = ("timestamp", "duration", "num_gpus", "cluster")
SECOND = 1000
_FORM = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_BEGIN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def read(path: pathlib.Path, rows: collect.Collector) -> None:
    """Hand the rows of the file to `rows`."""
    table = list(tables.rows(path, REQUIRED))
    moments = [row.read("timestamp", _timestamp) for row in table]
    zero = _monday(min((moment for moment in moments if moment is not None), default=0))
    for number, (row, moment) in enumerate(zip(table, moments, strict=True)):
        rows.add(
            collect.Draft(
                key=f"row-{number:06}",
                user=row.name("cluster"),
                submit=None if moment is None else moment - zero,
                duration=row.ms("duration", SECOND),
                gpus=row.count("num_gpus"),
            )
        )


def _timestamp(cell: str) -> int | None:
    """Ms since 1970 by that clock."""
    if cells.unknown(cell):
        return None
    try:
        if not _FORM.fullmatch(cell):
            raise ValueError
        moment = datetime.datetime.fromisoformat(cell).replace(tzinfo=datetime.UTC)
    except ValueError as error:
        what = f"{cell[:40]!r} is no time; it must read YYYY-MM-DD HH:MM:SS"
        raise cells.CellError(what) from error
    return (moment - _BEGIN) // datetime.timedelta(milliseconds=1)


def _monday(moment: int) -> int:
    """The last Monday, 00:00, in ms like `moment`."""
    day = 86_400_000
    return moment - (moment + 3 * day) % (7 * day)  # 1970 began on a Thursday
