"""Slurm's short form of many names: `rack[01-03]-n[1,4-6]`."""

from __future__ import annotations

import re

from lstqueue.topology.found import MOST_NODES

_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def expand(text: str) -> list[str]:
    """Return the names, in the order written.

    Raises:
        ValueError: A bracket is open, a range is none, or there are more names than nodes can be.
    """
    found: list[str] = []
    for item in _split(text):
        names = [""]
        rest = item
        while rest:
            before, bracket, after = rest.partition("[")
            if not bracket:
                names = [name + before for name in names]
                break
            inside, closed, rest = after.partition("]")
            if not closed or "]" in before:
                raise ValueError(f"{item[:60]!r} has a bracket that does not close; close it")
            numbers = _numbers(inside, MOST_NODES // len(names))
            names = [name + before + number for name in names for number in numbers]
        found += names
        if len(found) > MOST_NODES:
            raise ValueError(f"has more than {MOST_NODES:,} names; check its ranges")
    return found


def _split(text: str) -> list[str]:
    """Split at commas that are in no bracket; an item may not be empty."""
    items: list[str] = []
    start = depth = 0
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()]


def _numbers(inside: str, most: int) -> list[str]:
    found: list[str] = []
    for part in inside.split(","):
        match = _PART.fullmatch(part.strip())
        if not match:
            raise ValueError(f"{part[:40]!r} is no number and no range; write such as 1-8")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low):
            raise ValueError(f"{part!r} ends before it begins; write such as 1-8")
        if len(found) + int(high) - int(low) >= most:
            raise ValueError(f"has more than {MOST_NODES:,} names; check its ranges")
        found += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return found
