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

from lstqueue.evaluate.traces import cells, text

LONGEST = 1 << 28
"""Bytes of a line: a cluster's nodes may all be on one."""
SUFFIXES = (".json", ".yaml", ".yml")
_LONGEST_NUMBER = 18
"""Digits of a number that is meant."""


def read(path: pathlib.Path) -> Any:
    """Return what a file says; JSON by its name, else YAML.

    Raises:
        TraceError: It cannot be read, or is neither.
    """
    return _parsed(path, _json, lambda whole: yaml.load(whole, _Loader))  # noqa: S506  # it is a safe one


def read_all(path: pathlib.Path) -> list[Any]:
    """Return what a file says, document by document; JSON, by its name, is one.

    Raises:
        TraceError: It cannot be read, or is neither.
    """
    found: list[Any] = _parsed(path, lambda whole: [_json(whole)], _yaml_documents)
    return found


def _yaml_documents(whole: str) -> list[Any]:
    return list(yaml.load_all(whole, _Fast))


class _TwiceError(ValueError):
    """A key of an object is there twice: all but one of its values would be lost."""

    def __init__(self, key: object, line: int | None = None) -> None:
        super().__init__(f"key {shown(key)} is there twice; remove one")
        self.line = line


class _Once:
    """What a safe loader is made of that takes no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a mapping, before keys of others are merged into it."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise _TwiceError(key.value, key.start_mark.line + 1)
            seen.add((key.tag, key.value))
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]  # the loader's
        return made


class _Loader(_Once, yaml.SafeLoader):
    """For what people write: its words are the better ones."""


# The parser in C is ten times as fast, which the nodes of a cluster are worth. Not every build has it.
class _Fast(_Once, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """For what programs write."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return made


def _json(whole: str) -> Any:
    return json.loads(whole, object_pairs_hook=_once)


def _parsed(path: pathlib.Path, as_json: Callable[[str], Any], as_yaml: Callable[[str], Any]) -> Any:
    whole = "".join(text.lines(path, longest=LONGEST))
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
    except _TwiceError as error:
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
