"""What the lifecycle looks at of an existing job, beside its DeadlineJob and its members."""

from __future__ import annotations

import functools
from dataclasses import replace

from lstqueue.jobs import existing, kinds, views
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import fitting, records, units
from lstqueue.operator import queues as queue_views


def look(cache: caches.Cache, record: records.Record, now: int) -> units.Facts:
    """Return what is known of the job that a DeadlineJob refers to, at `now` (ms)."""
    job = record.ledger
    if job.spec is None or job.spec.ref is None:
        return units.NOTHING
    name = cache.queue_of(job)
    queue = cache.queues.get(name)
    facts = cache.units.facts(job, now)
    if facts.view is None:
        ref = job.spec.ref
        maker = cache.maker_of(job.namespace, ref.name) if ref.kind == port.JOBS.kind else ""
        return replace(facts, child_of=maker)
    loose = (pod for pod in cache.pods_made_by(facts.view.uid) if pod.job != job.uid and not pod.gone)
    taken = queue is not None and queue.selects(cache.namespaces.labels(job.namespace))
    return replace(
        facts,
        hands_off=queue is None or queue.engine.observed or not taken,
        queue=name,
        loose=tuple(fitting.member(record, pod) for pod in loose),
        namesakes=functools.partial(_namesakes, cache, facts.view),
        pool_of=lambda node: queue_views.pool_of(queue, cache.nodes.get(node)),
    )


def _namesakes(cache: caches.Cache, view: existing.UnitView) -> list[views.PodView]:
    wanted = kinds.of(view).pod_names(view)
    return (
        [pod for pod in cache.pods_named(view.namespace, wanted) if pod.owner != view.uid] if wanted else []
    )
