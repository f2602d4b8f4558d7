"""Fits a DeadlineJob's record to the existing Job it refers to: its groups and shape, its pods and places.

To the rest of the operator such a job is a gang whose groups have the job itself for a child each. The index
of a pod is its place among all of them: its rank in a gang that has ranks, else the slot it was given. What
needs no pod any more counts as done, so that nothing is held for it.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.engine import model
from lstqueue.jobs import existing, views
from lstqueue.operator import records, units


def fit(record: records.Record, known: units.Units) -> None:
    """Bring a record in line with the Job it refers to, as far as that was seen."""
    job = record.ledger
    if job.spec is None or job.spec.ref is None:
        return
    record.engine_job = None
    entry = known.entry_of(job)
    if entry is None:
        record.unit, record.children = None, {}
        return
    view, before = entry.view, record.unit
    groups = _groups(record, view)
    places = sum(count for _, count in groups)
    if not 0 < places <= existing.WIDEST:
        groups = ()
    record.ledger, record.unit = job.with_unit(groups, view.shape, view.work), view
    if entry.templates and not job.final:
        record.templates = entry.templates
    if before is None or before.shape != view.shape:
        record.shapes, record.charges, record.ask_at = None, (), 0
        record.held_back = record.held_code = ""
    elif record.shapes is not None and places:  # of one that is complete its last pods may still be there
        record.shapes = counted(record.shapes, groups)
    if before is None or _numbering(before) != _numbering(view):
        record.pods = {uid: member(record, pod) for uid, pod in record.pods.items()}


def settle(record: records.Record) -> None:
    """Count anew which places of a Job need no pod any more; asked before the record is judged."""
    view = record.unit
    if view is None:
        return
    groups, start = _groups(record, view), 0
    places = sum(count for _, count in groups)
    booked = record.books.book(view, record.pods.values(), places, attempt=record.ledger.status.attempt)
    record.children = {}
    for group, count in groups:
        # Never a set of the places themselves: of a job that is to be refused there may be billions.
        done = frozenset(place for place in booked.done if start <= place < start + count)
        child = existing.child(view, record.ledger.uid, group, parallelism=count, done=done)
        record.children[view.uid if not start else f"{view.uid}/{group}"] = child
        start += count


def member(record: records.Record, pod: views.PodView) -> views.PodView:
    """Return a pod with its place for an index, where that is not what its controller has numbered."""
    view = record.unit
    if view is None or pod.owner != view.uid:
        return pod
    if view.roles:
        offset = view.offset(pod.group)
        return replace(pod, index=offset + pod.replica if offset >= 0 and pod.replica >= 0 else -1)
    return pod if view.ranked else replace(pod, index=pod.slot)


def counted(shapes: tuple[model.Group, ...], groups: tuple[tuple[str, int], ...]) -> tuple[model.Group, ...]:
    """Return the groups of an existing job with as many pods as it has places."""
    counts = dict(groups)
    return tuple(replace(shape, count=counts.get(shape.name, shape.count)) for shape in shapes)


def _numbering(view: existing.UnitView) -> tuple[object, ...]:
    """Return what the places of its pods depend on."""
    return view.uid, view.ranked, tuple((group, view.offset(group)) for group, _ in view.roles)


def _groups(record: records.Record, view: existing.UnitView) -> tuple[tuple[str, int], ...]:
    """Return (group, places) as it is admitted, or else would be."""
    held = record.assumed or record.ledger.status.admission
    return held.sizes if held is not None else view.groups
