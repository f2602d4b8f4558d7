"""What stands for a job that cannot be dealt with, and for pods that outlive theirs: it holds what it holds.

Nothing of these begins, and nobody is suspended for them. They are in a snapshot so that the room and the
quota which they have is nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import cache as caches
from lstqueue.operator import charges, ledger, lenient
from lstqueue.topology import model as topology

Phase = ledger.Phase
UNREADABLE = (model.Group("unreadable", 1, topology.PodShape(())),)
"""Stands for the groups of a job that nobody can tell: it is held back, and its user is told why."""


def unreadable(record: caches.Record, now: int, *, published: model.Published) -> model.Job:
    """Return what stands for a job that cannot be dealt with: nothing begins, and what it holds is held.

    A claim is a hold, too, until it expires: like one that is not written yet it has nobody suspended, and
    its owner does not start.
    """
    job, admission = record.ledger, record.assumed or record.ledger.status.admission
    held = [*charges.by_pod(record.pods.values()), *charges.unmet(record, admission)]
    claim = record.claiming or (job.status.claim if job.status.phase is Phase.CLAIMING else None)
    if held or record.assumed is not None or (claim is not None and claim.expires <= now):
        claim = None
    groups = tuple(group for group, _ in held)
    state = model.State.ENDING if held else model.State.HELD_BACK
    if claim is not None:
        claim, state = replace(claim, committed=False), model.State.CLAIMING
        groups = _claiming_groups(record, claim)
    charged = [pod for pod in record.pods.values() if pod.charge and charges.place(pod)]
    queue = (
        admission.queue
        if admission is not None
        else next((pod.charge.partition("/")[0] for pod in charged), "")
    )
    named = job.spec.queue if job.spec is not None else ""
    return model.Job(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        queue=job.status.claim_queue or named if claim is not None else queue,
        groups=groups or UNREADABLE,
        submit=job.created,
        state=state,
        held_back=(record.unreadable or record.odd) if state is model.State.HELD_BACK else "",
        assigned=charges.numbered(held),
        claim=claim,
        published=published,
        words=lenient.text(lenient.mapping(job.spoken.get("pending")).get("message")),
    )


def _claiming_groups(record: caches.Record, claim: model.Claim) -> tuple[model.Group, ...]:
    """Return the groups of a claim, whose pods may not be known."""
    shapes = dict(enumerate(group.shape for group in record.shapes or ()))
    sizes = [sum(count for _, count in group.nodes) for group in claim.groups]
    return tuple(model.Group(f"{i}", size, shapes.get(i, charges.NO_SHAPE)) for i, size in enumerate(sizes))


def left_behind(record: caches.Record, left: Mapping[str, views.PodView]) -> model.Job:
    """Return the pods that a gang lost to dead nodes: charged there, and to nobody's quota.

    The quota is for what runs: a queue whose node died may use others instead.
    """
    return replace(orphan(f"{record.ledger.uid}/left-behind", left.values()), queue="")


def orphan(uid: str, pods: Iterable[views.PodView]) -> model.Job:
    """Return what is left of a DeadlineJob that was deleted: pods that still hold room and quota."""
    left = sorted(pods, key=lambda pod: pod.name)
    queue = next((pod.charge.partition("/")[0] for pod in left if pod.charge), "")
    held = list(charges.by_pod(left))
    return model.Job(
        uid=uid,
        namespace=left[0].namespace,
        name=left[0].name,
        queue=queue,
        groups=tuple(group for group, _ in held),
        submit=0,
        state=model.State.ENDING,
        assigned=charges.numbered(held),
    )
