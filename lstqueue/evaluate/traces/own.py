"""lstqueue's own format: one job a line, as CSV with a header or as JSON objects; the first line tells which.

| field | | |
|---|---|---|
| key | required | unique in the file |
| submit_ms | required | when it was submitted |
| duration_ms | required | how long the whole gang ran |
| gpus | this or `pods` | GPUs of the gang; cut into pods by the size of a node |
| pods | this or `gpus` | the groups: "4x8+1x3" is four pods of 8 GPUs and one of 3; in JSON also a list of {"count", "requests"} with amounts as integers (cpu in millicores, memory in bytes) |
| user | | whose it is |
| deadline_ms | | by when it should be done, on the clock of submit_ms; empty or null: best effort, whatever the rule |
| requested_ms | | run time its user said it would need at most |
| value | 1 | what meeting its deadline is worth, 1 or more |
| importance | 0 | its tier, -10 to 10 |

Times are whole ms since the trace's zero, a Monday at 00:00 UTC. Unknown times are empty (CSV) or null (JSON)
and their rows dropped; other fields are refused where they cannot be read, since a typing error in one's own
format should not pass for missing data. Without a field `deadline_ms` every job takes part in the rule.
"""  # noqa: E501 - a table's row is one line

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lstqueue.evaluate import workload
from lstqueue.evaluate.traces import cells, collect, tables, text
from lstqueue.topology import model as topology

REQUIRED = ("key", "submit_ms", "duration_ms")
KNOWN = (*REQUIRED, "gpus", "pods", "user", "deadline_ms", "requested_ms", "value", "importance")
TIERS = 10
"""Tiers above and below 0, as a DeadlineJob has them."""
WIDEST = 1 << 50
"""The largest amount of a resource, 1 PiB of memory."""

_GROUP = re.compile(r"(\d{1,6})x(\d{1,6})", re.ASCII)


def read(path: pathlib.Path, rows: collect.Collector) -> None:
    """Hand the rows of the file to `rows`."""
    first = next((line for line in text.lines(path) if line.strip()), "")
    source = _json(path) if first.lstrip().startswith("{") else _csv(path)
    for line, fields in source:
        try:
            rows.add(_draft(fields))
        except _FieldError as error:
            raise text.problem(path, str(error), line=line, column=error.field) from error


class _FieldError(ValueError):
    """What is wrong with a field."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(what)
        self.field = field


def _csv(path: pathlib.Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a table, cells as text."""
    for row in tables.rows(path, REQUIRED, KNOWN):
        yield row.line, {name: row.text(name) for name in KNOWN if row.has(name)}


