"""The commands of `lstqueue evaluate`.

What they do is imported when they are run: the other commands of `lstqueue` should not wait for it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from typing import Any

import click
from click.core import ParameterSource

from lstqueue import cli_options


@click.command("run")
@click.option("--trace", required=True, metavar="FORMAT:PATH", help=cli_options.TRACE_HELP)
@click.option("--policy", default="lst", show_default=True, help="The policy, by name.")
@cli_options.SEED
@cli_options.replayed
@cli_options.BOUND
@cli_options.JSON
@click.option(
    "--log",
    "log_path",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Also write every event to this file, in an existing folder.",
)
@cli_options.REPORT
@click.option(
    "--through",
    type=click.Choice(["embedded"]),
    help="Replay a second time, by the whole operator on the embedded cluster, and show both.",
)
@click.pass_context
def run(context: click.Context, /, *, through: str | None, **options: Any) -> None:
    """Replay a trace under one policy and say what came of it.

    Nothing but the world is simulated: plans are made by the very code that the operator runs. The same
    options give the same events, and so the same digest. Exits with 1 when an invariant was broken.
    """
    from lstqueue.evaluate import command
    from lstqueue.evaluate.report import settings

    told, line = settings.of(context), settings.command(context)
    asked = command.Options(**cli_options.costed(options), told=told, line=line)
    if through is None:
        sys.exit(command.run(asked))
    from lstqueue.through import command as whole

    sys.exit(whole.run(asked))


@click.command("compare")
@click.option(
    "--trace",
    "trace_specs",
    required=True,
    multiple=True,
    metavar="FORMAT:PATH",
    help=f"{cli_options.TRACE_HELP} May be several.",
)
@cli_options.compared(5)
@click.pass_context
def compare(context: click.Context, /, **options: Any) -> None:
    """Replay traces under several policies and seeds, and say how sure the differences are.

    All policies meet the same jobs, deadlines and mishaps for one seed, so differences are taken by seed. A
    trace is judged by itself; nothing is averaged over traces. Exits with 1 when an invariant was broken.
    """
    from lstqueue.evaluate import compare
    from lstqueue.evaluate.report import settings

    told, line = settings.of(context), settings.command(context)
    sys.exit(compare.run(compare.Asked(**cli_options.costed(options), told=told, line=line)))


@click.command("sweep")
@click.option("--trace", "trace_spec", required=True, metavar="FORMAT:PATH", help=cli_options.TRACE_HELP)
@click.option(
    "--vary",
    required=True,
    metavar="OPTION=VALUE,VALUE,...",
    help="The option that takes several values: nodes, deadlines, estimates, best-effort, failures,"
    " gpu-failures, drains or checkpoint.",
)
@cli_options.compared(10)
@click.pass_context
def sweep(context: click.Context, /, **options: Any) -> None:
    """Compare policies at several values of one option: a curve for each, and how sure it is.

    Say everything else as for `compare`; what varies need not be said. At each value all policies meet the
    same jobs, deadlines and mishaps for one seed. Exits with 1 when an invariant was broken.
    """
    from lstqueue.evaluate import compare, sweep
    from lstqueue.evaluate.report import settings

    told, line = settings.of(context), settings.command(context)
    vary = sweep.parse(options.pop("vary"))
    if context.get_parameter_source(vary.parameter) is not ParameterSource.DEFAULT:
        raise click.UsageError(f"--{vary.name} is what --vary varies; leave one of them out")
    (option,) = [one for one in context.command.params if one.name == vary.parameter]
    made = tuple([option.type.convert(value, option, context) for value in vary.values])
    vary = dataclasses.replace(vary, made=made)
    traces = (options.pop("trace_spec"),)
    asked = compare.Asked(trace_specs=traces, **cli_options.costed(options), told=told, line=line)
    sys.exit(sweep.run(asked, vary))


@click.command("bound")
@click.option("--trace", required=True, metavar="FORMAT:PATH", help=cli_options.TRACE_HELP)
@cli_options.SEED
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
@cli_options.bounded
@cli_options.JSON
def bound(**options: Any) -> None:
    """Work out how many deadlines of a trace any policy could meet at most.

    Needs the solvers of the extra `evaluate`.
    """
    from lstqueue.evaluate import bounding

    sys.exit(bounding.run(bounding.Asked(**cli_options.costed(options))))
