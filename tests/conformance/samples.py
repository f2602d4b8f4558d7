"""Objects for the cases, and a few ways to look at what a server does."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lstqueue.embedded import kinds
from lstqueue.kube import port

CONFIG_MAPS = kinds.CONFIG_MAPS
GATE = "example.com/hold"
Object = dict[str, Any]


def config_map(name: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "data": {"key": "value"}}


def pod(name: str = "pod", *, gated: bool = True, **spec: Any) -> Object:
    gates = {"schedulingGates": [{"name": GATE}]} if gated else {}
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **gates, **spec}}


def job(name: str = "job", **spec: Any) -> Object:
    """A suspended Job, so that no controller makes pods of it."""
    template = {"spec": {"restartPolicy": "Never", "containers": pod()["spec"]["containers"]}}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": template, **spec}}


def deadline_job(name: str = "gang", **spec: Any) -> Object:
    template = {"spec": {"containers": pod()["spec"]["containers"]}}
    groups = [{"name": "worker", "replicas": 2, "template": template}]
    spec = {"queue": "default", "groups": groups, **spec}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def required_affinity(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": required}


def names(page: port.Page) -> list[str]:
    return [item["metadata"]["name"] for item in page.items]


async def refused(call: Awaitable[Any], status: int, *, reason: str = "", says: str = "") -> port.ApiError:
    """Expect a call to be refused with this status."""
    with pytest.raises(port.ApiError) as caught:
        await call
    assert caught.value.status == status, caught.value
    assert reason in ("", caught.value.reason), caught.value
    assert says in caught.value.message, caught.value.message
    return caught.value


async def events(
    api: port.KubeApi, resource: port.Resource, since: str, count: int, **query: Any
) -> list[port.WatchEvent]:
    """The first events of a watch, without bookmarks."""
    found: list[port.WatchEvent] = []
    async with asyncio.timeout(20):
        stream = api.watch(resource, resource_version=since, timeout_seconds=15, **query)
        async with contextlib.aclosing(stream) as watch:
            async for event in watch:
                if event.type != "BOOKMARK":
                    found.append(event)
                if len(found) == count:
                    break
    return found


async def until(condition: Callable[[], Awaitable[bool]], *, within: float = 20.0) -> None:
    """Wait for something that a real cluster does a moment later."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - the condition is a server's
            await asyncio.sleep(0.05)
