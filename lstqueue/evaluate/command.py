"""What `lstqueue evaluate run` does: a trace, replayed under one policy, with progress and a table.

`setup` reads the options, `evaluation` makes the replay and sums it up, `files` writes; here is what people
see.
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import console, progress

from lstqueue.evaluate import estimates, evaluation, files, options, output, replay
from lstqueue.evaluate.report import page, record, series, settings, single


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(options.One):
    """What was asked for, and where the results go.

    `told` and `line` are the same for people who read the report, as settings and as a command line.
    """

    json_path: pathlib.Path | None = None
    log_path: pathlib.Path | None = None
    report_path: pathlib.Path | None = None
    told: Sequence[page.Setting] = ()
    line: str = ""

    @property
    def written(self) -> files.Written:
        """The files that are to be written, each with the option that says so."""
        return (self.json_path, "--json"), (self.log_path, "--log"), (self.report_path, "--report")


def run(asked: Options) -> int:
    """Replay; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    files.check(asked.written, (options.path_of(asked.trace), asked.inventory, asked.queues))
    terminal = console.Console(stderr=True)
    recorder = record.Recorder() if asked.report_path is not None else None
    with files.lines(asked.log_path) as events:
        made = evaluation.prepared(asked, events=events, recorder=recorder)
        mind = _mind(asked, made)
        output.introduce(terminal, made.load, made.shape, made.policy, mind=mind)
        began, worked = time.perf_counter(), time.process_time()
        outcome = _replay(made, terminal)
        spent = time.perf_counter() - began, time.process_time() - worked
    found = evaluation.result(asked, made, outcome, spent)
    # Files first: whoever cuts off what is printed, as `| head` does, has waited for them all the same.
    if asked.json_path is not None:
        files.write(asked.json_path, json.dumps(output.as_json(found), indent=2) + "\n")
    if asked.report_path is not None and recorder is not None:
        files.write(asked.report_path, _report(asked, made, recorder, outcome, output.as_json(found)))
    output.conclude(console.Console(), found, made.books.violations if made.books is not None else [])
    return 1 if found.broken else 0


def _mind(asked: Options, made: evaluation.Prepared) -> str | None:
    """What to mind about the options, if anything."""
    fabric = made.interconnect
    found = [estimates.flattery(asked.estimates, asked.trace), None if fabric is None else fabric.mind]
    return "\n".join(filter(None, found)) or None


def _report(
    asked: Options,
    made: evaluation.Prepared,
    recorder: record.Recorder,
    outcome: replay.Outcome,
    found: Mapping[str, Any],
) -> str:
    recorder.finish(outcome.ended)
    told = settings.filled(asked.told, {name: getattr(made.costs, name) for name in options.COSTS})
    mind = _mind(asked, made)
    about = single.Asked(made.policy.about, made.shape.words, told, asked.line, mind)
    return page.html(single.content(found, series.Recorded(outcome, recorder), about))


def _replay(made: evaluation.Prepared, terminal: console.Console) -> replay.Outcome:
    began = time.perf_counter()
    with _bars(terminal) as bars:
        task = bars.add_task(made.policy.name, total=len(made.load.works), day=0.0, speed=0, gpus=0)

        def told(now: replay.Progress) -> None:
            wall = max(time.perf_counter() - began, 1e-9)
            bars.update(
                task,
                completed=now.done,
                day=now.virtual / 86_400_000,
                speed=round(now.virtual / 1000 / wall),
                gpus=now.busy,
            )

        return evaluation.play(made, told)


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=10),
        # Short, so that all of it fits a terminal of 80 columns.
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} jobs"),
        progress.TextColumn("day {task.fields[day]:.1f}, {task.fields[gpus]} GPUs"),
        progress.TextColumn("{task.fields[speed]:,} ×"),
        progress.TimeElapsedColumn(),
        console=terminal,
    )
