"""What `lstqueue demo` does: both policies side by side, with progress, then a table."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time

import click
from rich import console, progress

from lstqueue.demo import mix, outcome, play, processes, report, scenario, trace

POLICIES = ("lst", "fifo")
NODES = 16
"""Unless somebody asks for others."""


def run(
    *, jobs: int, nodes: int, seed: int, json_path: pathlib.Path | None, record_path: pathlib.Path | None
) -> int:
    """Run the demo; return the exit code, 1 when an invariant was broken or a job failed or never ended.

    Raises:
        click.ClickException: an option cannot be met, or a run failed.
    """
    if json_path is not None:
        check_writable(json_path, "--json")
    if record_path is not None:
        check_writable(record_path, "--record")
        if record_path.exists() and record_path.stat().st_size:
            # The virtual cluster gives the same UIDs each time: its jobs would be taken for known ones.
            raise _unwritable(f"{str(record_path)!r} is not empty; name a new file", "--record")
    asked = trace.load(seed=seed, jobs=jobs)
    kept = scenario.fitting(asked, nodes=nodes)
    if not kept:
        narrowest = min(job.gpus for job in asked)
        raise click.UsageError(
            f"no job fits: the narrowest of {len(asked)} needs {narrowest} GPUs, and --nodes {nodes} makes "
            f"{nodes * scenario.GPUS_PER_NODE}; use --nodes {-(-narrowest // scenario.GPUS_PER_NODE)} or more"
        )
    terminal = console.Console()
    report.introduce(terminal, mix.ask(kept, seed=seed), nodes=nodes, left_out=len(asked) - len(kept))
    began = time.monotonic()
    plans = [play.Plan(order, jobs, nodes, seed) for order in POLICIES]
    plans[0] = dataclasses.replace(plans[0], record=record_path)
    try:
        outcomes = _play_all(plans, terminal, total=len(kept))
    except processes.RunError as error:
        raise click.ClickException(str(error)) from error
    wall = time.monotonic() - began
    report.conclude(terminal, outcomes)
    for one in outcomes:
        if one.recorded is not None:
            report.recorded(terminal, one.recorded, record_path)
    if json_path is not None:
        _write(json_path, json.dumps(report.figures(outcomes, wall), indent=2) + "\n")
    return 0 if all(one.sound for one in outcomes) else 1


def check_writable(path: pathlib.Path, hint: str) -> None:
    """Find out before minutes of work whether the file can be written, and leave no trace of it.

    Raises:
        click.BadParameter: it cannot be written.
    """
    try:
        if path.exists():
            if path.is_file():
                path.open("ab").close()
        elif not path.parent.is_dir():
            raise _unwritable(
                f"folder {str(path.parent)!r} does not exist; create it, or name another file", hint
            )
        else:
            path.open("xb").close()
            path.unlink()
    except OSError as error:
        raise _unwritable(
            f"{str(path)!r} cannot be written ({error.strerror}); name another file", hint
        ) from error


def _unwritable(message: str, hint: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint=hint)


def _write(path: pathlib.Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror) from error


def _play_all(plans: list[play.Plan], terminal: console.Console, *, total: int) -> list[outcome.Outcome]:
    """Run the plans and show how far they are."""
    with _bars(terminal) as bars:
        tasks = {
            plan.order: bars.add_task(report.NAMES[plan.order], total=total, gpus=0, day=0.0)
            for plan in plans
        }

        def told(order: str, finished: int, gpus: int, seconds: float) -> None:
            bars.update(tasks[order], completed=finished, gpus=gpus, day=seconds / 86_400)

        return processes.play_all(plans, told)


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description:<18}"),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("jobs done"),
        progress.TextColumn("day {task.fields[day]:4.1f}, {task.fields[gpus]:3} GPUs busy"),
        progress.TimeElapsedColumn(),
        console=terminal,
    )
