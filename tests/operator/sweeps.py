"""Runs of one scenario, first undisturbed and then with one trouble each, and their comparison."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import cluster
import crash_scenarios
import ledger_of_calls
import trouble

from cases import wires
from lstqueue.embedded import backend, faults, memory

LATE = 10 * 60_000
"""Ms by which everybody may be over later than without the trouble."""
LAG = 1.5
"""Seconds by which the operator may hear of events late without that being its fault."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a scenario went: writes about gangs, writes of any kind, ends, and how long it took in ms."""

    writes: int
    all_writes: int
    outcome: crash_scenarios.Outcome
    lasted: int


@contextlib.asynccontextmanager
async def stage(
    scenario: crash_scenarios.Scenario, *, slack: int, reaction: str, lag: float = 0.0
) -> AsyncIterator[cluster.Cluster]:
    """A cluster in which the scenario is about to happen; `lag` is how late (s) events are heard of."""
    async with cluster.run(scenario.nodes, slack=slack, reaction=reaction, start=False) as made:

        def connect(to: backend.Backend) -> wires.Wire:
            # What was sent arrives, whatever becomes of who sent it.
            wire = wires.Wire(memory.MemoryApi(to))
            wire.lag = lag
            return wire

        made.connect = connect
        await made.start()
        await scenario.begin(made)
        yield made


async def _play(made: cluster.Cluster, scenario: crash_scenarios.Scenario) -> Run:
    began, before = made.now(), made.calls.about_gangs()
    every = made.calls.writes()
    await scenario.act(made)
    await made.until(
        lambda: all(crash_scenarios.over(made, name) for name in scenario.names),
        "everybody is over",
        within=scenario.within,
    )
    ended = made.now()
    await made.until(lambda: not made.staying(), "all pods end")
    await made.rest("2m")
    return Run(
        writes=made.calls.about_gangs() - before,
        all_writes=made.calls.writes() - every,
        outcome=crash_scenarios.outcome(made),
        lasted=ended - began,
    )


async def uninterrupted(scenario: crash_scenarios.Scenario, *, lag: float = 0.0) -> Run:
    """Return how the scenario goes without any trouble."""
    async with stage(scenario, slack=0, reaction="1m", lag=lag) as made:
        return await _play(made, scenario)


async def troubled(
    scenario: crash_scenarios.Scenario,
    kind: trouble.Kind,
    number: int,
    *,
    counts: trouble.Counts = ledger_of_calls.about_gangs,
    lag: float = 0.0,
) -> tuple[Run, faults.Call | None]:
    """Return how it goes with a trouble at a write, and at which; None when it never came to that."""
    async with stage(scenario, slack=40, reaction="40m" if kind.away else "4m", lag=lag) as made:
        struck = kind.make(made, number, counts)
        after = asyncio.create_task(struck.aftermath())
        try:
            run = await _play(made, scenario)
        finally:
            after.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await after
        struck.judge()
        return run, struck.struck


def differences(scenario: crash_scenarios.Scenario, calm: Run, run: Run, kind: trouble.Kind) -> list[str]:
    """Say in what a run ended as the undisturbed one could not have.

    While nobody is there for long, a deadline may pass, a claim expire and a run begin and end unseen: then
    only the phase must be the same, and that no failure was counted.
    """
    found = []
    for name in sorted(calm.outcome.keys() | run.outcome.keys()):
        wanted, got = calm.outcome.get(name, ()), run.outcome.get(name, ())
        if kind.away:
            wanted, got = (tuple((end.phase, end.restarts) for end in ends) for ends in (wanted, got))
            if not got and name in scenario.unseen:
                continue
        if wanted != got:
            found.append(f"{name} ended as {got}, not {wanted}")
    if not kind.away and run.lasted > calm.lasted + LATE:
        found.append(f"it took {(run.lasted - calm.lasted) // 60_000} min longer")
    return found


def sweep(
    scenario: crash_scenarios.Scenario,
    kind_of: Callable[[int], str],
    *,
    counts: trouble.Counts = ledger_of_calls.about_gangs,
    lag: float = 0.0,
    first: int = 1,
    step: int = 1,
) -> list[str]:
    """Play a scenario once for each of its writes, with trouble there; return what went wrong in each.

    `kind_of` chooses the kind by the number of the write, of which every `step`-th is taken from `first` on.
    """
    calm = cluster.alone(lambda: uninterrupted(scenario, lag=lag))
    found = []
    last = calm.all_writes if counts is faults.writes else calm.writes
    for number in range(first, last + 1, step):
        name = kind_of(number)
        kind = trouble.KINDS[name]
        try:
            run, call = cluster.alone(
                functools.partial(troubled, scenario, kind, number, counts=counts, lag=lag)
            )
            wrong = differences(scenario, calm, run, kind)
        except Exception as error:
            raise AssertionError(f"{name} at write {number}") from error
        found += [f"{name} at write {number}, {_told(call)}: {words}" for words in wrong]
    return found


def _told(call: faults.Call | None) -> str:
    return "which never came" if call is None else f"{call.verb} {call.resource.plural} {call.name}"
