"""The in-process client: copies in, copies out, and nothing after it was closed."""

import pytest

from lstqueue.embedded import backend, kinds, memory, pages, store
from lstqueue.kube import port

CONFIG_MAPS = kinds.CONFIG_MAPS


@pytest.fixture
def state() -> backend.Backend:
    return backend.Backend(store.Store(now=lambda: 1_767_225_600_000))


@pytest.fixture
def api(state: backend.Backend) -> port.KubeApi:
    # mypy checks here that the adapter is a KubeApi.
    return memory.MemoryApi(state)


def config_map(name: str) -> port.Object:
    return {"metadata": {"name": name, "labels": {"a": "b"}}, "data": {"key": "value"}}


async def test_what_comes_out_may_be_changed(api: port.KubeApi, state: backend.Backend) -> None:
    for found in (
        await api.create(CONFIG_MAPS, "default", config_map("one")),
        await api.get(CONFIG_MAPS, "default", "one"),
        (await api.list_page(CONFIG_MAPS)).items[0],
        await anext(aiter(api.watch(CONFIG_MAPS, resource_version=""))),
    ):
        obj = found.object if isinstance(found, port.WatchEvent) else found
        obj["metadata"]["labels"]["a"] = "changed"
        obj["data"].clear()
    assert state.store.get(CONFIG_MAPS, "default", "one")["data"] == {"key": "value"}
    assert state.store.get(CONFIG_MAPS, "default", "one")["metadata"]["labels"] == {"a": "b"}


async def test_a_patch_may_be_changed_after_it_was_given(api: port.KubeApi) -> None:
    await api.create(CONFIG_MAPS, "default", config_map("one"))
    finalizers = ["example.com/hold"]
    words = ["a", "b"]
    patch = {"metadata": {"finalizers": finalizers}, "words": words}
    await api.patch(CONFIG_MAPS, "default", "one", patch)
    finalizers.clear()
    words.clear()
    found = await api.get(CONFIG_MAPS, "default", "one")
    assert (found["metadata"]["finalizers"], found["words"]) == (["example.com/hold"], ["a", "b"])


async def test_a_closed_client_refuses(api: port.KubeApi) -> None:
    await api.close()
    with pytest.raises(port.UnavailableError):
        await api.list_page(CONFIG_MAPS)


async def test_two_clients_of_one_backend_share_its_objects(state: backend.Backend) -> None:
    one, two = memory.MemoryApi(state), memory.MemoryApi(state)
    await one.create(CONFIG_MAPS, "default", config_map("one"))
    await one.close()
    assert await two.get(CONFIG_MAPS, "default", "one")


def test_unfinished_lists_are_few(state: backend.Backend) -> None:
    for number in range(5):
        state.store.create(CONFIG_MAPS, "default", config_map(f"map-{number}"))
    lists = pages.Pages(state.store, pins=2)
    query = pages.Query(CONFIG_MAPS, namespace="default", limit=2)
    first = lists.page(query)
    second = lists.page(query)
    third = lists.page(query)
    with pytest.raises(port.GoneError):
        lists.page(pages.Query(CONFIG_MAPS, limit=2, continue_token=first.continue_token))
    for listing in (second, third):
        following = lists.page(pages.Query(CONFIG_MAPS, limit=2, continue_token=listing.continue_token))
        assert [row["metadata"]["name"] for row in following.rows] == ["map-2", "map-3"]
        # A page can be asked for again, as after an answer that was lost.
        again = lists.page(pages.Query(CONFIG_MAPS, limit=2, continue_token=listing.continue_token))
        assert again == following
