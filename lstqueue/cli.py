"""The command line. Every command's body is in a module of its own, imported when the command runs."""

from __future__ import annotations

import pathlib

import click

import lstqueue


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
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
