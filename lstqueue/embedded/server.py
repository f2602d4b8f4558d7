"""The HTTP side of the embedded API server: sockets on loopback, in the caller's event loop.

Being in the caller's loop is what makes virtual time work: requests, watches and injected delays share the
clock of everything else in the process. The server speaks plain HTTP, asks for no credentials and binds to
127.0.0.1 only: it is for tests and demonstrations, and whoever can reach the port is its administrator.
"""

from __future__ import annotations

import contextlib

from aiohttp import web

from lstqueue.embedded import backend, encoding, failures, faults, routes, store, watches
from lstqueue.embedded.requests import JSON, LARGEST_BODY, Parameters
from lstqueue.kube import port

_HOST = "127.0.0.1"


class ApiServer:
    """An API server on loopback. Use as an async context manager, or `start` and `stop` it.

    Args:
        objects: the store to serve; it may be written from the same loop at the same time.
        bookmark_s: seconds of loop time between the bookmarks of a watch.
        watch_s: seconds of loop time that a watch lives when it does not say.
        tcp_port: 0 takes a free one.
    """

    def __init__(
        self,
        objects: store.Store,
        *,
        bookmark_s: float = 60.0,
        watch_s: float = watches.DEFAULT_TIMEOUT_S,
        tcp_port: int = 0,
    ) -> None:
        self._state = backend.Backend(objects, bookmark_s=bookmark_s, watch_s=watch_s)
        self._tcp_port = tcp_port
        self._runner: web.ServerRunner | None = None

    @property
    def store(self) -> store.Store:
        """The objects."""
        return self._state.store

    @property
    def backend(self) -> backend.Backend:
        """The state, for an in-process client of the same server."""
        return self._state

    @property
    def faults(self) -> faults.Faults:
        """The faults of this server."""
        return self._state.faults

    @property
    def url(self) -> str:
        """Where it listens, once started."""
        return f"http://{_HOST}:{self._tcp_port}"

    async def start(self) -> str:
        """Listen, and return the URL."""
        server = web.Server(self._serve, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, self._tcp_port)
        await site.start()
        self._tcp_port = self._runner.addresses[0][1]
        return self.url

    async def stop(self) -> None:
        """End watches in order and close the socket."""
        self._state.watches.finish()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await _read(incoming)
        except port.ApiError as error:
            answer: routes.Answer | routes.Stream = routes.refuse(error)
        else:
            answer = await routes.handle(self._state, request)
        if isinstance(answer, routes.Stream):
            return await _stream(incoming, answer)
        if answer.lost:
            _abort(incoming)
        headers = {"Content-Type": answer.content_type}
        if answer.retry_after is not None:
            headers["Retry-After"] = str(max(1, round(answer.retry_after)))
        return web.Response(body=answer.body, status=answer.status, headers=headers)


async def _read(incoming: web.BaseRequest) -> routes.Request:
    path, _, query = incoming.raw_path.partition("?")
    body = b""
    if incoming.body_exists:
        size = incoming.content_length
        # The parser stops at a limit of its own; a body that announces more is refused before it is read.
        if size is not None and size > LARGEST_BODY:
            message = f"Request entity too large: limit is {LARGEST_BODY}"
            raise failures.refusal(413, "RequestEntityTooLarge", message)
        body = await incoming.content.read()
    return routes.Request(
        method=incoming.method,
        path=path,
        parameters=Parameters(query),
        content_type=incoming.headers.get("Content-Type", ""),
        body=body,
        accept=incoming.headers.get("Accept", ""),
    )


async def _stream(incoming: web.BaseRequest, stream: routes.Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON})
    response.enable_chunked_encoding()
    try:
        await response.prepare(incoming)
        # Headers go out with the first bytes otherwise, and a quiet watch would look like a hung request.
        with contextlib.suppress(watches.CutError):
            await _send_batches(response, stream)
            await response.write_eof()
            return response
        _abort(incoming)
    finally:
        stream.watch.close()
    return response


async def _send_batches(response: web.StreamResponse, stream: routes.Stream) -> None:
    try:
        async with contextlib.aclosing(stream.watch.batches()) as batches:
            async for batch in batches:
                await response.write(b"".join([stream.encode(change) for change in batch]))
    except port.ApiError as error:
        await response.write(encoding.encode_error(error))


def _abort(incoming: web.BaseRequest) -> None:
    if incoming.transport is not None:
        incoming.transport.abort()
