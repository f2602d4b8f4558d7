"""From the cache to the engine's Snapshot: what each job is charged, on which node, and where it stands.

The rule of the ledger: a pod that is bound and not Succeeded or Failed is charged where it is, and one that
was let go where it is pinned to, since it may be bound there at any moment; a member that an admission places
and that is neither of them nor finished is held on its node, for as long as the phase says that the gang is
to run there. Nothing else holds room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from lstqueue.api import errors
from lstqueue.engine import estimate as estimates
from lstqueue.engine import model
from lstqueue.jobs import podspec, views
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger
from lstqueue.operator import settings as all_settings
from lstqueue.topology import model as topology

Phase = ledger.Phase
HOLDING = frozenset({Phase.ADMITTED, Phase.RUNNING, Phase.SUSPENDING})
"""Phases in which an admission holds room."""
UNREADABLE = (model.Group("unreadable", 1, topology.PodShape(())),)
"""Stands for the groups of a job whose spec cannot be read: it is held back, and its user is told why."""


def build(
    cache: caches.Cache, settings: all_settings.Settings, *, now: int, forecast_at: int, changed: bool
) -> model.Snapshot:
    """Return the snapshot of now (ms); jobs that did not change since the last one are reused."""
    jobs = []
    for record in cache.records.values():
        if record.engine_job is None:
            record.engine_job = engine_job(record, cache, settings)
        # A job that is over and whose pods are gone concerns nobody; of a new one nothing is known
        # until the API server has said what its pods will be.
        unknown = record.shapes is None and not record.held_back
        if record.engine_job.assigned or not (record.ledger.final or unknown):
            jobs.append(record.engine_job)
    for uid, pods in cache.orphan_pods():
        left = [pod for pod in pods.values() if _place(pod)]
        if left and uid not in cache.records:
            jobs.append(_orphan(uid, left))
    return model.Snapshot(
        nodes=tuple(cache.engine_nodes()),
        queues=tuple(queue.engine for queue in cache.queues.values()),
        jobs=tuple(jobs),
        forecast_at=forecast_at,
        changed=changed,
        restate=frozenset(
            uid
            for uid, record in cache.records.items()
            if record.ledger.status.phase is Phase.PENDING
            and record.told_at + settings.restate_interval_ms <= now
        ),
    )


def engine_job(record: caches.Record, cache: caches.Cache, settings: all_settings.Settings) -> model.Job:
    """Return one DeadlineJob as the engine sees it."""
    job, status, spec = record.ledger, record.ledger.status, record.ledger.spec
    admission = record.assumed or (status.admission if status.phase in HOLDING else None)
    assigned = tuple(_assigned(record, admission))
    state = _state(record, assigned)
    held_back = _held_back(record, state)
    if held_back:
        state = model.State.HELD_BACK
    return model.Job(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        queue=_queue(record, admission),
        groups=record.shapes or _shapes_without_intake(record, admission),
        submit=job.created,
        deadline=spec.deadline if spec else None,
        estimate=_estimate(record, cache, settings),
        importance=spec.importance if spec else 0,
        state=state,
        since=_since(status, admission, state),
        assigned=assigned,
        # While its commits do not go through, it must not take the room of others pass after pass.
        not_before=max(status.back_off.until, record.retry_at),
        avoid=status.back_off.avoid,
        held_back=held_back,
        published=record.said or _published(job),
        words=(job.spoken.get("pending") or {}).get("message", ""),
    )


def _published(job: ledger.Ledger) -> model.Published:
    """What was said of the spec as it is; an edit calls for a new verdict."""
    said = job.status.published
    return said if job.status.observed >= job.generation else replace(said, verdict=None)


def _queue(record: caches.Record, admission: ledger.Admission | None) -> str:
    """Return whose quota it uses: pods stay charged to the queue they were let go in until they are gone."""
    if admission is not None:
        return admission.queue
    for pod in record.pods.values():
        if pod.charge and _place(pod):
            return pod.charge.partition("/")[0]
    return record.ledger.spec.queue if record.ledger.spec else ""


def _since(status: ledger.Status, admission: ledger.Admission | None, state: model.State) -> int:
    if state is model.State.RUNNING:
        return status.started
    return admission.at if state is model.State.ADMITTED and admission is not None else 0


def _state(record: caches.Record, assigned: tuple[model.Assigned, ...]) -> model.State:
    phase = record.ledger.status.phase
    if record.assumed is not None or phase is Phase.ADMITTED:
        return model.State.ADMITTED
    if phase is Phase.RUNNING:
        return model.State.RUNNING
    if phase is Phase.SUSPENDING:
        return model.State.ADMITTED if record.ledger.status.admission else model.State.ENDING
    return model.State.ENDING if record.ledger.final or assigned else model.State.WAITING


def _held_back(record: caches.Record, state: model.State) -> str:
    if state is not model.State.WAITING:
        return ""
    if record.held_back:
        return record.held_back
    if record.ledger.deleting:
        return "is being deleted"
    if record.shapes is None:
        return "waits for the API server's answer about its pods"
    if any(not pod.gone for pod in record.pods.values()):
        return "waits until the pods of its last run are gone"
    return ""


def _estimate(
    record: caches.Record, cache: caches.Cache, settings: all_settings.Settings
) -> model.Estimate | None:
    spec = record.ledger.spec
    if spec is None:
        return None
    mid = spec.estimate
    if mid is None:
        queue = cache.queues.get(spec.queue)
        mid = queue.default_estimate if queue else None
    return estimates.spread(mid, settings.engine) if mid is not None else None


def _assigned(record: caches.Record, admission: ledger.Admission | None) -> Iterable[model.Assigned]:
    """Yield what the job is charged by (group, pool, node)."""
    groups = [name for name, _ in record.ledger.spec.groups] if record.ledger.spec else []
    pools = {group.name: group.pool for group in admission.groups} if admission is not None else {}
    bound: Counter[tuple[str, str, str]] = Counter()
    held: Counter[tuple[str, str, str]] = Counter()
    for pod in record.pods.values():
        if node := _place(pod):
            # The admission has the word: the annotation is on a pod its user may edit.
            pool = pools.get(pod.group) or pod.charge.partition("/")[2]
            (bound if pod.node else held)[pod.group, pool, node] += 1
    there = set() if record.assumed is not None else _there(record)
    for group in admission.groups if admission is not None else ():
        offset = _offset(record, group.name)
        for node, ranks in group.nodes:
            missing = sum((group.name, rank - offset) not in there for rank in ranks)
            if missing:
                held[group.name, group.pool, node] += missing
    for key in sorted(bound.keys() | held.keys()):
        name, pool, node = key
        if name in groups:
            yield model.Assigned(
                group=groups.index(name),
                pool=pool,
                node=node,
                bound=bound[key],
                held=held[key],
            )


def _place(pod: views.PodView) -> str:
    """Return the node on which a pod takes room, or may at any moment, "" for none."""
    return "" if pod.gone else pod.node or pod.aim


def _there(record: caches.Record) -> set[tuple[str, int]]:
    """Return the members of this very run, (group, index), that need no other hold: let go, or through.

    Only what a Job of ours made is one, even if that Job was deleted since. One that failed will come back.
    That one is through is the word of its Job (see `members`): a pod that succeeded is held for until that
    has counted it.
    """
    restarts, attempt = record.ledger.status.restarts, record.ledger.status.attempt
    makers = record.children.keys()
    there: set[tuple[str, int]] = set()
    for pod in record.pods.values():
        ours = pod.owner in makers or pod.attempt == attempt
        if ours and pod.restart == restarts and _place(pod):
            there.add((pod.group, pod.index))
    for child in record.children.values():
        if child.restart == restarts:
            there |= {(child.group, index) for index in child.done}
    return there


def _offset(record: caches.Record, group: str) -> int:
    total = 0
    for name, replicas in record.ledger.spec.groups if record.ledger.spec else ():
        if name == group:
            return total
        total += replicas
    return total


def _shapes_without_intake(
    record: caches.Record, admission: ledger.Admission | None
) -> tuple[model.Group, ...]:
    """Before intake has answered (after a restart), pods, or else templates, tell what the gang asks for.

    Templates lack what LimitRanges and RuntimeClasses add; those of gangs that hold nothing are not looked
    at, since nobody has vouched for them yet.
    """
    if record.ledger.spec is None:
        return UNREADABLE
    requests: dict[str, topology.Resources] = {}
    if admission is not None:
        for name, template in record.templates.items():
            try:
                requests[name] = podspec.requests(template["spec"])
            except errors.BadValueError:
                continue
    requests |= {pod.group: pod.requests for pod in record.pods.values()}
    return tuple(
        model.Group(name, replicas, topology.PodShape(requests.get(name, ())))
        for name, replicas in record.ledger.spec.groups
    )


def _orphan(uid: str, pods: Iterable[views.PodView]) -> model.Job:
    """Return what is left of a DeadlineJob that was deleted: pods that still hold room and quota."""
    left = sorted(pods, key=lambda pod: pod.name)
    queue = next((pod.charge.partition("/")[0] for pod in left if pod.charge), "")
    return model.Job(
        uid=uid,
        namespace=left[0].namespace,
        name=left[0].name,
        queue=queue,
        groups=tuple(model.Group(pod.name, 1, topology.PodShape(pod.requests)) for pod in left),
        submit=0,
        state=model.State.ENDING,
        assigned=tuple(
            model.Assigned(
                index, pod.charge.partition("/")[2], _place(pod), int(bool(pod.node)), int(not pod.node)
            )
            for index, pod in enumerate(left)
        ),
    )
