"""From the cache to the engine's Snapshot: what each job is charged, on which node, and where it stands.

What holds room is the business of `charges`, and what is left of jobs that are no more, or that nobody can
tell, that of `remains`; here each job is put together as the engine is to see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lstqueue.api import errors
from lstqueue.engine import history, model, standing
from lstqueue.jobs import podspec, slots, views
from lstqueue.operator import (
    blame,
    charges,
    fitting,
    holding,
    ledger,
    lenient,
    predictions,
    records,
    remains,
    runs,
    setbacks,
    sweeps,
)
from lstqueue.operator import cache as caches
from lstqueue.operator import settings as all_settings
from lstqueue.topology import domains, slowdown
from lstqueue.topology import model as topology

Phase = ledger.Phase
HOLDING = frozenset({Phase.ADMITTED, Phase.RUNNING, Phase.SUSPENDING})
"""Phases in which an admission holds room."""
NO_SPEC = ledger.Spec("", (), "")
"""Stands for a spec that cannot be read."""
DEFAULT_GRACE = 30
"""Seconds that Kubernetes gives pods which do not say how long they take to end."""
LONGEST_GRACE = 365 * 86_400
"""Seconds that a pod may take to end and be believed."""


def build(
    cache: caches.Cache,
    settings: all_settings.Settings,
    *,
    now: int,
    forecast_at: int,
    changed: bool,
    shed_at: int = 0,
    around: model.Round | None = None,
) -> model.Snapshot:
    """Return the snapshot of now (ms); jobs that did not change since the last one are reused."""
    _settle_sweeps(cache, settings, now)
    jobs: list[model.Job] = []
    for record in cache.records.values():
        if record.engine_job is None or _outlived(record, record.engine_job, now):
            record.engine_job = guarded(record, cache, settings, now=now)
        jobs += _seen(record, record.engine_job, cache)
    for uid, pods in cache.orphan_pods():
        left = [pod for pod in pods.values() if charges.place(pod)]
        if left and uid not in cache.records:
            jobs.append(remains.orphan(uid, left))
    there = cache.occupancy
    blamed = blame.suspects(
        there.near, there.down.values(), cache.records.values(), now=now, least=settings.blame_nodes
    )
    there.suspect(blamed)
    return model.Snapshot(
        nodes=tuple(cache.engine_nodes()),
        queues=tuple(queue.as_of(now) for queue in cache.queues.values()),
        jobs=tuple(jobs),
        forecast_at=forecast_at,
        changed=changed,
        restate=frozenset(
            uid
            for uid, record in cache.records.items()
            if (due := restate_at(record, settings)) is not None and due <= now
        ),
        shed_at=shed_at,
        foreign=cache.occupancy.foreign(),
        reclaimed=cache.occasions.by_queue(),
        round=around,
        domains=cache.domains,
    )


def _settle_sweeps(cache: caches.Cache, settings: all_settings.Settings, now: int) -> None:
    """Say anew which jobs of sweeps have the deadline; who changed sides is seen anew."""

    def expected(record: caches.Record) -> model.Estimate | None:
        if record.engine_job is None:
            record.engine_job = guarded(record, cache, settings, now=now)
        return record.engine_job.estimate

    for record in sweeps.settle(cache.records.values(), expected, now):
        record.engine_job = None
        cache.touch(record.ledger.uid)


def _seen(record: caches.Record, job: model.Job, cache: caches.Cache) -> Iterator[model.Job]:
    """What the engine is to see of a record: the job, if it concerns anybody yet, and what it left behind."""
    # A job that is over and whose pods are gone concerns nobody; of a new one nothing is known
    # until the API server has said what its pods will be.
    told = record.held_back or record.hindered[0] or record.unreadable or record.odd
    unknown = record.shapes is None and not told
    # What it claims is its own from the first pass on, whatever the answer.
    unknown = unknown and record.ledger.status.claim is None
    if job.assigned or not (record.ledger.final or unknown):
        yield _placeable(job, cache)
    elif unknown and job.slot is not None and not record.ledger.final:
        # Its room is owed all the same, and nothing is told to it yet.
        yield replace(job, state=model.State.ENDING)
    lost = cache.left_behind(record) if record.pods else {}
    if lost:
        yield remains.left_behind(record, lost)


def _placeable(job: model.Job, cache: caches.Cache) -> model.Job:
    """Return a job; while nothing is known of an interconnect, one that asks for its domains held back.

    To the engine no node would have any, for good, and a job may end for that.
    """
    asked, waits = job.locality, job.state is model.State.WAITING
    if cache.domains is not None or not waits or not (asked.required or asked.slice_size > 1):
        return job
    why = "asks for domains of an interconnect, and nothing is known of one; create an Interconnect"
    return replace(job, state=model.State.HELD_BACK, held_back=why)


def restate_at(record: caches.Record, settings: all_settings.Settings) -> int | None:
    """Return when (ms) the words of a job get too old although nothing happens, None where none do."""
    waits = record.ledger.status.phase is Phase.PENDING
    return record.told_at + settings.restate_interval_ms if waits else None


def guarded(
    record: caches.Record, cache: caches.Cache, settings: all_settings.Settings, *, now: int
) -> model.Job:
    """Return one DeadlineJob as the engine sees it, or what stands for one that cannot be dealt with."""
    made: list[model.Job] = []
    problem = ""
    if not record.unreadable:
        problem = cache.guard.attempt(
            "DeadlineJob", record.ledger.key, lambda: made.append(engine_job(record, cache, settings))
        )
    if made:
        return made[0]
    if problem:
        # Nothing else may happen that would have it tried again: it is looked at when its time has come.
        setbacks.put_off(record, settings, now)
        setbacks.leave_aside(record, problem)
        cache.touch(record.ledger.uid)
    return remains.unreadable(record, now, published=record.said or _published(record.ledger))


def engine_job(record: caches.Record, cache: caches.Cache, settings: all_settings.Settings) -> model.Job:
    """Return one DeadlineJob as the engine sees it."""
    fitting.settle(record)
    # What returns to the queue waits already: the write that says so brings what this pass finds out.
    job, status = record.ledger, record.returning or record.ledger.status
    spec = cache.spec_of(job) or NO_SPEC
    admission = record.assumed or (status.admission if status.phase in HOLDING else None)
    left = cache.left_behind(record)
    assigned = tuple(charges.assigned(record, admission, left))
    state = _state(record, status.phase, assigned)
    held_back = holding.back(record, cache)[1] if state is model.State.WAITING else ""
    if held_back:
        state = model.State.HELD_BACK
    groups = record.shapes or _shapes_without_intake(record, admission)
    return model.Job(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        queue=_queue(record, cache, admission, left),
        groups=groups,
        submit=job.created,
        estimate=_expected(record, cache, settings),
        overhead=runs.restoring(spec, restored=bool(status.runs)),
        state=state,
        since=_since(status, admission, spec, state),
        assigned=assigned,
        held_back=held_back,
        published=record.said or _published(job, anew=record.returning is not None),
        words=lenient.text(lenient.mapping(job.spoken.get("pending")).get("message")),
        attempt=_attempt(record),
        claim=_claim(record, cache),
        reservation=status.reservation if state in _WAITING else None,
        slot=record.slotted.slot if record.slotted is not None else status.slot,
        slot_before=_slot_before(record, status),
        preemptible=spec.preemptible and not _partly_through(record) and runs.movable(status),
        stays=stays(record),
        grace=_grace(record),
        labelled=bool(job.unit_uid),
        locality=_locality(spec.locality, groups, cache.domains),
        slowdown=_slowdown(record, admission),
        **_wishes(record, spec),
        **_past(record, status),
    )


def _wishes(record: caches.Record, spec: ledger.Spec) -> dict[str, Any]:
    """What its user asks for, by the fields of `model.Job`."""
    job = record.ledger
    return {
        "deadline": None if _given_up(job) or record.spare else spec.deadline,
        "importance": spec.importance,
        "min_run": spec.min_run,
        "value": spec.value,
        "checkpoint": spec.checkpoint,
        "saves_on_suspend": spec.saves_on_suspend,
        "restore": spec.restart_overhead,
        "keeps_band": spec.on_missed == "Continue",
        "expired": spec.expired,
        "sweep": f"{job.namespace}/{spec.sweep}" if spec.sweep else "",
        "sweep_needs": record.wanted,
        "spare": record.spare,
    }


def _past(record: caches.Record, status: ledger.Status) -> dict[str, Any]:
    """What has become of it so far, by the fields of `model.Job`."""
    return {
        # While its commits do not go through, it must not take the room of others pass after pass.
        "not_before": max(status.back_off.until, record.retry_at),
        "avoid": status.back_off.avoid,
        "bereft": records.bereft(status),
        # An edit ends the row.
        "failed_starts": status.back_off.count if status.observed >= record.ledger.generation else 0,
        "saved": status.saved,
        "suspensions": runs.preempted_at(status),
        "wasted": status.wasted,
        "displaced_by": status.displaced_by,
        "home": lenient.text(status.runs[-1].get("domain")) if status.runs else "",
    }


def _locality(
    asked: model.Locality, groups: tuple[model.Group, ...], known: domains.Domains | None
) -> model.Locality:
    """What a gang asks of the interconnect, and what that asks of it: to lie below one root."""
    if known is None or known.spans or not known.levels or asked.required:
        return asked
    alone = sum(group.count for group in groups) == 1
    return asked if alone else replace(asked, required=known.levels[0].name)


def _slowdown(record: caches.Record, admission: ledger.Admission | None) -> int:
    """Return by how much its place makes a job slower (ppm); what it says of its progress has that in it."""
    if admission is None or record.source == predictions.PROGRESS:
        return slowdown.PPM
    return admission.slowdown


def waiting_slack(job: model.Job, now: int, config: model.Config) -> int | None:
    """Return the slack (ms) that a job would have if it waited at `now`, None without one."""
    waits = replace(job, state=model.State.WAITING, assigned=(), since=0)
    return standing.refresh(waits, now, config).slack


def _slot_before(record: caches.Record, status: ledger.Status) -> model.Slot | None:
    """Return the slot that it has should a move not have been written; it is owed until that is known."""
    moved = record.slotted.slot if record.slotted is not None else None
    return status.slot if moved is not None and moved != status.slot else None


def _given_up(job: ledger.Ledger) -> bool:
    """Whether its deadline was found impossible and its user wants it to run all the same."""
    return job.status.best_effort and job.status.observed >= job.generation


def _attempt(record: caches.Record) -> int:
    """Return the number of the admission it is in, counted from the decision on."""
    new = record.assumed is not None and record.ledger.status.phase in (Phase.PENDING, Phase.CLAIMING)
    return record.ledger.status.attempt + (1 if new else 0)


def _claim(record: caches.Record, cache: caches.Cache) -> model.Claim | None:
    """Return what it claims; one that is not known to be written, or about to go, justifies no suspension."""
    job = record.ledger
    if record.assumed is not None:
        return None
    if record.claiming is not None:
        return replace(record.claiming, committed=False)
    if job.status.phase is not Phase.CLAIMING or job.status.claim is None:
        return None
    # What its owner may not take now is worth nobody's suspension.
    return replace(job.status.claim, committed=job.may_claim and not holding.hindered(record, cache))


_WAITING = (model.State.WAITING, model.State.HELD_BACK)
"""States of those for whom room may be kept."""


def _partly_through(record: caches.Record) -> bool:
    """Whether a member of this run has succeeded: only the others would come back after a suspension."""
    if record.unit is not None:
        done = frozenset[int]().union(*(child.done for child in record.children.values()))
        return not slots.movable(record.unit, done)
    restarts = record.ledger.status.restarts
    if any(child.done for child in record.children.values() if child.restart == restarts):
        return True
    return any(pod.succeeded for pod in record.pods.values() if pod.restart == restarts)


def _grace(record: caches.Record) -> int:
    """Return the longest time (ms) that its pods are given to end, as far as templates make sense."""
    given = [template["spec"].get("terminationGracePeriodSeconds") for template in record.templates.values()]
    # Nobody but the API server judges templates, and what it will say is not known yet.
    usable = [seconds if type(seconds) is int else DEFAULT_GRACE for seconds in given]
    return 1000 * max((min(max(seconds, 0), LONGEST_GRACE) for seconds in usable), default=0)


def _published(job: ledger.Ledger, *, anew: bool = False) -> model.Published:
    """What was said of the spec as it is; an edit calls for a new verdict, and so does the end of a run."""
    said = job.status.published
    return said if job.status.observed >= job.generation and not anew else replace(said, verdict=None)


def _queue(
    record: caches.Record,
    cache: caches.Cache,
    admission: ledger.Admission | None,
    left: Mapping[str, views.PodView],
) -> str:
    """Return whose quota it uses: pods stay charged to the queue they were let go in until they are gone."""
    if admission is not None:
        return admission.queue
    for uid, pod in record.pods.items():
        if pod.charge and charges.place(pod) and uid not in left:
            return pod.charge.partition("/")[0]
    return cache.queue_of(record.ledger)


def _since(
    status: ledger.Status, admission: ledger.Admission | None, spec: ledger.Spec, state: model.State
) -> int:
    if state is model.State.RUNNING:
        # Pods run before they have read what they saved, and that is no work: `runs.kept` says the same.
        return status.started + runs.restoring(spec, restored=bool(status.runs))
    return admission.at if state is model.State.ADMITTED and admission is not None else 0


def stays(record: caches.Record) -> bool:
    """Whether nobody can have its pods leave: its Job is deleted, and kept by a finalizer."""
    return record.unit is not None and record.unit.stays


def _state(record: caches.Record, phase: Phase, assigned: tuple[model.Assigned, ...]) -> model.State:
    if record.assumed is not None or phase is Phase.ADMITTED:
        return model.State.ADMITTED
    if phase is Phase.RUNNING:
        return model.State.RUNNING
    if phase is Phase.CLAIMING or record.claiming is not None:
        return model.State.CLAIMING
    if assigned and stays(record):
        # Nobody knows when its pods will leave; not that they are about to.
        return model.State.RUNNING
    if phase is Phase.SUSPENDING:
        return model.State.ADMITTED if record.ledger.status.admission else model.State.ENDING
    return model.State.ENDING if record.ledger.final or assigned else model.State.WAITING


def _expected(
    record: caches.Record, cache: caches.Cache, settings: all_settings.Settings
) -> model.Estimate | None:
    if stays(record) and record.ledger.status.phase is not Phase.RUNNING:
        return None
    found, source = predictions.expected(record, cache, settings.engine)
    if found is not None and source == record.source == history.Source.HISTORY:
        found = history.settled(record.predicted, found)
    record.source, record.predicted = source, found
    return found


def _shapes_without_intake(
    record: caches.Record, admission: ledger.Admission | None
) -> tuple[model.Group, ...]:
    """Before intake has answered (after a restart), pods, or else templates, tell what the gang asks for.

    Templates lack what LimitRanges and RuntimeClasses add; those of gangs that own nothing are not looked
    at, since nobody has vouched for them yet.
    """
    groups = charges.groups(record, admission)
    if not groups:
        return remains.UNREADABLE
    shapes: dict[str, topology.PodShape] = {}
    status = record.ledger.status
    if admission is not None or status.claim is not None or status.slot is not None:
        for name, template in record.templates.items():
            try:
                shapes[name] = podspec.shape(template["spec"])
            except errors.BadValueError:
                continue
    for pod in record.pods.values():
        shapes[pod.group] = replace(shapes.get(pod.group, charges.NO_SHAPE), requests=pod.requests)
    return tuple(model.Group(name, replicas, shapes.get(name, charges.NO_SHAPE)) for name, replicas in groups)


def _outlived(record: caches.Record, job: model.Job, now: int) -> bool:
    """Whether somebody who cannot be dealt with has had a claim for as long as it was made for."""
    stuck = record.unreadable or record.odd
    return bool(stuck) and job.claim is not None and job.claim.expires <= now
