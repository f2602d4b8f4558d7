"""What a domain of several switches is called: what their names have in common, `*` for what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lstqueue.topology.table import natural


def common(names: Iterable[str]) -> str:
    """Return one for several: `leaf-*-04` for `leaf-1-04` and `leaf-2-04`, else the first and a count."""
    some = sorted(set(names), key=natural)
    if len(some) < 2:
        return "".join(some)
    parts = [_parts(name) for name in some]
    if len({len(each) for each in parts}) > 1:
        return f"{some[0]}+{len(some) - 1}"
    columns = [set(column) for column in zip(*parts, strict=True)]
    shown = ["*" if len(column) > 1 else column.pop() for column in columns]
    if not any(part.isalnum() for part in shown):
        return f"{some[0]}+{len(some) - 1}"
    return "".join(shown)


def spoken(level: str, path: str) -> str:
    """A domain by its full path, in words: `leafgroup l3 of b1`."""
    outer, _, _ = path.rpartition("/")
    inner = path.removeprefix(f"{outer}/") if outer else path
    return f"{level} {inner}".strip() + (f" of {outer}" if outer else "")


def rate(megabytes: int) -> str:
    """A bandwidth of MB/s in GB/s: `49.5`."""
    return f"{megabytes / 1000:,.1f}".removesuffix(".0")


def unique(names: Sequence[str]) -> list[str]:
    """Number those names that are there several times."""
    times = Counter(names)
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if times[name] == 1 else f"{name}#{seen[name]}")
    return found


def _parts(name: str) -> list[str]:
    """Split a name where letters or digits meet something else."""
    found: list[str] = []
    for char in name:
        if found and char.isalnum() and found[-1].isalnum():
            found[-1] += char
        else:
            found.append(char)
    return found
