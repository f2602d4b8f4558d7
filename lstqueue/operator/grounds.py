"""What nodes are worth to a gang that was admitted: whether they may take its pods, and which it has lost."""

from __future__ import annotations

from lstqueue.jobs import views
from lstqueue.operator import cache as caches
from lstqueue.topology import eligibility
from lstqueue.topology import model as topology


def fits(cache: caches.Cache, record: caches.Record, group: str, node: str) -> bool:
    """Whether a node may still take a pod of a group; room is not looked at, it is held."""
    view = cache.nodes.get(node)
    if view is None or not view.ready or view.unschedulable:
        return False
    if cache.occupancy.left(record.ledger.uid, node) and (record.unit is None or record.unit.gang):
        return False
    admission, shape = record.ledger.status.admission, _shape(record, group)
    if shape is None or admission is None or admission.queue not in cache.queues:
        return True
    extra = _pool_tolerations(cache, record, group)
    there = cache.engine_node(node)
    return there is not None and eligibility.eligible(there, shape, tolerations=extra)


def lost(cache: caches.Cache, record: caches.Record, pod: views.PodView) -> str:
    """Say why a pod has lost its node, "" when it has not; cordons and passing taints cost nothing."""
    name = pod.node or pod.aim
    view = cache.nodes.get(name)
    if not name:
        return ""
    if view is None or not view.ready:
        return "is not ready" if view else "is gone"
    if pod.bound < view.created if pod.node and pod.bound else cache.occupancy.left(record.ledger.uid, name):
        return "was made anew, so what is there now is another machine"
    shape = _shape(record, pod.group)
    if shape is None:
        return ""
    tolerations = (*shape.tolerations, *_pool_tolerations(cache, record, pod.group))
    for taint in view.taints:
        evicts = taint.effect == "NoExecute" and not taint.key.startswith(eligibility.CONDITION_TAINTS)
        if evicts and not eligibility.tolerated([taint], tolerations):
            return f"has the taint {taint.key}, which its pods do not tolerate"
    return ""


def _shape(record: caches.Record, group: str) -> topology.PodShape | None:
    return next((item.shape for item in record.shapes or () if item.name == group), None)


def _pool_tolerations(
    cache: caches.Cache, record: caches.Record, group: str
) -> tuple[topology.Toleration, ...]:
    admission = record.ledger.status.admission
    queue = cache.queues.get(admission.queue) if admission is not None else None
    if queue is None or admission is None:
        return ()
    pool = next((item.pool for item in admission.groups if item.name == group), "")
    return next((item.tolerations for item in queue.engine.pools if item.name == pool), ())
