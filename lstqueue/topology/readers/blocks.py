"""Slurm's `BlockSizes`: levels above blocks, each of so many blocks one after the other as they are listed.

The first size is what is planned for within a block, each further one a level of that size over the first
times as many blocks, as Slurm's block plugin takes them: powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstqueue.topology import titles
from lstqueue.topology.found import MOST_LEVELS, Found, Said, TopologyError

LEVEL = "block"


def sizes(text: str, where: str) -> list[int]:
    """Read the sizes as they are written, parted by commas.

    Raises:
        TopologyError: One is no number, or they are no powers of two of the first.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > MOST_LEVELS:
        raise TopologyError(where, f"has {len(parts)} sizes; write {MOST_LEVELS} at most")
    found = []
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part[:18]) > 0 and len(part) < 10):
            raise TopologyError(where, f"{part[:40]!a} is no size of a block; write a number of nodes")
        found.append(int(part))
    found.sort()
    for size in found:
        times, rest = divmod(size, found[0])
        if rest or times & (times - 1):
            raise TopologyError(where, f"{size} is no power of two times {found[0]}; Slurm takes no other")
    return found


def above(found: Found, blocks: Sequence[str], planned: Sequence[int]) -> Found:
    """Add levels of several blocks, of those that are listed in this order."""
    order = {name: index for index, name in enumerate(blocks)}
    said = list(found.said)
    inner = next((one for one in found.said if one.level == LEVEL), None)
    for size in planned[1:] if inner is not None else ():
        count = size // planned[0]
        if count < 2:
            continue
        groups = [blocks[start : start + count] for start in range(0, len(blocks), count)]
        names = titles.unique([titles.common(group) for group in groups])
        assert inner is not None  # or there were no sizes
        domain = {node: names[order[block] // count] for node, block in inner.domain.items()}
        said.insert(0, Said(f"{LEVEL}-{size}", domain))
    return replace(found, said=tuple(said))
