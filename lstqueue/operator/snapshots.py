"""From the cache to the engine's Snapshot: what each job is charged, on which node, and where it stands.

The rule of the ledger: a pod that is bound and not Succeeded or Failed is charged where it is, and one that
was let go where it is pinned to, since it may be bound there at any moment; a member that an admission places
and that is neither of them nor finished is held on its node, for as long as the phase says that the gang is
to run there. Nothing else holds room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lstqueue.api import errors
from lstqueue.engine import history, model, standing
from lstqueue.jobs import batch, podspec, slots, views
from lstqueue.operator import cache as caches
from lstqueue.operator import fitting, holding, ledger, lenient, predictions, records, runs, setbacks, sweeps
from lstqueue.operator import settings as all_settings
from lstqueue.topology import model as topology

Phase = ledger.Phase
HOLDING = frozenset({Phase.ADMITTED, Phase.RUNNING, Phase.SUSPENDING})
"""Phases in which an admission holds room."""
NO_SPEC = ledger.Spec("", (), "")
"""Stands for a spec that cannot be read."""
NO_SHAPE = topology.PodShape(())
DEFAULT_GRACE = 30
"""Seconds that Kubernetes gives pods which do not say how long they take to end."""
LONGEST_GRACE = 365 * 86_400
"""Seconds that a pod may take to end and be believed."""
UNREADABLE = (model.Group("unreadable", 1, topology.PodShape(())),)
"""Stands for the groups of a job that nobody can tell: it is held back, and its user is told why."""

Held = tuple[model.Group, model.Assigned]
"""A group and where its pods are, or are to be; its number is still to be given."""


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
    jobs = []

    def expected(record: caches.Record) -> model.Estimate | None:
        if record.engine_job is None:
            record.engine_job = guarded(record, cache, settings, now=now)
        return record.engine_job.estimate

    for record in sweeps.settle(cache.records.values(), expected, now):
        record.engine_job = None
        cache.touch(record.ledger.uid)
    for record in cache.records.values():
        if record.engine_job is None or _outlived(record, record.engine_job, now):
            record.engine_job = guarded(record, cache, settings, now=now)
        # A job that is over and whose pods are gone concerns nobody; of a new one nothing is known
        # until the API server has said what its pods will be.
        told = record.held_back or record.hindered[0] or record.unreadable or record.odd
        unknown = record.shapes is None and not told
        # What it claims is its own from the first pass on, whatever the answer.
        unknown = unknown and record.ledger.status.claim is None
        if record.engine_job.assigned or not (record.ledger.final or unknown):
            jobs.append(record.engine_job)
        elif unknown and record.engine_job.slot is not None and not record.ledger.final:
            # Its room is owed all the same, and nothing is told to it yet.
            jobs.append(replace(record.engine_job, state=model.State.ENDING))
        lost = cache.left_behind(record) if record.pods else {}
        if lost:
            jobs.append(_left_behind(record, lost))
    for uid, pods in cache.orphan_pods():
        left = [pod for pod in pods.values() if _place(pod)]
        if left and uid not in cache.records:
            jobs.append(_orphan(uid, left))
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
    )


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
    return _unreadable(record, now)


def engine_job(record: caches.Record, cache: caches.Cache, settings: all_settings.Settings) -> model.Job:
    """Return one DeadlineJob as the engine sees it."""
    fitting.settle(record)
    # What returns to the queue waits already: the write that says so brings what this pass finds out.
    job, status = record.ledger, record.returning or record.ledger.status
    spec = cache.spec_of(job) or NO_SPEC
    admission = record.assumed or (status.admission if status.phase in HOLDING else None)
    left = cache.left_behind(record)
    assigned = tuple(_assigned(record, admission, left))
    state = _state(record, status.phase, assigned)
    held_back = holding.back(record, cache)[1] if state is model.State.WAITING else ""
    if held_back:
        state = model.State.HELD_BACK
    return model.Job(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        queue=_queue(record, cache, admission, left),
        groups=record.shapes or _shapes_without_intake(record, admission),
        submit=job.created,
        deadline=None if _given_up(job) or record.spare else spec.deadline,
        estimate=_expected(record, cache, settings),
        importance=spec.importance,
        overhead=runs.restoring(spec, restored=bool(status.runs)),
        state=state,
        since=_since(status, admission, spec, state),
        assigned=assigned,
        # While its commits do not go through, it must not take the room of others pass after pass.
        not_before=max(status.back_off.until, record.retry_at),
        avoid=status.back_off.avoid,
        held_back=held_back,
        published=record.said or _published(job, anew=record.returning is not None),
        words=lenient.text(lenient.mapping(job.spoken.get("pending")).get("message")),
        attempt=_attempt(record),
        claim=_claim(record, cache),
        reservation=status.reservation if state in _WAITING else None,
        slot=record.slotted.slot if record.slotted is not None else status.slot,
        bereft=records.bereft(status),
        # An edit ends the row.
        failed_starts=status.back_off.count if status.observed >= job.generation else 0,
        preemptible=spec.preemptible and not _partly_through(record) and runs.movable(status),
        stays=stays(record),
        min_run=spec.min_run,
        value=spec.value,
        saved=status.saved,
        checkpoint=spec.checkpoint,
        saves_on_suspend=spec.saves_on_suspend,
        restore=spec.restart_overhead,
        grace=_grace(record),
        suspensions=runs.preempted_at(status),
        wasted=status.wasted,
        displaced_by=status.displaced_by,
        keeps_band=spec.on_missed == "Continue",
        labelled=bool(job.unit_uid),
        expired=spec.expired,
        sweep=f"{job.namespace}/{spec.sweep}" if spec.sweep else "",
        sweep_needs=record.wanted,
        spare=record.spare,
    )


def waiting_slack(job: model.Job, now: int, config: model.Config) -> int | None:
    """Return the slack (ms) that a job would have if it waited at `now`, None without one."""
    waits = replace(job, state=model.State.WAITING, assigned=(), since=0)
    return standing.refresh(waits, now, config).slack


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
        return not slots.movable(record.unit)
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
        if pod.charge and _place(pod) and uid not in left:
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


def _assigned(
    record: caches.Record, admission: ledger.Admission | None, left: Mapping[str, views.PodView]
) -> Iterable[model.Assigned]:
    """Yield what the job is charged by (group, pool, node), pods `left` behind on dead nodes apart."""
    groups = [name for name, _ in _groups(record, admission)]
    pools = {group.name: group.pool for group in admission.groups} if admission is not None else {}
    bound: Counter[tuple[str, str, str]] = Counter()
    held: Counter[tuple[str, str, str]] = Counter()
    for uid, pod in record.pods.items():
        if uid not in left and (node := _place(pod)):
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
        # An existing Job makes the pods of all attempts: one left on a dead node stands for nobody now.
        ours = pod.attempt == attempt or (record.unit is None and pod.owner in makers)
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

    Templates lack what LimitRanges and RuntimeClasses add; those of gangs that own nothing are not looked
    at, since nobody has vouched for them yet.
    """
    groups = _groups(record, admission)
    if not groups:
        return UNREADABLE
    shapes: dict[str, topology.PodShape] = {}
    status = record.ledger.status
    if admission is not None or status.claim is not None or status.slot is not None:
        for name, template in record.templates.items():
            try:
                shapes[name] = podspec.shape(template["spec"])
            except errors.BadValueError:
                continue
    for pod in record.pods.values():
        shapes[pod.group] = replace(shapes.get(pod.group, NO_SHAPE), requests=pod.requests)
    return tuple(model.Group(name, replicas, shapes.get(name, NO_SHAPE)) for name, replicas in groups)


