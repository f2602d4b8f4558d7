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
from typing import Any, Protocol, TypeVar

Report = Callable[[int, int, float], None]
"""Takes finished jobs, busy GPUs and virtual seconds."""
Told = Callable[[str, int, int, float], None]

_Outcome = TypeVar("_Outcome", covariant=True)


class Plan(Protocol[_Outcome]):
    """What to run in a process; it and what comes of it are pickled."""

    @property
    def name(self) -> str:
        """What this run is called beside the others."""
        ...

    def play(self, report: Report) -> _Outcome:
        """Run to the end."""
        ...


class RunError(Exception):
    """A run raised an error, or its process died."""


@dataclass(frozen=True, slots=True)
class _Run:
    name: str
    process: SpawnProcess
    news: connection.Connection


@dataclass(frozen=True, slots=True)
class _Ended:
    """The last that a child says: what came of its run, or else what went wrong."""

    outcome: Any = None
    problem: str = ""


def play_all(plans: Sequence[Plan[_Outcome]], told: Told) -> list[_Outcome]:
    """Run the plans side by side and return their outcomes in the same order.

    Args:
        plans: what to run, each with another name.
        told: called here with a name, finished jobs, busy GPUs and virtual seconds, as jobs finish.

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


def _start(plan: Plan[Any]) -> _Run:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(plan, theirs), name=plan.name, daemon=True)
    process.start()
    # With the last writing end gone, the death of the child ends the pipe.
    theirs.close()
    return _Run(plan.name, process, ours)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep SIGINT pending: what is started here never gets it, and we get it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow(runs: Sequence[_Run], told: Told) -> list[Any]:
    """Read every pipe until each has brought an outcome."""
    outcomes: dict[str, Any] = {}
    while len(outcomes) < len(runs):
        waiting = [run for run in runs if run.name not in outcomes]
        ready = connection.wait([run.news for run in waiting])
        for run in waiting:
            if run.news not in ready:
                continue
            item = _receive(run)
            if isinstance(item, _Ended):
                outcomes[run.name] = item.outcome
            else:
                told(run.name, *item)
    return [outcomes[run.name] for run in runs]


def _receive(run: _Run) -> _Ended | tuple[int, int, float]:
    try:
        item: _Ended | tuple[int, int, float] = run.news.recv()
    except (EOFError, ConnectionError):
        run.process.join()
        raise RunError(f'the run "{run.name}" died: {_cause(run.process.exitcode)}') from None
    if isinstance(item, _Ended) and item.problem:
        raise RunError(f'the run "{run.name}" failed: {item.problem}')
    return item


def _cause(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "it was killed, perhaps for want of memory"
    if code is not None and code < 0:
        return f"signal {-code}"
    return f"exit code {code}"


def _child(plan: Plan[Any], news: connection.Connection) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    logging.basicConfig(level=logging.WARNING)
    try:
        item = _Ended(plan.play(lambda *progress: _tell(news, progress)))
    except Exception as error:
        item = _Ended(problem=_words(error))
    _tell(news, item)


def _words(error: Exception) -> str:
    """Say what went wrong; of several errors at once, the first."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _tell(news: connection.Connection, item: _Ended | tuple[int, int, float]) -> None:
    try:
        news.send(item)
    except ConnectionError:
        # The parent is gone, so nobody is left to run for, or to be told.
        os._exit(1)
