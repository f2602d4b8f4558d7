"""What `lstqueue evaluate compare` does: replays of every trace, policy and seed on all cores, and tables.

Replays are independent of each other, so each is a process's; the figures are those that `run` would give.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich import console, table

from lstqueue.evaluate import command, output, paired, parallel, policies
from lstqueue.evaluate.report import page, several

SEEDS = 10
"""Seeds of a comparison that is published, at least; its arrivals are shaken."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, as the command line has it; most of it goes on to `command.Options`."""

    trace_specs: Sequence[str]
    policy_names: Sequence[str]
    seeds: int
    nodes: int | None
    gpus_per_node: int | None
    deadlines: str
    best_effort: float = 0.0
    shake: str = "0s"
    limit: int | None = None
    warm_up: str = "0s"
    cool_down: str = "0s"
    inventory: str | None = None
    estimates: str = "exact"
    settings: str = "default"
    costs: Mapping[str, str] = field(default_factory=dict)
    saves_on_suspend: bool = False
    failures: float = 0.0
    gpu_failures: float = 0.0
    drains: float = 0.0
    repair: str = "4h"
    maintenance: str | None = None
    pass_every: str = "1s"  # noqa: S105 - no password, a time between passes
    verdicts: bool = True
    invariants: bool = True
    processes: int | None = None
    json_path: pathlib.Path | None = None
    bound: bool = False
    report_path: pathlib.Path | None = None
    told: Sequence[page.Setting] = ()
    line: str = ""

    @property
    def published(self) -> bool:
        """Whether as many histories were met as a comparison should rest on that others are to believe."""
        return self.seeds >= SEEDS and command.duration(self.shake, "--shake") > 0

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


def named(key: str) -> Metric:
    """Return a metric by its key."""
    return next(metric for metric in METRICS if metric.key == key)


def check(asked: Asked) -> None:
    """Refuse, before anything is replayed, what can be seen to be wrong.

    Raises:
        click.BadParameter: Names the option.
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
    command.shape(next(asked.replays()))


def run(asked: Asked) -> int:
    """Replay all, print a table for each trace; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    check(asked)
    wanted = list(asked.replays())
    found = parallel.replay_all(
        wanted, processes=asked.processes or os.cpu_count() or 1, terminal=console.Console(stderr=True)
    )
    told = as_json(asked, found)
    if asked.json_path is not None:
        command.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    if asked.report_path is not None:
        cluster = command.shape(wanted[0]).words
        said = several.content(told, settings=asked.told, command=asked.line, cluster=cluster)
        command.write(asked.report_path, page.html(said))
    shown = console.Console()
    for trace in asked.trace_specs:
        shown.print(_table(trace, asked, told["traces"][trace]))
    return broken(shown, found)


def broken(shown: console.Console, found: Sequence[Mapping[str, Any]]) -> int:
    """Say how many invariants were broken, if any were; return the exit code."""
    count = sum(one["invariants_broken"] for one in found)
    if count:
        shown.print(f"{count} invariants were broken; `run` says which.", style="red")
    return 1 if count else 0


def _series(found: Sequence[Mapping[str, Any]], policy: str, metric: Metric) -> list[float | None]:
    """A figure of one policy on one trace, by seed."""
    return [metric.of(one) for one in found if one["policy"] == policy]


def _table(trace: str, asked: Asked, told: Mapping[str, Any]) -> table.Table:
    """Means with half their intervals; below each, by how much it is above the first policy."""
    first = asked.policy_names[0]
    metrics = [metric for metric in METRICS if told[first][metric.key] is not None]
    seeds = "1 seed" if asked.seeds == 1 else f"{asked.seeds} seeds"
    shown = table.Table(
        title=f"{trace}, {seeds}",
        caption=f"mean ± 95 % interval; below: difference from {first}, paired by seed, * if 0 lies outside",
    )
    shown.add_column("policy")
    for metric in metrics:
        shown.add_column(metric.title, justify="right")
    for policy, figures in told.items():
        shown.add_row(policy, *[cell(metric, figures[metric.key]) for metric in metrics])
    return shown


def cell(metric: Metric, told: Mapping[str, Any] | None) -> str:
    """A mean and half its interval; below, the difference from the first policy, where there is one."""
    if told is None:
        return "-"
    above = told.get("above_first")
    return _words(metric, told) + ("" if above is None else "\n" + _words(metric, above, signed=True))


def _words(metric: Metric, told: Mapping[str, Any], *, signed: bool = False) -> str:
    half = "" if told["half"] is None else f" ± {metric.words(told['half'])}"
    sure = signed and told["half"] is not None and abs(told["mean"]) > told["half"]
    return metric.words(told["mean"], signed=signed) + half + (" *" if sure else "")


def as_json(asked: Asked, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every figure by trace and policy (mean, interval, values, difference), and all replays."""
    traces = {
        trace: by_policy(asked.policy_names, [one for one in found if one["trace"] == trace])
        for trace in asked.trace_specs
    }
    return {
        "first": asked.policy_names[0],
        "seeds": asked.seeds,
        "published": asked.published,
        "traces": traces,
        "runs": list(found),
    }


def by_policy(policy_names: Sequence[str], here: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of replays of the same jobs, by policy."""
    first, found = policy_names[0], {}
    for policy in policy_names:
        told: dict[str, Any] = {}
        for metric in METRICS:
            values = _series(here, policy, metric)
            against = paired.difference(values, _series(here, first, metric))
            told[metric.key] = _interval(paired.difference(values, [0.0] * len(values)))
            if policy != first and told[metric.key] is not None:
                told[metric.key]["above_first"] = _interval(against)
        found[policy] = told
    return found


def _interval(found: paired.Interval | None) -> dict[str, Any] | None:
    if found is None:
        return None
    half = None if found.half is None else round(found.half, output.DIGITS)
    values = [round(value, output.DIGITS) for value in found.values]
    return {"mean": round(found.mean, output.DIGITS), "half": half, "values": values}
