"""Watches over HTTP: long lines, cuts, both forms of 410, ends, and nothing left open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
import pytest
from aiohttp import web

from cases import kube_fakes
from lstqueue.embedded import clock
from lstqueue.kube import client, port

Script = Callable[[web.Request, web.StreamResponse], Awaitable[None]]


def line(what: str, body: port.Object) -> bytes:
    return orjson.dumps({"type": what, "object": body}) + b"\n"


def streaming(script: Script) -> kube_fakes.Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await script(request, response)
        return response

    return handler


@contextlib.asynccontextmanager
async def watching(script: Script) -> AsyncIterator[AsyncIterator[port.WatchEvent]]:
    async with (
        kube_fakes.serving(streaming(script)) as api,
        contextlib.aclosing(api.watch(port.PODS, resource_version="5")) as stream,
    ):
        yield stream


async def collect(stream: AsyncIterator[port.WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["resourceVersion"]) async for event in stream]


async def test_events_come_in_order_until_the_server_ends_the_stream():
    async def script(request: web.Request, response: web.StreamResponse) -> None:
        assert dict(request.query) == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "5",
            "timeoutSeconds": "300",
        }
        for number, what in enumerate(["ADDED", "MODIFIED", "BOOKMARK", "DELETED"], 6):
            await response.write(line(what, kube_fakes.pod("a", number)))

    async with watching(script) as stream:
        assert await collect(stream) == [
            ("ADDED", "6"),
            ("MODIFIED", "7"),
            ("BOOKMARK", "8"),
            ("DELETED", "9"),
        ]


async def test_an_object_of_many_megabytes_passes():
    giant = kube_fakes.pod("a", 6, annotations={"blob": "é" * 6_000_000})

    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ADDED", giant))
        await response.write(line("ADDED", kube_fakes.pod("b", 7)))

    async with watching(script) as stream:
        events = [event async for event in stream]
    assert events[0].object == giant
    assert events[1].object["metadata"]["name"] == "b"


async def test_several_events_in_one_chunk_and_one_event_in_several():
    parts = line("ADDED", kube_fakes.pod("a", 6)) + line("ADDED", kube_fakes.pod("b", 7))
    rest = line("ADDED", kube_fakes.pod("c", 8))

    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(parts + rest[:10])
        await asyncio.sleep(0)
        await response.write(rest[10:])

    async with watching(script) as stream:
        assert [version for _, version in await collect(stream)] == ["6", "7", "8"]


async def test_a_cut_inside_a_line_delivers_what_was_whole_and_then_fails():
    async def script(request: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ADDED", kube_fakes.pod("a", 6)) + b'{"type":"ADD')
        assert request.transport is not None
        request.transport.close()

    async with watching(script) as stream:
        assert (await anext(stream)).object["metadata"]["name"] == "a"
        with pytest.raises(port.UnavailableError) as caught:
            await anext(stream)
    assert (caught.value.status, caught.value.reason) == (0, "ConnectionFailed")


async def test_a_stream_that_ends_properly_inside_a_line_fails_too():
    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(b'{"type":"ADD')

    async with watching(script) as stream:
        with pytest.raises(port.UnavailableError, match="cut inside a line"):
            await anext(stream)


async def test_410_inside_the_stream_is_gone():
    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ERROR", kube_fakes.status(410, "Expired", "too old resource version")))

    async with watching(script) as stream:
        with pytest.raises(port.GoneError, match="too old"):
            await anext(stream)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (410, port.GoneError),
        (403, port.ForbiddenError),
        (429, port.UnavailableError),
        (500, port.UnavailableError),
    ],
)
async def test_a_refused_watch_raises_the_refusal(code, expected):
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=code, body=orjson.dumps(kube_fakes.status(code, "Whatever")))

    async with kube_fakes.serving(handler) as api:
        with pytest.raises(expected) as caught:
            await anext(api.watch(port.PODS, resource_version="1"))
    assert caught.value.status == code


async def test_any_other_error_event_keeps_its_code():
    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ERROR", kube_fakes.status(500, "InternalError", "etcd")))

    async with watching(script) as stream:
        with pytest.raises(port.UnavailableError) as caught:
            await anext(stream)
    assert (caught.value.status, caught.value.reason) == (500, "InternalError")


async def test_leaving_a_watch_early_closes_its_connection():
    gone = asyncio.Event()

    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ADDED", kube_fakes.pod("a", 6)))
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()  # the handler is cancelled when its client hangs up

    async with watching(script) as stream:
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(gone.wait(), 10)


async def test_closing_the_client_ends_its_watches():
    async def script(_: web.Request, response: web.StreamResponse) -> None:
        await response.write(line("ADDED", kube_fakes.pod("a", 6)))
        await asyncio.Event().wait()

    async with kube_fakes.serving(streaming(script)) as api:
        stream = api.watch(port.PODS, resource_version="5")
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await api.close()
        with pytest.raises(port.UnavailableError):
            await asyncio.wait_for(waiting, 10)


@pytest.mark.parametrize("headers_first", [False, True])
def test_a_silent_watch_ends_at_a_deadline(headers_first):
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if headers_first:
            await response.prepare(request)
        await asyncio.sleep(100_000)
        return response

    async def main() -> float:
        async with kube_fakes.serving(handler, deadline=30.0, watch_slack=20.0) as api:
            with pytest.raises(port.UnavailableError) as caught:
                await anext(api.watch(port.PODS, resource_version="1", timeout_seconds=60))
            assert (caught.value.status, caught.value.reason) == (0, "Timeout")
            return asyncio.get_running_loop().time()

    # The answer must begin within the deadline of any call; then the time asked for counts, and the slack.
    assert clock.run(main(), horizon=1000) == pytest.approx(80 if headers_first else 30, abs=0.1)


async def test_a_watch_of_a_server_that_is_not_there_fails_at_once():
    api = await client.connect(url="http://127.0.0.1:1")
    try:
        with pytest.raises(port.UnavailableError):
            await anext(api.watch(port.PODS, resource_version="1"))
    finally:
        await api.close()
