"""Options that several commands of `lstqueue evaluate` have, each declared once.

What a replay is told has its default where its field is (`evaluate.options`), and its help here.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Any

import click

from lstqueue.evaluate import options

Command = Callable[..., Any]

TRACE_HELP = (
    "The trace, and what it is written in: chronus, elasticflow, lstqueue, openb, philly or swf."
    " docs/traces.md says what each is and where to get it."
)


class _Number(click.FloatRange):
    """A number in a range, which nan is in none of, though it compares as if it were."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number that can be.", param, ctx)
        return found


def _option(flag: str, /, **more: Any) -> Callable[[Command], Command]:
    """An option of `options.Replayed`, or a cost, with the default that it has there."""
    name = flag.partition("/")[0].removeprefix("--").replace("-", "_")
    default = options.DEFAULTS.get(name)
    return click.option(flag, default=default, **{"show_default": bool(default), **more})


_CLUSTER = (
    _option("--nodes", type=click.IntRange(1, 20_000), help="Nodes of the cluster, all alike."),
    _option(
        "--gpus-per-node",
        type=click.IntRange(1, 128),
        show_default="8, or the commonest of the inventory",
        help="GPUs of each node, for which gangs are cut.",
    ),
    _option(
        "--inventory",
        type=click.Path(exists=True, dir_okay=False),
        help="A file of nodes instead: CSV, or JSON or YAML as kubectl get nodes writes it.",
    ),
)
_LOAD = (
    _option(
        "--deadlines",
        help="file, uniform:A:B, factor:X, sdsc or none: what sets the deadlines.",
    ),
    _option(
        "--best-effort",
        type=_Number(0, 1),
        help="Share of the jobs with a deadline that lose it.",
    ),
    _option(
        "--shake",
        help="Move every submission, and its deadline with it, by up to so much, drawn from the seed.",
    ),
    _option("--limit", type=click.IntRange(1), help="Take the first so many jobs of the trace."),
)
_STARTS = (
    _option(
        "--settings",
        type=click.Choice(["default", "acceptance"]),
        help="What starting, stopping and knowing cost where no option says so.",
    ),
    _option("--launch", help="From bound to working, at the first start; a duration such as 30s."),
    _option("--bind", help="From an admission to pods on their nodes."),
)
"""What a start costs, and with that every bound."""
_COUNTED = (
    _option(
        "--warm-up",
        help="Jobs submitted so soon after the first take part and do not count.",
    ),
    _option("--cool-down", help="The same of those so soon before the last."),
)
_WORLD = (
    _option(
        "--queues",
        type=click.Path(exists=True, dir_okay=False),
        help="A file of several queues: names, GPUs, cohort and users. Without it all jobs are in one.",
    ),
    _option(
        "--estimates",
        help="exact, user, lognormal:SIGMA or last-two: what the engine is told of run times.",
    ),
    _option("--restore", help="The same at every later start."),
    _option("--checkpoint", help="Run time after which work is saved, again and again; 0s is never."),
    _option("--grace", help="What pods are given to leave."),
    _option("--termination", help="What they take of it."),
    _option("--lag", help="From what happens to when it is known."),
    _option("--saves-on-suspend", is_flag=True, help="Jobs save their work when they are told to stop."),
    _option(
        "--failures",
        type=_Number(0),
        help="Failures of whole nodes in 1,000 node-days.",
    ),
    _option(
        "--gpu-failures",
        type=_Number(0),
        help="Losses of single GPUs in 1,000 node-days.",
    ),
    _option("--drains", type=_Number(0), help="Nodes emptied on purpose in 1,000 node-days."),
    _option("--repair", help="How long a node is out of service, in the median."),
    _option(
        "--maintenance",
        metavar="EVERY:LENGTH[:SHARE]",
        help="Drain the next SHARE of the nodes for LENGTH, EVERY so often, as in 7d:4h:0.25.",
    ),
    _option(
        "--topology",
        metavar="FORMAT:PATH",
        help="The interconnect, as of lstqueue topology, or clos[:NODES:LEAVES[:OVERSUBSCRIPTION]]: so many"
        " nodes under a leaf switch and leaf groups in a block. Without it no place is better than another.",
    ),
    _option(
        "--communication",
        type=_Number(0, 1),
        help="Share of a step that gangs on several nodes communicate, which a place makes longer.",
    ),
    _option("--prefer", metavar="LEVEL", help="The level of which such gangs wait for one domain."),
    _option("--max-wait", help="How long after submission at most."),
    _option("--pass-every", help="The least virtual time between two passes."),
    _option("--verdicts/--no-verdicts", help="Whether to forecast for verdicts."),
    _option("--invariants/--no-invariants", help="Whether to check every move."),
)
JSON = click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Also write the figures to this file, in an existing folder.",
)

REPORT = click.option(
    "--report",
    "report_path",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Also write an HTML page with plots to this file, in an existing folder.",
)


def replayed(command: Command) -> Command:
    """Add what every replay may be told, but for the trace, the policy and the seed."""
    return several(command, (*_CLUSTER, *_LOAD, *_STARTS, *_WORLD, *_COUNTED))


def bounded(command: Command) -> Command:
    """Add what a bound depends on, but for the trace and the seed."""
    return several(command, (*_CLUSTER, *_LOAD, *_STARTS, *_COUNTED))


BOUND = click.option(
    "--bound", is_flag=True, help="Also work out the fluid bound; needs the extra `evaluate`."
)
SEED = click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of everything that is drawn."
)


def compared(least: int) -> Callable[[Command], Command]:
    """Add what a command is told that replays several policies and seeds, `least` of these by default."""
    return lambda command: several(
        command, (POLICIES, _seeds(least), PROCESSES, replayed, BOUND, JSON, REPORT)
    )


POLICIES = click.option(
    "--policy",
    "policy_names",
    required=True,
    multiple=True,
    help="A policy, by name; give several. The others are compared with the first.",
)
PROCESSES = click.option(
    "--processes", type=click.IntRange(1), help="Replays at a time; as many as there are cores."
)


def _seeds(least: int) -> Callable[[Command], Command]:
    """The option for how many seeds there are, and so many without it."""
    return click.option(
        "--seeds",
        type=click.IntRange(1, 1000),
        default=least,
        show_default=True,
        help="Seeds 1 to N, for each policy.",
    )


def costed(given: dict[str, Any]) -> dict[str, Any]:
    """Return options with those that are costs, and were given, in one of their own."""
    costs = {name: given[name] for name in options.COSTS if given.get(name) is not None}
    return {name: value for name, value in given.items() if name not in options.COSTS} | {"costs": costs}


def several(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    """Add several options, in the order of the help."""
    for option in reversed(options):
        command = option(command)
    return command
