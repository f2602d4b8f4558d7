"""The auditor's rules about one gang, as pure functions over its facts: each says what is wrong in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lstqueue.embedded import audit_facts

EDGES = {
    "": {"Pending", "Claiming", "Admitted", "Rejected", "Failed"},
    "Pending": {"Claiming", "Admitted", "Rejected", "Failed"},
    "Claiming": {"Pending", "Admitted", "Failed"},
    "Admitted": {"Running", "Suspending", "Succeeded", "Failed", "Pending"},
    "Running": {"Suspending", "Succeeded", "Failed"},
    "Suspending": {"Pending", "Admitted", "Succeeded", "Failed"},
    "Succeeded": set[str](),
    "Failed": set[str](),
    "Rejected": set[str](),
}
"""Allowed moves of a DeadlineJob's phase."""
ADOPTION = {"": {"Running", "Succeeded", "Failed"}, "Pending": {"Running", "Succeeded"}}
"""Beside these: a user's own Job may run, or be over, before its DeadlineJob has said anything."""

STARTING = "starting"
UNBOUND = "unbound"
INCOMPLETE = "incomplete"
STAYING = "staying"

IsUp = Callable[[str], bool]
"""Whether a node of that name exists and is ready: pods on others cannot leave and block nobody."""


def moved(gang: audit_facts.Gang, before: audit_facts.Standing) -> Iterator[str]:
    """Yield what is wrong with a change of the status by itself."""
    now = gang.now
    allowed = EDGES.get(before.phase, set()) | (
        ADOPTION.get(before.phase, set()) if gang.referenced else set()
    )
    if now.phase != before.phase and now.phase not in allowed:
        yield f"phase went from {before.phase or 'none'} to {now.phase or 'none'}"
    admitted = now.phase in ("Admitted", "Running") and before.phase in ("", "Pending", "Claiming")
    expected = before.attempt + 1 if admitted else before.attempt
    if now.attempt != expected:
        yield f"attempt went from {before.attempt} to {now.attempt}, not to {expected}"
    if now.restarts < before.restarts:
        yield f"restarts went back from {before.restarts} to {now.restarts}"
    if now.phase in audit_facts.OWNING and now.placement is None:
        yield f"phase is {now.phase} without an admission"
    if (now.phase == "Claiming") != (now.claim is not None):
        yield f"phase is {now.phase} {'with' if now.claim else 'without'} a claim"
    elsewhere = before.claim and now.placement is not None and not before.claim.matches(now.placement)
    if elsewhere and now.phase == "Admitted":
        yield "it was admitted elsewhere than on its claim"
    if before.owns and now.owns and before.placement != now.placement and not _one_moved(gang, before):
        yield f"the admission of attempt {now.attempt} was changed while it held capacity"


def _one_moved(gang: audit_facts.Gang, before: audit_facts.Standing) -> bool:
    """Whether one rank of a user's own job went to another node of its pool, while no pod of it was loose."""
    was, now = before.placement or {}, gang.now.placement or {}
    others = [rank for rank in was.keys() | now.keys() if was.get(rank) != now.get(rank)]
    if not gang.referenced or len(others) != 1 or was.keys() != now.keys():
        return False
    (rank,) = others
    there = gang.pods.get(rank, {}).values()
    loose = any(not (pod.finished or pod.gated) and pod.attempt == before.attempt for pod in there)
    return was[rank][1] == now[rank][1] and not loose


def justified(
    gang: audit_facts.Gang, before: audit_facts.Standing, owner: audit_facts.Gang | None, since: int
) -> Iterator[str]:
    """Yield what is wrong with a suspension for `owner`: its claim must have stood at `since`, in ms."""
    now = gang.now
    if now.phase != "Suspending" or before.phase == "Suspending" or not now.made_for:
        return
    if owner is None or owner.claimed is None:
        yield f"was suspended for {now.made_for}, which never claimed anything"
    elif (gang.uid, before.attempt) not in owner.claimed.victims:
        yield f"attempt {before.attempt} was suspended for {owner.key}, whose claim does not name it"
    elif owner.now.claim is None and owner.unclaimed_at < since:
        yield f"was suspended for {owner.key}, which claims nothing any more"


def placed(gang: audit_facts.Gang, ranks: list[int]) -> Iterator[str]:
    """Yield what is wrong with an admission that names these ranks."""
    placement = gang.now.placement
    if placement is None:
        return
    if len(ranks) != len(set(ranks)):
        twice = min(rank for rank in ranks if ranks.count(rank) > 1)
        yield f"rank {twice} is placed {ranks.count(twice)} times"
    if not gang.referenced and placement.keys() != set(range(gang.size)):
        yield f"{len(placement)} of {gang.size} ranks are placed"


