"""What a kind contributes to a write: defaults, admission and validation, as three functions.

The store calls them in the order of a real server: `default` when a body arrives, `admit` on creation (what
admission plugins and the registry fill in), then `check`. What `default` and `admit` get belongs to the write
and may be changed in place; `check` only looks. On an update, `default` gets only the top-level fields that
the write changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lstqueue.embedded.failures import Violation
from lstqueue.kube import port


class Reader(Protocol):
    """What rules may ask of the store."""

    def find(self, resource: port.Resource, namespace: str | None, name: str) -> port.Object | None:
        """An object, or None."""
        ...

    def list(self, resource: port.Resource) -> Sequence[port.Object]:
        """All objects of a kind."""
        ...

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


def _nothing(_new: port.Object, _old: port.Object | None, /) -> None:
    return None


def _admit_all(_new: port.Object, _reader: Reader, /) -> None:
    return None


def _no_rule(_new: port.Object, _old: port.Object | None, /) -> list[Violation]:
    return []


@dataclass(frozen=True, slots=True)
class Rules:
    """The functions of one kind; each has a default that does nothing.

    `default` and `check` get the old object, or None on creation; with `checks_status`, `check` also sees
    writes of the status.
    `grace` is for a kind that ends gracefully: seconds, from the object and what the request asked for.
    `name` is the form of metadata.name: `subdomain` or `label` (RFC 1123).
    """

    default: Callable[[port.Object, port.Object | None], None] = _nothing
    admit: Callable[[port.Object, Reader], None] = _admit_all
    check: Callable[[port.Object, port.Object | None], list[Violation]] = _no_rule
    checks_status: bool = False
    grace: Callable[[port.Object, int | None], int] | None = None
    name: str = "subdomain"
