"""What `lstqueue record` does: read a cluster, once or until told to stop, and say what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import signal
import time
from dataclasses import dataclass

import click

from lstqueue.api import durations, errors, times
from lstqueue.kube import client, login, port, reflector
from lstqueue.operator import queues
from lstqueue.record import book, reading, rows

LOOK = 10.0
"""Seconds between two looks at whether the API server can be read."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for, as the command line has it."""

    out: pathlib.Path
    url: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    since: str | None = None
    user_label: str = ""
    follow: bool = False


def run(options: Options) -> None:
    """Record.

    Raises:
        click.ClickException: An option cannot be met, the API cannot be read, or the file not be written.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    since = since_ms(options.since, now=time.time_ns() // 1_000_000)
    asyncio.run(record(options, since=since))


def since_ms(text: str | None, *, now: int) -> int:
    """Read `--since`, a time or a duration back from `now`, in ms since the epoch; 0 without one.

    Raises:
        click.BadParameter: It is neither.
    """
    if text is None:
        return 0
    with contextlib.suppress(errors.BadValueError):
        return now - durations.parse(text)
    with contextlib.suppress(errors.BadValueError):
        return times.parse(text)
    what = f"{text!r} is neither a duration such as 7d nor a time such as 2026-03-01T00:00:00Z"
    raise click.BadParameter(what, param_hint="--since")


async def record(options: Options, *, since: int) -> None:
    """Record, in the running loop, what was created at `since` (ms since the epoch) or later.

    Raises:
        click.ClickException: As `run` does.
    """
    try:
        with book.Book(options.out) as into:
            await _record(options, into, since)
    except (book.BookError, login.LoginError) as error:
        raise click.ClickException(str(error)) from error
    except port.ApiError as error:
        raise click.ClickException(_words(error)) from error


async def _record(options: Options, into: book.Book, since: int) -> None:
    api = await client.connect(url=options.url, kubeconfig=options.kubeconfig, context=options.context)
    try:
        asked = rows.Asked(await _defaults(api), options.user_label)
        reader = reading.Reader(api, into, asked, options.namespace, since)
        await reader.once()
        if options.follow:
            tell(reader)
            click.echo("Following; Ctrl-C ends it.", err=True)
            reader.told = lambda key: click.echo(key, err=True)
            await _until_stopped(reader)
        tell(reader)
    finally:
        await api.close()


async def _defaults(api: port.KubeApi) -> dict[str, queues.Defaults]:
    try:
        return await reading.defaults(api)
    except port.ForbiddenError:
        click.echo(
            "GPUQueues may not be read: restart overheads that only a queue states count as work.", err=True
        )
        return {}


async def _until_stopped(reader: reading.Reader) -> None:
    """Follow until SIGINT or SIGTERM."""
    source = reader.following()
    following = asyncio.create_task(source.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, following.cancel)
    outages = asyncio.create_task(say_outages(source))
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await following
    finally:
        outages.cancel()


async def say_outages(source: reflector.Reflector) -> None:
    """Say when the API server can no longer be read, and when it can again, until cancelled."""
    said = ""
    while True:
        await asyncio.sleep(LOOK)
        words = "" if source.last_error is None else str(source.last_error)
        if words and words != said:
            click.echo(f"The API server cannot be read, and it is tried again: {words}", err=True)
        elif said and not words:
            click.echo("The API server can be read again.", err=True)
        said = words


def tell(reader: reading.Reader) -> None:
    """Say what is in the file, and what is not."""
    into = reader.into
    click.echo(f"{into.path}: {into.written:,} jobs added, {into.before:,} were there.", err=True)
    if reader.waiting:
        click.echo(f"{len(reader.waiting):,} left out for now: {rows.NOT_ENDED}.", err=True)
    for reason, count in sorted(reader.left_out.items()):
        click.echo(f"{count:,} left out: {reason}.", err=True)


def _words(error: port.ApiError) -> str:
    """Say what to do about an answer of the API."""
    if isinstance(error, port.ForbiddenError):
        what = "grant list and watch on deadlinejobs.lstqueue.dev"
        return f"DeadlineJobs may not be read ({error.message}); {what}"
    if isinstance(error, port.NotFoundError):
        return (
            "the API server knows no DeadlineJobs; is lstqueue installed there, and is it the right cluster?"
        )
    return f"the API server cannot be read: {error}; try again, the file goes on where it is"
