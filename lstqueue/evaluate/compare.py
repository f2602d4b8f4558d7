"""What `lstqueue evaluate compare` does: replays of every trace, policy and seed on all cores, and tables.

Replays are independent of each other, so each is a process's; the figures are those that `run` would give.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich import console, table

from lstqueue.evaluate import estimates, files, options, output, paired, parallel, policies, setup, tabled
from lstqueue.evaluate.report import page, settings, several

PROMISES = ("promised_ratio", "promises_broken")
"""Figures of policies that promise deadlines; others have none of them, rather than none promised."""
SEEDS = 10
"""Seeds of a comparison that is published, at least; its arrivals are shaken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(options.Replayed):
    """What was asked for: the replays, and where the results go. `told` and `line` are for the report."""

    trace_specs: Sequence[str]
    policy_names: Sequence[str]
    seeds: int
    processes: int | None = None
    bound: bool = False
    json_path: pathlib.Path | None = None
    report_path: pathlib.Path | None = None
    told: Sequence[page.Setting] = ()
    line: str = ""

    @property
    def published(self) -> bool:
        """Whether as many histories were met as a comparison should rest on that others are to believe."""
        return self.met >= SEEDS and setup.duration(self.shake, "--shake") > 0

    @property
    def drawn(self) -> bool:
        """Whether anything is drawn from the seed; else all seeds are one and the same replay."""
        return (
            self.deadlines.startswith(("uniform", "sdsc"))
            or self.estimates.startswith("lognormal")
            or 0 < self.best_effort < 1
            or any((self.failures, self.gpu_failures, self.drains))
            or setup.duration(self.shake, "--shake") > 0
        )

    @property
    def met(self) -> int:
        """How many seeds are replayed: 1 where nothing is drawn from them."""
        return self.seeds if self.drawn else 1

    @property
    def mind(self) -> list[str]:
        """What to mind about the options."""
        said = [estimates.flattery(self.estimates, trace) for trace in self.trace_specs]
        return sorted({words for words in said if words is not None})

    def replays(self) -> Iterator[options.One]:
        """What is to be replayed, the seeds of one policy together."""
        shared = options.shared(self)
        for trace in self.trace_specs:
            for policy in self.policy_names:
                for seed in range(1, self.met + 1):
                    # The same for all policies, so one of them works it out; `bounded` tells the others.
                    bound = self.bound and policy == self.policy_names[0]
                    yield options.One(trace=trace, policy=policy, seed=seed, bound=bound, **shared)


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that is compared: its key in the JSON, what the table calls it, and how it is written."""

    key: str
    title: str
    factor: float
    digits: int

    def of(self, found: Mapping[str, Any]) -> float | None:
        """Read it; None where a replay has none."""
        if self.key in PROMISES and not policies.named(found["policy"]).promises:
            return None
        if self.key == "wide_ratio":
            return found["wide_met"] / found["wide_jobs"] if found["wide_jobs"] else None
        if self.key == "completed_ratio":
            return found["completed"] / found["jobs"] if found["jobs"] else None
        value = found[_MEANS[self.key]]["mean"] if self.key in _MEANS else found[self.key]
        return None if value is None else float(value)

    def words(self, value: float, *, signed: bool = False) -> str:
        """Write it."""
        sign = "+" if signed else ""
        return f"{value * self.factor:{sign}.{self.digits}f}"


_MEANS = {"jct_mean_s": "jct_s", "place_slowdown": "place_slowdown"}
"""Metrics that are the mean of several values."""
METRICS = (
    Metric("deadline_ratio", "deadlines met %", 100, 2),
    Metric("share_of_bound", "of the bound %", 100, 2),
    Metric("gpu_hour_ratio", "by GPU hours %", 100, 2),
    Metric("wide_ratio", "wide gangs %", 100, 1),
    Metric("promised_ratio", "promised %", 100, 2),
    Metric("promises_broken", "promises broken", 1, 1),
    Metric("preemptions_per_job", "suspensions a job", 1, 3),
    Metric("lost_gpu_share", "GPU time lost %", 100, 2),
    Metric("completed_ratio", "completed %", 100, 1),
    Metric("jct_mean_s", "completion h", 1 / 3600, 2),
    Metric("best_effort_jct_mean_s", "best effort h", 1 / 3600, 2),
    Metric("place_slowdown", "slower in its place ×", 1, 3),
)


def named(key: str) -> Metric:
    """Return a metric by its key."""
    return next(metric for metric in METRICS if metric.key == key)


def check(asked: Asked) -> None:
    """Refuse, before anything is replayed, what can be seen to be wrong.

    Raises:
        click.ClickException: Names the option.
    """
    for name in asked.policy_names:
        try:
            policies.named(name)
        except policies.PolicyError as error:
            raise click.BadParameter(str(error), param_hint="--policy") from error
    # Of all policies: one may not go with what the others do.
    for name in asked.policy_names:
        setup.checked(dataclasses.replace(next(asked.replays()), policy=name))
    for names, hint in ((asked.policy_names, "--policy"), (asked.trace_specs, "--trace")):
        if len(set(names)) < len(names):
            raise click.BadParameter("one is given twice; give it once", param_hint=hint)
    written = (asked.json_path, "--json"), (asked.report_path, "--report")
    paths = [options.path_of(trace) for trace in asked.trace_specs]
    files.check(written, (*paths, asked.inventory, asked.queues))


def run(asked: Asked) -> int:
    """Replay all, print a table for each trace; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    check(asked)
    wanted = list(asked.replays())
    found = bounded(
        parallel.replay_all(
            wanted, processes=asked.processes or os.cpu_count() or 1, terminal=console.Console(stderr=True)
        )
    )
    told = as_json(asked, found)
    if asked.json_path is not None:
        files.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    if asked.report_path is not None:
        cluster = setup.shape(asked).words
        said = several.content(told, settings=filled(asked), command=asked.line, cluster=cluster)
        files.write(asked.report_path, page.html(said))
    shown = console.Console()
    for trace in asked.trace_specs:
        here = [one for one in found if one["trace"] == trace]
        shown.print(f"{trace}: {several.jobs(here)}", highlight=False, markup=False)
        for one in _tables(trace, asked, told["traces"][trace], shown.width):
            shown.print(one)
    return warned(shown, told)


