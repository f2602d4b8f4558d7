"""The text of a trace file, line by line, and the one error that everything wrong with it becomes.

Traces come from elsewhere: cut off downloads, other encodings, gigabytes on one line. So files are read as
bytes, bounded, and whatever is wrong names the file, the line and what to do about it.
"""

from __future__ import annotations

import gzip
import pathlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

LONGEST = 1 << 20
"""Bytes of a line; beyond it the file is something else."""

MOST_LINES = 20_000_000
"""Beyond it a small packed file would fill the memory."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class TraceError(ValueError):
    """A trace that cannot be read; the message names the file, the place in it and the remedy."""


def problem(path: pathlib.Path, what: str, *, line: int | None = None, column: str = "") -> TraceError:
    """Return the error for a place in a file."""
    place = str(path)
    if line is not None:
        place += f", line {line}"
    if column:
        place += f", column {column!r}"
    return TraceError(f"{place}: {what}")


def lines(path: pathlib.Path, *, longest: int = LONGEST) -> Iterator[str]:
    """Yield the lines of a file, plain or gzip by its content whatever it is called, with their line ends.

    A byte order mark is taken off. A line has `longest` bytes at most.

    Raises:
        TraceError: Not readable, cut off, damaged, not UTF-8, or with a line that is too long.
    """
    number = 0
    try:
        with path.open("rb") as raw:
            # `buffering` is left to its default, so what was opened can look ahead.
            packed = raw.peek(2)[:2] == _GZIP
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
            while chunk := stream.readline(longest + 1):
                number += 1
                if number > MOST_LINES:
                    raise problem(path, f"has over {MOST_LINES} lines; cut it into parts")
                yield _text(path, number, chunk, longest)
    except EOFError as error:
        raise problem(path, "the gzip data end early; fetch the file again", line=number + 1) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        what = f"the gzip data are damaged ({error}); fetch the file again"
        raise problem(path, what, line=number + 1) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise problem(path, f"cannot be read: {reason}; name a file that can") from error


def _text(path: pathlib.Path, number: int, chunk: bytes, longest: int) -> str:
    if len(chunk) > longest:
        raise problem(path, f"longer than {longest:,} bytes; give a file of shorter lines", line=number)
    if number == 1:
        chunk = chunk.removeprefix(_BOM)
    try:
        line = chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        raise problem(path, "is not UTF-8; convert the file, for example with iconv", line=number) from error
    if "\0" in line:
        raise problem(path, "has a NUL byte; if this is text, convert it to UTF-8", line=number)
    return line
