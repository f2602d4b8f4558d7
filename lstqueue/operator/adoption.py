"""Jobs that run already when they are first looked at: taken over as they run, or turned away.

A Job is adopted where its user says so, or where it was released by us once and its DeadlineJob was lost. Its
admission is recorded from where its pods are, and they are made members one by one after that: nothing that
runs is disturbed. See `lifecycle_unit` for what comes before and after.
"""

from __future__ import annotations

from dataclasses import replace

from lstqueue.jobs import existing, slots, views
from lstqueue.kube import port
from lstqueue.operator import ledger, members, steps

Gang = members.Gang
Phase = ledger.Phase
Step = steps.Step


def _fresh(gang: Gang) -> bool:
    """Whether nothing is recorded of a Job that runs."""
    return not gang.ledger.status.attempt


def intruder(gang: Gang) -> bool:
    """Whether a Job runs that nobody labelled, and that this DeadlineJob was too late for."""
    view = gang.unit.view
    if view is None or view.queue is not None or not _fresh(gang) or gang.ledger.status.unit:
        return False
    return not possible(gang)


def possible(gang: Gang) -> bool:
    """Whether a Job that runs is to be taken over as it runs: its user says so, or its ledger was lost."""
    view = gang.unit.view
    if view is None or not _fresh(gang) or view.suspended:
        return False
    if view.annotation("adopt") != "true" and not view.job:
        return False
    # Pods behind our gate wait for places that are not on record any more.
    return not any(pod.gated for pod in _present(gang))


def _present(gang: Gang) -> list[views.PodView]:
    return [*gang.unit.loose, *members.present(gang.pods)]


def waits(gang: Gang) -> str:
    """Say why a Job cannot be taken over yet, "" when it can."""
    view = gang.unit.view
    assert view is not None
    present = _present(gang)
    unbound = [pod for pod in present if not pod.node]
    if unbound:
        return f"pod {unbound[0].name} of {view.named} has no node yet"
    if len(present) < view.wanted:
        return f"{view.wanted - len(present)} of the pods of {view.named} are not there yet"
    leaving = _twice(view, present)
    if leaving:
        return f"pod {leaving} of {view.named} is still there beside the one that takes its place"
    if not _pool(gang, present):
        nodes = ", ".join(sorted({pod.node for pod in present})[:3])
        return f"no pool of the queue has all the nodes of {view.named} ({nodes}, ...); suspend it"
    return ""


def _twice(view: existing.UnitView, present: list[views.PodView]) -> str:
    """Return the name of a pod beside which there is another in its place, "" for none.

    An admission has one node for each place, and two of them must not be made one.
    """
    if not view.ranked:
        spare = len(present) - view.wanted
        return next((pod.name for pod in present if pod.deleting), "") if spare > 0 else ""
    seen: dict[int, views.PodView] = {}
    for pod in sorted(present, key=lambda pod: not pod.deleting):
        if pod.index in seen:
            return seen[pod.index].name
        seen[pod.index] = pod
    return ""


def _pool(gang: Gang, present: list[views.PodView]) -> str:
    pools = {gang.unit.pool_of(pod.node) for pod in present}
    return pools.pop() if len(pools) == 1 else ""


def admitted(gang: Gang, view: existing.UnitView) -> Step | None:
    """Record an admission from where the pods are; they are made members after that."""
    if waits(gang):
        return None
    status, spec, now = gang.ledger.status, gang.ledger.spec, gang.unit.now
    assert spec is not None
    present = sorted(_present(gang), key=_name)
    by_node: dict[str, list[int]] = {}
    for number, pod in enumerate(present):
        by_node.setdefault(pod.node, []).append(pod.index if view.ranked else number)
    nodes = tuple((node, tuple(sorted(ranks))) for node, ranks in sorted(by_node.items()))
    admission = ledger.Admission(
        at=now,
        queue=gang.unit.queue,
        shape=spec.shape,
        groups=_by_group(view, nodes, _pool(gang, present)),
        job_uid=view.uid,
    )
    running = replace(
        known(status, view),
        phase=Phase.RUNNING,
        admission=admission,
        attempt=status.attempt + 1,
        started=now,
        like="",  # what it did before is not known
    )
    return Step(status=running, why="Adopted")


def _by_group(
    view: existing.UnitView, nodes: tuple[tuple[str, tuple[int, ...]], ...], pool: str
) -> tuple[ledger.GroupAdmission, ...]:
    """Return where the pods of each group are; `nodes` have the places of all groups."""
    found, start = [], 0
    for group, count in view.groups:
        held = [
            (node, tuple(rank for rank in ranks if start <= rank < start + count)) for node, ranks in nodes
        ]
        there = nodes if not view.roles else tuple((node, ranks) for node, ranks in held if ranks)
        found.append(ledger.GroupAdmission(group, pool, there))
        start += count
    return tuple(found)


def label(gang: Gang, view: existing.UnitView) -> Step | None:
    """Make members of the Job's pods that are not yet: of an adopted Job, or made from an older template."""
    status = gang.ledger.status
    admission = status.admission
    assert admission is not None
    if not gang.unit.loose:
        return None
    places = admission.places()
    booked = book(gang, view)
    free = [place for place in range(booked.places) if place not in booked.taken]
    patches = []
    for pod in sorted(gang.unit.loose, key=_name):
        if pod.gated:
            group = existing.GROUP if not view.roles else pod.group
            body = existing.relabel_pod(pod, job=gang.ledger.uid, group=group)
        elif pod.node:
            place = pod.index if view.ranked else _best(free, pod, places)
            pool = places[place][0] if place in places else admission.groups[0].pool
            free = [other for other in free if other != place]
            body = existing.adopt_pod(
                pod,
                job=gang.ledger.uid,
                group=pod.group if view.roles else existing.GROUP,
                attempt=status.attempt,
                slot=place,
                charge=f"{admission.queue}/{pool}",
            )
        else:
            continue
        patches.append(steps.Patch(port.PODS, pod.namespace, pod.name, body))
    return Step(patches=tuple(patches)) if patches else None


def _best(free: list[int], pod: views.PodView, places: dict[int, tuple[str, str]]) -> int:
    """Return the free place on the node where a pod runs, or any, or -1."""
    return next(
        (place for place in free if places.get(place, ("", ""))[1] == pod.node), free[0] if free else -1
    )


def book(gang: Gang, view: existing.UnitView) -> slots.Book:
    """Return how the pods of a Job stand to the places of its admission."""
    status = gang.ledger.status
    places = status.admission.width if status.admission is not None else view.size
    return gang.books.book(view, gang.pods, places, attempt=status.attempt)


def known(status: ledger.Status, view: existing.UnitView) -> ledger.Status:
    """Fix which Job this DeadlineJob speaks for."""
    return status if status.unit else replace(status, unit=view.uid)


def _name(pod: views.PodView) -> str:
    return pod.name
