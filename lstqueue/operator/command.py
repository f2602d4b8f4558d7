"""What `lstqueue operator` does: run against a cluster until told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
import uuid
from dataclasses import dataclass

import lstqueue
from lstqueue.kube import client, lease, login, port
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings

_LOG = logging.getLogger(__name__)
_LOOK = 2.0
"""Seconds between two looks for kinds that are not installed."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where the cluster is, where to serve probes, and who may decide.

    No port, no probes. `leader_elect` None is: as a pod. `lease_namespace` None is that of the pod.
    """

    url: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None
    leader_elect: bool | None = None
    lease_namespace: str | None = None
    lease_name: str = "lstqueue-operator"


def run(options: Options, settings: all_settings.Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises `LoginError`, `ApiError`, `StartError`, `LeaseError`, or what ended the operator.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asyncio.run(serve(options, settings))


async def serve(options: Options, settings: all_settings.Settings) -> None:
    """Run in the present event loop until kopf is stopped."""
    terms = election(options)
    api = await client.connect(url=options.url, kubeconfig=options.kubeconfig, context=options.context)
    elector = lease.Elector(api, terms, now=now_ms) if terms else None

    async def before() -> None:
        server = await api.version()
        _LOG.info(
            "lstqueue %s on Kubernetes %s at %s",
            lstqueue.__version__,
            server.get("gitVersion", "?"),
            api.host,
        )
        await _installed(api)

    async def make() -> app.Operator:
        return app.Operator(
            api, now=now_ms, settings=settings, fed=True, fence=elector.check if elector else None
        )

    # kopf follows the same credentials, refreshed, as our own client.
    running = shell.Shell(
        make=make,
        access=api.credentials,
        probe_host=options.probe_host,
        probe_port=options.probe_port,
        elector=elector,
        before=before,
    )
    signals = asyncio.create_task(_stop_on_signals(running))
    try:
        await running.run()
    finally:
        signals.cancel()
        await api.close()


async def _stop_on_signals(running: shell.Shell) -> None:
    """Have signals stop it. kopf's own handlers, which replace these, take a second signal for a bug."""
    _take_signals(running)  # until kopf is there process 1 of a container would ignore both
    await running.running.wait()
    await asyncio.sleep(0)
    _take_signals(running)


def _take_signals(running: shell.Shell) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.stop.set)


def election(options: Options) -> lease.Terms | None:
    """Return the Lease to wait for and who waits, None when nobody is elected.

    Raises:
        StartError: it cannot be told where the Lease is.
    """
    in_pod = login.by_service_account(url=options.url, kubeconfig=options.kubeconfig, context=options.context)
    if not (in_pod if options.leader_elect is None else options.leader_elect):
        return None
    namespace = options.lease_namespace or (login.pod_namespace() if in_pod else None)
    if namespace is None:
        raise shell.StartError(
            "it is not known in which namespace the Lease of the election is; "
            "name that of the other replicas with --lease-namespace, or say --no-leader-elect"
        )
    # A process that starts in the place of a dead one is another candidate.
    return lease.Terms(namespace, options.lease_name, f"{socket.gethostname()}_{uuid.uuid4()}")


async def _installed(api: client.KubeClient) -> None:
    """Wait until the server knows our kinds: kopf looks for them once, when it starts."""
    wanted = [port.DEADLINE_JOBS, port.GPU_QUEUES]
    while missing := [kind for kind in wanted if kind not in await api.served(wanted)]:
        names = ", ".join(f"{kind.plural}.{kind.group}" for kind in missing)
        _LOG.warning("waiting for the CRDs of %s; install them with `kubectl apply -f crds/`", names)
        await asyncio.sleep(_LOOK)


def now_ms() -> int:
    """Return the wall clock in ms since the Unix epoch."""
    return time.time_ns() // 1_000_000
