"""Reading objects that people wrote: a value of the right kind, or an error with its path and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstqueue.topology.domains import LeftOut
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
    if value is not None and not isinstance(value, str | Mapping | list | tuple):
        raise TopologyError(where, f"is {shown(value)} and no text; write the name in quotes")
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
        raise TopologyError(where, f"is {shown(value)}; write a name of 1 to {LONGEST} characters")
    if not value.isprintable():
        raise TopologyError(where, f"is {shown(value)}, of which a part cannot be printed; remove that")
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
    if len(text) > LONGEST:
        return "very long"
    return ascii(value) if isinstance(value, str | int | float) else ascii(text)


def strange(objects: Sequence[object]) -> list[LeftOut]:
    """What of a list of objects is none."""
    return [
        LeftOut(f"items[{index}]", f"is {shown(item)} and no object; remove it")
        for index, item in enumerate(objects)
        if not isinstance(item, Mapping)
    ]


def kinds(objects: Sequence[object], kind: str) -> list[Mapping[str, object]]:
    """Pick the objects of a kind."""
    return [item for item in objects if isinstance(item, Mapping) and item.get("kind") == kind]
