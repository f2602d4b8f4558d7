"""A loop with a speed: time passes steadily and faster than outside, and never jumps."""

import asyncio
import time

from lstqueue.embedded import clock

SPEED = 2000.0


def test_a_sleep_takes_its_share_of_real_time() -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        await asyncio.sleep(200)
        return loop.time(), loop.jumps

    began = time.monotonic()
    virtual, jumps = clock.run(main(), speed=SPEED)
    assert time.monotonic() - began >= 200 / SPEED
    assert 200 <= virtual < 201
    assert jumps == 0


def test_timers_fire_in_order_and_on_time() -> None:
    async def main() -> list[tuple[str, int]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[str, int]] = []
        done = asyncio.Event()
        for name, after in (("c", 30.0), ("a", 10.0), ("b", 10.5)):
            loop.call_later(after, lambda name=name: seen.append((name, int(loop.time()))))
        loop.call_later(31.0, done.set)
        await done.wait()
        return seen

    assert clock.run(main(), speed=SPEED) == [("a", 10), ("b", 10), ("c", 30)]


def test_time_passes_while_others_talk() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                await asyncio.sleep(5)
                writer.write(line)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(10):
            writer.write(b"x\n")
            await reader.readline()
        writer.close()
        await writer.wait_closed()
        server.close()
        return loop.time()

    assert 50 <= clock.run(main(), speed=SPEED) < 500
