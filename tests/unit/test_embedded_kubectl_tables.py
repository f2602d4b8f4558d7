"""Tables: what `kubectl get` shows is made by the server, here as on a real one."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from lstqueue.api import kinds as own
from lstqueue.embedded import server, store
from lstqueue.kube import port

NOW = 1_767_225_600_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
POD = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "a", "image": "x"}]}}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[server.ApiServer]:
    async with server.ApiServer(store.Store(now=clock)) as started:
        yield started


@pytest.fixture
async def http(running: server.ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(running.url, headers={"Accept": TABLE}) as session:
        yield session


async def table(http: aiohttp.ClientSession, path: str, **query: str) -> dict[str, Any]:
    async with http.get(path, params=query) as answer:
        assert answer.status == 200, await answer.text()
        found: dict[str, Any] = await answer.json()
        assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        return found


def shown(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows by column."""
    names = [column["name"] for column in found["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in found["rows"]]


def deadline_job(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "example/app"}]}}
    groups = [{"name": "worker", "template": template}]
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": "research", "groups": groups},
    }


@pytest.mark.parametrize("kind", own.KINDS.values(), ids=lambda kind: kind.kind)
async def test_our_kinds_have_the_columns_of_their_definitions(
    http: aiohttp.ClientSession, kind: own.Kind
) -> None:
    found = await table(http, f"/apis/lstqueue.dev/v1alpha1/{kind.plural}")
    columns = [(item["name"], item["type"], item["priority"]) for item in found["columnDefinitions"]]
    expected = [(item.name, item.type, int(item.wide)) for item in kind.columns]
    assert columns == [("Name", "string", 0), *expected]


async def test_cells_of_our_kinds_come_from_the_object(
    running: server.ApiServer, http: aiohttp.ClientSession, clock: Clock
) -> None:
    objects = running.store
    objects.create(port.DEADLINE_JOBS, "default", deadline_job("gang"))
    (row,) = shown(await table(http, "/apis/lstqueue.dev/v1alpha1/deadlinejobs"))
    assert (row["Name"], row["Queue"], row["Age"]) == ("gang", None, "0s")
    assert (row["Phase"], row["Verdict"], row["Ended"]) == (None, None, None)
    at = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    finished = {"type": "Finished", "reason": "Succeeded", **at}
    other = {"type": "Admitted", "reason": "Admitted", **at}
    said = {"phase": "Succeeded", "queue": "research", "verdict": {"level": "LIKELY"}}
    status = {**said, "conditions": [other, finished]}
    objects.patch(port.DEADLINE_JOBS, "default", "gang", {"status": status}, subresource="status")
    clock.now += 3 * 3_600_000 + 65_000
    (row,) = shown(await table(http, "/apis/lstqueue.dev/v1alpha1/deadlinejobs"))
    assert (row["Phase"], row["Verdict"], row["Ended"]) == ("Succeeded", "LIKELY", "Succeeded")
    assert (row["Queue"], row["Age"]) == ("research", "3h1m")


async def test_a_single_object_and_an_error(running: server.ApiServer, http: aiohttp.ClientSession) -> None:
    created = running.store.create(port.PODS, "default", POD)
    found = await table(http, "/api/v1/namespaces/default/pods/one")
    assert found["metadata"] == {"resourceVersion": created["metadata"]["resourceVersion"]}
    assert [row["cells"][0] for row in found["rows"]] == ["one"]
    async with http.get("/api/v1/namespaces/default/pods/none") as answer:
        assert (answer.status, (await answer.json())["kind"]) == (404, "Status")


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Object", "Pod"), ("None", None)]
)
async def test_how_much_of_the_object_comes_with_a_row(
    running: server.ApiServer, http: aiohttp.ClientSession, include: str, kind: str | None
) -> None:
    running.store.create(port.PODS, "default", POD)
    (row,) = (await table(http, "/api/v1/pods", includeObject=include))["rows"]
    assert (row["object"] or {}).get("kind") == kind
    if kind:
        assert row["object"]["metadata"]["namespace"] == "default"
        assert ("spec" in row["object"]) is (kind == "Pod")


async def test_an_unknown_way_to_include_objects_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/pods", params={"includeObject": "All"}) as answer:
        assert answer.status == 400
        assert "Metadata, Object, None" in (await answer.json())["message"]


async def test_pages(running: server.ApiServer, http: aiohttp.ClientSession) -> None:
    for number in range(3):
        running.store.create(port.PODS, "default", POD | {"metadata": {"name": f"pod-{number}"}})
    first = await table(http, "/api/v1/pods", limit="2")
    assert first["metadata"]["remainingItemCount"] == 1
    rest = await table(http, "/api/v1/pods", limit="2", **{"continue": first["metadata"]["continue"]})
    assert [row["cells"][0] for row in first["rows"] + rest["rows"]] == ["pod-0", "pod-1", "pod-2"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "PodList"),
        ("*/*", "PodList"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "Table"),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json;as=Table;v=v1;g=meta.k8s.io",
            "Table",
        ),
        ("application/vnd.kubernetes.protobuf,application/json;as=Table;g=meta.k8s.io;v=v1", "Table"),
        ("application/json,application/json;as=Table;v=v1;g=meta.k8s.io", "PodList"),
        ("application/json;as=Table;v=v1;g=example.com,*/*", "PodList"),
    ],
)
async def test_the_first_format_that_we_have_is_sent(
    http: aiohttp.ClientSession, accept: str, kind: str
) -> None:
    async with http.get("/api/v1/pods", headers={"Accept": accept}) as answer:
        assert (await answer.json())["kind"] == kind


async def test_a_watch_names_its_columns_once(running: server.ApiServer, http: aiohttp.ClientSession) -> None:
    running.store.create(port.PODS, "default", POD)
    query = {"watch": "true", "allowWatchBookmarks": "true"}
    async with http.get("/api/v1/pods", params=query) as answer:
        first = json.loads(await answer.content.readline())
        running.store.delete(port.PODS, "default", "one", grace_seconds=0)
        running.backend.watches.finish()
        lines = [json.loads(line) async for line in answer.content]
    assert first["type"] == "ADDED"
    assert shown(first["object"])[0]["Status"] == "Pending"
    assert [line["type"] for line in lines] == ["MODIFIED", "DELETED", "BOOKMARK"]
    assert all(line["object"]["columnDefinitions"] is None for line in lines)
    assert lines[1]["object"]["rows"][0]["cells"][0] == "one"
    bookmark = lines[2]["object"]["rows"][0]
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(running.store.revision)


async def test_an_object_that_makes_no_sense_hides_no_other(
    running: server.ApiServer, http: aiohttp.ClientSession
) -> None:
    for name in ("bad", "good"):
        running.store.create(port.PODS, "default", POD | {"metadata": {"name": name}})
    running.store.patch(port.PODS, "default", "bad", {"status": {"conditions": ["x"]}}, subresource="status")
    rows = shown(await table(http, "/api/v1/pods"))
    assert [(row["Name"], row["Status"]) for row in rows] == [("bad", "<invalid>"), ("good", "Pending")]
