"""What `lstqueue evaluate compare` does: replays of every trace, policy and seed on all cores, and tables.

Replays are independent of each other, so each is a process's; the figures are those that `run` would give.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import pathlib
import queue
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any, Protocol

import click
from rich import console, progress, table

from lstqueue.evaluate import command, output, paired, policies, replay
from lstqueue.evaluate.report import page, several

POLL = 0.2
"""Seconds of real time between two looks at what the processes say."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, as the command line has it; most of it goes on to `command.Options`."""

    trace_specs: Sequence[str]
    policy_names: Sequence[str]
    seeds: int
    nodes: int
    gpus_per_node: int
    deadlines: str
    best_effort: float = 0.0
    shake: str = "0s"
    limit: int | None = None
    estimates: str = "exact"
    settings: str = "default"
    costs: Mapping[str, str] = field(default_factory=dict)
    saves_on_suspend: bool = False
    failures: float = 0.0
    gpu_failures: float = 0.0
    drains: float = 0.0
    repair: str = "4h"
    pass_every: str = "1s"  # noqa: S105 - no password, a time between passes
    verdicts: bool = True
    invariants: bool = True
    processes: int | None = None
    json_path: pathlib.Path | None = None
    bound: bool = False
    report_path: pathlib.Path | None = None
    told: Sequence[page.Setting] = ()
    line: str = ""

    def replays(self) -> Iterator[command.Options]:
        """What is to be replayed, the seeds of one policy together."""
        own = {"trace_specs", "policy_names", "seeds", "processes", "json_path"}
        own |= {"bound", "report_path", "told", "line"}
        shared = {
            name: getattr(self, name)
            for name in (one.name for one in dataclasses.fields(self))
            if name not in own
        }
        for trace in self.trace_specs:
            for policy in self.policy_names:
                for seed in range(1, self.seeds + 1):
                    # The same for all policies, so one of them is enough.
                    bound = self.bound and policy == self.policy_names[0]
                    yield command.Options(trace=trace, policy=policy, seed=seed, bound=bound, **shared)


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that is compared: its key in the JSON, what the table calls it, and how it is written."""

    key: str
    title: str
    factor: float
    digits: int

    def of(self, found: Mapping[str, Any]) -> float | None:
        """Read it; None where a replay has none."""
        if self.key == "wide_ratio":
            return found["wide_met"] / found["wide_jobs"] if found["wide_jobs"] else None
        value = found["jct_s"]["mean"] if self.key == "jct_mean_s" else found[self.key]
        return None if value is None else float(value)

    def words(self, value: float, *, signed: bool = False) -> str:
        """Write it."""
        sign = "+" if signed else ""
        return f"{value * self.factor:{sign}.{self.digits}f}"


METRICS = (
    Metric("deadline_ratio", "deadlines met %", 100, 2),
    Metric("gpu_hour_ratio", "by GPU hours %", 100, 2),
    Metric("wide_ratio", "wide gangs %", 100, 1),
    Metric("preemptions_per_job", "suspensions a job", 1, 3),
    Metric("lost_gpu_share", "GPU time lost %", 100, 2),
    Metric("jct_mean_s", "completion h", 1 / 3600, 2),
    Metric("best_effort_jct_mean_s", "best effort h", 1 / 3600, 2),
)


def run(asked: Asked) -> int:
    """Replay all, print a table for each trace; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    for name in asked.policy_names:
        try:
            policies.named(name)
        except policies.PolicyError as error:
            raise click.BadParameter(str(error), param_hint="--policy") from error
    for names, hint in ((asked.policy_names, "--policy"), (asked.trace_specs, "--trace")):
        if len(set(names)) < len(names):
            raise click.BadParameter("one is given twice; give it once", param_hint=hint)
    for path, hint in ((asked.json_path, "--json"), (asked.report_path, "--report")):
        if path is not None and not path.parent.is_dir():
            what = f"folder {str(path.parent)!r} does not exist; create it, or name another file"
            raise click.BadParameter(what, param_hint=hint)
    wanted = list(asked.replays())
    found = replay_all(
        wanted, processes=asked.processes or os.cpu_count() or 1, terminal=console.Console(stderr=True)
    )
    shown = console.Console()
    for trace in asked.trace_specs:
        shown.print(_table(trace, asked, [one for one in found if one["trace"] == trace]))
    told = as_json(asked, found)
    if asked.json_path is not None:
        command.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    if asked.report_path is not None:
        cluster = f"{asked.nodes:,} nodes × {asked.gpus_per_node} GPUs"
        said = several.content(told, settings=asked.told, command=asked.line, cluster=cluster)
        command.write(asked.report_path, page.html(said))
    broken = sum(one["invariants_broken"] for one in found)
    if broken:
        shown.print(f"{broken} invariants were broken; `run` says which.", style="red")
    return 1 if broken else 0


class _Channel(Protocol):
    """Takes (number of the replay, jobs done, jobs in all)."""

    def put(self, item: tuple[int, int, int]) -> None: ...

    def get_nowait(self) -> tuple[int, int, int]: ...


