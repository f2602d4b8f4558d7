"""What is wrong with something a user wrote: where, what, and how to mend it.

Two errors: `BadValueError` for one value out of context (a duration, a time, a quantity), and
`InvalidSpecError` for a whole object, with every problem found and the field of each. Both are for people;
nothing here knows about HTTP or about conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 60
"""Characters of a user's value that a message repeats."""


def show(value: object) -> str:
    """Return a value as a message may repeat it: quoted, in printable ASCII, and cut when it is long."""
    text = ascii(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


class BadValueError(ValueError):
    """One value cannot be read. `problem` says why, `remedy` what to write instead."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `field` is a path such as `spec.groups[0].replicas`."""

    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}; {self.remedy}"


class InvalidSpecError(ValueError):
    """An object cannot be used as it stands. `problems` lists all that was found, in order of the fields."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(". ".join(str(problem) for problem in self.problems))
