"""Files that a command writes: found out in time whether they can be, and an error in words when they cannot.

A disk may be full at any write, and at the end, when what is left is written; both are told by the file's
name, and none is a traceback.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import TextIO

import click

Written = tuple[tuple[pathlib.Path | None, str], ...]
"""Where to, and the option that says so."""
REMEDY = "make room there, or name another file"


def check_folders(written: Written) -> None:
    """Find out before anything is replayed whether there is a folder for each file that is to be written.

    Raises:
        click.BadParameter: There is none.
    """
    for path, hint in written:
        if path is not None and not path.parent.is_dir():
            what = f"folder {str(path.parent)!r} does not exist; create it, or name another file"
            raise click.BadParameter(what, param_hint=hint)


def write(path: pathlib.Path, text: str) -> None:
    """Write a file.

    Raises:
        click.FileError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _told(path, error) from error


class Lines:
    """A file that gets line after line."""

    def __init__(self, path: pathlib.Path, file: TextIO) -> None:
        self._path, self._file = path, file

    def write(self, line: str) -> None:
        """Add one.

        Raises:
            click.FileError: It cannot be written.
        """
        self._tried(lambda: self._file.write(line))

    def close(self) -> None:
        """Write what is left.

        Raises:
            click.FileError: It cannot be written.
        """
        self._tried(self._file.close)

    def _tried(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            raise _told(self._path, error) from error


@contextlib.contextmanager
def lines(path: pathlib.Path | None) -> Iterator[Lines | None]:
    """Open a file for lines; None where none is asked for.

    Raises:
        click.FileError: It cannot be opened or written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise _told(path, error) from error
    made = Lines(path, file)
    try:
        yield made
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong first is what is told
            file.close()
        raise
    made.close()


def _told(path: pathlib.Path, error: OSError) -> click.FileError:
    return click.FileError(str(path), hint=f"{error.strerror}; {REMEDY}")
