"""Each run in a process of its own, followed by the one that was started at the terminal.

A child tells its progress through a pipe, then its outcome or the text of its error, and nothing else. It
never sees Ctrl-C: only the parent does, which then ends the children. They are killed rather than asked,
because all they hold is memory and sockets, and whoever interrupts wants his prompt back.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnProcess

from lstqueue.demo import outcome, play

Told = Callable[[str, int, int, float], None]


class RunError(Exception):
    """A run raised an error, or its process died."""


@dataclass(frozen=True, slots=True)
class _Run:
    order: str
    process: SpawnProcess
    news: connection.Connection


def play_all(plans: Sequence[play.Plan], told: Told) -> list[outcome.Outcome]:
    """Run the plans side by side and return their outcomes in the same order.

    Args:
        plans: what to run, each with another order.
        told: called here with an order, finished jobs, busy GPUs and virtual seconds, as jobs finish.

    Raises:
        RunError: one of the runs failed; the others were ended.
    """
    # The tracker lets interrupts in again when it starts, so it must run before they are held.
    resource_tracker.ensure_running()
    runs: list[_Run] = []
    try:
        with _interrupts_held():
            runs.extend(_start(plan) for plan in plans)
        return _follow(runs, told)
    finally:
        for run in runs:
            run.process.kill()
        for run in runs:
            run.process.join()
            run.news.close()


def _start(plan: play.Plan) -> _Run:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(plan, theirs), name=plan.order, daemon=True)
    process.start()
    # With the last writing end gone, the death of the child ends the pipe.
    theirs.close()
    return _Run(plan.order, process, ours)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep SIGINT pending: what is started here never gets it, and we get it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow(runs: Sequence[_Run], told: Told) -> list[outcome.Outcome]:
    """Read every pipe until each has brought an outcome."""
    outcomes: dict[str, outcome.Outcome] = {}
    while len(outcomes) < len(runs):
        waiting = [run for run in runs if run.order not in outcomes]
        ready = connection.wait([run.news for run in waiting])
        for run in waiting:
            if run.news not in ready:
                continue
            item = _receive(run)
            if isinstance(item, outcome.Outcome):
                outcomes[run.order] = item
            else:
                told(run.order, *item)
    return [outcomes[run.order] for run in runs]


def _receive(run: _Run) -> outcome.Outcome | tuple[int, int, float]:
    try:
        item: outcome.Outcome | tuple[int, int, float] | str = run.news.recv()
    except (EOFError, ConnectionError):
        run.process.join()
        raise RunError(f'the run "{run.order}" died: {_cause(run.process.exitcode)}') from None
    if isinstance(item, str):
        raise RunError(f'the run "{run.order}" failed: {item}')
    return item


def _cause(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "it was killed, perhaps for want of memory"
    if code is not None and code < 0:
        return f"signal {-code}"
    return f"exit code {code}"


def _child(plan: play.Plan, news: connection.Connection) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    logging.basicConfig(level=logging.WARNING)
    item: outcome.Outcome | str
    try:
        item = play.play(plan, lambda *progress: _tell(news, progress))
    except Exception as error:
        item = _words(error)
    _tell(news, item)


def _words(error: Exception) -> str:
    """Say what went wrong; of several errors at once, the first."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _tell(news: connection.Connection, item: outcome.Outcome | tuple[int, int, float] | str) -> None:
    try:
        news.send(item)
    except ConnectionError:
        # The parent is gone, so nobody is left to run for, or to be told.
        os._exit(1)
