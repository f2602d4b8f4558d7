"""What `lstqueue evaluate bound` does: how many deadlines of a trace any policy could meet at most."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich import console, table

from lstqueue.api import durations
from lstqueue.evaluate import (
    bounds,
    bounds_exact,
    deadlines,
    files,
    interrupts,
    options,
    output,
    setup,
    traces,
    workload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(options.Loaded):
    """What was asked for: which jobs, which bounds, and where the figures go."""

    trace: str
    seed: int = 1
    weight: str = "jobs"
    bin_width: str = "1h"
    exact: bool = False
    json_path: pathlib.Path | None = None


def run(asked: Asked) -> int:
    """Work the bounds out and print them; return the exit code.

    Raises:
        click.ClickException: An option cannot be met, a solver is missing, or a file not be read or written.
    """
    files.check(((asked.json_path, "--json"),), (options.path_of(asked.trace), asked.inventory))
    width = setup.duration(asked.bin_width, "--bin")
    if width < durations.MINUTE:  # a year has half a million of them
        raise click.BadParameter(f"{asked.bin_width!r} is too short; write 1m or more", param_hint="--bin")
    shape, costs = setup.checked_load(asked), setup.costs(asked)
    try:
        bounds.require()
        load = setup.loaded(asked, asked.trace, shape, seed=asked.seed)
        # As `run --bound` has it, so that both say the same of the same options.
        since, until = setup.counted(load.works, asked)
        counted = tuple([work for work in load.works if since <= work.submit <= until])
        rows = _work_out(asked, counted, shape.gpus, costs.bind + costs.launch, width)
    except (traces.TraceError, deadlines.DeadlineError, bounds.BoundError) as error:
        raise click.ClickException(str(error)) from error
    told = _counts(load, counted)
    shown = console.Console()
    for words in _left_out(told):
        shown.print(words, highlight=False, markup=False)
    shown.print(_table(asked, rows))
    if asked.json_path is not None:
        made = {"trace": asked.trace, "seed": asked.seed, "weight": asked.weight, **told, "bounds": rows}
        files.write(asked.json_path, json.dumps(made, indent=2) + "\n")
    return 0


def _counts(load: workload.Workload, counted: Sequence[workload.Work]) -> dict[str, Any]:
    """Which jobs a bound is of, and which it is not: under the names that `run` has for them."""
    return {
        "jobs": len(counted),
        "deadline_jobs": len(bounds.dated(counted)),
        "jobs_not_counted": len(load.works) - len(counted),
        "dropped": dict(load.dropped),
    }


def _left_out(told: Mapping[str, Any]) -> Iterator[str]:
    """What of the trace no bound is of, each with its reason."""
    free = told["jobs"] - told["deadline_jobs"]
    yield f"{told['deadline_jobs']:,} of {told['jobs']:,} jobs have a deadline" + (
        f"; {free:,} left out: without one there is nothing to meet." if free else "."
    )
    if told["jobs_not_counted"]:
        yield f"{told['jobs_not_counted']:,} left out: submitted within --warm-up or --cool-down."
    for reason, rows in told["dropped"].items():
        yield f"{rows:,} left out: {reason}."


def _work_out(
    asked: Asked, works: tuple[workload.Work, ...], gpus: int, launch: int, width: int
) -> dict[str, dict[str, Any]]:
    """The bounds by name: `fluid`, and with --exact `preemptive` and `rigid`."""
    weight = bounds.Weight(asked.weight)
    total = sum(bounds.weigh(work, weight) for work in bounds.dated(works))

    def proof(find: Callable[..., bounds_exact.Proof]) -> dict[str, Any]:
        found = find(works, gpus, weight=weight, launch=launch)
        return _row(found.bound, total) | {"found": round(found.met, output.DIGITS), "closed": found.closed}

    def fluid() -> dict[str, Any]:
        found = bounds.fluid(works, gpus, weight=weight, bin_ms=width, launch=launch)
        return _row(found.met, total)

    steps: dict[str, Callable[[], dict[str, Any]]] = {"fluid": fluid}
    if asked.exact:
        steps["preemptive"] = lambda: proof(bounds_exact.preemptive)
        steps["rigid"] = lambda: proof(bounds_exact.rigid)
    rows: dict[str, dict[str, Any]] = {}
    terminal = console.Console(stderr=True)
    for name, step in steps.items():
        # No bar: a process that ends while one is drawn leaves the terminal without a cursor.
        terminal.print(f"{name} bound ...", highlight=False)
        with interrupts.deadly():
            rows[name] = step()
        if name == "rigid":  # what holds for any policy holds for these
            best = min(row["met"] for row in rows.values())
            rows[name] |= {"met": best, "share": min(row["share"] for row in rows.values())}
    return rows


def _row(met: float, total: float) -> dict[str, Any]:
    share = round(met / total, output.DIGITS) if total else 1.0
    return {"met": round(met, output.DIGITS), "total": round(total, output.DIGITS), "share": share}


_MEANING = {
    "fluid": "any policy; gangs may be thinned",
    "preemptive": "any policy; jobs met whole, wide gangs exclude each other",
    "rigid": "policies that suspend nobody",
}


def _table(asked: Asked, rows: dict[str, dict[str, Any]]) -> table.Table:
    shown = table.Table(title=f"{asked.trace}, seed {asked.seed}: at most so many {asked.weight} in time")
    for title in ("bound", "holds for", "at most", "of", "share", "found"):
        shown.add_column(title, justify="left" if title in ("bound", "holds for") else "right")
    for name, row in rows.items():
        found = f"{row['found']:,.1f}" if name == "rigid" else ""
        shown.add_row(
            name, _MEANING[name], f"{row['met']:,.1f}", f"{row['total']:,.1f}", f"{row['share']:.2%}", found
        )
    return shown
