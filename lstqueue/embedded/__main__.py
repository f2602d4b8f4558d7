"""`python -m lstqueue.embedded`: the API server alone, in a process of its own and in real time.

It prints its URL on the first line and runs until it is interrupted. No controllers run beside it.
"""

from __future__ import annotations

import asyncio
import signal
import time

import click

from lstqueue.embedded import server, store


@click.command()
@click.option(
    "--port", "tcp_port", type=click.IntRange(0, 65535), default=0, help="TCP port; 0 takes a free one."
)
def main(tcp_port: int) -> None:
    """Serve an empty Kubernetes API on 127.0.0.1."""
    asyncio.run(_run(tcp_port))


async def _run(tcp_port: int) -> None:
    objects = store.Store(now=lambda: time.time_ns() // 1_000_000)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server.ApiServer(objects, tcp_port=tcp_port) as running:
        click.echo(running.url)
        await stopped.wait()


if __name__ == "__main__":
    main()