_channels: list[_Channel] = []
"""In a process that replays: where it tells how far it is."""


def _begin(channel: _Channel) -> None:
    _channels.append(channel)


def _one(number: int, options: command.Options) -> dict[str, Any]:
    """Replay in a process of its own."""

    def told(now: replay.Progress) -> None:
        for channel in _channels:
            channel.put((number, now.done, now.jobs))

    return output.as_json(command.evaluated(options, told))


def replay_all(
    wanted: Sequence[command.Options], *, processes: int, terminal: console.Console
) -> list[dict[str, Any]]:
    """Replay all that is wanted, so many at a time, with a bar; the figures in the order of `wanted`.

    Raises:
        click.ClickException: One cannot be; the others are not waited for.
    """
    context = multiprocessing.get_context("spawn")
    channel: _Channel = context.Queue()
    workers = futures.ProcessPoolExecutor(
        max_workers=min(processes, len(wanted)), mp_context=context, initializer=_begin, initargs=(channel,)
    )
    with workers as pool, _bars(terminal) as bars:
        bar = bars.add_task("replays", total=float(len(wanted)), done=0, of=len(wanted), now="")
        shares = [0.0] * len(wanted)
        tasks = {pool.submit(_one, number, options): number for number, options in enumerate(wanted)}
        missing = set(tasks)
        while missing:
            done, missing = futures.wait(missing, timeout=POLL, return_when=futures.FIRST_EXCEPTION)
            for task in done:
                if (error := task.exception()) is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise (
                        error
                        if isinstance(error, click.ClickException)
                        else click.ClickException(repr(error))
                    )
                shares[tasks[task]] = 1.0
            _listen(channel, shares)
            bars.update(bar, completed=sum(shares), done=len(wanted) - len(missing))
        return [task.result() for task in tasks]


def _listen(channel: _Channel, shares: list[float]) -> None:
    """Note what the processes say of how far they are."""
    while True:
        try:
            number, done, jobs = channel.get_nowait()
        except queue.Empty:
            return
        shares[number] = max(shares[number], done / max(jobs, 1))


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=30),
        progress.TextColumn("{task.fields[done]} of {task.fields[of]}"),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
    )


def _series(found: Sequence[Mapping[str, Any]], policy: str, metric: Metric) -> list[float | None]:
    """A figure of one policy on one trace, by seed."""
    return [metric.of(one) for one in found if one["policy"] == policy]


def _table(trace: str, asked: Asked, found: Sequence[Mapping[str, Any]]) -> table.Table:
    """Means with half their intervals; below each, by how much it is above the first policy."""
    first = asked.policy_names[0]
    metrics = [metric for metric in METRICS if None not in _series(found, first, metric)]
    seeds = "1 seed" if asked.seeds == 1 else f"{asked.seeds} seeds"
    shown = table.Table(
        title=f"{trace}, {seeds}",
        caption=f"mean ± 95 % interval; below: difference from {first}, paired by seed, * if 0 lies outside",
    )
    shown.add_column("policy")
    for metric in metrics:
        shown.add_column(metric.title, justify="right")
    for policy in asked.policy_names:
        cells = []
        for metric in metrics:
            values = _series(found, policy, metric)
            cell = _cell(metric, paired.difference(values, [0.0] * len(values)), signed=False)
            if policy != first:
                cell += "\n" + _cell(
                    metric, paired.difference(values, _series(found, first, metric)), signed=True
                )
            cells.append(cell)
        shown.add_row(policy, *cells)
    return shown


def _cell(metric: Metric, found: paired.Interval | None, *, signed: bool) -> str:
    if found is None:
        return "-"
    half = "" if found.half is None else f" ± {metric.words(found.half)}"
    return metric.words(found.mean, signed=signed) + half + (" *" if signed and found.sure else "")


def as_json(asked: Asked, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every figure by trace and policy (mean, interval, values, difference), and all replays."""
    first, traces = asked.policy_names[0], {}
    for trace in asked.trace_specs:
        here = [one for one in found if one["trace"] == trace]
        by_policy: dict[str, Any] = {}
        for policy in asked.policy_names:
            told: dict[str, Any] = {}
            for metric in METRICS:
                values = _series(here, policy, metric)
                against = paired.difference(values, _series(here, first, metric))
                told[metric.key] = _interval(paired.difference(values, [0.0] * len(values)))
                if policy != first and told[metric.key] is not None:
                    told[metric.key]["above_first"] = _interval(against)
            by_policy[policy] = told
        traces[trace] = by_policy
    return {"first": first, "seeds": asked.seeds, "traces": traces, "runs": list(found)}


def _interval(found: paired.Interval | None) -> dict[str, Any] | None:
    if found is None:
        return None
    half = None if found.half is None else round(found.half, output.DIGITS)
    values = [round(value, output.DIGITS) for value in found.values]
    return {"mean": round(found.mean, output.DIGITS), "half": half, "values": values}
