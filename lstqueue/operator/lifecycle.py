"""What an inline gang needs next, as a pure function: the protocol of admission, finish and failure.

`step` looks at the ledger entry, the children and the pods, and returns the one thing to do now. It is
level-based: it never remembers what it asked for, so a restarted operator, or one that lost a reply, goes on
from whatever the API shows (docs/adr/0005-level-based-lifecycle.md). It neither calls the API nor decides
who is admitted.

The order of the writes keeps the invariants: the status commit comes before any child, children come gated,
gates are lifted only when every expected pod exists, and capacity returns only when pods are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lstqueue.api import conditions
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger

Phase = ledger.Phase


@dataclass(frozen=True, slots=True)
class Gang:
    """Everything `step` looks at.

    `children` and `pods` are all that belong to the DeadlineJob, of any restart. `ungated_at` is when this
    process lifted the last gate (0: not known). `fit_node(group, node)` tells whether the node may still take
    a pod of the group.
    """

    ledger: ledger.Ledger
    children: Sequence[views.ChildView]
    pods: Sequence[views.PodView]
    ungated_at: int
    bind_timeout: int
    ready_timeout: int
    fit_node: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """The next thing to do: at most one of the actions is set; `wake` is when to look again, in ms."""

    status: ledger.Status | None = None
    why: str = ""
    create: tuple[tuple[str, int], ...] = ()
    suspend: tuple[views.ChildView, ...] = ()
    resume: tuple[views.ChildView, ...] = ()
    discard: tuple[views.ChildView, ...] = ()
    ungate: tuple[tuple[views.PodView, str, str, int], ...] = ()
    wake: int | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.status or self.create or self.suspend or self.resume or self.discard or self.ungate)


IDLE = Step()


def step(gang: Gang, now: int) -> Step:
    """Return what the gang needs next at `now` (ms)."""
    job = gang.ledger
    if job.deleting or job.spec is None:
        return IDLE
    found = _BY_PHASE[job.status.phase](gang, now)
    deadline = job.spec.deadline
    if not found.idle or job.final or deadline is None or missed(job.status):
        return found
    if now >= deadline:
        return Step(status=job.status, why="DeadlineMissed")
    return Step(wake=min(deadline, found.wake or deadline))


def missed(status: ledger.Status) -> bool:
    """Whether the status says already that the deadline was missed."""
    return conditions.is_true(status.conditions, conditions.Type.DEADLINE_MISSED)


def refused(gang: Gang, now: int, why: str) -> Step:
    """Return the step out of a start that the API server will not have: a failed start, no node to blame."""
    return Step(status=_failed_start(gang, {}, now), why=why)


def back_off(count: int, slack: int | None) -> int:
    """Return the wait in ms after the `count`-th failed start in a row (docs/engine.md, back-off).

    1 min, doubling to 30 min, capped by a quarter of the slack but never below 30 s.
    """
    doubled = model.MINUTE << min(count - 1, 16)
    wait = min(doubled, 30 * model.MINUTE)
    if slack is not None:
        wait = min(wait, slack // 4)
    return max(wait, model.MINUTE // 2)


def present(pods: Sequence[views.PodView]) -> list[views.PodView]:
    """Return the pods that still hold what they were bound to, or may yet be bound."""
    return [pod for pod in pods if not pod.gone]


def current(gang: Gang) -> dict[str, views.ChildView]:
    """Return the children of the present restart by group."""
    restarts = gang.ledger.status.restarts
    return {child.group: child for child in gang.children if child.restart == restarts}


def _stop(gang: Gang, now: int) -> Step:
    """Outside an admission nothing may run: suspend what does."""
    running = tuple(
        child
        for child in gang.children
        if not (child.suspended or child.deleting or child.complete or child.failed)
    )
    return Step(suspend=running) if running else IDLE


def _admitted(gang: Gang, now: int) -> Step:
    job, status = gang.ledger, gang.ledger.status
    if status.admission is None:
        return Step(status=replace(status, phase=Phase.PENDING), why="AdmissionMissing")
    children = current(gang)
    ended = _ended(gang, children, now)
    if ended:
        return ended
    live = [pod for pod in gang.pods if pod.restart == status.restarts]
    ungated = [pod for pod in live if pod.attempt == status.attempt]
    if not ungated and not _still_fits(gang):
        # No pod was released to a node, so rolling back costs nothing.
        return Step(status=_released(status), why="NodeUnfit")
    stale = tuple(
        child
        for child in gang.children
        if child.restart < status.restarts and not (child.failed or child.complete or child.deleting)
    )
    if stale:
        # What did not fail has nothing to show; what did keeps the logs of its pods.
        return Step(discard=stale)
    missing = tuple((name, status.restarts) for name, _ in job.gang().groups if name not in children)
    if missing:
        return Step(create=missing)
    if any(child.deleting for child in children.values()):
        return IDLE
    stopped = tuple(child for child in children.values() if child.suspended)
    if stopped:
        return Step(resume=stopped)
    return _start(gang, live, now)


def _start(gang: Gang, live: Sequence[views.PodView], now: int) -> Step:
    """Children run: ungate when all are there, then wait for the gang to be bound and ready."""
    job, status = gang.ledger, gang.ledger.status
    assert status.admission is not None
    expected, found = _members(gang, live)
    ready_by = status.admission.at + gang.ready_timeout
    if len(found) == len(expected):
        waiting = [(rank, pod) for rank, pod in sorted(found.items()) if pod.gated]
        if waiting:
            placed = []
            for rank, pod in waiting:
                pool, node = status.admission.node_of(rank)
                placed.append((pod, pool, node, rank))
            return Step(ungate=tuple(placed))
        if all(pod.ready or pod.phase == "Succeeded" for pod in found.values()):
            running = replace(status, phase=Phase.RUNNING, started=now, back_off=ledger.NO_BACK_OFF)
            return Step(status=running, why="GangReady")
    unbound = [pod for pod in found.values() if not pod.node and not pod.gated]
    bind_by = (gang.ungated_at or now) + gang.bind_timeout if unbound else ready_by
    if now < min(ready_by, bind_by):
        return Step(wake=min(ready_by, bind_by))
    return Step(status=_failed_start(gang, found, now), why=_stuck(job, expected, found))


def _running(gang: Gang, now: int) -> Step:
    return _ended(gang, current(gang), now) or IDLE


def _ended(gang: Gang, children: dict[str, views.ChildView], now: int) -> Step | None:
    """Return the step out of an admission when the gang succeeded or a member failed, else None."""
    job, status = gang.ledger, gang.ledger.status
    assert job.spec is not None
    names = [name for name, _ in job.spec.groups]
    deciding = names[:1] if job.spec.leader_decides else names
    if all(name in children and children[name].complete for name in deciding):
        times = [children[name].completion_time or now for name in deciding]
        return Step(status=_over(status, Phase.SUCCEEDED, max(times)), why="Succeeded")
    refused = [
        pod for pod in gang.pods if pod.restart == status.restarts and pod.refused and not pod.disrupted
    ]
    if refused:
        found = {pod.index: pod for pod in refused}
        message = (
            f"node {refused[0].node} refused pod {refused[0].name}: {refused[0].reason} {refused[0].message}"
        )
        return Step(status=_failed_start(gang, found, now), why=message.strip())
    reason, words = _broken(gang, children)
    if reason:
        return Step(status=replace(status, phase=Phase.SUSPENDING, suspension=reason, since=now), why=words)
    return None


def _broken(gang: Gang, children: dict[str, views.ChildView]) -> tuple[str, str]:
    """Return why the gang cannot go on and which member it was, ("", "") when all is well."""
    restarts = gang.ledger.status.restarts
    pods = [pod for pod in gang.pods if pod.restart == restarts]
    for pod in pods:
        if pod.disrupted and (pod.deleting or pod.phase == "Failed"):
            return ledger.GANG_DISRUPTED, f"pod {pod.name} was evicted from node {pod.node or '-'}"
    for pod in pods:
        if pod.phase == "Failed":
            words = f"pod {pod.name} failed on node {pod.node or '-'}: {pod.reason} {pod.message}"
            return ledger.GANG_FAILED, words.strip()
    for name, child in children.items():
        if child.failed:
            return ledger.GANG_FAILED, f"group {name} failed: {child.reason} {child.message}".strip()
    return "", ""


def _suspending(gang: Gang, now: int) -> Step:
    status = gang.ledger.status
    stop = _stop(gang, now)
    if not stop.idle:
        return stop
    if present(gang.pods):
        return IDLE
    if status.suspension not in (ledger.GANG_FAILED, ledger.GANG_DISRUPTED):
        return Step(status=replace(status, phase=Phase.PENDING, suspension="", since=0), why="Suspended")
    return _restart(gang, now)


def _restart(gang: Gang, now: int) -> Step:
    """All pods of a failed gang are gone: begin again under the same hold, or give up."""
    job, status = gang.ledger, gang.ledger.status
    assert job.spec is not None
    disrupted = status.suspension == ledger.GANG_DISRUPTED
    if not disrupted and status.restarts - status.disruptions >= job.spec.backoff_limit:
        return Step(status=_over(status, Phase.FAILED, now), why="BackoffLimitExceeded")
    again = _next_restart(status, counted=not disrupted)
    again = replace(again, suspension="", since=0)
    if status.admission is None or not _still_fits(gang):
        return Step(status=_released(again), why="NodeUnfit")
    if any(pod.phase == "Succeeded" for pod in gang.pods if pod.restart == status.restarts):
        # Somebody else may have the room of a member that had succeeded: only a new admission is whole.
        return Step(status=_released(again), why="MemberHadSucceeded")
    admission = replace(status.admission, at=now)
    return Step(status=replace(again, phase=Phase.ADMITTED, admission=admission), why="GangRestarted")


def _members(gang: Gang, live: Sequence[views.PodView]) -> tuple[set[int], dict[int, views.PodView]]:
    """Return the global ranks expected now and the pods that stand for them.

    Ranks whose index succeeded are not expected. A pod that leaves stands for nobody; of two pods of one
    rank (a replacement beside its predecessor) the ungated one counts.
    """
    identity = gang.ledger.gang()
    children = current(gang)
    expected: set[int] = set()
    for name, replicas in identity.groups:
        done = children[name].done if name in children else frozenset()
        offset = identity.offset(name)
        expected.update(offset + index for index in range(replicas) if index not in done)
    sizes = dict(identity.groups)
    found: dict[int, views.PodView] = {}
    for pod in live:
        if pod.deleting or not 0 <= pod.index < sizes.get(pod.group, 0):
            continue
        rank = identity.offset(pod.group) + pod.index
        if rank in expected and (rank not in found or not pod.gated):
            found[rank] = pod
    return expected, found


def _still_fits(gang: Gang) -> bool:
    admission = gang.ledger.status.admission
    assert admission is not None
    if gang.ledger.spec is None or admission.shape != gang.ledger.spec.shape:
        return False
    return all(gang.fit_node(group.name, node) for group in admission.groups for node, _ in group.nodes)


def _stuck(job: ledger.Ledger, expected: set[int], found: dict[int, views.PodView]) -> str:
    """Say which member kept the gang from starting, in the words of whoever held it."""
    for rank, pod in sorted(found.items()):
        if not (pod.ready or pod.phase == "Succeeded"):
            where = f"on node {pod.node}" if pod.node else "not bound"
            return f"rank {rank} (pod {pod.name}, {where}) did not start: {pod.reason} {pod.message}".strip()
    lost = min(expected - set(found), default=0)
    return f"rank {lost} of {job.key} has no pod; see the events of its Job"


def _failed_start(gang: Gang, found: dict[int, views.PodView], now: int) -> ledger.Status:
    """Leave an admission that did not start: suspend, and avoid the nodes that failed."""
    status = gang.ledger.status
    assert status.admission is not None
    bad = {pod.node for pod in found.values() if pod.node and not pod.ready and pod.phase != "Succeeded"}
    for rank, pod in found.items():
        if not pod.node and not pod.gated and pod.phase == "Pending":
            bad.add(status.admission.node_of(rank)[1])
    spec = gang.ledger.spec
    slack = spec.deadline - now - (spec.estimate or 0) if spec and spec.deadline is not None else None
    count = status.back_off.count + 1
    again = status
    if any(pod.phase == "Failed" for pod in found.values()):
        # Its Job has failed with it and cannot be resumed; that is no failure of the gang.
        again = _next_restart(status, counted=False)
    return replace(
        again,
        back_off=ledger.BackOff(
            until=now + back_off(count, slack),
            count=count,
            avoid=tuple(sorted({*status.back_off.avoid, *bad})),
        ),
        phase=Phase.SUSPENDING,
        suspension=ledger.FAILED_START,
        since=now,
        admission=None,
    )


def _next_restart(status: ledger.Status, *, counted: bool) -> ledger.Status:
    """Children of the next restart get new names; only counted ones use up `backoffLimit`."""
    return replace(
        status, restarts=status.restarts + 1, disruptions=status.disruptions + (0 if counted else 1)
    )


def _released(status: ledger.Status) -> ledger.Status:
    return replace(status, phase=Phase.PENDING, admission=None, suspension="", since=0)


def _over(status: ledger.Status, phase: Phase, at: int) -> ledger.Status:
    return replace(status, phase=phase, completed=at, suspension="", since=0)


_BY_PHASE: dict[Phase, Callable[[Gang, int], Step]] = {
    Phase.PENDING: _stop,
    Phase.ADMITTED: _admitted,
    Phase.RUNNING: _running,
    Phase.SUSPENDING: _suspending,
    Phase.SUCCEEDED: _stop,
    Phase.FAILED: _stop,
    Phase.REJECTED: _stop,
}
