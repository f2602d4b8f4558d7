"""`lstqueue demo --serve`: an embedded cluster with the real operator in it, for kubectl to play with.

Time passes steadily, some dozens of times as fast as outside, so that a two-hour job takes minutes and a
person can follow. Everything is in this process and on loopback; Ctrl-C ends it and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import pathlib
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from rich import console

from lstqueue.demo import kubeconfig, run_times, scenario
from lstqueue.embedded import clock, eventlog, world
from lstqueue.kube import client, port
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings

# kubectl is outside, where a watch of a virtual day would end within minutes.
_WATCH_REAL_S = 86_400.0
_BOOKMARKS = 600.0
_SETTINGS = all_settings.Settings(
    watch_seconds=3 * 3600,
    inactivity_timeout=3600.0,
    relist_interval=3600.0,
    restate_interval_ms=60_000,
)
"""The operator's times that count idle minutes, so that a fast clock does not make it busy."""

Status = Mapping[str, Any]
_OVER = ("Succeeded", "Failed", "Rejected")

NODES = 4
"""Unless somebody asks for others. The queue is that of `examples/queue.yaml` then, which changes nothing."""
_SHOWN = 10
"""How many broken invariants are printed in full."""


@dataclass(frozen=True, slots=True)
class Options:
    """How many nodes, how many virtual seconds a second, where to write the kubeconfig and to serve /why.

    A `probe_port` of 0 is any that is free.
    """

    nodes: int
    speed: float
    kubeconfig: pathlib.Path | None
    probe_port: int = 0


def run(options: Options) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code, 1 when an invariant was broken.

    Raises:
        click.ClickException: the kubeconfig cannot be written, or the operator failed.
    """
    if options.kubeconfig is not None:
        kubeconfig.check(options.kubeconfig)
    try:
        return clock.run(_serve(options, console.Console(soft_wrap=True)), speed=options.speed)
    except (port.ApiError, shell.StartError, OSError) as error:
        raise click.ClickException(str(error)) from error


async def _serve(options: Options, terminal: console.Console) -> int:
    # Seconds of this loop have passed when its wall clock is set; it starts at the real time.
    epoch = time.time_ns() // 1_000_000 - int(asyncio.get_running_loop().time() * 1000)
    async with world.World(
        epoch_ms=epoch, bookmark_s=_BOOKMARKS, watch_s=_WATCH_REAL_S * options.speed
    ) as cluster:
        cluster.add_nodes(options.nodes, gpus=scenario.GPUS_PER_NODE)
        gpus = options.nodes * scenario.GPUS_PER_NODE
        cluster.store.create(port.GPU_QUEUES, None, scenario.queue("lst", gpus=gpus))
        run_times.RunTimes(cluster.store)
        operator = await _operator(cluster, options)
        running = asyncio.create_task(operator.run())
        started = asyncio.create_task(operator.running.wait())
        await asyncio.wait((running, started), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            _stop_on_signals(operator)
            with kubeconfig.written(cluster.url, options.kubeconfig) as path:
                _introduce(terminal, options, path, operator)
                cluster.store.subscribe(lambda event: _tell(terminal, event))
                await asyncio.wait((running,))
        started.cancel()
        await running
    return _conclude(terminal, cluster)


async def _operator(cluster: world.World, options: Options) -> shell.Shell:
    api = await client.connect(url=cluster.url)

    async def make() -> app.Operator:
        return app.Operator(api, now=cluster.now, settings=_SETTINGS, fed=True)

    return shell.Shell(make=make, access=api.credentials, probe_port=options.probe_port)


def _stop_on_signals(operator: shell.Shell) -> None:
    """Take the signals over from kopf, which would complain of being ended."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, operator.stop.set)


def _introduce(
    terminal: console.Console, options: Options, path: pathlib.Path, operator: shell.Shell
) -> None:
    gpus = options.nodes * scenario.GPUS_PER_NODE
    terminal.print(
        f"[bold]{options.nodes} virtual nodes × {scenario.GPUS_PER_NODE} GPUs[/], the real operator, and "
        f'queue "{scenario.QUEUE}" with {gpus} GPUs. A second is {options.speed:g} seconds in there.\n'
        "Nothing is really run: pods end after sim/run-for or, without it, their job's estimatedDuration.\n\n"
        "In another terminal, in a clone of the repository:\n",
        highlight=False,
    )
    for line in (
        f"export KUBECONFIG={path}",
        "kubectl apply -f examples/deadline-job.yaml",
        "kubectl get dj --watch",
        "kubectl describe dj finetune",
        "kubectl get pods -o wide",
        "kubectl explain dj.spec",
        f"curl {_probes(operator)}/why/default/finetune",
        f"curl {_probes(operator)}/metrics",
    ):
        terminal.print(f"  {line}", highlight=False, markup=False)
    if shutil.which("kubectl") is None:
        terminal.print(
            "\nThere is no kubectl on PATH; https://kubernetes.io/docs/tasks/tools/ has it, and with Go "
            "`python hack/controlplane/build.py` builds one and prints its folder.",
            highlight=False,
        )
    terminal.print("\nCtrl-C ends it and leaves nothing behind. What happens to jobs:", highlight=False)


def _probes(operator: shell.Shell) -> str:
    """Return the URL of what the operator tells of itself."""
    assert operator.probes is not None
    return f"http://{operator.probe_host}:{operator.probes.port}"


def _tell(terminal: console.Console, event: eventlog.Event) -> None:
    """Print that a job came, went, is in another phase or was told another verdict, and why."""
    if event.resource is not port.DEADLINE_JOBS:
        return
    meta = event.object["metadata"]
    if event.type == eventlog.DELETED:
        word = "deleted"
    elif event.type == eventlog.ADDED:
        word = "created"
    else:
        before = event.old.get("status") if event.old else None
        word = _turn(before or {}, event.object.get("status") or {})
    if word:
        terminal.print(f"  {meta['namespace']}/{meta['name']}: {word}", highlight=False, markup=False)


def _turn(before: Status, status: Status) -> str:
    """Say what is new in a status and why it is so, "" when there is nothing to say."""
    phase = str(status.get("phase", ""))
    verdict = status.get("verdict") or {}
    level = str(verdict.get("level", ""))
    if phase == before.get("phase"):
        same = level == (before.get("verdict") or {}).get("level") or not level or phase in _OVER
        return "" if same else f"{phase}, now {level}: {verdict.get('reason', '')}"
    shown = f" ({level})" if level and phase in ("Pending", "Admitted", "Running") else ""
    return ": ".join(part for part in (f"{phase}{shown}", _why(phase, status)) if part)


def _why(phase: str, status: Status) -> str:
    if phase == "Pending":
        return str((status.get("pending") or {}).get("message", ""))
    told: dict[str, Status] = {item["type"]: item for item in status.get("conditions") or ()}
    nothing: Status = {}
    if phase == "Succeeded":
        return "after its deadline" if told.get("DeadlineMissed", nothing).get("status") == "True" else ""
    kind = {"Suspending": "Suspended"}.get(phase, "Finished" if phase in _OVER else "")
    about = told.get(kind, nothing)
    return ", ".join(part for part in (about.get("reason", ""), about.get("message", "")) if part)


def _conclude(terminal: console.Console, cluster: world.World) -> int:
    broken = cluster.audit.violations
    for violation in broken[:_SHOWN]:
        terminal.print(f"broken: {violation}", highlight=False, markup=False)
    terminal.print(f"\n{cluster.audit.checks:,} invariant checks, {len(broken)} violated.", highlight=False)
    return 1 if broken else 0