def _groups(record: caches.Record, admission: ledger.Admission | None) -> tuple[tuple[str, int], ...]:
    """Return the groups of a job; of an existing one that is not known (any more), as far as it is charged.

    Its pods hold room and quota until they are gone, whatever has become of the Job that made them.
    """
    spec = record.ledger.spec
    if spec is None or spec.groups or spec.ref is None:
        return spec.groups if spec is not None else ()
    width = admission.width if admission is not None else len(record.pods)
    return ((batch.GROUP, width),) if width else ()


def _outlived(record: caches.Record, job: model.Job, now: int) -> bool:
    """Whether somebody who cannot be dealt with has had a claim for as long as it was made for."""
    stuck = record.unreadable or record.odd
    return bool(stuck) and job.claim is not None and job.claim.expires <= now


def _unreadable(record: caches.Record, now: int) -> model.Job:
    """Return what stands for a job that cannot be dealt with: nothing begins, and what it holds is held.

    A claim is a hold, too, until it expires: like one that is not written yet it has nobody suspended, and
    its owner does not start.
    """
    job, admission = record.ledger, record.assumed or record.ledger.status.admission
    held = [*_by_pod(record.pods.values()), *_unmet(record, admission)]
    claim = record.claiming or (job.status.claim if job.status.phase is Phase.CLAIMING else None)
    if held or record.assumed is not None or (claim is not None and claim.expires <= now):
        claim = None
    groups = tuple(group for group, _ in held)
    state = model.State.ENDING if held else model.State.HELD_BACK
    if claim is not None:
        claim, state = replace(claim, committed=False), model.State.CLAIMING
        groups = _claiming_groups(record, claim)
    charges = (pod.charge.partition("/")[0] for pod in record.pods.values() if pod.charge and _place(pod))
    queue = admission.queue if admission is not None else next(charges, "")
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
        assigned=_numbered(held),
        claim=claim,
        published=record.said or _published(job),
        words=lenient.text(lenient.mapping(job.spoken.get("pending")).get("message")),
    )


