"""What a job is charged: which of its pods take room where, and for which members room is held.

The rule of the ledger: a pod that is bound and not Succeeded or Failed is charged where it is, and one that
was let go where it is pinned to, since it may be bound there at any moment; a member that an admission places
and that is neither of them nor finished is held on its node, for as long as the phase says that the gang is
to run there. Nothing else holds room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import cache as caches
from lstqueue.operator import ledger
from lstqueue.topology import model as topology

NO_SHAPE = topology.PodShape(())
"""Stands for the shape of pods that nobody can tell."""

Held = tuple[model.Group, model.Assigned]
"""A group and where its pods are, or are to be; its number is still to be given."""


def assigned(
    record: caches.Record, admission: ledger.Admission | None, left: Mapping[str, views.PodView]
) -> Iterable[model.Assigned]:
    """Yield what the job is charged by (group, pool, node), pods `left` behind on dead nodes apart."""
    names = [name for name, _ in groups(record, admission)]
    pools = {group.name: group.pool for group in admission.groups} if admission is not None else {}
    bound: Counter[tuple[str, str, str]] = Counter()
    held: Counter[tuple[str, str, str]] = Counter()
    for uid, pod in record.pods.items():
        if uid not in left and (node := place(pod)):
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
        if name in names:
            yield model.Assigned(
                group=names.index(name),
                pool=pool,
                node=node,
                bound=bound[key],
                held=held[key],
            )


def place(pod: views.PodView) -> str:
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
        # An existing Job makes the pods of all attempts: one left on a dead node stands for nobody now.
        ours = pod.attempt == attempt or (record.unit is None and pod.owner in makers)
        if ours and pod.restart == restarts and place(pod):
            there.add((pod.group, pod.index))
    for child in record.children.values():
        if child.restart == restarts:
            there |= {(child.group, index) for index in child.done}
    return there


def _offset(record: caches.Record, group: str) -> int:
    total = 0
    if record.ledger.spec is not None and record.ledger.spec.ref is not None:
        return 0  # there the index of a pod is its place among all groups
    for name, replicas in record.ledger.spec.groups if record.ledger.spec else ():
        if name == group:
            return total
        total += replicas
    return total


def groups(record: caches.Record, admission: ledger.Admission | None) -> tuple[tuple[str, int], ...]:
    """Return the groups of a job; of an existing one that is not known (any more), as far as it is charged.

    Its pods hold room and quota until they are gone, whatever has become of the Job that made them.
    """
    spec = record.ledger.spec
    if spec is None or spec.groups or spec.ref is None:
        return spec.groups if spec is not None else ()
    if admission is not None:
        return tuple((name, count) for name, count in admission.sizes if count)
    return tuple(sorted(Counter(pod.group for pod in record.pods.values()).items()))


def unmet(record: caches.Record, admission: ledger.Admission | None) -> Iterable[Held]:
    """Yield the ranks of an admission that have no pod of their own yet, by group and node."""
    shapes = {group.name: group.shape for group in record.shapes or ()}
    there = set() if record.assumed is not None else _there(record)
    for group in admission.groups if admission is not None else ():
        offset = _offset(record, group.name)
        for node, ranks in group.nodes:
            # Ranks may be what cannot be read of it; none are no group.
            if count := sum((group.name, rank - offset) not in there for rank in ranks):
                made = model.Group(f"{group.name}/{node}", count, shapes.get(group.name, NO_SHAPE))
                yield made, model.Assigned(0, group.pool, node, 0, count)


def by_pod(pods: Iterable[views.PodView]) -> Iterable[Held]:
    """Yield each pod that takes room as a group of its own."""
    for pod in sorted(pods, key=lambda pod: pod.name):
        if node := place(pod):
            pool, bound = pod.charge.partition("/")[2], int(bool(pod.node))
            made = model.Group(pod.name, 1, topology.PodShape(pod.requests))
            yield made, model.Assigned(0, pool, node, bound, 1 - bound)


def numbered(held: Iterable[Held]) -> tuple[model.Assigned, ...]:
    """Return the parts of groups that are numbered in the order given."""
    return tuple(replace(part, group=index) for index, (_, part) in enumerate(held))
