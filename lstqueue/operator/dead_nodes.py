"""Which pods may be removed by force from nodes of which nothing is heard, if their Leases say so too.

Removing a pod by force says of a container that nobody can reach that it has ended. So it is done to no pod
but one that

- a PyTorchJob that we may act on controls, or one of its name that was there before it: whose name alone is
  that of a pod it needs stays, whoever made it;
- is what keeps that job from its next step: it is being suspended, or is to be resumed;
- was asked to leave, on a node that is not ready or gone.

How long the node has to be silent, and the time that the pod was given to leave, is the business of
`overstayers`. Nothing is removed while many nodes are silent: then it is the way to them that is broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from lstqueue.jobs import existing, kinds, views
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger, records, unit_facts

FEWEST = 3
"""So many silent nodes are many, if they are more than a third of those that hold pods."""

_STEPS = (ledger.Phase.SUSPENDING, ledger.Phase.ADMITTED)


def blocking(cache: caches.Cache, now: int) -> list[tuple[views.PodView, existing.UnitView]]:
    """Return such pods with the jobs that wait for them, at `now` (ms)."""
    leaving = (pod for pod in cache.pods() if pod.deleting and not pod.gone)
    stuck = [pod for pod in leaving if cache.stale(pod.node)]
    if not stuck or many_silent(cache):
        return []
    jobs = [(record, view) for record, view in _units(cache) if may_act(cache, record, now)]
    of = {view.uid: (record, view) for record, view in jobs}
    named = {(view.namespace, view.name): (record, view) for record, view in jobs}
    found: list[tuple[views.PodView, existing.UnitView]] = []
    for pod in sorted(stuck, key=lambda pod: pod.uid):
        if pod.maker[0] != port.PYTORCH_JOBS.kind:
            continue
        record, view = of.get(pod.owner) or named.get((pod.namespace, pod.maker[1])) or (None, None)
        if record is None or view is None or record.ledger.status.phase not in _STEPS:
            continue
        if pod.owner == view.uid or pod.name in kinds.of(view).pod_names(view):
            found.append((pod, view))
    return found


def may_act(cache: caches.Cache, record: records.Record, now: int) -> bool:
    """Whether a record's job is the operator's to act on: led by it, in a queue that is enforced, active."""
    job, facts = record.ledger, unit_facts.look(cache, record, now)
    if facts.view is None or facts.view.over or facts.hands_off or facts.disputed or job.final:
        return False
    led = job.unit_uid in ("", facts.view.uid)  # one that refers to a job by hand has none
    return led and not facts.refusal[0] and job.may_claim


def many_silent(cache: caches.Cache) -> int:
    """How many nodes are silent, where these are so many that nothing is removed; else 0."""
    holding = {pod.node for pod in cache.pods() if pod.node and not pod.gone}
    silent = sum(map(cache.stale, holding))
    return silent if silent >= FEWEST and 3 * silent > len(holding) else 0


def _units(cache: caches.Cache) -> Iterator[tuple[records.Record, existing.UnitView]]:
    for record in cache.records.values():
        if record.unit is not None and record.unit.by_pods and kinds.of(record.unit).pod_names(record.unit):
            yield record, record.unit