def _unmet(record: caches.Record, admission: ledger.Admission | None) -> Iterable[Held]:
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


def _claiming_groups(record: caches.Record, claim: model.Claim) -> tuple[model.Group, ...]:
    """Return the groups of a claim, whose pods may not be known."""
    shapes = dict(enumerate(group.shape for group in record.shapes or ()))
    sizes = [sum(count for _, count in group.nodes) for group in claim.groups]
    return tuple(model.Group(f"{i}", size, shapes.get(i, NO_SHAPE)) for i, size in enumerate(sizes))


def _left_behind(record: caches.Record, left: Mapping[str, views.PodView]) -> model.Job:
    """Return the pods that a gang lost to dead nodes: charged there, and to nobody's quota.

    The quota is for what runs: a queue whose node died may use others instead.
    """
    return replace(_orphan(f"{record.ledger.uid}/left-behind", left.values()), queue="")


def _orphan(uid: str, pods: Iterable[views.PodView]) -> model.Job:
    """Return what is left of a DeadlineJob that was deleted: pods that still hold room and quota."""
    left = sorted(pods, key=lambda pod: pod.name)
    queue = next((pod.charge.partition("/")[0] for pod in left if pod.charge), "")
    held = list(_by_pod(left))
    return model.Job(
        uid=uid,
        namespace=left[0].namespace,
        name=left[0].name,
        queue=queue,
        groups=tuple(group for group, _ in held),
        submit=0,
        state=model.State.ENDING,
        assigned=_numbered(held),
    )


def _by_pod(pods: Iterable[views.PodView]) -> Iterable[Held]:
    """Yield each pod that takes room as a group of its own."""
    for pod in sorted(pods, key=lambda pod: pod.name):
        if node := _place(pod):
            pool, bound = pod.charge.partition("/")[2], int(bool(pod.node))
            made = model.Group(pod.name, 1, topology.PodShape(pod.requests))
            yield made, model.Assigned(0, pool, node, bound, 1 - bound)


def _numbered(held: Iterable[Held]) -> tuple[model.Assigned, ...]:
    return tuple(replace(part, group=index) for index, (_, part) in enumerate(held))
