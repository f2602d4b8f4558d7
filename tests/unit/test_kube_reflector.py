"""A reflector on a server that behaves: first list, watch, ends, relists."""

from __future__ import annotations

import asyncio

import pytest

from cases import kube_fakes
from lstqueue.kube import port, reflector

reflecting = kube_fakes.reflecting
virtually = kube_fakes.virtually


@virtually
async def test_everything_that_exists_is_told_before_synced():
    api = kube_fakes.FakeApi()
    for number in range(7):
        api.put(f"p{number}")
    async with reflecting(api, page_size=3) as (subject, intake):
        await subject.synced.wait()
        assert intake.told == [("ADDED", f"p{number}") for number in range(7)]
        assert intake.synced_with == [7]
        assert len(api.lists) == 3
        await asyncio.sleep(1)
        assert api.watches == ["107"]


@virtually
async def test_an_empty_cluster_is_synced_too():
    async with reflecting(kube_fakes.FakeApi()) as (subject, intake):
        await asyncio.wait_for(subject.synced.wait(), 1)
        assert intake.synced_with == [0]


@virtually
async def test_changes_follow_in_order():
    api = kube_fakes.FakeApi()
    api.put("a")
    async with reflecting(api) as (subject, intake):
        await subject.synced.wait()
        api.put("b")
        api.put("a")
        api.remove("b")
        api.put("b", uid="another")
        await asyncio.sleep(1)
        assert intake.told[1:] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "b")]
        assert subject.counts.events == 4
        assert subject.known["another"] == reflector.Identity("default", "b", "105")


@virtually
async def test_what_happens_while_pages_are_fetched_is_not_lost():
    api = kube_fakes.FakeApi()
    for number in range(6):
        api.put(f"p{number}")

    def meddle(offset: int) -> None:
        if offset == 2:
            api.put("late")
            api.put("p0")
            api.remove("p5")

    api.page_hook = meddle
    async with reflecting(api, page_size=2) as (_, intake):
        await asyncio.sleep(1)
        assert intake.objects == {
            uid: item["metadata"]["resourceVersion"] for uid, item in api.objects.items()
        }


@virtually
async def test_a_watch_that_ends_in_time_goes_on_from_the_last_version():
    api = kube_fakes.FakeApi()
    api.put("a")
    async with reflecting(api, watch_seconds=100, idle_seconds=0) as (subject, intake):
        await asyncio.sleep(50)
        api.put("b")
        await asyncio.sleep(300)
        assert api.watches[0] == "101"
        assert set(api.watches[1:]) == {"102"}
        assert subject.counts.restarts == len(api.watches) - 1 >= 2
        assert not subject.counts.errors
        assert len(api.lists) == 1
        assert intake.told == [("ADDED", "a"), ("ADDED", "b")]


@virtually
async def test_a_bookmark_moves_the_version_and_nothing_else():
    api = kube_fakes.FakeApi()
    api.put("a")
    async with reflecting(api) as (subject, intake):
        await asyncio.sleep(1)
        api.version = 500
        api.bookmark()
        await asyncio.sleep(1)
        api.forget()
        api.end_watches()
        await asyncio.sleep(1)
        assert api.watches == ["101", "500"]
        assert intake.told == [("ADDED", "a")]
        assert subject.last_activity == 1.0


@virtually
async def test_watches_do_not_all_last_equally_long():
    api = kube_fakes.FakeApi()
    async with reflecting(api, watch_seconds=1000, idle_seconds=0):
        await asyncio.sleep(10_000)
    lengths = {round(b - a) for a, b in zip(api.watched_at, api.watched_at[1:], strict=False)}
    assert len(lengths) > 3
    assert all(1000 <= length <= 1200 for length in lengths)


@virtually
async def test_a_watch_without_even_a_bookmark_is_replaced():
    api = kube_fakes.FakeApi()
    async with reflecting(api, watch_seconds=300, idle_seconds=90) as (subject, _):
        await asyncio.sleep(50)
        api.bookmark()
        await asyncio.sleep(89)
        assert len(api.watches) == 1
        await asyncio.sleep(2)
        assert len(api.watches) == 2
        assert subject.counts.errors == {"Silent": 1}
        assert api.open_watches == 1
        await asyncio.sleep(3600)
        assert len(api.lists) == 1


@virtually
async def test_a_relist_tells_what_vanished_changed_and_came():
    api = kube_fakes.FakeApi()
    for name in ("stays", "changes", "vanishes", "replaced"):
        api.put(name)
    async with reflecting(api, page_size=2) as (subject, intake):
        await asyncio.sleep(1)
        intake.told.clear()
        api.deaf = True
        api.put("changes")
        api.remove("vanishes")
        api.remove("replaced")
        api.put("replaced", uid="second life")
        api.put("comes")
        api.deaf = False
        api.forget()
        api.end_watches()
        await asyncio.sleep(1)
        # Deletions first: a name may have been taken again.
        assert intake.told == [
            ("DELETED", "vanishes"),
            ("DELETED", "replaced"),
            ("MODIFIED", "changes"),
            ("ADDED", "replaced"),
            ("ADDED", "comes"),
        ]
        assert (subject.counts.relists, subject.counts.vanished) == (1, 2)
        assert subject.counts.errors == {"Expired": 1}
        assert intake.synced_with == [4]


@virtually
async def test_a_synthetic_deletion_says_who_it_was():
    api = kube_fakes.FakeApi()
    api.put("gone", namespace="elsewhere")
    told: list[tuple[str, port.Object]] = []
    subject = reflector.Reflector(
        api,
        port.PODS,
        on_event=lambda what, item: told.append((what, item)),
    )
    task = asyncio.create_task(subject.run())
    await subject.synced.wait()
    api.deaf = True
    api.remove("gone")
    api.forget()
    api.end_watches()
    await asyncio.sleep(1)
    task.cancel()
    metadata = {"uid": "uid-gone", "name": "gone", "namespace": "elsewhere", "resourceVersion": "101"}
    assert told[-1] == ("DELETED", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


@virtually
async def test_a_relist_takes_effect_in_one_step():
    api = kube_fakes.FakeApi()
    for number in range(10):
        api.put(f"p{number}")
    async with reflecting(api, page_size=3) as (_, intake):
        await asyncio.sleep(1)
        told = len(intake.told)
        api.deaf = True
        for number in range(10):
            api.put(f"p{number}")
        api.deaf = False
        api.forget()
        api.end_watches()
        api.page_hook = lambda offset: seen_during_list.append(len(intake.told))
        seen_during_list: list[int] = []
        await asyncio.sleep(1)
        assert set(seen_during_list) == {told}
        assert len(intake.told) == told + 10


@pytest.mark.parametrize("error", [ValueError("mine"), TimeoutError(), port.GoneError(410, "Gone", "mine")])
@pytest.mark.parametrize("when", ["list", "watch", "synced"])
async def test_an_error_of_a_callback_ends_the_reflector(error, when):
    api = kube_fakes.FakeApi()
    api.put("a")

    def fail(*_: object) -> None:
        raise error

    def on_event(what: str, item: port.Object) -> None:
        if when == "list" or (when == "watch" and item["metadata"]["name"] == "b"):
            fail()

    def on_synced() -> None:
        if when == "synced":
            fail()
        asyncio.get_running_loop().call_soon(api.put, "b")

    subject = reflector.Reflector(
        api,
        port.PODS,
        on_event=on_event,
        on_synced=on_synced,
    )
    with pytest.raises(type(error)) as caught:
        await asyncio.wait_for(subject.run(), 10)
    assert caught.value is error
    assert api.open_watches == 0
