"""The command line. Every command's body is in a module of its own, imported when the command runs."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import click
from click.core import ParameterSource

import lstqueue
from lstqueue import cli_evaluate, cli_options, cli_topology

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


class _Interruptible(click.Group):
    """Ends in a word after Ctrl-C, whatever it was about to do, imports included."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _clustered(command: cli_options.Command) -> cli_options.Command:
    """Add what says which cluster a command is about."""
    return cli_options.several(
        command,
        (
            click.option(
                "--kubeconfig",
                help="Path of a kubeconfig; without it KUBECONFIG, the pod's account, ~/.kube.",
            ),
            click.option("--context", help="Context of the kubeconfig."),
            click.option(
                "--url", help="URL of an API server that asks for no credentials, instead of a kubeconfig."
            ),
        ),
    )


@click.group(cls=_Interruptible, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lstqueue.__version__, prog_name="lstqueue")
def main() -> None:
    """Run gangs on Kubernetes as a whole or not at all, least slack first."""


@main.command()
@click.option("--write", is_flag=True, help="Write the manifests that differ into the folder.")
@click.option("--check", is_flag=True, help="Fail when a manifest in the folder is out of date.")
@click.option(
    "--dir",
    "directory",
    default="crds",
    show_default=True,
    type=click.Path(file_okay=False, path_type=pathlib.Path),
    help="The folder.",
)
def crd(*, write: bool, check: bool, directory: pathlib.Path) -> None:
    """Print the manifests to install: the CRDs and the priority class."""
    from lstqueue.api import crd_command

    if write and check:
        raise click.UsageError("--write and --check exclude each other; use one of them")
    if write:
        for path in crd_command.write(directory):
            click.echo(f"wrote {path}")
    elif check:
        stale = crd_command.stale(directory)
        for path in stale:
            click.echo(f"{path} is not what the models say", err=True)
        if stale:
            raise click.ClickException(f"run `lstqueue crd --write --dir {directory}`")
    else:
        click.echo(crd_command.text(), nl=False)


@main.command()
@_clustered
@click.option("--probe-host", default="127.0.0.1", show_default=True, help="Where to serve the probes.")
@click.option(
    "--probe-port",
    type=click.IntRange(0, 65535),
    help="Port of /livez, /readyz, /metrics and /why/NAMESPACE/NAME; without it none of them is served.",
)
@click.option(
    "--writes-per-second",
    type=click.FloatRange(min=0),
    default=50.0,
    show_default=True,
    help="Limit of writes to the API server; 0 is none.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Decide only while holding a Lease, so that replicas may stand by. Default: in a pod, yes; else no.",
)
@click.option("--lease-namespace", help="Namespace of the Lease; in a pod, its own by default.")
@click.option("--lease-name", default="lstqueue-operator", show_default=True, help="Name of the Lease.")
@click.option(
    "--force-delete/--no-force-delete",
    default=True,
    show_default=True,
    help="Remove pods of fixed names by force from nodes whose heartbeat has stopped for 5 min.",
)
@click.option(
    "--end-left-pods",
    is_flag=True,
    help="Have pods ended that a PyTorchJob that is over has left running: sets its cleanPodPolicy.",
)
def operator(*, writes_per_second: float, force_delete: bool, end_left_pods: bool, **options: Any) -> None:
    """Run the operator against a cluster."""
    from lstqueue.kube import lease, login, port
    from lstqueue.operator import command, settings, shell

    try:
        told = settings.Settings(
            writes_per_second=writes_per_second, force_delete=force_delete, end_left_pods=end_left_pods
        )
        command.run(command.Options(**options), told)
    except (login.LoginError, port.ApiError, lease.LeaseError, shell.StartError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The file."
)
@_clustered
@click.option("--namespace", help="Jobs of this namespace only.")
@click.option(
    "--since", help="Jobs created since then only: a time, or a duration back from now, such as 7d."
)
@click.option("--user-label", default="", help="Label that names a job's user; else its namespace does.")
@click.option("--follow", is_flag=True, help="Go on with jobs as they end, until Ctrl-C.")
def record(**options: Any) -> None:
    """Write the jobs that succeeded in a cluster as a trace.

    Lines are added to the file, each job once, so it can be run again and again. Jobs that were deleted, and
    those that failed or have not ended, are not in it; with --follow, what ends meanwhile is. `lstqueue
    evaluate run --trace lstqueue:FILE` replays it.
    """
    from lstqueue.record import command

    command.run(command.Options(**options))


@main.command()
@click.option(
    "--jobs",
    type=click.IntRange(1, 240),
    default=240,
    show_default=True,
    help="Take the first so many jobs of the trace.",
)
@click.option(
    "--nodes", type=click.IntRange(1, 512), show_default="16; 4 with --serve", help="Nodes of 8 GPUs."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the deadlines, which are drawn."
)
@cli_options.JSON
@click.option(
    "--record",
    "record_path",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Also write the jobs of the first run to this new file, as `lstqueue record` does.",
)
@click.option("--serve", is_flag=True, help="Run no trace; serve the cluster to kubectl until Ctrl-C.")
@click.option(
    "--speed",
    type=click.FloatRange(min=1, max=1000),
    default=60,
    show_default=True,
    help="With --serve: virtual seconds per second.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="With --serve: write the kubeconfig to this new file instead of a temporary one.",
)
@click.option(
    "--probe-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="With --serve: port of /why/NAMESPACE/NAME and /metrics.",
)
@click.pass_context
def demo(
    context: click.Context,
    /,
    *,
    serve: bool,
    nodes: int | None,
    speed: float,
    kubeconfig: pathlib.Path | None,
    probe_port: int,
    **options: Any,
) -> None:
    """Run a trace on a virtual cluster, or --serve one to kubectl.

    The trace runs twice, least slack first and first come first; --serve gives you the cluster to play with.
    Needs no Kubernetes: the real operator runs over a real HTTP API, and only the cluster is simulated, on a
    clock that jumps. Exits with 1 when an invariant was violated, or a job failed or never ended.
    """
    if serve:
        flags = {"jobs": "--jobs", "seed": "--seed", "json_path": "--json", "record_path": "--record"}
        _refuse_options(context, flags, "does not go with --serve; leave one of them out")
    else:
        flags = {"speed": "--speed", "kubeconfig": "--kubeconfig", "probe_port": "--probe-port"}
        _refuse_options(context, flags, "is for --serve; leave it out, or add that")
    if serve:
        from lstqueue.demo import serve as serving

        sys.exit(serving.run(serving.Options(nodes or serving.NODES, speed, kubeconfig, probe_port)))
    from lstqueue.demo import command

    sys.exit(command.run(nodes=nodes or command.NODES, **options))


@main.group()
def evaluate() -> None:
    """Replay a trace through the operator's own decisions."""


evaluate.add_command(cli_evaluate.run)
evaluate.add_command(cli_evaluate.compare)
evaluate.add_command(cli_evaluate.sweep)
evaluate.add_command(cli_evaluate.bound)
main.add_command(cli_topology.topology)


def _refuse_options(context: click.Context, flags: dict[str, str], why: str) -> None:
    """Refuse options that would be ignored; `flags` has them by parameter."""
    for name, flag in flags.items():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{flag} {why}")
