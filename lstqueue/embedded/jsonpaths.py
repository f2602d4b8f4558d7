"""The JSONPaths of printer columns: fields, indexes, and a filter on one field.

Columns of CustomResourceDefinitions are made of `.status.phase`, `.spec.pools[0].name`, `[*]` and
`.status.conditions[?(@.type=="Finished")].reason`. This is no general evaluator: anything else is refused
when the path is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

Find = Callable[[Any], list[Any]]

_STEP = re.compile(
    r"\.(?P<field>[A-Za-z_][-\w]*)"
    r"|\[(?P<index>\d+)\]"
    r"|(?P<all>\[\*\])"
    r'|\[\?\(@\.(?P<key>[A-Za-z_]\w*)\s*==\s*"(?P<value>[^"]*)"\)\]'
)


@lru_cache(maxsize=256)
def parse(path: str) -> Find:
    """Return the function that finds every value at a path.

    Raises:
        ValueError: the path has a step that is not listed above.
    """
    steps: list[Callable[[Any], Iterable[Any]]] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ValueError(f"JSONPath {path!r}: {path[position:]!r} is not supported in a printer column")
        steps.append(_step(match))
        position = match.end()

    def find(document: Any) -> list[Any]:
        found = [document]
        for step in steps:
            found = [value for node in found for value in step(node)]
        return found

    return find


def _step(match: re.Match[str]) -> Callable[[Any], Iterable[Any]]:
    if match["field"] is not None:
        field = match["field"]
        return lambda node: [node[field]] if isinstance(node, dict) and field in node else []
    if match["index"] is not None:
        index = int(match["index"])
        return lambda node: node[index : index + 1] if isinstance(node, list) else []
    if match["all"] is not None:
        return lambda node: node if isinstance(node, list) else []
    key, value = match["key"], match["value"]
    return lambda node: [item for item in node if item.get(key) == value] if isinstance(node, list) else []
