"""/livez, /readyz, /metrics and /why/NAMESPACE/NAME on one small HTTP server.

Alive means that the loop turns: no pass is overdue. Ready means that every list has been read once, or that
this process is a follower, which reads none: a roll-out must not wait for it to lead, unless the server
refuses it the Lease, so that it never could. Neither asks the API
server: an outage there must not restart the operator. It asks for no credentials: who may reach the port may
read what is in the statuses anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from lstqueue.kube import lease
from lstqueue.operator import app, metrics

OVERDUE = 60.0
"""Seconds that a pass may be late before the process is given up."""


class Probes:
    """Serves until stopped.

    Args:
        running: returns the operator, None while there is none.
        elector: who knows whether this process leads; None when it need not be elected.
        host: where to listen.
        port: where to listen; 0 picks a free one, and the attribute `port` tells which.
    """

    def __init__(
        self,
        running: Callable[[], app.Operator | None],
        *,
        elector: lease.Elector | None,
        host: str,
        port: int,
    ) -> None:
        self._running = running
        self._elector = elector
        self._idle = metrics.Metrics()
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
        operator = self._running()
        late = operator.loop.overdue(asyncio.get_running_loop().time()) if operator else 0.0
        if late > OVERDUE:
            return web.Response(status=500, text=f"a pass is {late:.0f} s late\n")
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        operator = self._running()
        if operator is None:
            if self._elector is not None and not self._elector.leading:
                if self._elector.refused:
                    told = f"cannot lead: the {self._elector.terms} is refused ({self._elector.refused})\n"
                    return web.Response(status=503, text=told)
                return web.Response(text=f"ok, follower: {self._told()}\n")
            return web.Response(status=503, text="starting\n")
        if operator.synced.is_set():
            return web.Response(text="ok, leader\n" if self._elector else "ok\n")
        return web.Response(status=503, text=f"still reading: {', '.join(operator.behind())}\n")

    async def _why(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        operator = self._running()
        if operator is None:
            where = f"; {self._told()}" if self._elector else ""
            return web.Response(status=503, text=f"this process decides nothing yet{where}\n")
        told = operator.loop.why(namespace, name)
        if told is None:
            return web.Response(status=404, text=f"no DeadlineJob {namespace}/{name} waits or runs\n")
        return web.json_response(told)

    async def _metrics(self, request: web.Request) -> web.Response:
        operator = self._running()
        figures = self._idle
        if operator is not None:
            figures = operator.metrics
            figures.count_requests(operator.api, operator.words)
            figures.count_relists(operator.reflectors)
            figures.count_events(operator.events)
            figures.count_unreadable(operator.cache.guard.counts)
            figures.count_topology(operator.cache, operator.loop.snapshot)
            figures.clock_ahead.set(operator.loop.skew.ahead / 1000)
        leads = operator is not None and (self._elector is None or self._elector.leading)
        figures.leader.set(int(leads))
        return web.Response(body=figures.render(), content_type="text/plain", charset="utf-8")

    def _told(self) -> str:
        """Say who has the Lease."""
        assert self._elector is not None
        return f"the {self._elector.terms} is held by {self._elector.holder or 'nobody'}"
