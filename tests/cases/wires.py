"""One client's way to an API server: it can be cut or stalled for that client alone.

What was sent arrives, whatever becomes of the client: requests travel in tasks of their own, outside of the
client's context.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from lstqueue.kube import port

WRITES = frozenset({"create", "patch", "patch_status", "replace", "delete"})
When = Callable[[str, port.Resource], bool]


class Wire:
    """`port.KubeApi` over another one.

    Attributes:
        down: nothing gets through; set by `cut` and `mend`.
        lag: seconds by which watch events arrive late, all alike.
        sent: (verb, resource) of each request that was sent.
        failed: errors that the server answered with.
    """

    def __init__(self, api: port.KubeApi) -> None:
        self._api = api
        self.down = False
        self.lag = 0.0
        self.sent: list[tuple[str, port.Resource]] = []
        self.failed: list[port.ApiError] = []
        self._stall: When | None = None
        self._stalled: list[asyncio.Future[None]] = []
        self._streams: set[asyncio.Queue[port.WatchEvent | port.ApiError | None]] = set()

    @property
    def stalled(self) -> int:
        """Number of requests that are on their way and do not arrive."""
        return len(self._stalled)

    def cut(self) -> None:
        """Let nothing through, and end the open watches."""
        self.down = True
        for stream in self._streams:
            stream.put_nowait(_no_route())

    def mend(self) -> None:
        self.down = False

    def stall(self, when: When) -> None:
        """Keep requests on their way until `deliver`."""
        self._stall = when

    def deliver(self) -> None:
        self._stall = None
        for future in self._stalled:
            future.set_result(None)
        self._stalled.clear()

    def writes(self) -> int:
        """Writes sent, those of Leases left out."""
        return sum(verb in WRITES and resource != port.LEASES for verb, resource in self.sent)

    async def _call(self, verb: str, resource: port.Resource, *args: Any, **options: Any) -> Any:
        if self.down:
            raise _no_route()
        self.sent.append((verb, resource))
        task = asyncio.get_running_loop().create_task(
            self._travel(verb, resource, *args, **options), context=contextvars.Context()
        )
        task.add_done_callback(self._arrived)
        return await asyncio.shield(task)

    async def _travel(self, verb: str, resource: port.Resource, *args: Any, **options: Any) -> Any:
        if self._stall is not None and self._stall(verb, resource):
            held = asyncio.get_running_loop().create_future()
            self._stalled.append(held)
            await held
        return await getattr(self._api, verb)(resource, *args, **options)

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        # Looked at here, since who waited for it may be dead.
        error = None if task.cancelled() else task.exception()
        if isinstance(error, port.ApiError):
            self.failed.append(error)

    async def get(self, resource: port.Resource, *args: Any) -> Any:
        return await self._call("get", resource, *args)

    async def list_page(self, resource: port.Resource, **options: Any) -> Any:
        return await self._call("list_page", resource, **options)

    async def create(self, resource: port.Resource, *args: Any, **options: Any) -> Any:
        return await self._call("create", resource, *args, **options)

    async def patch(self, resource: port.Resource, *args: Any) -> Any:
        return await self._call("patch", resource, *args)

    async def patch_status(self, resource: port.Resource, *args: Any) -> Any:
        return await self._call("patch_status", resource, *args)

    async def replace(self, resource: port.Resource, *args: Any) -> Any:
        return await self._call("replace", resource, *args)

    async def delete(self, resource: port.Resource, *args: Any, **options: Any) -> Any:
        return await self._call("delete", resource, *args, **options)

    async def watch(self, resource: port.Resource, **options: Any) -> AsyncGenerator[port.WatchEvent, None]:
        if self.down:
            raise _no_route()
        heard: asyncio.Queue[port.WatchEvent | port.ApiError | None] = asyncio.Queue()

        async def listen() -> None:
            try:
                async for event in self._api.watch(resource, **options):
                    if self.lag:
                        asyncio.get_running_loop().call_later(self.lag, heard.put_nowait, event)
                    else:
                        heard.put_nowait(event)
                heard.put_nowait(None)
            except port.ApiError as error:
                heard.put_nowait(error)

        task = asyncio.get_running_loop().create_task(listen(), context=contextvars.Context())
        self._streams.add(heard)
        try:
            while (event := await heard.get()) is not None:
                if isinstance(event, port.ApiError):
                    raise event
                yield event
        finally:
            self._streams.discard(heard)
            task.cancel()

    async def version(self) -> Mapping[str, str]:
        return await self._api.version()

    async def close(self) -> None:
        """The server's side stays."""


def _no_route() -> port.UnavailableError:
    return port.UnavailableError(0, "ConnectionFailed", "no route to the server")
