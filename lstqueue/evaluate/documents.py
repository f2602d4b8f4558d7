"""Files in JSON or YAML that people write or a cluster gives: read with an error that names the place.

Like a trace they may be packed, cut off, in another encoding or something else altogether. Whatever is wrong
with one, down to nesting that no parser follows, is a `TraceError` with the file, the line and the remedy.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from lstqueue.api import parsing
from lstqueue.evaluate.traces import cells, text

LONGEST = 1 << 28
"""Bytes of a line, and of a file: a cluster's nodes may all be on one."""
SUFFIXES = (".json", ".yaml", ".yml")
_LONGEST_NUMBER = 18
"""Digits of a number that is meant."""


def read(path: pathlib.Path) -> Any:
    """Return what a file says; JSON by its name, else YAML.

    Raises:
        TraceError: It cannot be read, or is neither.
    """
    return _parsed(path, parsing.json_loads, lambda whole: yaml.load(whole, parsing.Loader))  # noqa: S506  # it is a safe one


def read_all(path: pathlib.Path) -> list[Any]:
    """Return what a file says, document by document; JSON, by its name, is one.

    Raises:
        TraceError: It cannot be read, or is neither.
    """
    found: list[Any] = _parsed(path, lambda whole: [parsing.json_loads(whole)], _yaml_documents)
    return found


def _yaml_documents(whole: str) -> list[Any]:
    return list(yaml.load_all(whole, parsing.FastLoader))


def _whole(path: pathlib.Path) -> str:
    parts: list[str] = []
    size = 0
    for line in text.lines(path, longest=LONGEST):
        size += len(line)
        if size > LONGEST:
            raise text.problem(
                path, f"is longer than {LONGEST:,} characters once unpacked; give a part of it"
            )
        parts.append(line)
    return "".join(parts)


def _parsed(path: pathlib.Path, as_json: Callable[[str], Any], as_yaml: Callable[[str], Any]) -> Any:
    whole = _whole(path)
    form = "JSON" if path.suffix == ".json" else "YAML"
    try:
        return as_json(whole) if form == "JSON" else as_yaml(whole)
    except RecursionError as error:
        raise text.problem(path, f"is {form} nested too deeply to be read; write it flat") from error
    except json.JSONDecodeError as error:
        raise text.problem(path, f"is no JSON ({error.msg}); mend that", line=error.lineno) from error
    except yaml.YAMLError as error:
        mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        said = f"is no YAML ({what or 'it has characters that may not be there'}); mend that"
        last = max(1, len(whole.splitlines()))  # what is missing at the end is told as of the line behind it
        raise text.problem(path, said, line=None if mark is None else min(mark.line + 1, last)) from error
    except parsing.TwiceError as error:
        raise text.problem(path, str(error), line=error.line) from error
    except ValueError as error:  # a date or a number that Python has none for
        raise text.problem(path, f"has a value that is none ({str(error)[:80]}); mend that") from error


def shown(value: object) -> str:
    """Return a value as a message may repeat it, without writing out what is in it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_NUMBER:
        return "a very large number"
    return ascii(value) if len(str(value)) <= cells.LONGEST_NAME else "very long"


def name(value: object) -> str:
    """Return a name; of a number, a date or the like as it is written.

    Raises:
        CellError: There is none, or it is one that nobody could show.
    """
    if value is None or isinstance(value, bool | Mapping | list | tuple):
        raise cells.CellError(f"is {shown(value)}; write a name")
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_NUMBER:
        raise cells.CellError(f"is {shown(value)}; write a name")
    try:
        found = cells.name(str(value))
    except cells.CellError as error:
        raise cells.CellError(f"is no name: {error}") from error
    if not found:
        raise cells.CellError("is empty; write a name")
    return found


def whole(value: object, most: int) -> int:
    """Return a whole number from 0 to `most`; as text, too, where that is one.

    Raises:
        CellError: It is none.
    """
    text_ = str(value).strip() if isinstance(value, str) else ""
    if text_.isascii() and text_.isdigit() and len(text_) <= _LONGEST_NUMBER:
        value = int(text_)
    if type(value) is not int or not 0 <= value <= most:
        raise cells.CellError(f"is {shown(value)}; write a whole number, 0 to {most}")
    return value
