"""The port's two adapters against one embedded API server, and a reflector and a relist over each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from lstqueue.embedded import clock, faults, memory, server, store
from lstqueue.kube import client, limits, port, reflector, relist

Scenario = Callable[[port.KubeApi, server.ApiServer], Awaitable[None]]

NAMES = tuple(f"s{number}" for number in range(5))


@pytest.fixture(params=["http", "memory"])
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    """Runs a scenario in virtual time over one of the adapters."""

    async def main(scenario: Scenario) -> None:
        virtual = clock.VirtualClock(asyncio.get_running_loop())
        async with server.ApiServer(store.Store(now=virtual.now)) as embedded:
            api: port.KubeApi
            if request.param == "http":
                api = await client.connect(url=embedded.url)
            else:
                api = memory.MemoryApi(embedded.backend)
            try:
                await scenario(api, embedded)
            finally:
                await api.close()

    return lambda scenario: clock.run(main(scenario), horizon=1e6)


def service(name: str, **labels: str) -> port.Object:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"ports": [{"port": 80}]}}


@contextlib.asynccontextmanager
async def reflecting(
    api: port.KubeApi, **options: str
) -> AsyncIterator[tuple[reflector.Reflector, dict[str, str]]]:
    seen: dict[str, str] = {}

    def on_event(what: str, item: port.Object) -> None:
        metadata = item["metadata"]
        assert item["kind"] == "Service"
        if what == "DELETED":
            del seen[metadata["name"]]
        else:
            seen[metadata["name"]] = metadata["resourceVersion"]

    subject = reflector.Reflector(
        api, port.SERVICES, on_event=on_event, page_size=2, labels=options.get("labels", "")
    )
    task = asyncio.create_task(subject.run())
    try:
        await asyncio.wait_for(subject.synced.wait(), 60)
        await asyncio.sleep(1)
        yield subject, seen
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def there(api: port.KubeApi) -> dict[str, str]:
    found = await api.list_page(port.SERVICES, limit=0)
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found.items}


async def create_all(api: port.KubeApi) -> None:
    for name in NAMES:
        await api.create(port.SERVICES, "default", service(name, odd=str(int(name[1:]) % 2)))


def test_the_verbs_do_what_the_port_says(run):
    async def scenario(api: port.KubeApi, _: server.ApiServer) -> None:
        made = await api.create(port.SERVICES, "default", service("a"))
        stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"x": "1"}}}
        patched = await api.patch(port.SERVICES, "default", "a", stale)
        assert patched["metadata"]["labels"] == {"x": "1"}
        with pytest.raises(port.ConflictError):
            await api.patch(port.SERVICES, "default", "a", stale)
        with pytest.raises(port.ConflictError) as taken:
            await api.create(port.SERVICES, "default", service("a"))
        assert taken.value.reason == "AlreadyExists"
        status = await api.patch_status(port.SERVICES, "default", "a", {"status": {"loadBalancer": {}}})
        assert status["metadata"]["labels"] == {"x": "1"}
        replaced = await api.replace(port.SERVICES, "default", "a", {**status, "metadata": {"name": "a"}})
        assert "labels" not in replaced["metadata"]
        assert await api.get(port.SERVICES, "default", "a") == replaced
        with pytest.raises(port.ConflictError):
            await api.delete(port.SERVICES, "default", "a", uid="somebody else")
        await api.delete(port.SERVICES, "default", "a", uid=made["metadata"]["uid"])
        with pytest.raises(port.NotFoundError):
            await api.get(port.SERVICES, "default", "a")
        assert (await api.version())["gitVersion"].startswith("v1.")

    run(scenario)


def test_a_dry_run_leaves_nothing(run):
    async def scenario(api: port.KubeApi, _: server.ApiServer) -> None:
        dry = await api.create(port.SERVICES, "default", service("a"), dry_run=True)
        assert dry["metadata"]["name"] == "a"
        assert await there(api) == {}

    run(scenario)


def test_a_reflector_follows_through_cuts_expiry_and_lost_history(run):
    async def scenario(api: port.KubeApi, embedded: server.ApiServer) -> None:
        await create_all(api)
        watch = faults.calls(verb="watch")
        async with reflecting(api) as (subject, seen):
            assert seen == await there(api)
            for break_it in (
                embedded.faults.cut_watches,
                embedded.faults.expire_watches,
                lambda: (embedded.faults.refuse_watches(), embedded.faults.cut_watches()),
                lambda: (embedded.faults.cut_watches(), embedded.faults.compact()),
                lambda: (embedded.faults.throttle(times=3, when=watch), embedded.faults.cut_watches()),
            ):
                await api.delete(port.SERVICES, "default", "s1")
                break_it()
                # While the reflector is blind: one gone, one changed, one new under a name that was taken.
                embedded.store.delete(port.SERVICES, "default", "s2")
                embedded.store.create(port.SERVICES, "default", service("s2"))
                embedded.store.create(port.SERVICES, "default", service("s1"))
                await asyncio.sleep(60)
                assert seen == await there(api)
            assert subject.counts.relists >= 2
            assert subject.counts.errors["ConnectionFailed"] >= 1

    run(scenario)


def test_quiet_days_cost_watches_but_no_lists(run):
    async def scenario(api: port.KubeApi, embedded: server.ApiServer) -> None:
        await create_all(api)
        async with reflecting(api) as (subject, _):
            await asyncio.sleep(86_400)
            assert subject.counts.relists == 0
            assert not subject.counts.errors
            assert subject.counts.restarts < 300
            assert subject.last_activity == pytest.approx(asyncio.get_running_loop().time(), abs=61)
            assert embedded.backend.watches.count() == 1

    run(scenario)


def test_an_object_that_leaves_the_selection_is_gone(run):
    async def scenario(api: port.KubeApi, _: server.ApiServer) -> None:
        await create_all(api)
        async with reflecting(api, labels="odd=1") as (_, seen):
            assert set(seen) == {"s1", "s3"}
            await api.patch(port.SERVICES, "default", "s1", {"metadata": {"labels": {"odd": None}}})
            await api.patch(port.SERVICES, "default", "s2", {"metadata": {"labels": {"odd": "1"}}})
            await asyncio.sleep(1)
            assert set(seen) == {"s2", "s3"}

    run(scenario)


def test_a_relist_finds_what_was_missed(run):
    async def scenario(api: port.KubeApi, _: server.ApiServer) -> None:
        await create_all(api)
        page = await api.list_page(port.SERVICES)
        known = {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in page.items}
        gone = page.items[0]["metadata"]["uid"]
        await api.delete(port.SERVICES, "default", "s0")
        await api.patch(port.SERVICES, "default", "s1", {"metadata": {"labels": {"new": "1"}}})
        found = await relist.relist(api, port.SERVICES, known, page_size=2)
        assert found.vanished == [gone]
        assert [item["metadata"]["name"] for item in found.changed] == ["s1"]

    run(scenario)


def test_a_lost_answer_leaves_the_write_done_and_its_outcome_unknown(run):
    async def scenario(api: port.KubeApi, embedded: server.ApiServer) -> None:
        embedded.faults.lose_response(when=faults.calls(verb="create"))
        with pytest.raises(port.UnavailableError) as caught:
            await api.create(port.SERVICES, "default", service("a"))
        assert caught.value.status == 0
        with pytest.raises(port.ConflictError):
            await api.create(port.SERVICES, "default", service("a"))

    run(scenario)


def test_a_429_holds_back_the_writes_behind_it(run):
    async def scenario(api: port.KubeApi, embedded: server.ApiServer) -> None:
        limited = limits.LimitedApi(api, rate=50, burst=100)
        embedded.faults.throttle(retry_after=5)
        with pytest.raises(port.UnavailableError) as caught:
            await limited.create(port.SERVICES, "default", service("a"))
        assert (caught.value.status, caught.value.retry_after) == (429, 5.0)
        started = asyncio.get_running_loop().time()
        await limited.create(port.SERVICES, "default", service("a"))
        assert asyncio.get_running_loop().time() - started == pytest.approx(5, abs=0.1)
        assert limited.requests["create", "services"] == 2

    run(scenario)