def left_behind(gang: audit_facts.Gang, before: audit_facts.Standing, is_up: IsUp) -> Iterator[str]:
    """Yield what is wrong with giving up or renewing an admission while these pods are there."""
    was, now = before.phase, gang.now.phase
    if now == "Pending" and was == "Admitted":
        released = [pod for pod in gang.present() if not pod.gated and not pod.finished]
        if any(pod.attempt == before.attempt for pod in released):
            yield f"rolled back to Pending with {len(released)} pods released"
    elif now in ("Pending", "Admitted") and was in ("Suspending", "Pending"):
        bound = [pod for pod in gang.present() if pod.holds and is_up(pod.node)]
        if bound:
            yield f"became {now} while {len(bound)} pods were still there, such as {bound[0].name}"


def ungated(gang: audit_facts.Gang, pod: audit_facts.Pod, stamped: str) -> Iterator[str]:
    """Yield what is wrong with a pod being ungated now."""
    now = gang.now
    phases = ("Admitted", "Running") if gang.referenced else ("Admitted",)
    if now.phase not in phases or (pod.attempt, pod.restart) != (now.attempt, now.restarts):
        yield (
            f"pod {pod.name} was ungated for attempt {pod.attempt}, restart {pod.restart} while phase is "
            f"{now.phase or 'none'}, attempt {now.attempt}, restart {now.restarts}"
        )
    if stamped != str(pod.rank):
        yield f"pod {pod.name} was stamped rank {stamped or 'none'} and is {pod.rank}"
    if (pod.attempt, pod.restart) not in gang.released:
        missing = [rank for rank in range(gang.size) if not _there(gang, rank)]
        if missing:
            yield (
                f"pod {pod.name} was ungated while {gang.size - len(missing)} of {gang.size} pods existed; "
                f"rank {missing[0]} did not"
            )


def _there(gang: audit_facts.Gang, rank: int) -> bool:
    restarts = gang.now.restarts
    if (restarts, rank) in gang.done:
        return True
    found = gang.pods.get(rank, {}).values()
    return any(pod.restart == restarts and not pod.deleting and not pod.finished for pod in found)


def bound(gang: audit_facts.Gang, pod: audit_facts.Pod, is_up: IsUp) -> Iterator[str]:
    """Yield what is wrong with a pod being bound where it is."""
    _, placement = gang.admissions.get(pod.attempt, ("", {}))
    place = placement.get(pod.rank)
    if place is None:
        yield f"pod {pod.name} is bound to {pod.node}; no admission of attempt {pod.attempt} places it"
    elif place[0] != pod.node:
        yield f"pod {pod.name}, rank {pod.rank}, is bound to {pod.node} instead of {place[0]}"
    for other in gang.pods.get(pod.rank, {}).values():
        if other is not pod and other.holds and is_up(other.node):
            yield f"rank {pod.rank} is bound twice: pods {other.name} and {pod.name}"


def overdue(
    gang: audit_facts.Gang, queue: audit_facts.Queue, reaction: int
) -> Iterator[tuple[str, int, str]]:
    """Yield (condition, latest end in ms, sentence) of what may last only so long and lasts now."""
    phase, size, covered = gang.now.phase, gang.size, len(gang.covered)
    members = f"{covered} of {size} members bound or done"
    if phase == "Admitted":
        limit = gang.admitted_at + queue.ready_timeout
        words = f"still Admitted after gangReadyTimeout ({queue.ready_timeout // 1000} s), {members}"
        if gang.ungated_at is not None and covered < size:
            # A member that was bound in time and is lost later asks for a reaction from then on.
            bind_by = max(gang.ungated_at + queue.bind_timeout, gang.since[UNBOUND])
            if bind_by < limit:
                limit = bind_by
                words = f"still Admitted after bindTimeout ({queue.bind_timeout // 1000} s), {members}"
        yield STARTING, limit + reaction, words
    elif phase == "Running" and covered < size:
        yield INCOMPLETE, gang.since[INCOMPLETE] + reaction, f"still Running with {members}"
    elif phase != "Running" and gang.staying and not gang.may_leave_pods:
        words = f"{len(gang.staying)} pods of {size} stay bound in phase {phase or 'none'}"
        yield STAYING, gang.since[STAYING] + reaction, words


def conditions(gang: audit_facts.Gang) -> dict[str, bool]:
    """Return which of the conditions that may only last so long hold now."""
    phase = gang.now.phase
    return {
        STARTING: phase == "Admitted",
        UNBOUND: phase == "Admitted" and len(gang.covered) < gang.size,
        INCOMPLETE: phase == "Running" and len(gang.covered) < gang.size,
        STAYING: phase not in audit_facts.OWNING and bool(gang.staying) and not gang.may_leave_pods,
    }
