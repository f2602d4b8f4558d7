"""/livez, /readyz, /metrics and /why/NAMESPACE/NAME on one small HTTP server.

Alive means that the loop turns: no pass is overdue. Ready means that every list has been read once. Neither
asks the API server: an outage there must not restart the operator. It asks for no credentials: who may reach
the port may read what is in the statuses anyway.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from lstqueue.operator import app

OVERDUE = 60.0
"""Seconds that a pass may be late before the process is given up."""


class Probes:
    """Serves until stopped. Port 0 picks a free one; `port` tells which."""

    def __init__(self, operator: app.Operator, *, host: str, port: int) -> None:
        self._operator = operator
        self._host = host
        self._wanted = port
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        """Bind and serve. Raises OSError when the port is taken."""
        site = web.Application()
        site.router.add_get("/livez", self._livez)
        site.router.add_get("/readyz", self._readyz)
        site.router.add_get("/metrics", self._metrics)
        site.router.add_get("/why/{namespace}/{name}", self._why)
        self._runner = web.AppRunner(site, access_log=None)
        await self._runner.setup()
        listener = web.TCPSite(self._runner, self._host, self._wanted)
        await listener.start()
        addresses = self._runner.addresses
        self.port = addresses[0][1]

    async def stop(self) -> None:
        """Close connections."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:
        late = self._operator.loop.overdue(asyncio.get_running_loop().time())
        if late > OVERDUE:
            return web.Response(status=500, text=f"a pass is {late:.0f} s late\n")
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._operator.synced.is_set():
            return web.Response(text="ok\n")
        waiting = sorted(
            {source.resource.plural for source in self._operator.reflectors if not source.synced.is_set()}
        )
        return web.Response(status=503, text=f"still reading: {', '.join(waiting) or 'our own kinds'}\n")

    async def _why(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        told = self._operator.loop.why(namespace, name)
        if told is None:
            return web.Response(status=404, text=f"no DeadlineJob {namespace}/{name} waits or runs\n")
        return web.json_response(told)

    async def _metrics(self, request: web.Request) -> web.Response:
        self._operator.metrics.count_requests(self._operator.api)
        self._operator.metrics.count_relists(self._operator.reflectors)
        return web.Response(body=self._operator.metrics.render(), content_type="text/plain", charset="utf-8")
