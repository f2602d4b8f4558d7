"""What must hold of places on an interconnect. Pure, slow and obvious; a part of `invariants`.

Judged from the slices of the domains alone, and not by the tree, the sums or the search of the pass: which
domain of a level a node lies in is looked up node by node.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstqueue.engine import model


def problems(
    domains: model.Domains | None, job: model.Job, groups: Sequence[model.GroupPlacement]
) -> list[str]:
    """Why a job may not be given this place: `required` levels and slices are never broken.

    Args:
        domains: The interconnect, None where nothing is known of one.
        job: The owner, with what it asks for.
        groups: The place, parallel to the job's groups.
    """
    asked, found = job.locality, []
    if asked.required:
        used = {domain(domains, asked.required, node) for group in groups for node, _ in group.nodes}
        if len(used) > 1 or None in used:
            found.append(f"it is not in one {asked.required}")
    if asked.slice_size > 1:
        level = asked.slice_level or _innermost(domains)
        for group, placed in zip(job.groups, groups, strict=False):
            if group.count > 1:
                found += _slice_problems(domains, level, asked.slice_size, group.name, placed)
    if domains is not None:
        places = {node: place for place, node in enumerate(domains.nodes)}
        for placed in groups:
            order = [places.get(node, len(places)) for node, _ in placed.nodes]
            if order != sorted(order):
                found.append("its ranks are not in the order of the interconnect")
    return found


def domain(domains: model.Domains | None, level: str, node: str) -> str | None:
    """The full path of the domain of a level in which a node lies; None: in none."""
    if domains is None or node not in domains.nodes:
        return None
    place = domains.nodes.index(node)
    for one in domains.levels:
        if one.name == level:
            slices = zip(one.names, one.starts.tolist(), one.ends.tolist(), strict=True)
            return next((name for name, start, end in slices if start <= place < end), None)
    return None


def _innermost(domains: model.Domains | None) -> str:
    return domains.levels[-1].name if domains is not None and domains.levels else ""


def _slice_problems(
    domains: model.Domains | None, level: str, size: int, group: str, placed: model.GroupPlacement
) -> list[str]:
    ranks = [domain(domains, level, node) for node, count in placed.nodes for _ in range(count)]
    found: list[str] = []
    for first in range(0, len(ranks), size):
        share = set(ranks[first : first + size])
        if len(share) > 1 or None in share:
            found.append(f"group {group}: pods {first} to {first + size - 1} do not share a {level}")
    return found
