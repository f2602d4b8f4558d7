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
LASTING = 10 * model.MINUTE
"""Ms after which a run was no mere attempt: a gang that breaks then begins again at once."""
FIRST_PAUSE, LONGEST_PAUSE = 10_000, 6 * model.MINUTE
"""Bounds (ms) of the wait before a gang that broke soon, and not for the first time, begins again."""
LONGEST_AVOIDED = 24 * model.HOUR
"""Ms for which nodes are avoided at most, however long the pods on them are given to end."""


def back_off(count: int, slack: int | None) -> int:
    """Return the wait in ms after so many failed starts in a row (docs/engine.md, back-off), 0 after none.

    1 min, doubling to 30 min, capped by a quarter of the slack, while there is any, but never below 30 s.
    """
    if count < 1:
        return 0
    doubled = model.MINUTE << min(count - 1, 16)
    wait = min(doubled, LONGEST_BACK_OFF)
    if slack is not None and slack > 0:
        wait = min(wait, slack // 4)
    return max(wait, model.MINUTE // 2)


def before_restart(gang: members.Gang, now: int) -> int:
    """Return the wait in ms before a gang that broke begins again, 0 for at once and where it was.

    That is the first time, and after a run of 10 min. Else 10 s, doubling with each restart it has had to
    6 min, as Kubernetes does with the pods of a Job; evictions count, for they may come as fast as failures.
    A quarter of the slack is enough, while there is any, but never less than 10 s.
    """
    status = gang.ledger.status
    ran = now - status.started if status.phase is ledger.Phase.RUNNING else 0
    if not status.restarts or ran >= LASTING:
        return 0
    wait = min(FIRST_PAUSE << min(status.restarts - 1, 16), LONGEST_PAUSE)
    slack = gang.slack()
    return max(min(wait, slack // 4), FIRST_PAUSE) if slack is not None and slack > 0 else wait


def avoided_until(failed: ledger.BackOff) -> int:
    """Return when the nodes that failed a gang may be tried again, in ms since the epoch.

    A status of a version that did not write it says it by the rest of the back-off: after a failed start as
    long after it as it was, else a few minutes after it.
    """
    return failed.avoid_until or failed.until + (back_off(failed.count, None) or SHORTLY)


def avoiding(
    status: ledger.Status, nodes: Iterable[str], now: int, *, until: int | None = None
) -> ledger.Status:
    """Avoid nodes until then (ms), else for `SHORTLY`, without counting a failed start or having it wait.

    Nodes that it avoids already are avoided for as long as they were, or longer.
    """
    known = replace(status.back_off, until=max(status.back_off.until, now))
    until = now + SHORTLY if until is None else min(until, now + LONGEST_AVOIDED)
    return replace(status, back_off=_shunning(known, nodes, until=until))


def _shunning(known: ledger.BackOff, nodes: Iterable[str], *, until: int) -> ledger.BackOff:
    avoid = tuple(sorted({*known.avoid, *nodes})[: deadlinejob_status.NODES])
    if not avoid:
        return known
    until = max(until, avoided_until(known)) if known.avoid else until
    return replace(known, avoid=avoid, avoid_until=until)


def anew(known: ledger.BackOff, now: int) -> ledger.BackOff:
    """Return a back-off for a spec that changed at `now` (ms): it may start, if not where it failed."""
    if not known.avoid:
        return ledger.NO_BACK_OFF
    return replace(known, until=min(known.until, now), count=0, avoid_until=avoided_until(known))


def put_right(known: ledger.BackOff, now: int) -> ledger.BackOff | None:
    """Return a back-off that a wrong clock wrote, as if its start had failed now; None where none did."""
    ahead = known.avoid and avoided_until(known) > now + LONGEST_AVOIDED
    if known.until <= now + LONGEST_BACK_OFF and not ahead:
        return None
    wait = back_off(known.count, None)
    again = min(avoided_until(known), now + wait + (wait or SHORTLY)) if known.avoid else 0
    return replace(known, until=min(known.until, now + wait), avoid_until=again)


def failed(gang: members.Gang, blamed: Iterable[str], now: int, *, spent: bool = False) -> ledger.Status:
    """Leave an admission that did not start: suspend, and avoid the nodes that failed.

    `spent`: what was made for this run cannot run again; that is no failure of the gang.
    """
    status, count = gang.ledger.status, gang.ledger.status.back_off.count + 1
    if spent:
        status = steps.next_restart(status, counted=False)
    until = now + back_off(count, gang.slack())
    waits = replace(status.back_off, until=until, count=count)
    # For ever would be for good where there are no other nodes; each failure in a row doubles it.
    waits = _shunning(waits, blamed, until=until + back_off(count, None))
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
    blamed = {pod.node or places[rank][1] for rank, pod in stuck.items() if not held(pod) and rank in places}
    return sorted(blamed), _words(gang, who, stuck)


def _words(gang: members.Gang, who: members.Standing, stuck: dict[int, views.PodView]) -> str:
    for rank, pod in stuck.items():
        where = f"on node {pod.node}" if pod.node else "not bound"
        return f"rank {rank} (pod {pod.name}, {where}) did not start: {pod.words or 'not ready'}"
    lost = min(who.expected - set(who.found), default=None)
    if lost is not None:
        return f"rank {lost} of {gang.ledger.key} has no pod; see the events of its Job"
    if who.strays:
        return f"pod {who.strays[0].name} of an earlier start has not left node {who.strays[0].node or '-'}"
    return f"the pods of {gang.ledger.key} could not be let go in time"


def unbound(pod: views.PodView) -> bool:
    """Whether a pod was let go and has no node yet."""
    return not pod.node and not pod.gated and not pod.gone


def held(pod: views.PodView) -> bool:
    """Whether a gate of somebody else kept a pod from its node."""
    return pod.reason == "SchedulingGated"
