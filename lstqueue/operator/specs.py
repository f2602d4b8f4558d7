"""The spec of a DeadlineJob as the operator keeps it, and the reading of it, in the units of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import deadlinejob, errors, names, times
from lstqueue.engine import model
from lstqueue.jobs import inline

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobRef:
    """The existing object that a DeadlineJob speaks for, in its own namespace."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What the user asked for; durations and times in ms.

    With a `ref`, `groups` and `shape` are those of the object it names: empty until that was seen. `queue` is
    "" for the namespace's default. `checkpoint` is the interval between two, 0 for none. `deadline_note` says
    how a time of day was taken that clocks skip or have twice, `expired` that the deadline was past from the
    first. Of the jobs of a `sweep` (of its namespace, "" for none) `need` have to succeed. `locality` is what
    it asks of the interconnect.
    """

    queue: str
    groups: tuple[tuple[str, int], ...]
    shape: str
    deadline: int | None = None
    estimate: int | None = None
    importance: int = 0
    leader_decides: bool = False
    backoff_limit: int = 3
    ref: JobRef | None = None
    value: int = 1
    preemptible: bool = True
    min_run: int | None = None
    max_run: int | None = None
    checkpoint: int = 0
    saves_on_suspend: bool = False
    restart_overhead: int = 0
    active: bool = True
    on_missed: str = "Demote"
    on_infeasible: str = "Queue"
    ttl: int | None = None
    deadline_note: str = ""
    expired: bool = False
    sweep: str = ""
    need: int = 0
    locality: model.Locality = model.ANYWHERE


def judged(raw: Object, created: int) -> tuple[Spec | None, str]:
    """Return the spec of a DeadlineJob created then (ms since the epoch), or why it cannot be read."""
    try:
        return _spec(raw, counted_from(raw["metadata"], created)), ""
    except errors.InvalidSpecError as error:
        return None, str(error)


def counted_from(meta: Object, created: int) -> int:
    """Return from when (ms) deadlines count: the creation of the object, or of the job it stands for.

    Nothing but an earlier time is believed, since users can write annotations too.
    """
    text = (meta.get("annotations") or {}).get(names.ANNOTATION_UNIT_CREATED)
    try:
        unit = times.parse(text) if text else created
    except errors.BadValueError:
        return created
    return unit if 0 < unit <= created else created


def _spec(raw: Object, base: int) -> Spec:
    parsed = deadlinejob.parse(raw)
    ref, checkpoint = parsed.job_ref, parsed.checkpoint or deadlinejob.Checkpoint()
    deadline = parsed.resolved_deadline(base)
    return Spec(
        queue=parsed.queue or "",
        groups=tuple((group.name, group.replicas) for group in parsed.groups),
        shape=inline.shape_hash(raw["spec"]["groups"]) if parsed.groups else "",
        deadline=deadline,
        estimate=parsed.estimated_duration,
        importance=parsed.importance,
        leader_decides=parsed.success_policy == "Leader",
        backoff_limit=parsed.backoff_limit,
        ref=JobRef(ref.api_version, ref.kind, ref.name) if ref else None,
        value=parsed.value,
        preemptible=parsed.preemptible,
        min_run=parsed.min_run_time,
        max_run=parsed.max_run_time,
        checkpoint=checkpoint.interval or 0,
        saves_on_suspend=bool(checkpoint.on_suspend),
        restart_overhead=checkpoint.restart_overhead or 0,
        active=parsed.active,
        on_missed=parsed.on_missed.value,
        on_infeasible=parsed.on_infeasible.value,
        ttl=None if parsed.ttl_seconds_after_finished is None else parsed.ttl_seconds_after_finished * 1000,
        deadline_note=parsed.deadline_note(base),
        expired=deadline is not None and deadline <= base,
        sweep=parsed.sweep.name if parsed.sweep else "",
        need=parsed.sweep.need if parsed.sweep else 0,
        locality=_locality(parsed.topology),
    )


def _locality(asked: deadlinejob.Topology | None) -> model.Locality:
    if asked is None:
        return model.ANYWHERE
    return model.Locality(
        required=asked.required or "",
        slice_size=asked.slice_size or 1,
        slice_level=asked.slice_level or "",
        min_bandwidth=asked.min_bandwidth or 0,
        preferred=asked.preferred or "",
        max_wait=asked.max_wait,
        communication=asked.communication_share or 0,
    )
