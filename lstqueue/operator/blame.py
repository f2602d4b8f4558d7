"""Domains in which nodes fail together: a leaf, a rack's power, a cooling loop, rather than nodes one by one.

Who fails is known from the nodes, that are not ready, and from the gangs, that avoid nodes which failed them.
Where several of one innermost domain failed lately its other nodes are suspects: they have done nothing, and
are taken last. That several avoid is needed, as a job that can start nowhere would else blame every domain.
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


def suspects(
    domains: Domains | None,
    nodes: Mapping[str, node_views.NodeView],
    avoided: Mapping[str, frozenset[str]],
    *,
    now: int,
    least: int,
) -> frozenset[str]:
    """Return the nodes in whose innermost domain `least` others failed.

    Args:
        domains: Those of the interconnect; without any nobody is suspect.
        nodes: All nodes.
        avoided: By node, the gangs (UIDs) that avoid it now.
        now: Ms since the epoch.
        least: How many nodes have to fail; 0 suspects nobody.
    """
    if domains is None or not domains.levels or not least:
        return frozenset()
    found: set[str] = set()
    innermost = domains.levels[-1]
    for start, end in zip(innermost.starts.tolist(), innermost.ends.tolist(), strict=True):
        there = domains.nodes[start:end]
        down = {name for name in there if _down(nodes.get(name), now)}
        shunned = {name for name in there if name in avoided}
        gangs = {uid for name in shunned for uid in avoided[name]}
        if down or len(gangs) >= JOBS:
            failed = down | shunned
            if len(failed) >= least:
                found.update(name for name in there if name not in failed)
    return frozenset(found)


def avoided(known: Iterable[records.Record]) -> dict[str, frozenset[str]]:
    """By node, the gangs that avoid it."""
    found: dict[str, set[str]] = {}
    for record in known:
        if not record.ledger.final:
            for name in record.ledger.status.back_off.avoid:
                found.setdefault(name, set()).add(record.ledger.uid)
    return {name: frozenset(uids) for name, uids in found.items()}


def _down(node: node_views.NodeView | None, now: int) -> bool:
    return node is not None and not node.ready and now - LATELY < node.since <= now