def _json(path: pathlib.Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects, scalars as text so that both forms are read by the same rules."""
    for number, line in enumerate(text.lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_once, parse_int=str, parse_float=str)
        except (ValueError, RecursionError) as error:
            what = f"is no JSON object ({str(error)[:80]}); write one job a line"
            raise text.problem(path, what, line=number) from error
        if not isinstance(record, dict):
            raise text.problem(path, "is no JSON object; write one job a line", line=number)
        if strange := [name for name in record if name not in KNOWN]:
            what = f"means nothing here; known are {', '.join(KNOWN)}"
            raise text.problem(path, what, line=number, column=strange[0][:40])
        if missing := [name for name in REQUIRED if name not in record]:
            raise text.problem(path, "is missing; write null if unknown", line=number, column=missing[0])
        yield number, {name: "" if value is None else value for name, value in record.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, refusing a name that is there twice."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice")
        found[name] = value
    return found


def _draft(fields: Mapping[str, Any]) -> collect.Draft:
    pods, gpus = _width(fields)
    deadline = _time(fields, "deadline_ms")
    return collect.Draft(
        key=_cell(fields, "key", cells.name),
        user=_cell(fields, "user", cells.name),
        submit=_time(fields, "submit_ms"),
        duration=_time(fields, "duration_ms"),
        gpus=gpus,
        deadline=deadline,
        requested=_time(fields, "requested_ms"),
        value=_whole(fields, "value", default=1, least=1),
        importance=_whole(fields, "importance", default=0, least=-TIERS, most=TIERS),
        undated="deadline_ms" in fields and deadline is None,
        pods=pods,
    )


def _cell(fields: Mapping[str, Any], field: str, reader: Any) -> Any:
    value = fields.get(field, "")
    if not isinstance(value, str):
        raise _FieldError(field, f"is {json.dumps(value)[:40]}; it must be a number or a string")
    try:
        return reader(value)
    except cells.CellError as error:
        raise _FieldError(field, str(error)) from error


def _time(fields: Mapping[str, Any], field: str) -> int | None:
    time: int | None = _cell(fields, field, _whole_ms)
    return time


def _whole_ms(cell: str) -> int | None:
    """A time in whole ms, as our own format has it; what else people write for one is named."""
    try:
        amount = cells.number(cell)
    except cells.CellError as error:
        raise cells.CellError(f"{error}; times are whole ms, two hours are 7200000") from error
    if amount is not None and amount != amount.to_integral_value():
        raise cells.CellError(f"{cell!r} is not whole; times are whole ms, two hours are 7200000")
    return cells.ms(cell, 1)


def _whole(fields: Mapping[str, Any], field: str, *, default: int, least: int, most: int = cells.MOST) -> int:
    amount: int | None = _cell(fields, field, cells.count)
    if amount is not None and not least <= amount <= most:
        must = f"{least} or more" if most == cells.MOST else f"{least} to {most}"
        raise _FieldError(field, f"is {amount}; it must be {must}")
    return default if amount is None else amount


def _width(fields: Mapping[str, Any]) -> tuple[tuple[workload.Pods, ...], int | None]:
    """The groups as far as they are given, and the GPUs of the gang."""
    gpus: int | None = _cell(fields, "gpus", cells.count)
    listed = fields.get("pods", "")
    if listed == "":
        if not {"gpus", "pods"} & set(fields):
            raise _FieldError("gpus", "is missing, and so is pods; give one of them")
        return (), gpus
    pods = _short(listed) if isinstance(listed, str) else _listed(listed)
    total = sum(group.count * dict(group.requests).get(workload.GPU, 0) for group in pods)
    if total > cells.MOST:
        raise _FieldError("pods", f"asks for {total} GPUs, beyond {cells.MOST}; check the counts")
    if gpus not in (None, total):
        raise _FieldError("pods", f"has {total} GPUs and gpus says {gpus}; leave gpus out")
    return pods, total


def _short(listed: str) -> tuple[workload.Pods, ...]:
    """Groups as "4x8+1x3"."""
    found = []
    for part in listed.split("+"):
        match = _GROUP.fullmatch(part.strip())
        count, each = (int(match[1]), int(match[2])) if match else (0, 0)
        if not count or not each:
            raise _FieldError("pods", f'{listed[:40]!r} must read like "4x8+1x3", pods times GPUs of one')
        found.append(workload.Pods(count, workload.pod(each)))
    return tuple(found)


def _listed(listed: Any) -> tuple[workload.Pods, ...]:
    """Groups as a list of {"count", "requests"}."""
    form = 'must be a list of {"count": pods, "requests": {resource: amount of one}}'
    if not isinstance(listed, list) or not listed:
        raise _FieldError("pods", form)
    found = []
    for group in listed:
        if not isinstance(group, dict) or set(group) != {"count", "requests"}:
            raise _FieldError("pods", form)
        requests = group["requests"]
        if not isinstance(requests, dict):
            raise _FieldError("pods", form)
        amounts = {name: _amount(amount) for name, amount in requests.items()}
        amounts[topology.PODS] = 1
        found.append(workload.Pods(_amount(group["count"], cells.MOST), topology.resources(amounts)))
    return tuple(found)


def _amount(written: Any, most: int = WIDEST) -> int:
    """A positive integer; numbers come as text."""
    fine = isinstance(written, str) and re.fullmatch(r"[0-9]{1,16}", written)
    amount = int(written) if fine else 0
    if not 0 < amount <= most:
        raise _FieldError("pods", f"has {str(written)[:40]!r}; it must be an integer, 1 to {most}")
    return amount
