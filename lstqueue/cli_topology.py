"""`lstqueue topology`: what is known of the interconnect, and what became of it."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lstqueue import cli_options

if TYPE_CHECKING:
    from lstqueue.interconnect import sources

Specs = tuple[str, ...]

CLUSTER = ("kubeconfig", "context", "url", "resource")
"""Options that say which cluster."""

LEFT_OUT = 1
"""Exit code of `check` where something was left out or merged, or could not be read."""
NO_FIT = 1
"""Exit code of `fit` where the gang does not."""


@click.group()
def topology() -> None:
    """Show the domains of an interconnect, from files or of a cluster.

    FORMAT:PATH is labels:PATH or kueue:PATH (nodes as kubectl get nodes -o json or yaml writes them, with the
    Topology), volcano:PATH (HyperNodes), ibnetdiscover:PATH, slurm:PATH (topology.conf), explicit:PATH (nodes
    and links) or alibaba:PATH. docs/topology.md says what each is. Several are joined:
    of one level what cables say counts first, then what an earlier one says.
    """


def sourced(command: cli_options.Command) -> cli_options.Command:
    """Add what says which files are read, and how."""
    return cli_options.several(
        command,
        (
            click.argument("specs", metavar="FORMAT:PATH...", nargs=-1),
            click.option(
                "--key",
                "keys",
                multiple=True,
                help="With labels: a label that says where a node is; give several from coarse to fine.",
            ),
            click.option(
                "-o", "form", type=click.Choice(["json"]), help="Print all of it, as JSON, instead of a tree."
            ),
        ),
    )


def live(command: cli_options.Command) -> cli_options.Command:
    """Add what says which cluster is read where no file is named."""
    return cli_options.several(
        command,
        (
            click.option("--kubeconfig", help="Of a cluster: its kubeconfig instead of the usual one."),
            click.option("--context", help="Of a cluster: the context in the kubeconfig."),
            click.option("--url", help="Of a cluster: its address, without a login."),
            click.option(
                "--resource", help="Of a cluster: what is counted as GPUs. [default: nvidia.com/gpu]"
            ),
        ),
    )


@topology.command()
@sourced
@live
def show(*, specs: Specs, keys: Specs, form: str | None, **cluster: str | None) -> None:
    """Print the domains of every level, with their nodes and rates.

    Without FORMAT:PATH those of the cluster, as its Interconnect or else labels of its nodes say, with how
    many GPUs are free in each.
    """
    _printed(specs, keys, form, cluster)


@topology.command()
@sourced
@live
@click.pass_context
def check(
    click_context: click.Context, /, *, specs: Specs, keys: Specs, form: str | None, **cluster: str | None
) -> None:
    """The same, and exit with 1 when something was left out or merged, or could not be read."""
    found = _printed(specs, keys, form, cluster)
    if found.domains.left_out or found.domains.merged or not found.whole:
        click_context.exit(LEFT_OUT)


@topology.command()
@sourced
@click.option(
    "--gang",
    "gangs",
    required=True,
    multiple=True,
    metavar="PODSxGPUS",
    help="Pods, and GPUs of each: 16x8. Give it again for a group more; ranks go in this order.",
)
@click.option(
    "--gpus-per-node",
    "gpus",
    default=8,
    show_default=True,
    type=click.IntRange(1, 1024),
    help="GPUs that each node has.",
)
@click.option(
    "--required", metavar="LEVEL", help="One domain of this level holds the gang, or it does not fit."
)
@click.option("--preferred", metavar="LEVEL", help="Say when no single domain of this level holds the gang.")
@click.option(
    "--slice",
    metavar="PODS[:LEVEL]",
    help="So many pods of the last group, in rank order, share a domain of the level, or of the innermost.",
)
@click.option(
    "--used",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="A file of what is in use: a node and its GPUs a line.",
)
@live
@click.pass_context
def fit(
    click_context: click.Context, /, *, specs: Specs, keys: Specs, form: str | None, **asked: Any
) -> None:
    """Say where a gang would go, and what its traffic gets there. Exits with 1 when it does not fit.

    Without FORMAT:PATH in the cluster, as free as it is now.
    """
    from lstqueue.interconnect import fit as fitting
    from lstqueue.interconnect import sources

    cluster = {name: asked.pop(name) for name in CLUSTER}
    wanted = fitting.Asked(**asked)
    try:
        answer = fitting.find(_source(specs, keys, cluster), wanted)
    except sources.SourceError as error:
        raise click.ClickException(str(error)) from error
    if form == "json":
        click.echo(json.dumps(fitting.document(answer), indent=1))
    else:
        click.echo("\n".join(fitting.words(answer, wanted)))
    if answer.groups is None:
        click_context.exit(NO_FIT)


def read(specs: Specs, keys: Specs) -> sources.Source:
    """Read the sources.

    Raises:
        click.ClickException: They cannot be used.
    """
    from lstqueue.interconnect import sources

    try:
        return sources.read(*specs, keys=keys)
    except sources.SourceError as error:
        raise click.ClickException(str(error)) from error


def _source(specs: Specs, keys: Specs, cluster: Mapping[str, str | None]) -> sources.Source:
    """What files say, or a cluster where none is named."""
    given = {name: value for name, value in cluster.items() if value is not None}
    if specs and given:
        raise click.UsageError(f"--{next(iter(given))} is of a cluster, and a file is read; leave one out.")
    if keys and not specs:
        raise click.UsageError("--key is for labels:PATH; name keys in an Interconnect.")
    return read(specs, keys) if specs else _of_cluster(given)


def _of_cluster(given: Mapping[str, str]) -> sources.Source:
    from lstqueue.interconnect import live as clusters
    from lstqueue.interconnect import sources

    try:
        return clusters.read(clusters.Where(**given))
    except sources.SourceError as error:
        raise click.ClickException(str(error)) from error


def _printed(
    specs: Specs, keys: Specs, form: str | None, cluster: Mapping[str, str | None]
) -> sources.Source:
    from rich import console

    from lstqueue.interconnect import show as showing

    found = _source(specs, keys, cluster)
    if form == "json":
        click.echo(json.dumps(showing.document(found), indent=1))
    else:
        showing.write(console.Console(width=showing.WIDTH), found)
    return found
