"""Operators that die in the very moment in which something is so, whatever they are about to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import cluster

from lstqueue.embedded import eventlog, faults

AWAY = "5m"


def dies_when(made: cluster.Cluster, condition: Callable[[], bool]) -> None:
    """Have the operator end in the very moment in which something is so."""
    task, dead = made._task, False
    assert task is not None

    def look(_: eventlog.Event) -> None:
        nonlocal dead
        if not dead and condition():
            dead = True
            task.cancel()

    def silence(_: faults.Call) -> None:
        if dead and made._task is task:
            raise asyncio.CancelledError

    made.store.subscribe(look)
    made.calls.listeners.append(silence)


async def dead(made: cluster.Cluster, condition: Callable[[], bool], what: str, *, away: str = AWAY) -> None:
    """Wait until it died of that, and give the controllers time to do what they do without it."""
    await made.until(condition, what, within="3h")
    await made.kill()
    await made.rest(away)
