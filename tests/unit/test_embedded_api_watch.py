"""Watches in virtual time: bookmarks, timeouts, watchers that fall behind, many watchers at once."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from lstqueue.embedded import backend, clock, kinds, memory, server, store
from lstqueue.kube import client, port

CONFIG_MAPS = kinds.CONFIG_MAPS
DAY = 86_400


def run(main: Coroutine[Any, Any, None]) -> None:
    clock.run(main, horizon=2 * DAY)


def new_store(*, log_size: int = 20_000) -> store.Store:
    return store.Store(now=clock.VirtualClock(asyncio.get_running_loop()).now, log_size=log_size)


def config_map(name: str) -> port.Object:
    return {"metadata": {"name": name}}


async def follow(api: port.KubeApi, since: str, seconds: int) -> list[tuple[float, str, str]]:
    """Follow a watch to its end: (loop time, type, resourceVersion)."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    stream = api.watch(CONFIG_MAPS, resource_version=since, timeout_seconds=seconds)
    return [
        (round(loop.time() - start), event.type, event.object["metadata"]["resourceVersion"])
        async for event in stream
    ]


def test_bookmarks_keep_a_quiet_watch_up_to_date() -> None:
    async def main() -> None:
        objects = new_store()
        async with server.ApiServer(objects, bookmark_s=60) as running:
            api = await client.connect(url=running.url)
            start = objects.revision
            asyncio.get_running_loop().call_later(
                90, lambda: objects.create(port.LEASES, "default", {"metadata": {"name": "lock"}, "spec": {}})
            )
            found = await follow(api, str(start), 150)
            await api.close()
        first, second = str(start), str(start + 1)
        assert found == [(60, "BOOKMARK", first), (120, "BOOKMARK", second), (150, "BOOKMARK", second)]

    run(main())


def test_a_day_of_watching_takes_no_time() -> None:
    async def main() -> None:
        objects = new_store()
        async with server.ApiServer(objects, bookmark_s=600) as running:
            api = await client.connect(url=running.url, watch_slack=60)
            found = await follow(api, str(objects.revision), DAY)
            await api.close()
        assert found[-1][0] == DAY
        assert len(found) == DAY // 600

    run(main())


def test_a_watch_that_starts_before_the_log_gets_410() -> None:
    async def main() -> None:
        objects = new_store(log_size=5)
        start = str(objects.revision)
        for number in range(6):
            objects.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
        async with server.ApiServer(objects) as running:
            api = await client.connect(url=running.url)
            for adapter in (api, memory.MemoryApi(running.backend)):
                with pytest.raises(port.GoneError):
                    await follow(adapter, start, 10)
            assert len(await follow(api, str(int(start) + 1), 10)) == 5 + 1
            await api.close()

    run(main())


def test_a_watcher_that_sleeps_through_the_log_gets_410() -> None:
    async def main() -> None:
        objects = new_store(log_size=5)
        api = memory.MemoryApi(backend.Backend(objects))
        stream = api.watch(CONFIG_MAPS, resource_version=str(objects.revision), timeout_seconds=100)
        objects.create(CONFIG_MAPS, "default", config_map("first"))
        assert (await anext(stream)).object["metadata"]["name"] == "first"
        for number in range(6):
            objects.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
        with pytest.raises(port.GoneError):
            await anext(stream)

    run(main())


def test_every_watcher_sees_everything() -> None:
    async def main() -> None:
        objects = new_store()
        async with server.ApiServer(objects, bookmark_s=1000) as running:
            api = await client.connect(url=running.url)
            since = str(objects.revision)
            watching = [asyncio.create_task(follow(api, since, 50)) for _ in range(10)]
            for number in range(300):
                objects.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
                if number % 50 == 0:
                    await asyncio.sleep(1)
            found = await asyncio.gather(*watching)
            await api.close()
        versions = [str(int(since) + number) for number in range(1, 301)]
        for seen in found:
            assert [version for _, kind, version in seen if kind == "ADDED"] == versions

    run(main())


def test_a_watch_is_forgotten_when_its_client_goes() -> None:
    async def main() -> None:
        objects = new_store()
        async with server.ApiServer(objects) as running:
            api = await client.connect(url=running.url)
            stream = api.watch(CONFIG_MAPS, resource_version=str(objects.revision), timeout_seconds=1000)
            objects.create(CONFIG_MAPS, "default", config_map("one"))
            async with contextlib.aclosing(stream):
                await anext(stream)
                assert running.backend.watches.count(CONFIG_MAPS) == 1
            await api.close()
            await asyncio.sleep(1)
            assert running.backend.watches.count() == 0

    run(main())


def test_stopping_the_server_ends_watches_in_order() -> None:
    async def main() -> None:
        objects = new_store()
        running = server.ApiServer(objects)
        api = await client.connect(url=await running.start())
        watching = asyncio.create_task(follow(api, str(objects.revision), 1000))
        while not running.backend.watches.count():  # noqa: ASYNC110 - the watch opens in another task
            await asyncio.sleep(0)
        await running.stop()
        assert [kind for _, kind, _ in await watching] == ["BOOKMARK"]
        await api.close()

    run(main())
