"""Fits a DeadlineJob's record to the existing Job it refers to: its groups and shape, its pods and places.

To the rest of the operator such a Job is a gang of one group, `pods`, whose one child is the Job itself. The
index of a pod is its place: its completion index in an Indexed gang, else the slot it was given. What needs
no pod any more counts as done, so that nothing is held for it.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.engine import model
from lstqueue.jobs import batch, views
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
    places = _places(record, view)
    groups = ((batch.GROUP, places),) if 0 < places <= batch.WIDEST else ()
    record.ledger, record.unit = job.with_unit(groups, view.shape, view.work), view
    if entry.template is not None and not job.final:
        record.templates = {batch.GROUP: entry.template}
    if before is None or before.shape != view.shape:
        record.shapes, record.charges, record.ask_at = None, (), 0
        record.held_back = record.held_code = ""
    elif record.shapes is not None and places:  # of one that is complete its last pods may still be there
        record.shapes = counted(record.shapes, places)
    if before is None or (before.uid, before.ranked) != (view.uid, view.ranked):
        record.pods = {uid: member(record, pod) for uid, pod in record.pods.items()}


def settle(record: records.Record) -> None:
    """Count anew which places of a Job need no pod any more; asked before the record is judged."""
    view = record.unit
    if view is None:
        return
    places = _places(record, view)
    booked = record.books.book(view, record.pods.values(), places, attempt=record.ledger.status.attempt)
    record.children = {view.uid: batch.child(view, record.ledger.uid, parallelism=places, done=booked.done)}


def member(record: records.Record, pod: views.PodView) -> views.PodView:
    """Return a pod with its place for an index, where its Job has none of its own."""
    view = record.unit
    return pod if view is None or view.ranked or pod.owner != view.uid else replace(pod, index=pod.slot)


def counted(shapes: tuple[model.Group, ...], places: int) -> tuple[model.Group, ...]:
    """Return the one group of an existing Job with as many pods as it has places."""
    return tuple(replace(shape, count=places) for shape in shapes)


def _places(record: records.Record, view: batch.UnitView) -> int:
    held = record.assumed or record.ledger.status.admission
    return held.width if held is not None else view.size
