"""The Standard Workload Format of the Parallel Workloads Archive (Chapin et al. 1999), version 2.2.

Eighteen fields a line, -1 for what is unknown, `;` before comments. Used, counted from 1: job number (1),
submit time (2, s), run time (4, s), allocated processors (5), requested processors (8), requested time
(9, s), status (11), user (12). A processor counts as a GPU, so name the processors of a node as its GPUs.

Dropped: partial executions (status 2, 3 and 4; the job's own line sums them up), and jobs without a run time
or a width. Completed: a width that is known from the request alone, unless the job was cancelled (status 5),
since then it may never have been given processors. Jobs that failed or were cancelled while they ran stay:
they used the machine. The format has no deadlines.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TypeVar

from lstqueue.evaluate.traces import cells, collect, text

T = TypeVar("T")

FIELDS = 18
SECOND = 1000
NUMBER, SUBMIT, RUN, ALLOCATED, WANTED, LIMIT, STATUS, USER = 0, 1, 3, 4, 7, 8, 10, 11
NAMES = {
    NUMBER: "job number",
    SUBMIT: "submit time",
    RUN: "run time",
    ALLOCATED: "allocated processors",
    WANTED: "requested processors",
    LIMIT: "requested time",
    STATUS: "status",
    USER: "user",
}
PARTIAL = "partial execution"
PARTIAL_STATUS = (2, 3, 4)
CANCELLED = 5
FROM_REQUEST = "width taken from the request"


def read(path: pathlib.Path, rows: collect.Collector) -> None:
    """Hand the lines of the file to `rows`."""
    for line, content in enumerate(text.lines(path), 1):
        bare = content.strip()
        if not bare or bare.startswith(";"):
            continue
        fields = bare.split()
        if len(fields) != FIELDS:
            what = f"it has {len(fields)} fields where {FIELDS} belong; is this SWF?"
            raise text.problem(path, what, line=line)
        draft = _draft(path, line, fields)
        if draft is None:
            rows.drop(PARTIAL)
        else:
            rows.add(draft)


def _draft(path: pathlib.Path, line: int, fields: list[str]) -> collect.Draft | None:
    """One line as a job; None for a partial execution."""

    def read(field: int, reader: Callable[[str], T]) -> T:
        try:
            return reader(fields[field])
        except cells.CellError as error:
            raise text.problem(path, str(error), line=line, column=NAMES[field]) from error

    status = read(STATUS, cells.count)
    if status in PARTIAL_STATUS:
        return None
    user = read(USER, cells.name)
    width, wanted = read(ALLOCATED, _processors), read(WANTED, _processors)
    from_request = width is None and wanted is not None and status != CANCELLED
    return collect.Draft(
        key=read(NUMBER, cells.name),
        user="" if user == "-1" else user,
        submit=read(SUBMIT, _seconds),
        duration=read(RUN, _seconds),
        gpus=wanted if from_request else width,
        requested=read(LIMIT, _seconds),
        completed=FROM_REQUEST if from_request else "",
    )


def _seconds(cell: str) -> int | None:
    """A time in ms; the format's -1 is unknown."""
    time = cells.ms(cell, SECOND)
    return None if time is None or time < 0 else time


def _processors(cell: str) -> int | None:
    """A width; archives write -1 and 0 alike where they do not know it."""
    width = cells.count(cell)
    return None if width is None or width <= 0 else width
