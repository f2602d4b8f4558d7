"""What `lstqueue evaluate sweep` does: one option takes several values, and policies are compared at each.

At every value all policies meet the same jobs and mishaps for one seed, as in `compare`, of which this is
one for each value. So a curve says how a policy does as the load, the deadlines, the errors of estimates or
the mishaps change, and everything else stays.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich import console, table

from lstqueue.evaluate import compare, files, options, parallel, tabled
from lstqueue.evaluate.report import page, several, sweeps

VARIED = (
    "nodes", "deadlines", "estimates", "best-effort", "failures", "gpu-failures", "drains", "checkpoint",
)  # fmt: skip
"""Options that may vary, by name without dashes in front."""
SHOWN = (
    "deadline_ratio", "share_of_bound", "gpu_hour_ratio", *compare.PROMISES, "preemptions_per_job",
    "lost_gpu_share",
)  # fmt: skip
"""Figures with a table in the terminal."""


@dataclass(frozen=True, slots=True)
class Vary:
    """The option that varies, its values as they were written, and what `made` they are."""

    name: str
    values: tuple[str, ...]
    made: tuple[Any, ...] = ()

    @property
    def parameter(self) -> str:
        """The option as a parameter of its command."""
        return self.name.replace("-", "_")

    def put(self, asked: compare.Asked, value: str) -> compare.Asked:
        """Set the option."""
        made = self.made[self.values.index(value)]
        if self.name in options.COSTS:
            return dataclasses.replace(asked, costs={**asked.costs, self.name: made})
        return dataclasses.replace(asked, **{self.parameter: made})


def parse(text: str) -> Vary:
    """Read OPTION=VALUE,VALUE,...; what the values are is for the option itself to say.

    Raises:
        click.BadParameter: It is not of that form, or the option cannot vary.
    """
    name, _, rest = text.removeprefix("--").partition("=")
    values = tuple(value.strip() for value in rest.split(",") if value.strip())
    if name not in VARIED:
        known = ", ".join(VARIED)
        raise click.BadParameter(f"{name!r} cannot vary; it must be one of {known}", param_hint="--vary")
    if len(values) < 2 or len(set(values)) < len(values):
        raise click.BadParameter(
            f"{text!r} has too few different values; write two or more, as in nodes=12,16,20",
            param_hint="--vary",
        )
    return Vary(name, values)


def run(asked: compare.Asked, vary: Vary) -> int:
    """Replay all, print tables, write what was asked for; return the exit code, 1 for broken invariants.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    at = [vary.put(asked, value) for value in vary.values]
    if vary.name == "nodes":  # the same jobs on all of them: those that fit the smallest
        fewest = min(one.nodes for one in at if one.nodes is not None)
        at = [dataclasses.replace(one, fits=fewest) for one in at]
    for one in at:
        compare.check(one)
    pairs = zip(vary.values, at, strict=True)
    wanted = [(value, replay) for value, one in pairs for replay in one.replays()]
    found = parallel.replay_all(
        [replay for _, replay in wanted],
        processes=asked.processes or os.cpu_count() or 1,
        terminal=console.Console(stderr=True),
    )
    marked = [{"value": value, **one} for (value, _), one in zip(wanted, found, strict=True)]
    runs = [
        run for value in vary.values for run in compare.bounded([o for o in marked if o["value"] == value])
    ]
    told = as_json(asked, vary, runs)
    # Written first: whoever cuts off what is printed, as `| head` does, has waited for these all the same.
    if asked.json_path is not None:
        files.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    if asked.report_path is not None:
        said = sweeps.content(told, settings=_settings(at[0], vary), command=asked.line)
        files.write(asked.report_path, page.html(said))
    shown = console.Console()
    for value in vary.values:
        here = [one for one in runs if one["value"] == value]
        shown.print(f"--{vary.name} {value}: {several.jobs(here)}", highlight=False, markup=False)
    for key in SHOWN:
        for made in _tables(told, compare.named(key), shown.width):
            shown.print(made)
    return compare.warned(shown, told)


def _settings(asked: compare.Asked, vary: Vary) -> list[page.Setting]:
    """The settings but the one that varies, which `--vary` says."""
    return [one for one in compare.filled(asked) if one.flag != f"--{vary.name}"]


def as_json(asked: compare.Asked, vary: Vary, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every figure by value and policy, as `compare.as_json` has them by trace, and all replays."""
    points = {
        value: compare.by_policy(asked.policy_names, [one for one in runs if one["value"] == value])
        for value in vary.values
    }
    at = [vary.put(asked, value) for value in vary.values]
    return {
        "trace": asked.trace_specs[0],
        "vary": vary.name,
        "first": asked.policy_names[0],
        "seeds": max(one.met for one in at),
        "drawn": all(one.drawn for one in at),
        "published": all(one.published for one in at),
        "mind": [] if vary.name == "estimates" else asked.mind,
        "points": points,
        "runs": list(runs),
    }


def _tables(told: Mapping[str, Any], metric: compare.Metric, width: int) -> Iterator[table.Table]:
    """A figure by policy and value, and below each by how much it is above the first policy."""
    points = told["points"]
    names = list(next(iter(points.values())))
    if all(figures[metric.key] is None for here in points.values() for figures in here.values()):
        return iter(())
    rows = [
        (policy, [compare.cell(metric, here[policy][metric.key]) for here in points.values()])
        for policy in names
    ]
    title = f"{metric.title}, by --{told['vary']}"
    return tabled.tables(title, compare.caption(told["first"], told["seeds"]), list(points), rows, width)
