"""Doubles for the tests of `lstqueue.kube`: an HTTP server of one handler; lists and watches in memory."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from aiohttp import web

from lstqueue.embedded import clock
from lstqueue.kube import client, port, reflector

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, **connect: Any) -> AsyncIterator[client.KubeClient]:
    """A client of a server on loopback that answers everything by `handler`."""

    async def route(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", route)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port_number = runner.addresses[0][:2]
        api = await client.connect(url=f"http://{host}:{port_number}", **connect)
        try:
            yield api
        finally:
            await api.close()
    finally:
        await runner.cleanup()


def pod(name: str, version: int, *, uid: str = "", namespace: str = "default", **extra: Any) -> port.Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        },
        **extra,
    }


def status(code: int, reason: str, message: str = "", **extra: Any) -> port.Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        **extra,
    }


class FakeApi:
    """Lists and watches of one kind in memory, as far as a reflector looks.

    `list_errors` and `watch_errors` are raised by the next calls, one each; `page_hook` runs before each
    page; while `deaf`, nothing reaches the open watches.
    """

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, port.Object] = {}
        self.log: list[tuple[int, port.WatchEvent]] = []
        self.oldest = 0
        self.list_errors: list[port.ApiError] = []
        self.watch_errors: list[port.ApiError] = []
        self.page_hook: Callable[[int], None] = lambda offset: None
        self.lists: list[str] = []
        self.watches: list[str] = []
        self.listed_at: list[float] = []
        self.watched_at: list[float] = []
        self.deaf = False
        self._streams: list[asyncio.Queue[port.WatchEvent | port.ApiError | None]] = []
        self._snapshots: dict[str, tuple[list[port.Object], str]] = {}

    def put(self, name: str, *, uid: str = "", **extra: Any) -> None:
        self.version += 1
        item = pod(name, self.version, uid=uid, **extra)
        what = "MODIFIED" if item["metadata"]["uid"] in self.objects else "ADDED"
        self.objects[item["metadata"]["uid"]] = item
        self._emit(port.WatchEvent(what, item))

    def remove(self, name: str, *, uid: str = "") -> None:
        self.version += 1
        item = self.objects.pop(uid or f"uid-{name}")
        last = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        self._emit(port.WatchEvent("DELETED", last))

    def bookmark(self) -> None:
        self.send(port.WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))

    def send(self, event: port.WatchEvent) -> None:
        for stream in self._streams:
            stream.put_nowait(event)

    def end_watches(self, error: port.ApiError | None = None) -> None:
        for stream in self._streams:
            stream.put_nowait(error)

    def forget(self) -> None:
        """Lose the history: older resourceVersions answer 410, continue tokens too."""
        self.oldest = self.version
        self._snapshots.clear()

    @property
    def open_watches(self) -> int:
        return len(self._streams)

    async def list_page(
        self,
        resource: port.Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
    ) -> port.Page:
        await asyncio.sleep(0)
        self.lists.append(continue_token)
        self.listed_at.append(asyncio.get_running_loop().time())
        if self.list_errors:
            raise self.list_errors.pop(0)
        start = int(continue_token.partition("@")[0] or 0)
        self.page_hook(start)
        if continue_token and continue_token.partition("@")[2] not in self._snapshots:
            raise port.GoneError(410, "Expired", "the provided continue parameter is too old")
        version = continue_token.partition("@")[2] or str(self.version)
        objects, _ = self._snapshots.setdefault(version, (list(self.objects.values()), version))
        end = start + limit
        token = f"{end}@{version}" if end < len(objects) else ""
        return port.Page(objects[start:end], version, token)

    async def watch(
        self,
        resource: port.Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[port.WatchEvent]:
        await asyncio.sleep(0)
        self.watches.append(resource_version)
        loop = asyncio.get_running_loop()
        self.watched_at.append(loop.time())
        if self.watch_errors:
            raise self.watch_errors.pop(0)
        if int(resource_version) < self.oldest:
            raise port.GoneError(410, "Expired", "too old resource version")
        stream: asyncio.Queue[port.WatchEvent | port.ApiError | None] = asyncio.Queue()
        for version, event in self.log:
            if version > int(resource_version):
                stream.put_nowait(event)
        self._streams.append(stream)
        end = loop.time() + timeout_seconds
        try:
            while True:
                try:
                    async with asyncio.timeout_at(end):
                        item = await stream.get()
                except TimeoutError:
                    return
                if item is None:
                    return
                if isinstance(item, port.ApiError):
                    raise item
                yield item
        finally:
            self._streams.remove(stream)

    def _emit(self, event: port.WatchEvent) -> None:
        self.log.append((self.version, event))
        if not self.deaf:
            self.send(event)


class Intake:
    """What a consumer would make of a reflector's events, and what it was told."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.told: list[tuple[str, str]] = []
        self.synced_with: list[int] = []

    def on_event(self, what: str, item: port.Object) -> None:
        metadata = item["metadata"]
        uid = metadata["uid"]
        # The promises of the port: nothing is added twice, changed or deleted unseen.
        assert (what == "ADDED") == (uid not in self.objects), (what, uid)
        self.told.append((what, metadata["name"]))
        if what == "DELETED":
            del self.objects[uid]
        else:
            self.objects[uid] = metadata["resourceVersion"]

    def on_synced(self) -> None:
        self.synced_with.append(len(self.objects))


def pod_reflector(api: FakeApi, intake: Intake, **options: Any) -> reflector.Reflector:
    return reflector.Reflector(
        api,
        port.PODS,
        on_event=intake.on_event,
        on_synced=intake.on_synced,
        **options,
    )


@contextlib.asynccontextmanager
async def reflecting(api: FakeApi, **options: Any) -> AsyncIterator[tuple[reflector.Reflector, Intake]]:
    """A reflector of pods that runs in the background; its failure fails the test."""
    intake = Intake()
    subject = pod_reflector(api, intake, **options)
    task = asyncio.create_task(subject.run())
    try:
        yield subject, intake
        assert not task.done() or task.exception() is None
    finally:
        task.cancel()
        await asyncio.wait([task])


def virtually(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Make a test of a scenario, run in virtual time."""

    @functools.wraps(scenario)
    def test() -> None:
        clock.run(scenario(), horizon=1e6)

    del test.__wrapped__  # pytest would take it for a coroutine test
    return test
