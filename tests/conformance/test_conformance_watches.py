"""WATCH: what is told, from where, in which order, and how it ends."""

import asyncio
import json
from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, events, pod

A = {"set": "a"}
B = {"set": "b"}


def told(found: list[port.WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in found]


async def version(api: port.KubeApi, namespace: str) -> str:
    return (await api.list_page(CONFIG_MAPS, namespace=namespace)).resource_version


async def label(api: port.KubeApi, namespace: str, name: str, labels: dict[str, str]) -> port.Object:
    return await api.patch(CONFIG_MAPS, namespace, name, {"metadata": {"labels": labels}})


async def test_events_since_a_version_in_order(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    await api.create(CONFIG_MAPS, namespace, config_map("two", labels=A))
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}})
    await api.delete(CONFIG_MAPS, namespace, "two")
    found = await events(api, CONFIG_MAPS, since, 4, namespace=namespace, labels="set=a")
    assert told(found) == [("ADDED", "one"), ("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")]
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in found]
    assert versions == sorted(versions)


async def test_events_after_the_start(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    watching = asyncio.ensure_future(events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a"))
    await asyncio.sleep(0)
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    assert told(await watching) == [("ADDED", "one")]


async def test_the_version_itself_is_not_told_again(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    await api.create(CONFIG_MAPS, namespace, config_map("two", labels=A))
    since = first["metadata"]["resourceVersion"]
    assert told(await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")) == [
        ("ADDED", "two")
    ]


async def test_an_event_carries_the_object_as_written(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    [event] = await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")
    assert event.object == created


async def test_a_deletion_carries_the_last_state_and_its_own_version(
    api: port.KubeApi, namespace: str
) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    since = created["metadata"]["resourceVersion"]
    await api.delete(CONFIG_MAPS, namespace, "one")
    [event] = await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")
    assert event.object["data"] == {"key": "value"}
    assert event.object["metadata"]["uid"] == created["metadata"]["uid"]
    assert int(event.object["metadata"]["resourceVersion"]) > int(since)


async def test_objects_enter_and_leave_a_selection(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=B))
    since = created["metadata"]["resourceVersion"]
    await label(api, namespace, "one", A)
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}})
    left = await label(api, namespace, "one", B)
    await api.delete(CONFIG_MAPS, namespace, "one")
    await api.create(CONFIG_MAPS, namespace, config_map("end", labels=A))
    found = await events(api, CONFIG_MAPS, since, 4, namespace=namespace, labels="set=a")
    assert told(found) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one"), ("ADDED", "end")]
    # The object is told as it was inside the selection, under the version of the write that took it out.
    assert found[2].object["metadata"]["labels"] == A
    assert found[2].object["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_objects_outside_a_selection_are_not_told(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    await api.create(CONFIG_MAPS, namespace, config_map("other", labels=B))
    await label(api, namespace, "other", {"more": "b"})
    await api.delete(CONFIG_MAPS, namespace, "other")
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    assert told(await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")) == [
        ("ADDED", "one")
    ]


async def test_field_selectors_filter_a_watch(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.create(CONFIG_MAPS, namespace, config_map("two"))
    found = await events(api, CONFIG_MAPS, since, 1, namespace=namespace, fields="metadata.name=two")
    assert told(found) == [("ADDED", "two")]


async def test_a_namespace_filters_a_watch(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    other = (await api.create(CONFIG_MAPS, "default", {"metadata": {"generateName": "other-", "labels": A}}))[
        "metadata"
    ]
    await api.delete(CONFIG_MAPS, "default", other["name"])
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    assert told(await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")) == [
        ("ADDED", "one")
    ]


async def test_a_watch_of_all_namespaces(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    found = await events(
        api, CONFIG_MAPS, since, 1, fields=f"metadata.namespace={namespace},metadata.name=one"
    )
    assert told(found) == [("ADDED", "one")]


async def test_a_write_that_changes_nothing_is_not_told(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "value"}})
    await api.create(CONFIG_MAPS, namespace, config_map("two", labels=A))
    since = created["metadata"]["resourceVersion"]
    assert told(await events(api, CONFIG_MAPS, since, 1, namespace=namespace, labels="set=a")) == [
        ("ADDED", "two")
    ]


async def test_a_dry_run_is_not_told(api: port.KubeApi, namespace: str) -> None:
    since = (await api.list_page(port.PODS, namespace=namespace)).resource_version
    await api.create(port.PODS, namespace, pod("trial"), dry_run=True)
    await api.create(port.PODS, namespace, pod("real"))
    assert told(await events(api, port.PODS, since, 1, namespace=namespace)) == [("ADDED", "real")]


async def test_marking_for_deletion_is_a_change(api: port.KubeApi, namespace: str) -> None:
    body = deadline_job()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    created = await api.create(port.DEADLINE_JOBS, namespace, body)
    since = created["metadata"]["resourceVersion"]
    await api.delete(port.DEADLINE_JOBS, namespace, "gang")
    await api.patch(port.DEADLINE_JOBS, namespace, "gang", {"metadata": {"finalizers": None}})
    found = await events(api, port.DEADLINE_JOBS, since, 2, namespace=namespace)
    assert told(found) == [("MODIFIED", "gang"), ("DELETED", "gang")]
    assert "deletionTimestamp" in found[0].object["metadata"]


async def test_a_watch_ends_after_its_timeout(api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    stream = api.watch(
        CONFIG_MAPS, resource_version=since, namespace=namespace, labels="set=a", timeout_seconds=1
    )
    async with asyncio.timeout(15):
        found = [event async for event in stream]
    assert {event.type for event in found} <= {"BOOKMARK"}


async def lines(http: Http, path: str, **query: str) -> list[dict[str, Any]]:
    params = {"watch": "1", "timeoutSeconds": "1", **query}
    async with asyncio.timeout(15), http.session.get(path, params=params) as answer:
        assert answer.status == 200
        return [json.loads(line) for line in (await answer.read()).splitlines()]


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "0"}], ids=["unset", "zero"])
async def test_without_a_version_what_is_there_comes_first(
    http: Http, api: port.KubeApi, namespace: str, start: dict[str, str]
) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    found = await lines(http, path, labelSelector="set=a", **start)
    assert [(line["type"], line["object"]["metadata"]["name"]) for line in found] == [("ADDED", "one")]


async def test_bookmarks_come_only_when_asked_for(http: Http, api: port.KubeApi, namespace: str) -> None:
    since = await version(api, namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert await lines(http, path, labelSelector="set=a", resourceVersion=since) == []


async def test_a_single_object_can_be_watched(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one", labels=A))
    await api.create(CONFIG_MAPS, namespace, config_map("two", labels=A))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    found = await lines(http, path, fieldSelector="metadata.name=two")
    assert [line["object"]["metadata"]["name"] for line in found] == ["two"]


async def test_a_watch_with_a_bad_selector_is_400(http: Http, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    reply = await http.send("GET", path, watch="1", labelSelector="a in b")
    assert reply.status == 400
    assert reply.body["kind"] == "Status"
