"""kopf and kubernetes.aio run against the embedded API server as they come."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import kopf
import pytest
from kubernetes.aio import client, watch

from lstqueue.embedded import server, store
from lstqueue.kube import port

GROUP = ("lstqueue.dev", "v1alpha1")
PLURAL = "deadlinejobs"


def body(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]}}
    groups = [{"name": "worker", "replicas": 2, "template": template}]
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name},
        "spec": {"queue": "default", "groups": groups},
    }


@pytest.fixture
async def running() -> AsyncIterator[server.ApiServer]:
    async with server.ApiServer(store.Store(now=lambda: 1_767_225_600_000)) as started:
        yield started


class Operator:
    """A kopf operator, in a thread and loop of its own, that notes every event of DeadlineJobs.

    In the loop of the test it would cancel, when it stops, whatever was started after it.
    """

    def __init__(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        self.registry = kopf.OperatorRegistry()
        self.settings = kopf.OperatorSettings()
        self.settings.posting.enabled = False
        self.settings.watching.server_timeout = 60
        self.seen: asyncio.Queue[tuple[str | None, str, str | None]] = asyncio.Queue()
        self.stop = threading.Event()

        @kopf.on.login(registry=self.registry)
        def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=url)

        @kopf.on.event(*GROUP, PLURAL, registry=self.registry)
        async def note(event: Any, name: str, status: Any, **_: Any) -> None:
            loop.call_soon_threadsafe(self.seen.put_nowait, (event["type"], name, status.get("phase")))

    def run(self) -> None:
        asyncio.run(
            kopf.operator(
                registry=self.registry,
                settings=self.settings,
                clusterwide=True,
                standalone=True,
                stop_flag=self.stop,
            )
        )

    async def next(self) -> tuple[str | None, str, str | None]:
        async with asyncio.timeout(20):
            return await self.seen.get()


@pytest.fixture
async def operator(running: server.ApiServer, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Operator]:
    caplog.set_level(logging.WARNING)
    made = Operator(running.url)
    running.store.create(port.DEADLINE_JOBS, "default", body("old"))
    task = asyncio.create_task(asyncio.to_thread(made.run))
    yield made
    made.stop.set()
    async with asyncio.timeout(20):
        await task
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_kopf_sees_what_is_there_and_what_happens(
    running: server.ApiServer, operator: Operator
) -> None:
    objects = running.store
    assert await operator.next() == (None, "old", None)
    objects.create(port.DEADLINE_JOBS, "default", body("new"))
    assert await operator.next() == ("ADDED", "new", None)
    objects.patch(
        port.DEADLINE_JOBS, "default", "new", {"status": {"phase": "Pending"}}, subresource="status"
    )
    assert await operator.next() == ("MODIFIED", "new", "Pending")
    objects.delete(port.DEADLINE_JOBS, "default", "old")
    assert await operator.next() == ("DELETED", "old", None)


async def test_kopf_comes_back_after_a_cut_and_after_410(
    running: server.ApiServer, operator: Operator
) -> None:
    assert await operator.next() == (None, "old", None)
    while not running.faults.cut_watches(port.DEADLINE_JOBS):  # noqa: ASYNC110 - the watch opens in another task
        await asyncio.sleep(0)
    running.store.create(port.DEADLINE_JOBS, "default", body("one"))
    assert await operator.next() == ("ADDED", "one", None)
    assert running.faults.expire_watches(port.DEADLINE_JOBS) == 1
    # After 410 kopf lists again: both objects are told as listed.
    assert {await operator.next(), await operator.next()} == {(None, "old", None), (None, "one", None)}


@pytest.fixture
async def library(running: server.ApiServer) -> AsyncIterator[client.ApiClient]:
    configuration = client.Configuration(host=running.url)
    async with client.ApiClient(configuration) as api_client:
        yield api_client


async def test_custom_objects_through_the_official_client(library: client.ApiClient) -> None:
    api = client.CustomObjectsApi(library)
    where = (*GROUP, "default", PLURAL)
    created = await api.create_namespaced_custom_object(*where, body("one"))
    assert created["metadata"]["generation"] == 1
    patched = await api.patch_namespaced_custom_object_status(
        *where, "one", {"status": {"phase": "Pending"}}, _content_type="application/merge-patch+json"
    )
    assert patched["status"] == {"phase": "Pending"}
    listed = await api.list_namespaced_custom_object(*where)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["one"]
    await api.delete_namespaced_custom_object(*where, "one")
    with pytest.raises(client.ApiException) as caught:
        await api.get_namespaced_custom_object(*where, "one")
    assert caught.value.status == 404


async def test_typed_models_through_the_official_client(library: client.ApiClient) -> None:
    api = client.CoreV1Api(library)
    container = client.V1Container(name="main", image="registry.example/app:1")
    gates = [client.V1PodSchedulingGate(name="example.com/hold")]
    spec = client.V1PodSpec(containers=[container], schedulingGates=gates)
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="one", labels={"app": "x"}), spec=spec)
    created = await api.create_namespaced_pod("default", pod)
    assert created.status.phase == "Pending"
    found = await api.list_namespaced_pod(
        "default", label_selector="app=x", field_selector="status.phase=Pending"
    )
    assert [item.metadata.name for item in found.items] == ["one"]
    deleted = await api.delete_namespaced_pod("one", "default")
    assert deleted.metadata.name == "one"


async def test_the_watch_of_the_official_client(library: client.ApiClient, running: server.ApiServer) -> None:
    api = client.CustomObjectsApi(library)
    running.store.create(port.DEADLINE_JOBS, "default", body("one"))
    seen = []
    async with watch.Watch() as stream, asyncio.timeout(20):
        events = stream.stream(api.list_namespaced_custom_object, *GROUP, "default", PLURAL)
        async for event in events:
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if len(seen) == 1:
                running.store.create(port.DEADLINE_JOBS, "default", body("two"))
            else:
                break
    assert seen == [("ADDED", "one"), ("ADDED", "two")]


async def test_discovery_through_the_official_client(library: client.ApiClient) -> None:
    version = await client.VersionApi(library).get_code()
    assert version.git_version.startswith("v1.36")
    groups = await client.ApisApi(library).get_api_versions()
    assert "lstqueue.dev" in {group.name for group in groups.groups}
