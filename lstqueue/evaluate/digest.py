"""The log of a replay: every move with its time, and one figure that tells whether two replays were the same.

Lines are hashed as they come, so that a replay of any length costs no memory; whoever wants to read them
gives a place to write them to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol


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
        where = ",".join([f"{name}*{count}" for name, count in nodes])
        line = f"{at} {event} {key} {where}\n"
        self._hash.update(line.encode())
        self.lines += 1
        if self._out is not None:
            self._out.write(line)

    def digest(self) -> str:
        """SHA-256 of all lines so far, in hex."""
        return self._hash.hexdigest()
