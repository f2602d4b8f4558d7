"""The file of a recorded trace: JSON lines that are only ever added, each job once.

Who was recorded is read from the file itself, so that a recorder that was killed goes on where it was: a line
that was cut off is taken off, and nothing is written twice. One process writes at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from types import TracebackType
from typing import Any, BinaryIO

from lstqueue.record import rows

LONGEST = 1 << 20
"""Bytes of a line at most, as the reader has it."""


class BookError(Exception):
    """The file cannot be used; the message says why and what to do."""


class Book:
    """Use in a `with`. `written` counts lines added since, `before` those that were there.

    Args:
        path: of the file; it is made if need be.

    Raises:
        BookError: It cannot be written, is something else, or somebody else writes to it.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.written = 0
        self._uids: set[str] = set()
        try:
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise BookError(f"{path} cannot be written ({error.strerror}); name another file") from error
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise
        self.before = len(self._uids)

    def __enter__(self) -> Book:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def add(self, row: dict[str, Any]) -> None:
        """Write a line, and have it on the disk.

        Raises:
            BookError: It could not be written; what was of it is taken off when the file is opened next.
        """
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise BookError(f"{self.path} cannot be written any more ({error.strerror})") from error
        self._uids.add(rows.uid_of(row["key"]))
        self.written += 1

    def _begin(self) -> None:
        """Take the file for ourselves, and learn who is in it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BookError(f"{self.path} is being written by another process; end that first") from error
        self._file.seek(0)
        end, number = 0, 0
        while line := self._file.readline(LONGEST):
            number += 1
            if not line.endswith(b"\n") and len(line) < LONGEST:
                self._file.truncate(end)  # whoever wrote it was killed
                break
            self._uids.add(self._uid(line, number))
            end += len(line)

    def _uid(self, line: bytes, number: int) -> str:
        try:
            return rows.uid_of(json.loads(line)["key"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BookError(
                f"{self.path}, line {number}: is nothing that `lstqueue record` wrote; name another file"
            ) from error
