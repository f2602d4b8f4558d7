"""Ctrl-C: a word and 130, whatever was going on."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
from typing import Any, NoReturn

import pytest
from click import testing

from lstqueue import cli
from lstqueue.api import crd_command
from lstqueue.demo import command as demo
from lstqueue.evaluate import bounding, bounds, command, compare, interrupts, sweep
from lstqueue.operator import command as operator
from lstqueue.record import command as record

TRACE = ("--trace", "lstqueue:none.csv", "--nodes", "1")
COMMANDS = [
    (command, "run", ("evaluate", "run", *TRACE)),
    (compare, "run", ("evaluate", "compare", *TRACE, "--policy", "lst")),
    (sweep, "run", ("evaluate", "sweep", *TRACE[:2], "--policy", "lst", "--vary", "nodes=1,2")),
    (bounding, "run", ("evaluate", "bound", *TRACE)),
    (demo, "run", ("demo",)),
    (record, "run", ("record", "--out", "x")),
    (operator, "run", ("operator",)),
    (crd_command, "text", ("crd",)),
]


def interrupted(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("module", "name", "arguments"), COMMANDS, ids=lambda value: str(value)[-40:])
def test_every_command_ends_in_a_word(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(module, name, interrupted)
    result = testing.CliRunner().invoke(cli.main, arguments)
    assert (result.exit_code, result.output) == (130, "interrupted\n")


def test_a_solver_is_ended_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
    path, seen = tmp_path / "trace.csv", []
    path.write_text("key,submit_ms,duration_ms,gpus,deadline_ms\na,0,3600000,8,9000000\n")
    solved = bounds.fluid
    monkeypatch.setattr(
        bounds, "fluid", lambda *a, **k: (seen.append(signal.getsignal(signal.SIGINT)), solved(*a, **k))[1]
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        given = ["evaluate", "bound", "--trace", f"lstqueue:{path}", "--nodes", "1"]
        assert testing.CliRunner().invoke(cli.main, given).exit_code == 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIG_DFL]


def test_a_process_that_ignores_the_signal_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.deadly():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_module_is_the_command() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "lstqueue", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("lstqueue, version")
