"""What `lstqueue operator` does: run against a cluster until told to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

import lstqueue
from lstqueue.kube import client, port
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings

_LOG = logging.getLogger(__name__)
_LOOK = 2.0
"""Seconds between two looks for kinds that are not installed."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where the cluster is and where to serve probes. No port, no probes."""

    url: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None


def run(options: Options, settings: all_settings.Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises `LoginError`, `ApiError`, or what ended the operator."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asyncio.run(serve(options, settings))


async def serve(options: Options, settings: all_settings.Settings) -> None:
    """Run in the present event loop until kopf is stopped."""
    api = await client.connect(url=options.url, kubeconfig=options.kubeconfig, context=options.context)
    server = await api.version()
    _LOG.info(
        "lstqueue %s on Kubernetes %s at %s", lstqueue.__version__, server.get("gitVersion", "?"), api.host
    )
    await _installed(api)

    async def make() -> app.Operator:
        return app.Operator(api, now=now_ms, settings=settings, fed=True)

    # kopf follows the same credentials, refreshed, as our own client.
    await shell.Shell(
        make=make,
        access=api.credentials,
        probe_host=options.probe_host,
        probe_port=options.probe_port,
    ).run()


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
