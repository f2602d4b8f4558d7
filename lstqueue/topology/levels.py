"""Levels of one name as one: of what cables and labels say of it, the earlier counts.

A node that only a later one places goes where the others of its domain there are, as far as the earlier one
places them and agrees about them, and into what those are in at the other levels of the network; else its
domain is one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstqueue.topology.domains import Merged
from lstqueue.topology.found import Said


def one_each(told: Sequence[Said]) -> tuple[list[Said], list[Merged]]:
    """Make one of those of one name, in the order of the first of each; and say what they disagree about."""
    found: dict[str, Said] = {}
    merged: list[Merged] = []
    for said in told:
        known = found.get(said.level)
        if known is None:
            found[said.level] = said
            continue
        found[said.level], new = _joined(known, said, merged)
        for level, other in found.items():
            if level != said.level and not other.accelerator:
                found[level] = _followed(other, known, new)
    return list(found.values()), merged


def _joined(known: Said, more: Said, merged: list[Merged]) -> tuple[Said, dict[str, str]]:
    """One of both, and by node that is placed beside others its domain."""
    homes: dict[str, set[str]] = {}
    for node, domain in more.domain.items():
        home = known.domain.get(node)
        if home is not None:
            homes.setdefault(domain, set()).add(home)
    for domain, several in homes.items():
        if len(several) > 1:
            some = ", ".join(sorted(several)[:3])
            why = f"is one {known.level} for one source and {len(several)} for another ({some}), which counts"
            merged.append(Merged(domain, why))
    beside = {}
    alone = {}
    for node, domain in more.domain.items():
        if node not in known.domain and domain not in homes:
            alone[node] = domain
        elif node not in known.domain and len(homes[domain]) == 1:
            beside[node] = next(iter(homes[domain]))
    joined = replace(
        known,
        domain={**known.domain, **beside, **alone},
        accelerator=known.accelerator or more.accelerator,
        uplinks={**more.uplinks, **known.uplinks},
    )
    return joined, beside


def _followed(other: Said, known: Said, new: dict[str, str]) -> Said:
    """Another level, with new nodes of a domain where all others of that are."""
    around: dict[str, set[str]] = {}
    for node, domain in known.domain.items():
        if (outer := other.domain.get(node)) is not None:
            around.setdefault(domain, set()).add(outer)
    placed = {
        node: next(iter(around[home]))
        for node, home in new.items()
        if node not in other.domain and len(around.get(home, ())) == 1
    }
    return replace(other, domain={**other.domain, **placed}) if placed else other
