"""One replay from its options to its figures: made ready, run, and summed up, without a terminal or a file.

`command` shows one of them to people, `compare` and `sweep` have many of them in processes of their own.
"""

from __future__ import annotations

import dataclasses
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from lstqueue.engine import decide, memory, model
from lstqueue.evaluate import (
    bounds,
    check,
    digest,
    estimates,
    figures,
    foreknowledge,
    interconnects,
    interrupts,
    lives,
    options,
    output,
    policies,
    replay,
    setup,
    workload,
    world,
)
from lstqueue.evaluate.report import record


class Meter:
    """Decides by the engine and notes how long that takes, in seconds of real time."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def decide(
        self, snapshot: model.Snapshot, now: int, config: model.Config, known: memory.Memory
    ) -> model.Plan:
        """Make a plan."""
        began = time.perf_counter()
        plan = decide.decide(snapshot, now, config, known)
        self.times.append(time.perf_counter() - began)
        return plan


def evaluated(asked: options.One, told: Callable[[replay.Progress], None]) -> output.Result:
    """Replay without a terminal and without files, and return what came of it.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read.
    """
    return recorded(asked, told, None)[0]


def recorded(
    asked: options.One, told: Callable[[replay.Progress], None], recorder: record.Recorder | None
) -> tuple[output.Result, replay.Outcome]:
    """The same, and how it ended, with a record of it that is finished.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read.
    """
    made = prepared(asked, recorder=recorder)
    began, worked = time.perf_counter(), time.process_time()
    outcome = play(made, told)
    if recorder is not None:
        recorder.finish(outcome.ended)
    spent = time.perf_counter() - began, time.process_time() - worked
    return result(asked, made, outcome, spent), outcome


def result(
    asked: options.One, made: Prepared, outcome: replay.Outcome, spent: tuple[float, float]
) -> output.Result:
    """The result of a replay that took so many seconds of wall and of CPU time."""
    seen = figures.of(outcome, made.shape, queues=made.queues)
    if not asked.verdicts:  # what is published without a forecast is no verdict that anybody was told
        seen = dataclasses.replace(
            seen, verdicts={}, forecast_kept_share=None, forecast_error_s=figures.Spread()
        )
    return output.Result(
        options=output.Asked(asked.policy, asked.trace, asked.seed),
        seen=seen,
        dropped=dict(made.load.dropped),
        latency_s=figures.spread(made.meter.times),
        passes=outcome.passes,
        checks=made.books.checks if made.books is not None else 0,
        broken=made.books.broken if made.books is not None else 0,
        wall_s=spent[0],
        cpu_s=spent[1],
        virtual_s=(outcome.ended - outcome.began) / 1000,
        peak_rss_mib=_peak_rss_mib(),
        digest=made.log.digest(),
        stuck=outcome.stuck,
        bound=_bound(made) if asked.bound else None,
    )


@dataclass(slots=True)
class Prepared:
    """Everything a replay needs, and what looks on."""

    load: workload.Workload
    shape: world.Shape
    costs: lives.Costs
    policy: policies.Policy
    books: check.Books | None
    recorder: record.Recorder | None
    log: digest.Log
    meter: Meter
    replay: replay.Replay
    queues: Sequence[str]
    interconnect: interconnects.Interconnect | None


def prepared(
    asked: options.One, *, events: digest.Lines | None = None, recorder: record.Recorder | None = None
) -> Prepared:
    """Make a replay ready; `events` gets every event as a line, `recorder` what a report shows.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read.
    """
    nodes, spent = setup.checked(asked), setup.costs(asked)
    try:
        policy = policies.named(asked.policy)
        config = policy.configured(model.Config() if asked.verdicts else model.Config(forecast_depth=0))
        load = setup.loaded(asked, asked.trace, nodes, seed=asked.seed)
        estimator = estimates.parse(asked.estimates, seed=asked.seed, config=config)
        several = setup.several(asked, policy, load)
        linked = setup.interconnect(asked, policy, nodes)
    except setup.KNOWN as error:
        raise click.ClickException(str(error)) from error
    _check_claims(asked, policy, config)
    books = check.Books(nodes, spent, several=several, config=config) if asked.invariants else None
    log = digest.Log(events)
    place = policy.world(
        nodes,
        spent,
        policy.queued(model.Queue(lives.QUEUE)),
        log=log,
        witnesses=[one for one in (books, recorder) if one is not None],
        wear=setup.wear(asked, nodes, seed=asked.seed, since=load.works[0].submit),
        several=several,
        **({} if linked is None else {"interconnect": linked}),
    )
    again = replay.Replay(
        load,
        place,
        estimator,
        config=config,
        pass_every=setup.duration(asked.pass_every, "--pass-every"),
        counted=setup.counted(load.works, asked),
        given_up=_given_up(policy, load, nodes, spent),
    )
    return Prepared(
        load,
        nodes,
        spent,
        policy,
        books,
        recorder,
        log,
        Meter(),
        again,
        () if several is None else several.names,
        linked,
    )


def _check_claims(asked: options.One, policy: policies.Policy, config: model.Config) -> None:
    """Refuse passes so far apart that every claim would be over before anybody acts on it."""
    every = setup.duration(asked.pass_every, "--pass-every")
    preempts = policy.queued(model.Queue(lives.QUEUE)).preemption is not model.Preemption.NEVER
    if every >= config.claim_margin and preempts:
        raise click.UsageError(
            f"--pass-every {asked.pass_every} is longer than claims last, so nobody would ever be "
            f"suspended; make it {(config.claim_margin - 1) // 1000}s at most"
        )


def _given_up(
    policy: policies.Policy, load: workload.Workload, nodes: world.Shape, spent: lives.Costs
) -> frozenset[str]:
    if not policy.foreknowing:
        return frozenset()
    return foreknowledge.given_up(load.works, nodes.gpus, launch=spent.bind + spent.launch)


def _bound(made: Prepared) -> float:
    """The share of deadlines that no policy could better on so many GPUs, of the jobs that count."""
    shape, costs, (since, until) = made.shape, made.costs, made.replay.counted
    works = [work for work in made.load.works if since <= work.submit <= until]
    try:
        with interrupts.deadly():
            return bounds.fluid(works, shape.gpus, launch=costs.bind + costs.launch).share
    except bounds.BoundError as error:
        raise click.ClickException(str(error)) from error


def play(made: Prepared, told: Callable[[replay.Progress], None]) -> replay.Outcome:
    """Run a replay, and have what looks on see every plan."""

    def decided(snapshot: model.Snapshot, plan: model.Plan) -> None:
        if made.books is not None:
            made.books.planned(snapshot, plan)
        if made.recorder is not None:
            made.recorder.planned(snapshot, plan)

    return made.replay.run(told=told, decided=decided, decider=made.meter.decide)


def _peak_rss_mib() -> float:
    """The most memory this process has held; Linux counts in KiB, macOS in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)
