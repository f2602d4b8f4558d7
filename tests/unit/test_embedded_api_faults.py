"""Faults on demand, the same over HTTP and in process."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from lstqueue.embedded import backend, clock, faults, kinds, memory, server, store
from lstqueue.kube import client, port

CONFIG_MAPS = kinds.CONFIG_MAPS


@dataclass(frozen=True)
class World:
    api: port.KubeApi
    faults: faults.Faults
    state: backend.Backend


@pytest.fixture(params=["http", "memory"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    objects = store.Store(now=lambda: 1_767_225_600_000)
    objects.create(CONFIG_MAPS, "default", config_map("old"))
    async with server.ApiServer(objects) as running:
        state = running.backend
        api = memory.MemoryApi(state) if request.param == "memory" else await client.connect(url=running.url)
        yield World(api, running.faults, state)
        await api.close()


def config_map(name: str) -> port.Object:
    return {"metadata": {"name": name}, "data": {"key": "value"}}


async def read(api: port.KubeApi) -> port.Object:
    return await api.get(CONFIG_MAPS, "default", "old")


async def watch(world: World) -> list[port.WatchEvent]:
    since = str(world.state.store.revision)
    stream = world.api.watch(CONFIG_MAPS, resource_version=since, timeout_seconds=10)
    return [event async for event in stream]


async def opened(world: World) -> asyncio.Task[list[port.WatchEvent]]:
    watching = asyncio.create_task(watch(world))
    while not world.state.watches.count(CONFIG_MAPS):  # noqa: ASYNC110 - the watch opens in another task
        await asyncio.sleep(0)
    return watching


async def test_throttling_says_when_to_come_back(world: World) -> None:
    world.faults.throttle(retry_after=3, times=2)
    for _ in range(2):
        with pytest.raises(port.UnavailableError) as caught:
            await read(world.api)
        assert (caught.value.status, caught.value.retry_after) == (429, 3)
    assert await read(world.api)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_server_errors(world: World, status: int) -> None:
    world.faults.fail(status, "InternalError")
    with pytest.raises(port.UnavailableError) as caught:
        await read(world.api)
    assert caught.value.status == status
    assert await read(world.api)


async def test_a_refused_write_has_no_effect(world: World) -> None:
    world.faults.fail(500, "InternalError", when=faults.writes)
    with pytest.raises(port.UnavailableError):
        await world.api.create(CONFIG_MAPS, "default", config_map("new"))
    with pytest.raises(port.NotFoundError):
        await world.api.get(CONFIG_MAPS, "default", "new")


async def test_a_write_whose_answer_is_lost_has_its_effect(world: World) -> None:
    world.faults.lose_response()
    with pytest.raises(port.UnavailableError) as caught:
        await world.api.create(CONFIG_MAPS, "default", config_map("new"))
    assert caught.value.status == 0
    assert await world.api.get(CONFIG_MAPS, "default", "new")


async def test_a_conflict_hits_the_write_it_is_meant_for(world: World) -> None:
    world.faults.conflict(when=faults.calls(verb="patch", resource=CONFIG_MAPS, name="old"))
    await world.api.create(CONFIG_MAPS, "default", config_map("new"))
    await world.api.patch(CONFIG_MAPS, "default", "new", {"data": {"key": "newer"}})
    with pytest.raises(port.ConflictError):
        await world.api.patch(CONFIG_MAPS, "default", "old", {"data": {"key": "newer"}})
    assert (await world.api.patch(CONFIG_MAPS, "default", "old", {"data": {"key": "newer"}}))["data"]


async def test_a_fault_on_the_status_spares_the_object(world: World) -> None:
    world.state.store.create(port.NODES, None, {"metadata": {"name": "node"}})
    world.faults.conflict(when=faults.calls(subresource="status"))
    await world.api.patch(port.NODES, None, "node", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(port.ConflictError):
        await world.api.patch_status(port.NODES, None, "node", {"status": {"phase": "x"}})


async def test_cut_watches_end_without_order(world: World) -> None:
    watching = await opened(world)
    assert world.faults.cut_watches(port.PODS) == 0
    assert world.faults.cut_watches(CONFIG_MAPS) == 1
    with pytest.raises(port.UnavailableError):
        await watching


async def test_expired_watches_end_with_410(world: World) -> None:
    watching = await opened(world)
    assert world.faults.expire_watches() == 1
    with pytest.raises(port.GoneError):
        await watching


async def test_a_refused_watch_is_410_too(world: World) -> None:
    world.faults.refuse_watches(CONFIG_MAPS)
    with pytest.raises(port.GoneError):
        await watch(world)


async def test_after_compaction_older_versions_and_tokens_are_410(world: World) -> None:
    await world.api.create(CONFIG_MAPS, "default", config_map("new"))
    first = await world.api.list_page(CONFIG_MAPS, namespace="default", limit=1)
    since = "1"
    world.faults.compact()
    with pytest.raises(port.GoneError):
        await world.api.list_page(
            CONFIG_MAPS, namespace="default", limit=1, continue_token=first.continue_token
        )
    with pytest.raises(port.GoneError):
        async for _ in world.api.watch(CONFIG_MAPS, resource_version=since, timeout_seconds=10):
            pass


async def test_faults_can_be_taken_back(world: World) -> None:
    world.faults.fail(500, "InternalError", times=None)
    with pytest.raises(port.UnavailableError):
        await read(world.api)
    world.faults.clear()
    assert await read(world.api)


def test_latency_is_in_loop_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with server.ApiServer(store.Store(now=lambda: 0)) as running:
            running.faults.delay(7.5, when=faults.calls(verb="list"))
            api = await client.connect(url=running.url)
            for adapter in (api, memory.MemoryApi(running.backend)):
                start = loop.time()
                await adapter.list_page(CONFIG_MAPS)
                assert loop.time() - start == pytest.approx(7.5)
                await adapter.version()
                assert loop.time() - start == pytest.approx(7.5)
            await api.close()

    clock.run(main(), horizon=100)


def test_a_delay_outlives_the_patience_of_a_client() -> None:
    async def main() -> None:
        async with server.ApiServer(store.Store(now=lambda: 0)) as running:
            running.faults.delay(60, when=faults.writes)
            api = await client.connect(url=running.url, deadline=10)
            with pytest.raises(port.UnavailableError):
                await api.create(CONFIG_MAPS, "default", config_map("new"))
            await asyncio.sleep(100)
            # The client hung up before the server looked at the request.
            assert running.store.find(CONFIG_MAPS, "default", "new") is None
            await api.close()

    clock.run(main(), horizon=1000)
