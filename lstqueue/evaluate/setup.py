"""What the options of a replay come to: nodes, costs, mishaps, queues, and the trace with its deadlines.

Each function takes the texts of the command line and answers with values, or with an error of the option that
is wrong. Nothing is replayed here, and nothing is written.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import click

from lstqueue.api import durations, errors
from lstqueue.engine import model
from lstqueue.evaluate import (
    bounds,
    deadlines,
    estimates,
    fitting,
    interconnects,
    inventory,
    lives,
    mishaps,
    options,
    policies,
    teams,
    traces,
    workload,
    world,
)
from lstqueue.topology import slowdown

GPUS_PER_NODE = 8
NONE = {"launch": "0s", "grace": "0s", "termination": "0s", "bind": "0s", "lag": "0s"}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "acceptance": {**NONE, "restore": "2m", "checkpoint": "30m"},
}
"""Costs by the name of a preset; what is not named is as in `lives.Costs`."""
KNOWN = (
    policies.PolicyError, traces.TraceError, deadlines.DeadlineError, estimates.EstimateError,
    teams.TeamsError, interconnects.InterconnectError,
)  # fmt: skip
"""Errors of an option or a file that say what to do."""


def checked(asked: options.One) -> world.Shape:
    """Find out before anything is read or replayed whether the options can be met; return the nodes.

    Raises:
        click.ClickException: One cannot be.
    """
    nodes = checked_load(asked)
    wear(asked, nodes, seed=asked.seed, since=0)
    duration(asked.pass_every, "--pass-every")
    try:
        policy = policies.named(asked.policy)
        estimates.parse(asked.estimates, seed=asked.seed, config=policy.configured(model.Config()))
        several(asked, policy)
        interconnect(asked, policy, nodes)
        if asked.bound:
            bounds.require()
    except (*KNOWN, bounds.BoundError) as error:
        raise click.ClickException(str(error)) from error
    return nodes


def checked_load(asked: options.Loaded) -> world.Shape:
    """Find out whether what says which jobs come can be met; return the nodes.

    Raises:
        click.ClickException: It cannot be.
    """
    nodes = shape(asked)
    costs(asked)
    for name in ("shake", "warm_up", "cool_down"):
        duration(getattr(asked, name), f"--{name.replace('_', '-')}")
    try:
        deadlines.parse(asked.deadlines)
    except deadlines.DeadlineError as error:
        raise click.ClickException(str(error)) from error
    return nodes


def shape(asked: options.Loaded) -> world.Shape:
    """The nodes that were asked for.

    Raises:
        click.ClickException: None were, or twice, or their file cannot be used.
    """
    if asked.inventory is None:
        if asked.nodes is None:
            raise click.UsageError("say how many --nodes there are, or give their --inventory")
        return world.Shape(asked.nodes, asked.gpus_per_node or GPUS_PER_NODE)
    if asked.nodes is not None:
        raise click.UsageError("--nodes and --inventory both say which nodes there are; leave one out")
    try:
        found = inventory.read(pathlib.Path(asked.inventory))
    except (inventory.InventoryError, traces.TraceError) as error:
        raise click.ClickException(str(error)) from error
    return world.Shape(len(found.machines), asked.gpus_per_node or found.commonest, found.machines)


def costs(asked: options.Loaded) -> lives.Costs:
    """The preset's costs, and those that were named over them.

    Raises:
        click.UsageError: One cannot be, or not beside another.
    """
    given = {**SETTINGS[asked.settings], **asked.costs}
    times = {name: duration(text, f"--{name}") for name, text in given.items()}
    if "grace" in times and "termination" not in times:
        times["termination"] = min(times["grace"], lives.Costs().termination)
    saves = isinstance(asked, options.Replayed) and asked.saves_on_suspend
    try:
        return lives.Costs(**times, saves_on_suspend=saves)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def loaded(asked: options.Loaded, trace: str, nodes: world.Shape, *, seed: int) -> workload.Workload:
    """The trace with its deadlines, as far as it fits.

    Raises:
        click.UsageError: Nothing of it does.
        TraceError: It cannot be read.
        DeadlineError: The rule cannot be, or does not suit it.
    """
    load = traces.read(trace, gpus_per_node=nodes.gpus_per_node)
    if asked.inventory is None:
        load = load.gpus_alone()
    load = load.shaken(duration(asked.shake, "--shake"), seed=seed)
    rule = deadlines.parse(asked.deadlines)
    load = deadlines.apply(load, rule, seed=seed, best_effort=asked.best_effort)
    # Before gangs are left out: else every size of a cluster would meet other jobs.
    if asked.limit is not None:
        load = load.first(asked.limit)
    least = nodes if asked.fits is None else world.Shape(asked.fits, nodes.gpus_per_node)
    load = fitting.fitting(load, least)
    if not load.works:
        more = "give more --nodes" if asked.inventory is None else "list more nodes in --inventory"
        raise click.UsageError(f"no job of {trace} fits {nodes.words}; {more}")
    return load


def several(
    asked: options.Replayed, policy: policies.Policy, load: workload.Workload | None = None
) -> teams.Teams | None:
    """The queues of a replay that has several, every user of `load` in one of them.

    Raises:
        click.UsageError: The policy knows none.
        TeamsError: Their file cannot be used.
    """
    if asked.queues is None:
        return None
    if policy.pods is not None:
        raise click.UsageError(f"--queues does not go with the policy {policy.name}, which knows no quota")
    found = teams.read(pathlib.Path(asked.queues))
    for work in () if load is None else load.works:
        found.of(work)
    return found


def interconnect(
    asked: options.Replayed, policy: policies.Policy, nodes: world.Shape
) -> interconnects.Interconnect | None:
    """The interconnect of a replay, None without one.

    Raises:
        click.UsageError: The policy knows none, or something is asked of one that is not there.
        InterconnectError: It cannot be used.
    """
    wait = None if asked.max_wait is None else duration(asked.max_wait, "--max-wait")
    if asked.topology is None:
        if asked.communication or asked.prefer or wait is not None:
            raise click.UsageError("--communication, --prefer and --max-wait need --topology")
        return None
    if policy.pods is not None:
        raise click.UsageError(f"--topology does not go with the policy {policy.name}, which places pods")
    wishes = interconnects.Wishes(round(asked.communication * slowdown.PPM), asked.prefer or "", wait)
    machines = [(one.name, one.gpus) for one in nodes.machines]
    return interconnects.read(asked.topology, machines, wishes, named=asked.inventory is not None)


def wear(asked: options.Replayed, nodes: world.Shape, *, seed: int, since: int) -> mishaps.Wear:
    """What goes wrong with the nodes from `since` (ms since the epoch) on.

    Raises:
        click.UsageError: It cannot.
    """
    repair = duration(asked.repair, "--repair")
    try:
        rates = mishaps.Rates(asked.failures, asked.gpu_failures, asked.drains, repair)
        windows = None if asked.maintenance is None else _windows(asked.maintenance)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return mishaps.Wear(rates, nodes.nodes, seed=seed, since=since, windows=windows)


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


def counted(works: Sequence[workload.Work], asked: options.Loaded) -> tuple[int, int]:
    """The first and last ms (since the epoch) of submissions that count, without those of both ends.

    Raises:
        click.UsageError: None does.
    """
    since = works[0].submit + duration(asked.warm_up, "--warm-up")
    until = works[-1].submit - duration(asked.cool_down, "--cool-down")
    if since > until:
        raise click.UsageError("--warm-up and --cool-down leave no submission to count; make them shorter")
    return since, until
