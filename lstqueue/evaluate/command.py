"""What `lstqueue evaluate run` does: a trace, replayed under one policy, with progress and a table.

This is the only place of the evaluator that looks at a real clock, a file to write or the terminal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

import click
from rich import console, progress

from lstqueue.api import durations, errors
from lstqueue.engine import decide, memory, model
from lstqueue.evaluate import (
    bounds,
    check,
    deadlines,
    digest,
    estimates,
    figures,
    fitting,
    foreknowledge,
    inventory,
    lives,
    mishaps,
    output,
    policies,
    replay,
    teams,
    traces,
    workload,
    world,
)
from lstqueue.evaluate.report import page, record, series, settings, single

GPUS_PER_NODE = 8
NEVER = model.Preemption.NEVER
COSTS = ("launch", "restore", "checkpoint", "grace", "termination", "bind", "lag")
"""Fields of `lives.Costs` that are options of the same name."""
NONE = {"launch": "0s", "grace": "0s", "termination": "0s", "bind": "0s", "lag": "0s"}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "acceptance": {**NONE, "restore": "2m", "checkpoint": "30m"},
}
"""Costs by the name of a preset; what is not named is as in `lives.Costs`."""
KNOWN = (
    policies.PolicyError, traces.TraceError, deadlines.DeadlineError, estimates.EstimateError,
    teams.TeamsError,
)  # fmt: skip
"""Errors of an option or a file that say what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for, as the command line has it; `costs` are durations by field of `lives.Costs`.

    `fits` is the number of nodes for which gangs are left out that do not fit, where it is not `nodes`.
    `asked` and `command` are the same for people who read the report, as settings and as a command line.
    """

    trace: str
    nodes: int | None
    gpus_per_node: int | None
    policy: str
    deadlines: str
    seed: int
    estimates: str = "exact"
    best_effort: float = 0.0
    settings: str = "default"
    costs: Mapping[str, str] = field(default_factory=dict)
    saves_on_suspend: bool = False
    shake: str = "0s"
    failures: float = 0.0
    gpu_failures: float = 0.0
    drains: float = 0.0
    repair: str = "4h"
    maintenance: str | None = None
    pass_every: str = "1s"  # noqa: S105 - no password, a time between passes
    limit: int | None = None
    warm_up: str = "0s"
    cool_down: str = "0s"
    inventory: str | None = None
    queues: str | None = None
    fits: int | None = None
    verdicts: bool = True
    invariants: bool = True
    bound: bool = False
    json_path: pathlib.Path | None = None
    log_path: pathlib.Path | None = None
    report_path: pathlib.Path | None = None
    asked: Sequence[page.Setting] = ()
    command: str = ""


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


def run(options: Options) -> int:
    """Replay; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read or written.
    """
    check_folders(options)
    terminal = console.Console(stderr=True)
    with contextlib.ExitStack() as files:
        made = _prepared(options, _opened(options.log_path, files))
        output.introduce(terminal, made.load, made.shape, made.policy)
        began, worked = time.perf_counter(), time.process_time()
        outcome = _replay(made, terminal)
        spent = time.perf_counter() - began, time.process_time() - worked
    found = _result(options, made, outcome, spent)
    # Files first: whoever cuts off what is printed, as `| head` does, has waited for them all the same.
    if options.json_path is not None:
        write(options.json_path, json.dumps(output.as_json(found), indent=2) + "\n")
    if options.report_path is not None and made.recorder is not None:
        write(options.report_path, _report(options, made, outcome, output.as_json(found)))
    output.conclude(console.Console(), found, made.books.violations if made.books is not None else [])
    return 1 if found.broken else 0


def check_folders(options: Options) -> None:
    """Find out before anything is replayed whether there is a folder for each file that is to be written.

    Raises:
        click.BadParameter: There is none.
    """
    written = (
        (options.json_path, "--json"), (options.log_path, "--log"), (options.report_path, "--report")
    )  # fmt: skip
    for path, hint in written:
        if path is not None and not path.parent.is_dir():
            what = f"folder {str(path.parent)!r} does not exist; create it, or name another file"
            raise click.BadParameter(what, param_hint=hint)


def checked(options: Options) -> world.Shape:
    """Find out before anything is read or replayed whether the options can be met; return the nodes.

    Raises:
        click.ClickException: One cannot be.
    """
    nodes = shape(options)
    costs(options)
    _wear(options, nodes, 0)
    for name in ("shake", "warm_up", "cool_down", "pass_every"):
        duration(getattr(options, name), f"--{name.replace('_', '-')}")
    try:
        policy = policies.named(options.policy)
        deadlines.parse(options.deadlines)
        estimates.parse(options.estimates, seed=options.seed, config=policy.configured(model.Config()))
        if options.bound:
            bounds.require()
    except (*KNOWN, bounds.BoundError) as error:
        raise click.ClickException(str(error)) from error
    return nodes


def evaluated(options: Options, told: Callable[[replay.Progress], None]) -> output.Result:
    """Replay without a terminal and without files, and return what came of it.

    Raises:
        click.ClickException: An option cannot be met, or a file not be read.
    """
    made = _prepared(options, None)
    began, worked = time.perf_counter(), time.process_time()
    outcome = _play(made, told)
    return _result(options, made, outcome, (time.perf_counter() - began, time.process_time() - worked))


def _result(
    options: Options, made: _Prepared, outcome: replay.Outcome, spent: tuple[float, float]
) -> output.Result:
    """The result of a replay that took so many seconds of wall and of CPU time."""
    seen = figures.of(outcome, made.shape)
    if made.several is not None:  # those without a job, too
        everyone = {team.name: figures.Queue(0, 0, 0, None, 0.0, None, 0) for team in made.several.teams}
        seen = dataclasses.replace(seen, by_queue={**everyone, **seen.by_queue})
    if not options.verdicts:  # what is published without a forecast is no verdict that anybody was told
        seen = dataclasses.replace(
            seen, verdicts={}, forecast_kept_share=None, forecast_error_s=figures.Spread()
        )
    return output.Result(
        options=output.Asked(options.policy, options.trace, options.seed),
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
        bound=_bound(made) if options.bound else None,
    )


def _report(options: Options, made: _Prepared, outcome: replay.Outcome, found: Mapping[str, Any]) -> str:
    assert made.recorder is not None
    made.recorder.finish(outcome.ended)
    told = settings.filled(options.asked, {name: getattr(made.costs, name) for name in COSTS})
    asked = single.Asked(made.policy.about, made.shape.words, told, options.command)
    return page.html(single.content(found, series.Recorded(outcome, made.recorder), asked))


@dataclass(slots=True)
class _Prepared:
    load: workload.Workload
    shape: world.Shape
    costs: lives.Costs
    policy: policies.Policy
    books: check.Books | None
    recorder: record.Recorder | None
    log: digest.Log
    meter: Meter
    replay: replay.Replay
    several: teams.Teams | None


def _prepared(options: Options, events: TextIO | None) -> _Prepared:
    """Build everything a replay needs."""
    nodes = checked(options)
    spent, pass_every = costs(options), duration(options.pass_every, "--pass-every")
    try:
        policy = policies.named(options.policy)
        config = policy.configured(model.Config() if options.verdicts else model.Config(forecast_depth=0))
        load = loaded(options, nodes)
        estimator = estimates.parse(options.estimates, seed=options.seed, config=config)
        several = _several(options, policy, load)
    except KNOWN as error:
        raise click.ClickException(str(error)) from error
    books = None
    if options.invariants:
        books = check.Books(nodes, checkpoint=spent.checkpoint, saves_on_suspend=spent.saves_on_suspend)
    recorder = record.Recorder() if options.report_path is not None else None
    witnesses: list[world.Witness] = [] if books is None else [books]
    if recorder is not None:
        witnesses.append(recorder)
    log = digest.Log(events)
    place = policy.world(
        nodes,
        spent,
        policy.queued(model.Queue(lives.QUEUE)),
        log=log,
        witnesses=witnesses,
        wear=_wear(options, nodes, load.works[0].submit),
        several=several,
    )
    again = replay.Replay(
        load,
        place,
        estimator,
        config=config,
        pass_every=pass_every,
        warm_up=duration(options.warm_up, "--warm-up"),
        cool_down=duration(options.cool_down, "--cool-down"),
        given_up=_given_up(policy, load, nodes, spent),
    )
    if pass_every >= config.claim_margin and policy.queued(model.Queue(lives.QUEUE)).preemption is not NEVER:
        most = (config.claim_margin - 1) // 1000
        raise click.UsageError(
            f"--pass-every {options.pass_every} is longer than claims last, so nobody would ever be "
            f"suspended; make it {most}s at most"
        )
    if again.counted[0] > again.counted[1]:
        raise click.UsageError("--warm-up and --cool-down leave no submission to count; make them shorter")
    return _Prepared(load, nodes, spent, policy, books, recorder, log, Meter(), again, several)


def _several(options: Options, policy: policies.Policy, load: workload.Workload) -> teams.Teams | None:
    """The queues of a replay that has several, every user in one of them."""
    if options.queues is None:
        return None
    if policy.pods is not None:
        raise click.UsageError(f"--queues does not go with the policy {policy.name}, which knows no quota")
    found = teams.read(pathlib.Path(options.queues))
    for work in load.works:
        found.of(work)
    return found


def _given_up(
    policy: policies.Policy, load: workload.Workload, nodes: world.Shape, spent: lives.Costs
) -> frozenset[str]:
    if not policy.foreknowing:
        return frozenset()
    return foreknowledge.given_up(load.works, nodes.gpus, launch=spent.bind + spent.launch)


def loaded(options: Options, shape: world.Shape) -> workload.Workload:
    """The trace with its deadlines, as far as it fits.

    Raises:
        click.UsageError: Nothing of it does.
        TraceError: It cannot be read.
        DeadlineError: The rule cannot be, or does not suit it.
    """
    load = traces.read(options.trace, gpus_per_node=shape.gpus_per_node)
    if options.inventory is None:
        load = load.gpus_alone()
    load = load.shaken(duration(options.shake, "--shake"), seed=options.seed)
    rule = deadlines.parse(options.deadlines)
    load = deadlines.apply(load, rule, seed=options.seed, best_effort=options.best_effort)
    # Before gangs are left out: else every size of a cluster would meet other jobs.
    if options.limit is not None:
        load = load.first(options.limit)
    least = shape if options.fits is None else world.Shape(options.fits, shape.gpus_per_node)
    load = fitting.fitting(load, least)
    if not load.works:
        raise click.UsageError(f"no job of {options.trace} fits {shape.words}; give more --nodes")
    return load


def shape(options: Options) -> world.Shape:
    """The nodes that were asked for.

    Raises:
        click.ClickException: None were, or twice, or their file cannot be used.
    """
    if options.inventory is None:
        if options.nodes is None:
            raise click.UsageError("say how many --nodes there are, or give their --inventory")
        return world.Shape(options.nodes, options.gpus_per_node or GPUS_PER_NODE)
    if options.nodes is not None:
        raise click.UsageError("--nodes and --inventory both say which nodes there are; leave one out")
    try:
        found = inventory.read(pathlib.Path(options.inventory))
    except (inventory.InventoryError, traces.TraceError) as error:
        raise click.ClickException(str(error)) from error
    return world.Shape(len(found.machines), options.gpus_per_node or found.commonest, found.machines)


def _bound(made: _Prepared) -> float:
    """The share of deadlines that no policy could better on so many GPUs, of the jobs that count."""
    shape, costs, (since, until) = made.shape, made.costs, made.replay.counted
    works = [work for work in made.load.works if since <= work.submit <= until]
    try:
        return bounds.fluid(works, shape.gpus, launch=costs.bind + costs.launch).share
    except bounds.BoundError as error:
        raise click.ClickException(str(error)) from error


def _opened(path: pathlib.Path | None, files: contextlib.ExitStack) -> TextIO | None:
    if path is None:
        return None
    try:
        return files.enter_context(path.open("w", encoding="utf-8"))
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror) from error


def costs(options: Options) -> lives.Costs:
    """The preset's costs, and those that were named over them.

    Raises:
        click.UsageError: One cannot be, or not beside another.
    """
    given = {**SETTINGS[options.settings], **options.costs}
    times = {name: duration(text, f"--{name}") for name, text in given.items()}
    if "grace" in times and "termination" not in times:
        times["termination"] = min(times["grace"], lives.Costs().termination)
    try:
        return lives.Costs(**times, saves_on_suspend=options.saves_on_suspend)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _wear(options: Options, shape: world.Shape, since: int) -> mishaps.Wear:
    """What goes wrong with the nodes from the first submission on."""
    repair = duration(options.repair, "--repair")
    try:
        rates = mishaps.Rates(options.failures, options.gpu_failures, options.drains, repair)
        windows = None if options.maintenance is None else _windows(options.maintenance)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return mishaps.Wear(rates, shape.nodes, seed=options.seed, since=since, windows=windows)


def _windows(text: str) -> mishaps.Windows:
    """Read EVERY:LENGTH or EVERY:LENGTH:SHARE."""
    every, found, rest = text.partition(":")
    length, colon, share = rest.partition(":")
    if not found:
        what = f"{text!r} does not say how long; write EVERY:LENGTH[:SHARE], as in 7d:4h or 7d:4h:0.25"
        raise click.BadParameter(what, param_hint="--maintenance")
    try:
        part = float(share) if colon else 1.0
    except ValueError as error:
        what = f"{text!r} has {share!r} as its share of the nodes; write a number such as 0.25"
        raise click.BadParameter(what, param_hint="--maintenance") from error
    return mishaps.Windows(duration(every, "--maintenance"), duration(length, "--maintenance"), part)


def duration(text: str, hint: str) -> int:
    """Read a duration of the option `hint` in ms.

    Raises:
        click.BadParameter: It is none.
    """
    try:
        return durations.parse(text)
    except errors.BadValueError as error:
        raise click.BadParameter(str(error), param_hint=hint) from error


def _replay(made: _Prepared, terminal: console.Console) -> replay.Outcome:
    began = time.perf_counter()
    with _bars(terminal) as bars:
        task = bars.add_task(made.policy.name, total=len(made.load.works), day=0.0, speed=0, gpus=0)

        def told(now: replay.Progress) -> None:
            wall = max(time.perf_counter() - began, 1e-9)
            bars.update(
                task,
                completed=now.done,
                day=now.virtual / 86_400_000,
                speed=round(now.virtual / 1000 / wall),
                gpus=now.busy,
            )

        return _play(made, told)


def _play(made: _Prepared, told: Callable[[replay.Progress], None]) -> replay.Outcome:
    """Run a replay, and have what looks on see every plan."""

    def decided(snapshot: model.Snapshot, plan: model.Plan) -> None:
        if made.books is not None:
            made.books.planned(snapshot, plan)
        if made.recorder is not None:
            made.recorder.planned(snapshot, plan)

    return made.replay.run(told=told, decided=decided, decider=made.meter.decide)


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=10),
        # Short, so that all of it fits a terminal of 80 columns.
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} jobs"),
        progress.TextColumn("day {task.fields[day]:.1f}, {task.fields[gpus]} GPUs"),
        progress.TextColumn("{task.fields[speed]:,} ×"),
        progress.TimeElapsedColumn(),
        console=terminal,
    )


def _peak_rss_mib() -> float:
    """The most memory this process has held; Linux counts in KiB, macOS in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def write(path: pathlib.Path, text: str) -> None:
    """Write a file.

    Raises:
        click.FileError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror) from error
