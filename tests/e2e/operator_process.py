"""`lstqueue operator` as a process of its own, which can be killed, by itself too, and started again."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pathlib
import signal
import sys
from collections.abc import Sequence

import dying_operator
import operator_run
import stack_process

DIES_WITHIN_S = 60.0


class Process:
    """One run of the program, its output in a file."""

    def __init__(
        self,
        kubeconfig: str,
        log: pathlib.Path,
        *options: str,
        dies_after: Sequence[dying_operator.Point] = (),
    ) -> None:
        points = json.dumps([dataclasses.asdict(point) for point in dies_after])
        program = str(pathlib.Path(dying_operator.__file__).resolve())
        argv = [sys.executable, program, points, "operator", f"--kubeconfig={kubeconfig}", *options]
        self._log = log
        self._process = stack_process.spawn("lstqueue operator", argv, log=log, environ={})

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    async def until_killed(self) -> int:
        """Wait until it has come to one of its points and died there; return its number."""
        try:
            async with asyncio.timeout(DIES_WITHIN_S):
                while self.alive:  # noqa: ASYNC110 - the condition is a process's
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it did not come to any of its points; {self.tail()}") from None
        assert self._process.child is not None
        code = self._process.child.wait()
        assert code == -signal.SIGKILL, f"it ended by itself with {code}; {self.tail()}"
        return int(self.tail().rpartition(dying_operator.DIES)[2])

    def kill(self) -> None:
        """End it without warning, if it runs."""
        self._process.end()

    def refused(self) -> list[str]:
        """What it logged of being refused for want of permission."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if operator_run.REFUSED in line]

    def tail(self) -> str:
        return stack_process.log_tail(self._log)
