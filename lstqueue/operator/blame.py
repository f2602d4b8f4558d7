"""Domains in which nodes fail together: a leaf, a rack's power, a cooling loop, rather than nodes one by one.

Who fails is known from the nodes, that are not ready, and from the gangs, that avoid nodes which failed them;
nothing is remembered here. Where several of one innermost domain failed lately all of its nodes are suspects,
and taken last. Several gangs have to avoid them, as one that can start nowhere would else blame every domain.
Looked at in every pass, as a gang that lost its nodes is placed anew at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lstqueue.engine import model
from lstqueue.operator import nodes as node_views
from lstqueue.operator import records
from lstqueue.topology.domains import Domains

LATELY = model.HOUR
"""Ms for which a node that is not ready speaks against its domain: one in repair is no sign for weeks."""
JOBS = 2
"""Gangs that have to avoid nodes of a domain, where none of them is merely not ready."""

Homes = Mapping[str, tuple[str, ...]]
"""By node, the nodes of its innermost domain."""


def homes(domains: Domains | None) -> Homes:
    """Return who is near whom; of a node that lies in no innermost domain nothing is said."""
    if domains is None or not domains.levels:
        return {}
    innermost = domains.levels[-1]
    found: dict[str, tuple[str, ...]] = {}
    for start, end in zip(innermost.starts.tolist(), innermost.ends.tolist(), strict=True):
        there = domains.nodes[start:end]
        found.update(dict.fromkeys(there, there))
    return found


def suspects(
    near: Homes, down: Iterable[node_views.NodeView], known: Iterable[records.Record], *, now: int, least: int
) -> frozenset[str]:
    """Return the nodes in whose innermost domain `least` failed.

    Args:
        near: As `homes` returns it; where it is empty nobody is suspect.
        down: Nodes that are not ready.
        known: DeadlineJobs.
        now: Ms since the epoch.
        least: How many nodes have to fail; 0 suspects nobody.
    """
    if not near or not least:
        return frozenset()
    failed: dict[str, set[str]] = {}
    for node in down:
        if now - LATELY < node.since <= now:
            failed.setdefault(node.name, set()).add("")
    for record in known:
        if (avoid := record.ledger.status.back_off.avoid) and not record.ledger.final:
            for name in avoid:
                failed.setdefault(name, set()).add(record.ledger.uid)
    together: dict[tuple[str, ...], list[str]] = {}
    for name in failed:
        if name in near:
            together.setdefault(near[name], []).append(name)
    found: set[str] = set()
    for there, names in together.items():
        by = set().union(*(failed[name] for name in names))
        if len(names) >= least and ("" in by or len(by) >= JOBS):
            found.update(there)
    return frozenset(found)
