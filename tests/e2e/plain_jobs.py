"""Jobs and pods as users write them, on a real control plane, and ways to wait for what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lstqueue.kube import port

Object = dict[str, Any]

GATE = "example.com/placement"
INDEX = "batch.kubernetes.io/job-completion-index"


def template(*, gpus: int = 0, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A pod template with one container."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def job(name: str, count: int, *, pods: Object | None = None, **spec: Any) -> Object:
    """An Indexed Job of `count` pods, running unless `suspend` says otherwise."""
    fixed = {"completionMode": "Indexed", "completions": count, "parallelism": count, "backoffLimit": 0}
    return {"metadata": {"name": name}, "spec": {**fixed, "template": pods or template(), **spec}}


class Namespace:
    """What a test does in one namespace."""

    def __init__(self, api: port.KubeApi, name: str) -> None:
        self.api = api
        self.name = name

    async def create(self, resource: port.Resource, body: Object, *, dry_run: bool = False) -> Object:
        return await self.api.create(resource, self.name, body, dry_run=dry_run)

    async def get(self, name: str, resource: port.Resource = port.JOBS) -> Object:
        return await self.api.get(resource, self.name, name)

    async def patch(self, name: str, body: Object, resource: port.Resource = port.JOBS) -> Object:
        return await self.api.patch(resource, self.name, name, body)

    async def suspend(self, name: str, suspended: bool) -> Object:
        return await self.patch(name, {"spec": {"suspend": suspended}})

    async def pods(self, job_name: str) -> list[Object]:
        """Pods of a Job, by index and then by age."""
        page = await self.api.list_page(port.PODS, namespace=self.name, labels=f"job-name={job_name}")
        return sorted(page.items, key=lambda pod: (pod["metadata"]["labels"].get(INDEX, ""), age(pod)))

    async def end(self, pod: Object, phase: str) -> None:
        name = pod["metadata"]["name"]
        await self.api.patch_status(port.PODS, self.name, name, {"status": {"phase": phase}})

    async def until(self, look: Callable[[], Awaitable[Any]], what: str, *, within_s: float = 30.0) -> Any:
        """Look again until `look` returns something true, and return that."""
        try:
            async with asyncio.timeout(within_s):
                while not (value := await look()):  # noqa: ASYNC110 - the condition is a server's
                    await asyncio.sleep(0.1)
                return value
        except TimeoutError:
            raise AssertionError(f"not within {within_s:g} s: {what}") from None

    async def until_status(self, job_name: str, **wanted: Any) -> Object:
        """Wait for counters of a Job; a missing one is 0."""
        status: Object = {}

        async def look() -> bool:
            nonlocal status
            status = (await self.get(job_name)).get("status", {})
            return all(status.get(key, 0) == value for key, value in wanted.items())

        await self.until(look, f"status of {job_name} to have {wanted}")
        return status

    async def until_condition(self, job_name: str, kind: str) -> Object:
        async def look() -> Object | None:
            status = (await self.get(job_name)).get("status", {})
            found = {item["type"]: item for item in status.get("conditions", ()) if item["status"] == "True"}
            return found.get(kind)

        condition: Object = await self.until(look, f"{job_name} to be {kind}")
        return condition

    async def suspended(self, body: Object) -> Object:
        """Create a suspended Job and return it as it is when its controller has said so too."""
        name = (await self.create(port.JOBS, body))["metadata"]["name"]
        await self.until_condition(name, "Suspended")
        return await self.get(name)

    async def until_gated(self, job_name: str, count: int) -> list[Object]:
        """Wait until a Job has so many pods that are all behind the gate, and return them."""

        async def look() -> list[Object]:
            found = [pod for pod in await self.pods(job_name) if gates(pod) == [GATE]]
            return found if len(found) == count else []

        found: list[Object] = await self.until(look, f"{count} gated pods of {job_name}")
        return found


def age(pod: Object) -> str:
    return str(pod["metadata"]["creationTimestamp"])


def index(pod: Object) -> str:
    return str(pod["metadata"]["labels"][INDEX])


def gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


async def refused(call: Awaitable[Any], status: int, *, says: str = "") -> port.ApiError:
    """Expect a call to be refused."""
    with pytest.raises(port.ApiError) as caught:
        await call
    assert caught.value.status == status, caught.value
    assert says in caught.value.message, caught.value
    return caught.value
