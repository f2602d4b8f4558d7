"""Who stands for which rank of a gang, as its child Jobs and pods show it. Looks only; decides nothing.

A member has succeeded when its Job counts its index: unlike a pod, which anybody may clear away, that word
stays. Its room is given away with it, so a run in which a member succeeded is never whole again. A pod that
ends well because it was told to leave did not do its work; Jobs that are suspended do not count it either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lstqueue.engine import model
from lstqueue.jobs import slots, views
from lstqueue.operator import ledger, units


@dataclass(frozen=True, slots=True)
class Gang:
    """Everything `lifecycle.step` looks at.

    `children` and `pods` are all that belong to the DeadlineJob, of any restart. `ungated_at` is when this
    process lifted the last gate (0: not known), `unready_since` when it saw a running gang become incomplete
    (0: it is complete), both in ms as the timeouts are. `fit_node(group, node)` tells whether the node may
    still take a pod of the group, `other_node(group, node)` which other of its domain can, "" for none;
    `crowded()` says in words on which node the room of the admission was given to others first, "" for none;
    `lost(pod)` says in words why the node of a pod is lost to it, "" when it is not; `slack()` returns the
    slack (ms) it would have if it waited now, as the engine reckons, None for none; `stale(node)` tells
    whether a node is gone or silent, so that pods on it cannot end. `judged` says that the published verdict
    is that of a pass of ours, by our clock as it is, `untimely` why nothing is to be ended now by time alone,
    "" for no reason; `spare` that its sweep has enough without it, `counts` that its success is still wanted
    there. `unit` is what is known of the existing job that the DeadlineJob refers to, `books` keep how its
    pods stand to it.
    """

    ledger: ledger.Ledger
    children: Sequence[views.ChildView]
    pods: Sequence[views.PodView]
    ungated_at: int
    bind_timeout: int
    ready_timeout: int
    fit_node: Callable[[str, str], bool]
    crowded: Callable[[], str] = lambda: ""
    lost: Callable[[views.PodView], str] = lambda _: ""
    other_node: Callable[[str, str], str] = lambda *_: ""
    slack: Callable[[], int | None] = lambda: None
    stale: Callable[[str], bool] = lambda _: False
    unready_since: int = 0
    recovery_timeout: int = 10 * model.MINUTE
    judged: bool = True
    untimely: str = ""
    spare: bool = False
    counts: bool = False
    unit: units.Facts = units.NOTHING
    books: slots.Books = field(default_factory=slots.Books, compare=False)

    def staying(self) -> list[views.PodView]:
        """Return the pods that still hold room, on nodes where they can end; the others block only those."""
        return [pod for pod in present(self.pods) if not self.stale(pod.node or pod.aim)]

    def stuck(self) -> list[views.PodView]:
        """Return the pods that still hold room on nodes where they cannot end."""
        return [pod for pod in present(self.pods) if self.stale(pod.node or pod.aim)]


@dataclass(frozen=True, slots=True)
class Standing:
    """The members of this run: the ranks expected now, and the pod that stands for each, in rank order.

    Ranks that are done are not expected. `whole` says that every expected rank has its pod. `strays` are pods
    that were let go and stand for nobody: they leave, and while they do they hold what their successors need.
    """

    expected: frozenset[int]
    found: dict[int, views.PodView]
    strays: tuple[views.PodView, ...]

    @property
    def whole(self) -> bool:
        """Whether every expected rank has its pod."""
        return len(self.found) == len(self.expected)

    @property
    def ready(self) -> bool:
        """Whether every expected rank has a pod that is ready or through."""
        return self.whole and all(pod.ready or pod.succeeded for pod in self.found.values())


def present(pods: Iterable[views.PodView]) -> list[views.PodView]:
    """Return the pods that still hold what they were bound to, or may yet be bound."""
    return [pod for pod in pods if not pod.gone]


def evicted(pod: views.PodView) -> bool:
    """Whether a pod has to leave, or left, through no fault of its own."""
    return pod.disrupted and (pod.deleting or pod.phase == "Failed")


def failure(pod: views.PodView) -> str:
    """Say which pod failed, where, and how."""
    where = f"pod {pod.name} failed on node {pod.node or '-'}"
    return f"{where}: {pod.words}" if pod.words else where


def current(gang: Gang) -> dict[str, views.ChildView]:
    """Return the children of the present restart by group."""
    restarts = gang.ledger.status.restarts
    return {child.group: child for child in gang.children if child.restart == restarts}


def of_run(gang: Gang) -> list[views.PodView]:
    """Return the pods of the present restart and admission, without what an earlier admission left.

    Only what a child made is a member: anybody may put our labels on a pod.
    """
    status, makers = gang.ledger.status, {child.uid for child in gang.children}
    return [
        pod
        for pod in gang.pods
        if pod.owner in makers and pod.restart == status.restarts and pod.attempt in (-1, status.attempt)
    ]


def let_go(gang: Gang) -> bool:
    """Whether a pod was let go in this run that still is somewhere, even one whose Job was deleted since."""
    status = gang.ledger.status
    return any(
        not pod.gated and pod.restart == status.restarts and pod.attempt in (-1, status.attempt)
        for pod in present(gang.pods)
    )


def intact(gang: Gang) -> bool:
    """Whether no member of the present restart has succeeded, as far as all of its Jobs can tell."""
    children = current(gang)
    return all(
        name in children and not (children[name].done or children[name].complete)
        for name, _ in gang.ledger.gang().groups
    )


def deciding(gang: Gang) -> list[tuple[str, int]]:
    """Return the groups, (name, replicas), that make the gang's success: the leader's, or all."""
    spec = gang.ledger.spec
    assert spec is not None
    return list(spec.groups[:1] if spec.leader_decides else spec.groups)


def completed(gang: Gang, now: int) -> int | None:
    """Return when the gang succeeded, in ms, None when it has not. Its Jobs have the word."""
    children = current(gang)
    through = [children[name] for name, _ in deciding(gang) if name in children and children[name].complete]
    if len(through) < len(deciding(gang)):
        return None
    return max(child.completion_time or now for child in through)


def succeeding(gang: Gang) -> bool:
    """Whether all pods that matter have succeeded and their Jobs only need a moment to say so."""
    children = current(gang)
    for name, replicas in deciding(gang):
        child = children.get(name)
        if child is None or child.failed or child.deleting:
            return False
        done = child.done | {pod.index for pod in gang.pods if pod.owner == child.uid and pod.succeeded}
        if not child.complete and len(done) < replicas:
            return False
    return True


def standing(gang: Gang) -> Standing:
    """Return who stands for which rank now.

    A pod that leaves stands for nobody; of two pods of one rank (a replacement beside its predecessor) the
    ungated one counts. Only pods that the present child made are members, whatever labels others carry.
    """
    identity, children = gang.ledger.gang(), current(gang)
    expected: dict[tuple[str, int], int] = {}
    for name, replicas in identity.groups:
        offset = identity.offset(name)
        through = children[name].done if name in children else frozenset()
        expected |= {(name, index): offset + index for index in range(replicas) if index not in through}
    found: dict[int, views.PodView] = {}
    for pod in of_run(gang):
        child, rank = children.get(pod.group), expected.get((pod.group, pod.index))
        if rank is None or child is None or pod.owner != child.uid or pod.deleting:
            continue
        if rank not in found or not pod.gated:
            found[rank] = pod
    standing_for = {pod.uid for pod in found.values()}
    strays = tuple(pod for pod in gang.staying() if not pod.gated and pod.uid not in standing_for)
    return Standing(frozenset(expected.values()), dict(sorted(found.items())), strays)
