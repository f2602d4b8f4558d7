"""Readers of job traces, each for the format that somebody publishes, and one of lstqueue's own.

`read("FORMAT:PATH")` is the whole interface. A reader hands rows to `collect`, which has the rules that are
the same for all; `tables`, `cells` and `text` know files and nothing of jobs. Anything wrong with a file is a
`TraceError`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping

from lstqueue.evaluate import workload
from lstqueue.evaluate.traces import chronus, collect, elasticflow, openb, own, philly, swf
from lstqueue.evaluate.traces.text import TraceError, problem

__all__ = ["FORMATS", "TraceError", "read"]

FORMATS: Mapping[str, Callable[[pathlib.Path, collect.Collector], None]] = {
    "chronus": chronus.read,
    "elasticflow": elasticflow.read,
    "lstqueue": own.read,
    "openb": openb.read,
    "philly": philly.read,
    "swf": swf.read,
}
"""What reads each format."""

ENDINGS = (".gz", ".csv", ".jsonl", ".swf")


def read(spec: str, *, gpus_per_node: int = 8) -> workload.Workload:
    """Read a trace.

    Args:
        spec: `FORMAT:PATH`; the file may be gzip.
        gpus_per_node: What gangs are cut to: whole nodes, and one pod of the rest.

    Raises:
        TraceError: No such format or file, or a file that is broken or without one usable job.
    """
    form, colon, path = spec.partition(":")
    if not colon or form not in FORMATS or not path:
        known = ", ".join(sorted(FORMATS))
        if colon and path and form not in FORMATS:
            raise TraceError(f"{form!r} is no format; write FORMAT:PATH with one of {known}")
        raise TraceError(f"{spec!r} is no trace; write FORMAT:PATH with one of {known}")
    if gpus_per_node < 1:
        raise ValueError(f"gpus_per_node is {gpus_per_node}; it must be 1 or more")
    file = pathlib.Path(path)
    rows = collect.Collector(gpus_per_node)
    FORMATS[form](file, rows)
    found = rows.finish(f"{form}:{_stem(file.name)}")
    if not found.works:
        why = ", ".join(f"{reason} {count}" for reason, count in found.dropped) or "it has none"
        raise problem(file, f"no row of {found.rows} is a usable job ({why}); check the format and the file")
    return found


def _stem(name: str) -> str:
    """A file's name without what only says how it is written."""
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name
