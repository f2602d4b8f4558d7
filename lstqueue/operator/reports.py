"""Reads what jobs say of their progress, where users' programs write it, and when it was seen first.

The annotation may be on the DeadlineJob, on the Job it refers to, or on a child; the first that is there
counts. Only a job that runs makes progress. What cannot be read is told once and counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lstqueue.api import errors, names
from lstqueue.engine import model, progress
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import events, histories, ledger, lenient, predictions, runs

CODE = "BadProgress"
"""Why a report is not believed."""
TOLD_EVERY = 5 * model.MINUTE
"""Ms between two writes of an estimate that nothing but progress has moved."""
NEWS = 0.2
"""Such a write is made when the expected run time has moved by more than this share."""


class Said(NamedTuple):
    """A report as it was written, and by which object."""

    subject: events.Subject
    text: str


def look(record: caches.Record, cache: caches.Cache, config: model.Config, now: int) -> Said | None:
    """Take in the reports of a job at `now` (ms); return one that cannot be read and was not told yet."""
    status = record.ledger.status
    if status.phase is not ledger.Phase.RUNNING or record.ledger.spec is None:
        return None
    fraction, misread = _first(record)
    spec = cache.spec_of(record.ledger)
    ran = max(0, now - status.started - runs.restoring(spec, restored=bool(status.runs)))
    report = None if fraction is None else (fraction, ran)
    track = record.track
    if track.attempt != status.attempt:
        prior = predictions.expected(record, cache, config).estimate
        # Of one that was adopted, or admitted by somebody else, nobody knows what it did before.
        unseen = not status.like and bool(histories.key_of(record.ledger))
        fresh = not (status.runs or status.saved or unseen)
        record.track = progress.begun(track, status.attempt, report, prior=prior, fresh=fresh)
    elif report is not None:
        record.track = progress.reported(track, report, saved=status.saved, config=config)
        if record.track.estimate is not track.estimate:
            record.engine_job = None
    if misread is None or misread.text == record.misread:
        return None
    record.misread = misread.text
    return misread


def untold(record: caches.Record, estimate: model.Estimate | None, now: int) -> bool:
    """Whether the status of a running job says something else of its run time than its progress does now."""
    running = record.ledger.status.phase is ledger.Phase.RUNNING and record.source == predictions.PROGRESS
    if not running or estimate is None or now - record.told_at < TOLD_EVERY:
        return False
    said = lenient.mapping(record.ledger.spoken.get("estimate"))
    mid = lenient.duration(said.get("mid"))
    return said.get("source") != predictions.PROGRESS or abs(mid - estimate.mid) > NEWS * max(mid, 1)


def note(said: Said) -> events.Note:
    """Return what to tell of a report that cannot be read."""
    words = (
        f"annotation {names.ANNOTATION_PROGRESS} is {errors.show(said.text)}, which is no number from 0 to 1 "
        'and is ignored; write the share of the work that is done, such as "0.25"'
    )
    return events.Note(said.subject, CODE, words, warning=True, once=True)


def _first(record: caches.Record) -> tuple[int | None, Said | None]:
    """Return the first report that can be read, in ppm, and the first that cannot."""
    misread = None
    for said in _said(record):
        if (fraction := progress.read(said.text)) is not None:
            return fraction, misread
        misread = misread or said
    return None, misread


def _said(record: caches.Record) -> Iterator[Said]:
    """Yield what is said of this run, by whom; the leader's group before the others."""
    job = record.ledger
    if job.progress:
        kind = names.API_VERSION, "DeadlineJob"
        yield Said(events.Subject(*kind, job.namespace, job.name, job.uid), job.progress)
    if record.unit is not None:
        if record.unit.progress:
            one = record.unit
            subject = events.Subject(one.api_version, one.kind, job.namespace, one.name, one.uid)
            yield Said(subject, one.progress)
        return
    groups = [name for name, _ in job.spec.groups] if job.spec is not None else []
    children = [
        child
        for child in record.children.values()
        if child.restart == job.status.restarts and child.group in groups
    ]
    for child in sorted(children, key=lambda child: groups.index(child.group)):
        if child.progress:
            yield Said(_job(child.namespace, child.name, child.uid), child.progress)


def _job(namespace: str, name: str, uid: str) -> events.Subject:
    return events.Subject(port.JOBS.api_version, port.JOBS.kind, namespace, name, uid)
