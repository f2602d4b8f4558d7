"""Rules that an object must keep, each written once as CEL for the API server and once as Python.

A rule is attached to a place in the schema and gets the value there as `self`, as CEL does. One that speaks
of `oldSelf` is a transition rule: it is asked only when an older value of the same place exists. The Python
twin takes the same two raw values, so that whatever has no CEL engine (the embedded API server, the command
line) says the same; a table of cases holds both to it. Nothing here parses or runs CEL.

Places are paths such as `spec.groups[name].template`. `[name]` goes into the items of a list-map with that
key, whose older item is the one with the same key; `[]` goes into a list whose items have no identity, and so
no older value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Twin = Callable[[Any, Any], bool]
"""`(new, old)`, where old is None unless the rule is a transition rule; True when the rule is kept."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `field` is where the message points, relative to `at` (empty: at the place itself)."""

    at: str
    cel: str
    problem: str
    remedy: str
    holds: Twin
    field: str = ""

    @property
    def transition(self) -> bool:
        """Whether the rule compares with the older value."""
        return "oldSelf" in self.cel

    @property
    def message(self) -> str:
        """What the API server says when the rule is broken."""
        return f"{self.problem}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that an object breaks, and the field to name."""

    field: str
    rule: Rule


class RuleSet:
    """The rules of one kind, in the order of their definition."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def add(self, rule: Rule) -> None:
        """Add a rule made elsewhere."""
        self._rules.append(rule)

    def rule(
        self, at: str, *, cel: str, problem: str, remedy: str, field: str = ""
    ) -> Callable[[Twin], Twin]:
        """Declare the decorated function to be the Python twin of a CEL expression."""

        def register(holds: Twin) -> Twin:
            self.add(Rule(at, " ".join(cel.split()), problem, remedy, holds, field))
            return holds

        return register

    def broken(self, new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> Iterator[Broken]:
        """Yield every rule that `new` breaks, given the object it replaces.

        Expects what the schema already accepts. A value of another shape makes a rule broken rather than an
        exception, as an expression that cannot be evaluated is a refusal for the API server too.
        """
        for rule in self._rules:
            for path, value, older in _places(rule.at, new, old):
                if rule.transition and older is None:
                    continue
                if not _holds(rule, value, older if rule.transition else None):
                    yield Broken((path + rule.field).lstrip("."), rule)


def _holds(rule: Rule, value: Any, older: Any) -> bool:
    try:
        return rule.holds(value, older)
    except (TypeError, KeyError, AttributeError, ValueError):
        return False


def _places(at: str, new: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, new value, old value or None) for every value of `new` at a place."""
    found = [("", new, old)]
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", at):
        walk = _items(step[1:-1]) if step.startswith("[") else _child(step)
        found = [place for before in found for place in walk(*before)]
    yield from found


_Walk = Callable[[str, Any, Any], Iterator[tuple[str, Any, Any]]]


def _child(name: str) -> _Walk:
    def walk(path: str, new: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
        if isinstance(new, Mapping) and new.get(name) is not None:
            yield f"{path}.{name}", new[name], old.get(name) if isinstance(old, Mapping) else None

    return walk


def _items(key: str) -> _Walk:
    def walk(path: str, new: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
        older = {}
        if key and isinstance(old, list):
            older = {str(item.get(key)): item for item in old if isinstance(item, Mapping)}
        for index, item in enumerate(new if isinstance(new, list) else ()):
            same = older.get(str(item.get(key))) if isinstance(item, Mapping) else None
            yield f"{path}[{index}]", item, same

    return walk
