"""Reading objects that people wrote: a value of the right kind, or an error with its path and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.topology.found import TopologyError

LONGEST = 253
"""Characters of a name."""


def mapping(value: object, where: str) -> Mapping[str, object]:
    """Return an object.

    Raises:
        TopologyError: It is none.
    """
    if not isinstance(value, Mapping):
        raise TopologyError(where, f"is {shown(value)}; write an object")
    return value


def sequence(value: object, where: str) -> Sequence[object]:
    """Return a list; none for nothing.

    Raises:
        TopologyError: It is none.
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise TopologyError(where, f"is {shown(value)}; write a list")
    return value


def name(value: object, where: str) -> str:
    """Return a name.

    Raises:
        TopologyError: It is none.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise TopologyError(where, f"is {shown(value)}; write a name of 1 to {LONGEST} characters")
    return value.strip()


def only(value: Mapping[str, object], fields: Sequence[str], where: str) -> None:
    """Refuse fields that would be ignored.

    Raises:
        TopologyError: There is one.
    """
    for key in value:
        if key not in fields:
            where = f"{where}.{str(key)[:60]}"
            raise TopologyError(where, f"is no field here; there are {', '.join(fields)}")


def shown(value: object) -> str:
    """A value as a message may repeat it."""
    if value is None:
        return "missing"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) > 1 << 53:
        return "a very large number"
    text = str(value)
    return ascii(value) if len(text) <= LONGEST else "very long"


def kinds(objects: Sequence[object], kind: str) -> list[Mapping[str, object]]:
    """Pick the objects of a kind."""
    return [item for item in objects if isinstance(item, Mapping) and item.get("kind") == kind]
