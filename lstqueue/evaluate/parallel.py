"""Replays of a comparison in processes of their own, as many at a time as there are cores, with one bar.

Replays are independent of each other; the figures are those that `run` would give. An error or an
interruption ends them all at once: nobody waits for hours of replays whose figures nobody will see.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections.abc import Sequence
from concurrent import futures
from typing import Any, Protocol

import click
from rich import console, progress

from lstqueue.evaluate import evaluation, options, output, replay
from lstqueue.evaluate.report import fabric, record, series

POLL = 0.2
"""Seconds of real time between two looks at what the processes say."""


class _Channel(Protocol):
    """Takes (number of the replay, jobs done, jobs in all)."""

    def put(self, item: tuple[int, int, int]) -> None: ...

    def get_nowait(self) -> tuple[int, int, int]: ...


_channels: list[_Channel] = []
"""In a process that replays: where it tells how far it is."""


def _begin(channel: _Channel) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits for all ends them
    _channels.append(channel)


def _one(number: int, asked: options.One) -> dict[str, Any]:
    """Replay in a process of its own."""

    def told(now: replay.Progress) -> None:
        for channel in _channels:
            channel.put((number, now.done, now.jobs))

    recorder = record.Recorder() if asked.topology else None
    found, outcome = evaluation.recorded(asked, told, recorder)
    # A process replays one after another, and its peak is that of them all.
    made = {**output.as_json(found), "peak_rss_mib": None}
    if recorder is not None and recorder.domains is not None:
        made["domains"] = fabric.kept(series.Recorded(outcome, recorder), recorder.domains)
    return made


def replay_all(
    wanted: Sequence[options.One], *, processes: int, terminal: console.Console
) -> list[dict[str, Any]]:
    """Replay all that is wanted, so many at a time, with a bar; the figures in the order of `wanted`.

    Raises:
        click.ClickException: One cannot be; the others are not waited for.
    """
    context = multiprocessing.get_context("spawn")
    channel: _Channel = context.Queue()
    workers = futures.ProcessPoolExecutor(
        max_workers=min(processes, len(wanted)), mp_context=context, initializer=_begin, initargs=(channel,)
    )
    with workers as pool, _bars(terminal) as bars:
        try:
            return _awaited(pool, wanted, channel, bars)
        except BaseException:  # an interruption, too: else leaving would wait for hours of replays
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _awaited(
    pool: futures.Executor,
    wanted: Sequence[options.One],
    channel: _Channel,
    bars: progress.Progress,
) -> list[dict[str, Any]]:
    bar = bars.add_task("replays", total=float(len(wanted)), done=0, of=len(wanted), now="")
    shares = [0.0] * len(wanted)
    tasks = {pool.submit(_one, number, asked): number for number, asked in enumerate(wanted)}
    missing = set(tasks)
    while missing:
        done, missing = futures.wait(missing, timeout=POLL, return_when=futures.FIRST_EXCEPTION)
        for task in done:
            if (error := task.exception()) is not None:
                raise error if isinstance(error, click.ClickException) else click.ClickException(repr(error))
            shares[tasks[task]] = 1.0
        _listen(channel, shares)
        bars.update(bar, completed=sum(shares), done=len(wanted) - len(missing))
    return [task.result() for task in tasks]


def _listen(channel: _Channel, shares: list[float]) -> None:
    """Note what the processes say of how far they are."""
    while True:
        try:
            number, done, jobs = channel.get_nowait()
        except queue.Empty:
            return
        shares[number] = max(shares[number], done / max(jobs, 1))


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=30),
        progress.TextColumn("{task.fields[done]} of {task.fields[of]}"),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
    )
