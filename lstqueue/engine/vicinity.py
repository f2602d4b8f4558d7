"""Why a gang that asks something of the interconnect waits: what each domain could hold, in sentences.

For those only whose own wishes keep them from room; of the others `reasons` speaks.
"""

from __future__ import annotations

from lstqueue.engine import gangs, model, room, words
from lstqueue.engine.kept import Kept
from lstqueue.topology import titles

SHOWN = 3
"""Domains named with what they could hold, those that hold most."""


def never(kept: Kept, job: model.Job, gang: gangs.Gang) -> str:
    """Why no domain could ever hold a gang; empty when something else is in its way."""
    asked = job.locality
    for level, field in ((asked.required, "required"), (_slices(job), "sliceLevel")):
        if level and (problem := _unknown(kept, level)):
            where = words.field(f"spec.topology.{field}", labelled=job.labelled)
            return f"It has to be in one {level}, and {problem}; correct {where}."
    if asked.slice_size > 1:
        odd = [group for group in job.groups if group.count > 1 and group.count % asked.slice_size]
        if odd:
            return (
                f'Group "{odd[0].name}" has {words.count(odd[0].count, "pod")}, which is no multiple of'
                f" {asked.slice_size} that are to share a domain; correct"
                f" {words.field('spec.topology.sliceSize', labelled=job.labelled)}."
            )
        if kept.world.fabric is None:
            return "Its pods are to share domains, and nothing is known of an interconnect."
    empty = kept.possible.empty()
    short = _short(empty, gang)
    if short is not None:
        group = job.groups[short.group]
        return (
            f'Group "{group.name}" is {words.pods(group)}{_together(kept, short)}, and'
            f" {_fitting(kept, empty, short)} even when empty; ask for less, or for less of the interconnect."
        )
    if gang.least:
        return (
            f"No place was found in which its ring has {titles.rate(gang.least)} GB/s, even when empty; lower"
            f" {words.field('spec.topology.minBandwidth', labelled=job.labelled)}."
        )
    return ""


def no_room(kept: Kept, job: model.Job, gang: gangs.Gang, starts: str) -> str:
    """Why no domain holds a gang now; empty when something else is in its way."""
    short = _short(kept.free, gang)
    if short is not None:
        group = job.groups[short.group]
        return (
            f'Group "{group.name}" is {words.pods(group)}{_together(kept, short)}, and'
            f" {_fitting(kept, kept.free, short)} now; {starts}."
        )
    if gang.least and _fits(kept.free, gang):
        least = titles.rate(gang.least)
        return f"There is room for it, but none in which its ring has {least} GB/s; {starts}."
    return ""


def _slices(job: model.Job) -> str:
    return job.locality.slice_level if job.locality.slice_size > 1 else ""


def _unknown(kept: Kept, level: str) -> str:
    """Why nobody can say of a level what is in it; empty when they can."""
    if kept.world.fabric is None:
        return "nothing is known of an interconnect"
    names = [one.name for one in kept.world.fabric.domains.levels]
    return (
        "" if level in names else f"the interconnect has no such level (it has {', '.join(names) or 'none'})"
    )


def _fits(free: room.Room, gang: gangs.Gang) -> bool:
    total = free.ledger.total
    return all(
        max((int(total[one.row]) for one in member.options), default=0) >= member.count
        for member in gang.members
    )


def _short(free: room.Room, gang: gangs.Gang) -> gangs.Member | None:
    """The first group of which pods would fit, but not as many together as they have to."""
    for member in gang.members:
        rows = [option.row for option in member.options]
        most = max((int(free.ledger.total[row]) for row in rows), default=0)
        apart = max((int(free.ledger.counts[row].sum()) for row in rows), default=0)
        if not member.bound.free and most < member.count and apart:
            return member
    return None


def _together(kept: Kept, member: gangs.Member) -> str:
    fabric, bound = kept.world.fabric, member.bound
    if fabric is None:
        return ""
    levels = fabric.domains.levels
    required = f" in one {levels[bound.required - 1].name}" if bound.required else ""
    sliced = f", {bound.unit} at a time in one {levels[bound.slice_tier - 1].name}" if bound.unit > 1 else ""
    return required + sliced


def _fitting(kept: Kept, free: room.Room, member: gangs.Member) -> str:
    """How many of a group fit, with the domains that hold most."""
    ledger, fabric, bound = free.ledger, kept.world.fabric, member.bound
    row = max((option.row for option in member.options), key=lambda one: int(ledger.total[one]))
    fits = min(int(ledger.total[row]), member.count)
    if fabric is None or not bound.required:
        return f"{fits} of them fit so"
    at, level = fabric.tiers[bound.required], fabric.domains.levels[bound.required - 1]
    caps = ledger.by_domain(row).tolist()
    best = sorted(
        (element for element in range(len(caps)) if at.domain[element] >= 0), key=lambda e: (-caps[e], e)
    )
    said = [f"{caps[one]} in {titles.spoken('', level.names[at.domain[one]])}" for one in best[:SHOWN]]
    return f"at most {fits} of them fit in one ({words.names(said)} of {words.count(len(best), level.name)})"
