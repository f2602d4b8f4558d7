"""Failed starts: how long to wait after one, which nodes to avoid, and whom to blame in whose words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lstqueue.api import deadlinejob_status
from lstqueue.engine import model
from lstqueue.jobs import views
from lstqueue.operator import ledger, members, steps

LONGEST_BACK_OFF = 30 * model.MINUTE
SHORTLY = 5 * model.MINUTE
"""Ms for which a lost node is avoided: one that comes and goes would else take the gang down each time."""


def back_off(count: int, slack: int | None) -> int:
    """Return the wait in ms after the `count`-th failed start in a row (docs/engine.md, back-off).

    1 min, doubling to 30 min, capped by a quarter of the slack, while there is any, but never below 30 s.
    """
    doubled = model.MINUTE << min(count - 1, 16)
    wait = min(doubled, LONGEST_BACK_OFF)
    if slack is not None and slack > 0:
        wait = min(wait, slack // 4)
    return max(wait, model.MINUTE // 2)


def avoided_until(failed: ledger.BackOff) -> int:
    """Return when the nodes that failed a gang may be tried again: as long after the back-off as it was.

    For ever would be for good where there are no other nodes; each failure in a row doubles it. Without a
    failed start (a node was lost, or did not come free in time) it is a few minutes.
    """
    return failed.until + (back_off(failed.count, None) if failed.count else SHORTLY)


def avoiding(
    status: ledger.Status, nodes: Iterable[str], now: int, *, length: int = SHORTLY
) -> ledger.Status:
    """Avoid nodes for `length` ms, at most `SHORTLY`, without counting a failed start or having it wait."""
    known, now = status.back_off, now - SHORTLY + min(length, SHORTLY)
    avoid = tuple(sorted({*known.avoid, *nodes})[: deadlinejob_status.NODES])
    return replace(status, back_off=replace(known, until=max(known.until, now), avoid=avoid))


def failed(gang: members.Gang, blamed: Iterable[str], now: int, *, spent: bool = False) -> ledger.Status:
    """Leave an admission that did not start: suspend, and avoid the nodes that failed.

    `spent`: what was made for this run cannot run again; that is no failure of the gang.
    """
    status, spec = gang.ledger.status, gang.ledger.spec
    slack = spec.deadline - now - (spec.estimate or 0) if spec and spec.deadline is not None else None
    count = status.back_off.count + 1
    if spent:
        status = steps.next_restart(status, counted=False)
    avoid = sorted({*status.back_off.avoid, *blamed})[: deadlinejob_status.NODES]
    waits = ledger.BackOff(until=now + back_off(count, slack), count=count, avoid=tuple(avoid))
    return replace(steps.suspended(status, ledger.FAILED_START, now), back_off=waits)


def out_of_time(gang: members.Gang, who: members.Standing) -> tuple[list[str], str]:
    """Return the nodes to blame when the time to start is over, and which member was stuck, in words."""
    admission = gang.ledger.status.admission
    assert admission is not None
    places = admission.places()
    not_bound = {rank: pod for rank, pod in who.found.items() if unbound(pod)}
    unready = {rank: pod for rank, pod in who.found.items() if pod.node and not (pod.ready or pod.succeeded)}
    # Ranks wait for each other to be ready: what is bound is not to blame for what is not.
    stuck = not_bound or (unready if who.whole else {})
    blamed = {pod.node or places[rank][1] for rank, pod in stuck.items() if not _held(pod) and rank in places}
    return sorted(blamed), _words(gang, who, stuck)


def _words(gang: members.Gang, who: members.Standing, stuck: dict[int, views.PodView]) -> str:
    for rank, pod in stuck.items():
        where = f"on node {pod.node}" if pod.node else "not bound"
        return f"rank {rank} (pod {pod.name}, {where}) did not start: {pod.reason} {pod.message}".strip()
    lost = min(who.expected - set(who.found), default=None)
    if lost is not None:
        return f"rank {lost} of {gang.ledger.key} has no pod; see the events of its Job"
    if who.strays:
        return f"pod {who.strays[0].name} of an earlier start has not left node {who.strays[0].node or '-'}"
    return f"the pods of {gang.ledger.key} could not be let go in time"


def unbound(pod: views.PodView) -> bool:
    """Whether a pod was let go and has no node yet."""
    return not pod.node and not pod.gated and not pod.gone


def _held(pod: views.PodView) -> bool:
    """Whether a gate of somebody else kept a pod from its node."""
    return pod.reason == "SchedulingGated"
