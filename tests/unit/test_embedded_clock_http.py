"""HTTP over loopback in virtual time: no jump may overtake a request, a reply or a watch event."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from lstqueue.embedded import clock


@contextlib.asynccontextmanager
async def serve(*routes: web.RouteDef) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30)
        ) as session:
            yield session, f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def echo(request: web.Request) -> web.Response:
    delay = float(request.query.get("delay", "0"))
    if delay:
        await asyncio.sleep(delay)
    return web.Response(body=await request.read())


@pytest.mark.parametrize("size", [10, 300_000])
def test_hundreds_of_concurrent_requests_take_no_virtual_time(size: int) -> None:
    async def main() -> float:
        async with serve(web.post("/", echo)) as (session, url):

            async def post(index: int) -> None:
                body = b"%06d" % index + b"x" * size
                async with session.post(url, data=body) as reply:
                    assert await reply.read() == body

            for _ in range(3):
                await asyncio.gather(*(post(index) for index in range(200 if size < 1000 else 20)))
            return asyncio.get_running_loop().time()

    assert clock.run(main()) == 0.0


def test_requests_beside_timers_meet_their_timeouts_again_and_again() -> None:
    """Each round starts requests at the moment of a jump, while other timers wait to be jumped to."""

    async def main() -> float:
        async with serve(web.post("/", echo)) as (session, url):

            async def client(index: int) -> None:
                for round_ in range(20):
                    await asyncio.sleep(3_600 + index % 7)
                    delay = 29 if round_ % 5 == index % 5 else 0
                    async with session.post(url, data=b"x", params={"delay": str(delay)}) as reply:
                        assert await reply.read() == b"x"

            await asyncio.gather(*(client(index) for index in range(40)))
            return asyncio.get_running_loop().time()

    assert clock.run(main()) > 20 * 3_600


def test_a_slow_server_times_out_at_its_virtual_time() -> None:
    async def main() -> float:
        async with serve(web.post("/", echo)) as (session, url):
            started = asyncio.get_running_loop().time()
            with pytest.raises(TimeoutError):
                await session.post(url, params={"delay": "31"})
            return asyncio.get_running_loop().time() - started

    assert clock.run(main()) == pytest.approx(30, abs=1)


def test_a_stream_delivers_each_event_at_the_time_it_was_sent() -> None:
    async def ticks(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        for _ in range(50):
            await asyncio.sleep(60)
            await stream.write(b"%f\n" % asyncio.get_running_loop().time())
        return stream

    async def main() -> list[tuple[float, float]]:
        seen: list[tuple[float, float]] = []
        async with serve(web.get("/ticks", ticks)) as (session, url):
            loop = asyncio.get_running_loop()
            async with session.get(url + "/ticks", timeout=aiohttp.ClientTimeout(sock_read=61)) as reply:
                seen.extend([(float(line), loop.time()) async for line in reply.content])
        return seen

    seen = clock.run(main())
    assert len(seen) == 50
    for sent, received in seen:
        assert received == pytest.approx(sent)


def test_a_reader_that_sleeps_over_a_full_socket_does_not_stop_time() -> None:
    async def main() -> int:
        done = asyncio.Event()

        async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x" * 8_000_000)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            writer.close()
            done.set()

        server = await asyncio.start_server(flood, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        await asyncio.sleep(86_400)
        loop = asyncio.get_running_loop()
        assert loop.time() == 86_400
        received = 0
        while chunk := await reader.read(1 << 20):
            received += len(chunk)
        writer.close()
        await done.wait()
        server.close()
        return received

    assert clock.run(main()) == 8_000_000


def test_a_refused_connection_is_an_error_at_once() -> None:
    async def main() -> float:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(OSError, match=r"refused|Connect call failed"):
                await asyncio.open_connection(*unused.getsockname())
        return asyncio.get_running_loop().time()

    assert clock.run(main()) == 0.0
