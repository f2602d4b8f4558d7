"""Files that a command writes: found out in time whether they can be, and an error in words when they cannot.

A disk may be full at any write, and at the end, when what is left is written; both are told by the file's
name, and none is a traceback.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TextIO

import click

Written = tuple[tuple[pathlib.Path | None, str], ...]
"""Where to, and the option that says so."""
REMEDY = "make room there, or name another file"


def check(written: Written, read: Iterable[str | None]) -> None:
    """Find out before anything is replayed whether each file can be written, and destroys none that is read.

    Args:
        written: Where to, and the option that says so.
        read: Paths of files that are read.

    Raises:
        click.BadParameter: There is no folder for one, or it is one, or is another's, or is read.
    """
    sources = {os.path.realpath(path) for path in read if path}
    taken: dict[str, str] = {}
    for path, hint in written:
        if path is None:
            continue
        if problem := _problem(path, sources, taken):
            raise click.BadParameter(problem, param_hint=hint)
        taken[os.path.realpath(path)] = hint


def _problem(path: pathlib.Path, sources: Collection[str], taken: Mapping[str, str]) -> str:
    """Why a file cannot be written, in words; empty where it may."""
    # `os.path` has no errors for names that are too long: there is no such file.
    if os.path.isdir(path):
        return f"{str(path)!r} is a folder; name a file in it"
    if not os.path.isdir(path.parent):
        return f"folder {str(path.parent)!r} does not exist; create it, or name another file"
    if os.path.exists(path) and not os.path.isfile(path):
        return ""  # such as /dev/null, which takes anything
    real = os.path.realpath(path)
    if real in sources:
        return f"{str(path)!r} is read, and would be written over; name another file"
    if real in taken:
        return f"{str(path)!r} is what {taken[real]} writes; name another file"
    return ""


def write(path: pathlib.Path, text: str) -> None:
    """Write a file.

    Raises:
        click.ClickException: It cannot be written.
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
            click.ClickException: It cannot be written.
        """
        self._tried(lambda: self._file.write(line))

    def close(self) -> None:
        """Write what is left.

        Raises:
            click.ClickException: It cannot be written.
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
        click.ClickException: It cannot be opened or written.
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


def _told(path: pathlib.Path, error: OSError) -> click.ClickException:
    return click.ClickException(f"{path}: cannot be written: {error.strerror}; {REMEDY}")
