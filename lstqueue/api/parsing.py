"""JSON and YAML in which no key is there twice: of one that is, all but one of the values would be lost.

Knows no file and nothing of what is in one; who reads says where it was.
"""

from __future__ import annotations

import json
from typing import Any

import yaml


class TwiceError(ValueError):
    """A key of an object is there twice, on a line where that is known."""

    def __init__(self, key: object, line: int | None = None) -> None:
        shown = ascii(key) if len(str(key)) <= 253 else "very long"
        super().__init__(f"key {shown} is there twice; remove one")
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
                raise TwiceError(key.value, key.start_mark.line + 1)
            seen.add((key.tag, key.value))
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]  # the loader's
        return made


class Loader(_Once, yaml.SafeLoader):
    """For what people write: its words are the better ones."""


# The parser in C is ten times as fast, which the nodes of a cluster are worth. Not every build has it.
class FastLoader(_Once, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """For what programs write."""


def json_loads(whole: str) -> Any:
    """Read JSON.

    Raises:
        ValueError: It is none.
        TwiceError: A key is there twice.
    """
    return json.loads(whole, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise TwiceError(next(name for name in names if names.count(name) > 1))
    return made
