"""Options that the commands of `lstqueue evaluate` share, and those that do more than one replay.

What they do is imported when they are run: the other commands of `lstqueue` should not wait for it.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

INTERRUPTED = 130

Command = Callable[..., Any]

TRACE_HELP = (
    "The trace, and what it is written in: chronus, elasticflow, lstqueue, openb, philly or swf."
    " docs/traces.md says what each is and where to get it."
)
_CLUSTER = (
    click.option("--nodes", type=click.IntRange(1, 20_000), help="Nodes of the cluster, all alike."),
    click.option(
        "--gpus-per-node",
        type=click.IntRange(1, 128),
        show_default="8, or the commonest of the inventory",
        help="GPUs of each node, for which gangs are cut.",
    ),
    click.option(
        "--inventory",
        type=click.Path(exists=True, dir_okay=False),
        help="A file of nodes instead: CSV, or JSON or YAML as kubectl get nodes writes it.",
    ),
)
_LOAD = (
    click.option(
        "--deadlines",
        default="file",
        show_default=True,
        help="file, uniform:A:B, factor:X, sdsc or none: what sets the deadlines.",
    ),
    click.option(
        "--best-effort",
        type=click.FloatRange(0, 1),
        default=0.0,
        help="Share of the jobs with a deadline that lose it.",
    ),
    click.option(
        "--shake",
        default="0s",
        show_default=True,
        help="Move every submission, and its deadline with it, by up to so much, drawn from the seed.",
    ),
    click.option("--limit", type=click.IntRange(1), help="Take the first so many jobs of the trace."),
)
_STARTS = (
    click.option(
        "--settings",
        type=click.Choice(["default", "acceptance"]),
        default="default",
        show_default=True,
        help="What starting, stopping and knowing cost where no option says so.",
    ),
    click.option("--launch", help="From bound to working, at the first start; a duration such as 30s."),
    click.option("--bind", help="From an admission to pods on their nodes."),
)
"""What a start costs, and with that every bound."""
_COUNTED = (
    click.option(
        "--warm-up",
        default="0s",
        show_default=True,
        help="Jobs submitted so soon after the first take part and do not count.",
    ),
    click.option(
        "--cool-down", default="0s", show_default=True, help="The same of those so soon before the last."
    ),
)
_WORLD = (
    click.option(
        "--estimates",
        default="exact",
        show_default=True,
        help="exact, user, lognormal:SIGMA or last-two: what the engine is told of run times.",
    ),
    click.option("--restore", help="The same at every later start."),
    click.option("--checkpoint", help="Run time after which work is saved, again and again; 0s is never."),
    click.option("--grace", help="What pods are given to leave."),
    click.option("--termination", help="What they take of it."),
    click.option("--lag", help="From what happens to when it is known."),
    click.option("--saves-on-suspend", is_flag=True, help="Jobs save their work when they are told to stop."),
    click.option(
        "--failures",
        type=click.FloatRange(0),
        default=0.0,
        help="Failures of whole nodes in 1,000 node-days.",
    ),
    click.option(
        "--gpu-failures",
        type=click.FloatRange(0),
        default=0.0,
        help="Losses of single GPUs in 1,000 node-days.",
    ),
    click.option(
        "--drains", type=click.FloatRange(0), default=0.0, help="Nodes emptied on purpose in 1,000 node-days."
    ),
    click.option(
        "--repair", default="4h", show_default=True, help="How long a node is out of service, in the median."
    ),
    click.option(
        "--maintenance",
        metavar="EVERY:LENGTH[:SHARE]",
        help="Drain the next SHARE of the nodes for LENGTH, EVERY so often, as in 7d:4h:0.25.",
    ),
    click.option(
        "--pass-every", default="1s", show_default=True, help="The least virtual time between two passes."
    ),
    click.option(
        "--verdicts/--no-verdicts", default=True, show_default=True, help="Whether to forecast for verdicts."
    ),
    click.option(
        "--invariants/--no-invariants", default=True, show_default=True, help="Whether to check every move."
    ),
)
_JSON = click.option(
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
    return _with(command, (*_CLUSTER, *_LOAD, *_STARTS, *_WORLD, *_COUNTED))


def _bounded(command: Command) -> Command:
    """Add what a bound depends on, but for the trace and the seed."""
    return _with(command, (*_CLUSTER, *_LOAD, *_STARTS, *_COUNTED))


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


@click.command("compare")
@click.option(
    "--trace",
    "trace_specs",
    required=True,
    multiple=True,
    metavar="FORMAT:PATH",
    help=f"{TRACE_HELP} May be several.",
)
@click.option(
    "--policy",
    "policy_names",
    required=True,
    multiple=True,
    help="A policy, by name; give several. The others are compared with the first.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Seeds 1 to N, for each policy.",
)
@click.option("--processes", type=click.IntRange(1), help="Replays at a time; as many as there are cores.")
@replayed
@click.option("--bound", is_flag=True, help="Also work out the fluid bound; needs the extra `evaluate`.")
@_JSON
@REPORT
@click.pass_context
def compare(context: click.Context, /, **options: Any) -> None:
    """Replay traces under several policies and seeds, and say how sure the differences are.

    All policies meet the same jobs, deadlines and mishaps for one seed, so differences are taken by seed. A
    trace is judged by itself; nothing is averaged over traces. Exits with 1 when an invariant was broken.
    """

    def job() -> int:
        from lstqueue.evaluate import command, compare
        from lstqueue.evaluate.report import settings

        told, line = settings.of(context), settings.command(context)
        return compare.run(compare.Asked(**_costed(options, command.COSTS), told=told, line=line))

    _leave(job)


@click.command("sweep")
@click.option("--trace", "trace_spec", required=True, metavar="FORMAT:PATH", help=TRACE_HELP)
@click.option(
    "--vary",
    required=True,
    metavar="OPTION=VALUE,VALUE,...",
    help="The option that takes several values: nodes, deadlines, estimates, best-effort, failures,"
    " gpu-failures, drains or checkpoint.",
)
@click.option(
    "--policy",
    "policy_names",
    required=True,
    multiple=True,
    help="A policy, by name; give several. The others are compared with the first.",
)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Seeds 1 to N, for each."
)
@click.option("--processes", type=click.IntRange(1), help="Replays at a time; as many as there are cores.")
@replayed
@click.option("--bound", is_flag=True, help="Also work out the fluid bound; needs the extra `evaluate`.")
@_JSON
@REPORT
@click.pass_context
def sweep(context: click.Context, /, **options: Any) -> None:
    """Compare policies at several values of one option: a curve for each, and how sure it is.

    Say everything else as for `compare`; what varies need not be said. At each value all policies meet the
    same jobs, deadlines and mishaps for one seed. Exits with 1 when an invariant was broken.
    """

    def job() -> int:
        from lstqueue.evaluate import command, compare, sweep
        from lstqueue.evaluate.report import settings

        told, line = settings.of(context), settings.command(context)
        vary = sweep.parse(options.pop("vary"))
        if context.get_parameter_source(vary.name.replace("-", "_")) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{vary.name} is what --vary varies; leave one of them out")
        traces = (options.pop("trace_spec"),)
        costed = _costed(options, command.COSTS)
        return sweep.run(compare.Asked(trace_specs=traces, **costed, told=told, line=line), vary)

    _leave(job)


@click.command("bound")
@click.option("--trace", required=True, metavar="FORMAT:PATH", help=TRACE_HELP)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything that is drawn.")
@click.option(
    "--weight",
    type=click.Choice(["jobs", "gpu-hours", "value"]),
    default="jobs",
    show_default=True,
    help="What meeting a deadline counts.",
)
@click.option(
    "--bin",
    "bin_width",
    default="1h",
    show_default=True,
    help="Bins of the fluid bound; wider is quicker and weaker.",
)
@click.option("--exact", is_flag=True, help="Also the sharper bounds for up to 400 jobs; see --limit.")
@_bounded
@_JSON
def bound(**options: Any) -> None:
    """Work out how many deadlines of a trace any policy could meet at most.

    Needs the solvers of the extra `evaluate`.
    """

    def job() -> int:
        from lstqueue.evaluate import bounding

        return bounding.run(bounding.Asked(**_costed(options, ("launch", "bind"))))

    _leave(job)


def _costed(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The options with those that are costs, and were given, in one of their own."""
    given = {name: options[name] for name in names if options[name] is not None}
    return {name: value for name, value in options.items() if name not in names} | {"costs": given}


def _leave(job: Callable[[], int]) -> None:
    try:
        code = job()
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    sys.exit(code)
