"""What `lstqueue operator` does: run against a cluster until told to stop."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from lstqueue.kube import client
from lstqueue.operator import app, shell
from lstqueue.operator import settings as all_settings


@dataclass(frozen=True, slots=True)
class Options:
    """Where the cluster is and where to serve probes. No port, no probes."""

    url: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None


def run(options: Options, settings: all_settings.Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises `LoginError`, or what ended the operator."""
    asyncio.run(serve(options, settings))


async def serve(options: Options, settings: all_settings.Settings) -> None:
    """Run in the present event loop until kopf is stopped."""
    api = await client.connect(url=options.url, kubeconfig=options.kubeconfig, context=options.context)

    async def make() -> app.Operator:
        return app.Operator(api, now=now_ms, settings=settings, fed=True)

    # kopf follows the same credentials, refreshed, as our own client.
    await shell.Shell(
        make=make,
        access=api.credentials,
        probe_host=options.probe_host,
        probe_port=options.probe_port,
    ).run()


def now_ms() -> int:
    """Return the wall clock in ms since the Unix epoch."""
    return time.time_ns() // 1_000_000