def warned(shown: console.Console, told: Mapping[str, Any]) -> int:
    """Say what to mind about a comparison; return the exit code, 1 when an invariant was broken."""
    for words in several.warnings(told):
        shown.print(words, style="yellow", highlight=False, markup=False)
    return 1 if any(one["invariants_broken"] for one in told["runs"]) else 0


def filled(asked: Asked) -> Sequence[page.Setting]:
    """The settings, with what a preset decides."""
    costs = setup.costs(asked)
    return settings.filled(asked.told, {name: getattr(costs, name) for name in options.COSTS})


def bounded(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return replays of the same options but policy and seed, each with the bound of its trace and seed."""
    known = {(one["trace"], one["seed"]): one["bound"] for one in found if one["bound"] is not None}
    made = []
    for one in found:
        bound = known.get((one["trace"], one["seed"]))
        ratio = one["deadline_ratio"]
        share = round(ratio / bound, output.DIGITS) if bound and ratio is not None else None
        made.append({**one, "bound": bound, "share_of_bound": share})
    return made


def _series(found: Sequence[Mapping[str, Any]], policy: str, metric: Metric) -> list[float | None]:
    """A figure of one policy on one trace, by seed."""
    return [metric.of(one) for one in found if one["policy"] == policy]


def _tables(trace: str, asked: Asked, told: Mapping[str, Any], width: int) -> Iterator[table.Table]:
    """Means with half their intervals; below each, by how much it is above the first policy."""
    first = asked.policy_names[0]
    metrics = [one for one in METRICS if any(figures[one.key] is not None for figures in told.values())]
    seeds = "1 seed" if asked.met == 1 else f"{asked.met} seeds"
    rows = [
        (policy, [cell(metric, figures[metric.key]) for metric in metrics])
        for policy, figures in told.items()
    ]
    heads = [metric.title for metric in metrics]
    return tabled.tables(f"{trace}, {seeds}", caption(first, asked.met), heads, rows, width)


def caption(first: str, seeds: int) -> str:
    """How to read a table."""
    if seeds == 1:
        return f"below: difference from {first}"
    return f"mean ± 95 % interval; below: difference from {first}, paired by seed, * if 0 lies outside"


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
        "seeds": asked.met,
        "drawn": asked.drawn,
        "published": asked.published,
        "mind": asked.mind,
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
