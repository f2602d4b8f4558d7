"""Where one rank of a gang goes whose recorded node takes no pods any more, while all others stay.

Only a node of the same innermost domain will do: there whatever the gang asked of the interconnect still
holds, and what it was told of its place. Without one, or without an interconnect, the gang is placed anew as
a whole, which is for a pass. Room is looked at beside all that is bound, held, claimed and promised.
"""

from __future__ import annotations

from collections.abc import Callable

from lstqueue.engine import model
from lstqueue.operator import cache as caches
from lstqueue.operator import grounds, overbooking


def other(
    cache: caches.Cache,
    record: caches.Record,
    group: str,
    node: str,
    *,
    job_of: Callable[[caches.Record], model.Job],
) -> str:
    """Return the node to which a pod of a group goes instead of one that is unfit; "" for none."""
    admission = record.ledger.status.admission
    shape = next((item.shape for item in record.shapes or () if item.name == group), None)
    queue = cache.queues.get(admission.queue) if admission is not None else None
    if admission is None or shape is None or queue is None:
        return ""
    pool = next((item.pool for item in admission.groups if item.name == group), "")
    selector = next((item.selector for item in queue.engine.pools if item.name == pool), None)
    avoided = {node, *record.ledger.status.back_off.avoid}
    promised = _promised(cache)
    fit = []
    for name in cache.occupancy.near.get(node, ()) if selector is not None else ():
        there = cache.engine_node(name)
        if there is None or name in avoided or name in promised or there.suspect:
            continue
        if not set(selector or ()) <= set(there.labels) or not grounds.fits(cache, record, group, name):
            continue
        if overbooking.takes(cache, there, shape.requests, job_of):
            fit.append((not there.used, name))
    return min(fit, default=(False, ""))[1]  # whole nodes stay whole


def _promised(cache: caches.Cache) -> set[str]:
    """The nodes of all slots: whether one more there would be in the way is not for us to say."""
    slots = [record.ledger.status.slot for record in cache.records.values()]
    slots += [record.slotted.slot for record in cache.records.values() if record.slotted is not None]
    return {node for slot in slots if slot is not None for group in slot.groups for node, _ in group.nodes}
