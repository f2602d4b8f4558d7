"""Chronus' traces, made from Philly's (Gao et al., SoCC 2021): strict, soft and best-effort jobs.

Columns used: job_id, user, num_gpu, submit_time, duration, expect_time_list, expect_value_list, job_type
(strict, soft or best). Times are minutes: nothing upstream says so, but the last submission is 14 days of
them. expect_time_list holds deadlines relative to the submission and expect_value_list what each is worth,
separated by dashes; a deadline has no steps here, so a soft job counts with its first. Best-effort rows carry
a placeholder there, which is not read.
"""

from __future__ import annotations

import pathlib

from lstqueue.evaluate.traces import cells, collect, tables

REQUIRED = (
    "job_id",
    "user",
    "num_gpu",
    "submit_time",
    "duration",
    "expect_time_list",
    "expect_value_list",
    "job_type",
)
MINUTE = 60_000
FIRST_STEP = "first of several soft deadlines taken"
WORTHLESS = "value unknown or below 1 taken as 1"
DATED, BEST = ("strict", "soft"), "best"


def read(path: pathlib.Path, rows: collect.Collector) -> None:
    """Hand the rows of the file to `rows`."""
    for row in tables.rows(path, REQUIRED):
        best = row.read("job_type", _kind) == BEST
        submit = row.ms("submit_time", MINUTE)
        deadline, value, completed = (None, 1, "") if best else _deadline(row, submit)
        rows.add(
            collect.Draft(
                key=row.name("job_id"),
                user=row.name("user"),
                submit=submit,
                duration=row.ms("duration", MINUTE),
                gpus=row.count("num_gpu"),
                deadline=deadline,
                value=value,
                undated=best,
                completed=completed,
            )
        )


def _deadline(row: tables.Row, submit: int | None) -> tuple[int | None, int, str]:
    """The first deadline on the trace's clock, its value, and how the row was completed."""
    relative = row.read("expect_time_list", lambda cell: cells.ms(_first(cell), MINUTE))
    value = row.read("expect_value_list", lambda cell: cells.count(_first(cell)))
    deadline = None if submit is None or relative is None else submit + relative
    if value is None or value < 1:
        return deadline, 1, WORTHLESS
    several = len(row.text("expect_time_list").split("-")) > 1 and deadline is not None
    return deadline, value, FIRST_STEP if several else ""


def _first(cell: str) -> str:
    return cell.split("-")[0]


def _kind(cell: str) -> str:
    if cell not in (*DATED, BEST):
        raise cells.CellError(f"{cell[:40]!r} is no type of job; it must be strict, soft or best")
    return cell
