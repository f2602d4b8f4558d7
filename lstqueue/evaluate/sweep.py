"""What `lstqueue evaluate sweep` does: one option takes several values, and policies are compared at each.

At every value all policies meet the same jobs and mishaps for one seed, as in `compare`, of which this is
one for each value. So a curve says how a policy does as the load, the deadlines, the errors of estimates or
the mishaps change, and everything else stays.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich import console, table

from lstqueue.evaluate import command, compare, parallel
from lstqueue.evaluate.report import page, sweeps

VARIED: Mapping[str, type] = {
    "nodes": int,
    "deadlines": str,
    "estimates": str,
    "best-effort": float,
    "failures": float,
    "gpu-failures": float,
    "drains": float,
    "checkpoint": str,
}
"""Options that may vary, by name without dashes in front, and what their values are."""
SHOWN = ("deadline_ratio", "gpu_hour_ratio", "preemptions_per_job", "lost_gpu_share")
"""Figures with a table in the terminal."""


@dataclass(frozen=True, slots=True)
class Vary:
    """The option that varies, and its values as they were written."""

    name: str
    values: tuple[str, ...]

    def put(self, asked: compare.Asked, value: str) -> compare.Asked:
        """Set the option.

        Raises:
            click.BadParameter: The value is none of its kind.
        """
        try:
            made = VARIED[self.name](value)
        except ValueError as error:
            raise click.BadParameter(
                f"{value!r} is no value of --{self.name}; give numbers", param_hint="--vary"
            ) from error
        if self.name in command.COSTS:
            return dataclasses.replace(asked, costs={**asked.costs, self.name: made})
        return dataclasses.replace(asked, **{self.name.replace("-", "_"): made})


def parse(text: str) -> Vary:
    """Read OPTION=VALUE,VALUE,...

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
    for one in at:
        compare.check(one)
    pairs = zip(vary.values, at, strict=True)
    wanted = [(value, options) for value, one in pairs for options in one.replays()]
    found = parallel.replay_all(
        [options for _, options in wanted],
        processes=asked.processes or os.cpu_count() or 1,
        terminal=console.Console(stderr=True),
    )
    runs = [{"value": value, **one} for (value, _), one in zip(wanted, found, strict=True)]
    told = as_json(asked, vary, runs)
    # Written first: whoever cuts off what is printed, as `| head` does, has waited for these all the same.
    if asked.json_path is not None:
        command.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    if asked.report_path is not None:
        said = sweeps.content(told, settings=asked.told, command=asked.line)
        command.write(asked.report_path, page.html(said))
    shown = console.Console()
    for key in SHOWN:
        shown.print(_table(told, compare.named(key)))
    return compare.broken(shown, found)


def as_json(asked: compare.Asked, vary: Vary, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every figure by value and policy, as `compare.as_json` has them by trace, and all replays."""
    points = {
        value: compare.by_policy(asked.policy_names, [one for one in runs if one["value"] == value])
        for value in vary.values
    }
    return {
        "trace": asked.trace_specs[0],
        "vary": vary.name,
        "first": asked.policy_names[0],
        "seeds": asked.seeds,
        "published": asked.published,
        "points": points,
        "runs": list(runs),
    }


def _table(told: Mapping[str, Any], metric: compare.Metric) -> table.Table:
    """A figure by policy and value, and below each by how much it is above the first policy."""
    points = told["points"]
    shown = table.Table(
        title=f"{metric.title}, by --{told['vary']}",
        caption=f"mean ± 95 % interval over seeds; below: difference from {told['first']}, paired",
    )
    shown.add_column("policy")
    for value in points:
        shown.add_column(value, justify="right")
    for policy in next(iter(points.values())):
        cells = [compare.cell(metric, here[policy][metric.key]) for here in points.values()]
        shown.add_row(policy, *cells)
    return shown
