"""The log of a replay: every move, and all that jobs were told, with its time; and one figure for all of it.

The figure tells whether two replays were the same, to the jobs as well as to whoever works for them.

Lines are hashed as they come, so that a replay of any length costs no memory; whoever wants to read them
gives a place to write them to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

from lstqueue.engine import model


class Lines(Protocol):
    """Takes one line after another."""

    def write(self, line: str, /) -> object:
        """Take a line, its end included."""


class Log:
    """Hashes one line per event; `out` gets the lines as well."""

    def __init__(self, out: Lines | None = None) -> None:
        self._hash = hashlib.sha256()
        self._out = out
        self.lines = 0

    def note(self, at: int, event: str, key: str, nodes: Iterable[tuple[str, int]] = ()) -> None:
        """Add an event.

        Args:
            at: ms since the epoch.
            event: In one word.
            key: Of the job.
            nodes: (node, pods) in rank order, where it took a place.
        """
        self._add(f"{at} {event} {key} {','.join([f'{name}*{count}' for name, count in nodes])}\n")

    def told(self, at: int, update: model.Update, key: str) -> None:
        """Add what a job was told: its band, why it waits, its slack, and how its deadline is judged."""
        verdict, code = update.verdict, update.code
        said = [update.band.name, "-" if code is None else code.value, update.slack or "-"]
        if verdict is not None:
            said += [verdict.level.value, _span(verdict.start), _span(verdict.finish)]
            said.append(str(verdict.earliest_feasible or "-"))
        self._add(f"{at} told {key} {','.join(said)}\n")

    def _add(self, line: str) -> None:
        self._hash.update(line.encode())
        self.lines += 1
        if self._out is not None:
            self._out.write(line)

    def digest(self) -> str:
        """SHA-256 of all lines so far, in hex."""
        return self._hash.hexdigest()


def _span(times: tuple[int, int] | None) -> str:
    return "-" if times is None else f"{times[0]}-{times[1]}"
