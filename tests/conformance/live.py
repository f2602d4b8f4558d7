"""Cases in which controllers, a scheduler and kubelets have to do something, for the same three targets.

The embedded cluster runs in virtual time, over HTTP and in process: pauses and deadlines cost it nothing. The
real one takes its time, and needs nodes whose pods obey the `sim/*` annotations.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lstqueue.embedded import clock, memory
from lstqueue.embedded.world import World
from lstqueue.kube import client, port
from tests.conformance import conftest
from tests.conformance.samples import Object, until

DAY = 86_400.0

Case = Callable[["Cluster"], Coroutine[Any, Any, None]]


def live(case: Case) -> Callable[[str], None]:
    """Run a case with a namespace of a running cluster, on each target."""

    def run(where: str) -> None:
        if where == "real":
            asyncio.run(_on_real(case))
        else:
            clock.run(_on_embedded(where, case), horizon=DAY)

    # Not functools.wraps: pytest would then ask for the arguments of the case.
    run.__name__, run.__doc__, run.__module__ = case.__name__, case.__doc__, case.__module__
    targets = ["http", "memory"] + (["real"] if conftest.KUBECONFIG else [])
    return pytest.mark.parametrize("where", targets)(run)


async def _on_real(case: Case) -> None:
    async with contextlib.aclosing(conftest.real()) as targets:
        async for found in targets:
            await case(Cluster(found.api, found.namespace))


async def _on_embedded(where: str, case: Case) -> None:
    async with World(serve=where == "http") as world:
        world.add_nodes(1)
        world.store.create(port.NAMESPACES, None, {"metadata": {"name": "case"}})
        if where == "memory":
            await case(Cluster(memory.MemoryApi(world.server.backend), "case"))
            return
        api = await client.connect(url=world.url)
        try:
            await case(Cluster(api, "case"))
        finally:
            await api.close()


class Cluster:
    """A namespace of a running cluster and what a case does in it."""

    def __init__(self, api: port.KubeApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    async def create(self, body: Object, resource: port.Resource = port.JOBS) -> Object:
        return await self.api.create(resource, self.namespace, body)

    async def patch(self, name: str, spec: Object) -> Object:
        return await self.api.patch(port.JOBS, self.namespace, name, {"spec": spec})

    async def job(self, name: str = "job") -> Object:
        return await self.api.get(port.JOBS, self.namespace, name)

    async def status(self, name: str = "job") -> Object:
        found: Object = (await self.job(name)).get("status", {})
        return found

    async def condition(self, kind: str, name: str = "job") -> Object:
        """A condition that is True, or {}."""
        conditions = (await self.status(name)).get("conditions") or []
        return next((item for item in conditions if item["type"] == kind and item["status"] == "True"), {})

    async def pods(self, name: str = "job") -> list[Object]:
        page = await self.api.list_page(port.PODS, namespace=self.namespace, labels=f"job-name={name}")
        return page.items

    async def end(self, pod: Object, phase: str) -> None:
        body = {"status": {"phase": phase}}
        await self.api.patch_status(port.PODS, self.namespace, pod["metadata"]["name"], body)

    async def until_status(self, name: str = "job", /, **fields: Any) -> Object:
        """Wait until the Job's status has these values."""
        seen: Object = {}

        async def there() -> bool:
            nonlocal seen
            seen = await self.status(name)
            return all((seen.get(key) or 0) == value for key, value in fields.items())

        await until(there)
        return seen

    async def until_condition(self, kind: str, name: str = "job") -> Object:
        """Wait until a condition of the Job is True, and return it."""

        async def there() -> bool:
            return bool(await self.condition(kind, name))

        await until(there)
        return await self.condition(kind, name)

    async def until_listed(self, resource: port.Resource, labels: str) -> list[Object]:
        """Wait until there are objects with these labels, and return them."""
        items: list[Object] = []

        async def there() -> bool:
            nonlocal items
            items = (await self.api.list_page(resource, namespace=self.namespace, labels=labels)).items
            return bool(items)

        await until(there)
        return items

    async def until_gone(self, name: str, resource: port.Resource = port.JOBS) -> None:
        """Wait until an object is not there any more."""

        async def there() -> bool:
            page = await self.api.list_page(
                resource, namespace=self.namespace, fields=f"metadata.name={name}"
            )
            return not page.items

        await until(there)

    async def until_pods(self, count: int, name: str = "job") -> list[Object]:
        """Wait until the Job has exactly so many pods."""

        async def there() -> bool:
            return len(await self.pods(name)) == count

        await until(there)
        return await self.pods(name)
