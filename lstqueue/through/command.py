"""What `lstqueue evaluate run --through embedded` does: both replays, and a table of the two."""

from __future__ import annotations

import dataclasses
import json
import time

import click
from rich import console, progress

from lstqueue.demo import processes
from lstqueue.engine import model
from lstqueue.evaluate import (
    command,
    deadlines,
    estimates,
    evaluation,
    figures,
    files,
    options,
    output,
    replay,
    setup,
    teams,
    traces,
)
from lstqueue.evaluate import policies as pure_policies
from lstqueue.through import manifests, play, policies, report

KNOWN_AFTER = 2_000
"""Ms after which a job's end is known at the latest where passes are a second apart."""
KNOWN = (
    traces.TraceError, deadlines.DeadlineError, estimates.EstimateError,
    pure_policies.PolicyError, policies.UnspeakableError, manifests.CostError, teams.TeamsError,
)  # fmt: skip


def run(asked: command.Options) -> int:
    """Replay by the engine alone and through the operator; return the exit code, 1 when anything was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    _refuse(asked)
    files.check(asked.written, (options.path_of(asked.trace), asked.inventory, asked.queues))
    plan = planned(asked)
    terminal = console.Console(stderr=True)
    mind = estimates.flattery(asked.estimates, asked.trace)
    output.introduce(terminal, plan.load, plan.shape, pure_policies.named(asked.policy), mind=mind)
    with _bars(terminal) as bars:
        pure = _pure(asked, bars, len(plan.load.works))
        began = time.perf_counter()
        played = _played(plan, bars)
        wall = time.perf_counter() - began
    found = _result(asked, plan, played, wall=wall, bound=pure.bound)
    told = report.as_json(found, pure, played)
    report.conclude(console.Console(), told)
    if asked.json_path is not None:
        files.write(asked.json_path, json.dumps(told, indent=2) + "\n")
    return 1 if found.broken or pure.broken else 0


def _refuse(asked: command.Options) -> None:
    """Refuse what only the evaluator's own world has, rather than leave it out of one of two replays.

    Raises:
        click.UsageError: Names the option.
    """
    told = {
        "--failures": asked.failures,
        "--gpu-failures": asked.gpu_failures,
        "--drains": asked.drains,
        "--maintenance": asked.maintenance,
        "--lag": "lag" in asked.costs and setup.duration(asked.costs["lag"], "--lag"),
        "--log": asked.log_path,
        "--report": asked.report_path,
        "--topology": asked.topology,
        "--estimates last-two": asked.estimates == "last-two",
    }
    for name, given in told.items():
        if given:
            raise click.UsageError(f"{name} does not go with --through; leave one of them out")


def planned(asked: command.Options) -> play.Plan:
    """Return what the operator is to run.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read.
    """
    shape = setup.shape(asked)
    costs = setup.costs(asked)
    engine = model.Config() if asked.verdicts else model.Config(forecast_depth=0)
    if asked.estimates == estimates.EXACT:
        engine = dataclasses.replace(engine, lo_factor=1.0, hi_factor=1.0)
    try:
        manifests.check(costs)
        policy = pure_policies.named(asked.policy)
        load = setup.loaded(asked, asked.trace, shape, seed=asked.seed)
        several = setup.several(asked, policy, load)
        queues = policies.queues(policy, several)
        estimator = estimates.parse(asked.estimates, seed=asked.seed, config=engine)
    except KNOWN as error:
        raise click.ClickException(str(error)) from error
    estimated = {work.key: _told(estimator.ask(work)) for work in load.works}
    every = setup.duration(asked.pass_every, "--pass-every")
    return play.Plan(
        name=asked.policy,
        load=load,
        estimated=estimated,
        shape=shape,
        queues=queues,
        several=several,
        counted=setup.counted(load.works, asked),
        costs=costs,
        engine=engine,
        pass_every=every,
    )


def _told(estimate: model.Estimate | None) -> model.Estimate | None:
    """What an operator is told: of an exact estimate a moment more, in which it comes to know of the end.

    Else every job would be seen to outrun its estimate, which is then taken to be half as long again, in the
    passes between the end of its pods and the write that says so.
    """
    if estimate is None or estimate.lo != estimate.hi:
        return estimate
    mid = estimate.mid + KNOWN_AFTER
    return model.Estimate(mid, mid, mid)


def _pure(asked: command.Options, bars: progress.Progress, jobs: int) -> output.Result:
    bar = bars.add_task("engine alone", total=jobs)

    def told(now: replay.Progress) -> None:
        bars.update(bar, completed=now.done)

    return evaluation.evaluated(asked, told)


def _played(plan: play.Plan, bars: progress.Progress) -> play.Played:
    bar = bars.add_task("through the operator", total=len(plan.load.works))

    def told(_name: str, finished: int, _gpus: int, _seconds: float) -> None:
        bars.update(bar, completed=finished)

    try:
        return processes.play_all([plan], told)[0]
    except processes.RunError as error:
        raise click.ClickException(str(error)) from error


def _result(
    asked: command.Options, plan: play.Plan, played: play.Played, *, wall: float, bound: float | None
) -> output.Result:
    outcome = played.outcome
    return output.Result(
        options=output.Asked(asked.policy, asked.trace, asked.seed),
        seen=figures.of(outcome, plan.shape, queues=() if plan.several is None else plan.several.names),
        dropped=dict(plan.load.dropped),
        latency_s=figures.Spread(),
        passes=outcome.passes,
        checks=played.checks,
        broken=len(played.violations),
        wall_s=wall,
        cpu_s=played.cpu_s,
        virtual_s=(outcome.ended - outcome.began) / 1000,
        peak_rss_mib=played.peak_rss_mib,
        digest=played.digest,
        stuck=outcome.stuck,
        bound=bound,
    )


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description:<20}"),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("jobs done"),
        progress.TimeElapsedColumn(),
        console=terminal,
    )
