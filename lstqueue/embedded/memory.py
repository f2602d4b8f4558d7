"""`kube.port.KubeApi` over the store, without sockets: the operator's tests and properties run on this.

It goes through the same lists, watches and faults as the HTTP server of the same backend. Objects handed out
are copies, since the port lets callers keep and change them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping

from lstqueue.embedded import backend, discovery, faults, pages, patches, watches
from lstqueue.kube import port


class MemoryApi:
    """An in-process client.

    Args:
        state: what to talk to; `ApiServer.backend`, or one of its own.
    """

    def __init__(self, state: backend.Backend) -> None:
        self._state = state
        self._closed = False

    async def get(self, resource: port.Resource, namespace: str | None, name: str) -> port.Object:
        """Return one object."""
        await self._meet("get", resource, namespace, name)
        return _copy(self._state.store.get(resource, namespace, name))

    async def list_page(
        self,
        resource: port.Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
    ) -> port.Page:
        """Return one page of a LIST. A `limit` of 0 is none."""
        await self._meet("list", resource, namespace)
        query = pages.Query(
            resource=resource,
            namespace=namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
            resource_version="" if continue_token else resource_version,
        )
        listing = self._state.pages.page(query)
        items = [_copy(row) for row in listing.rows]
        return port.Page(items, listing.resource_version, listing.continue_token)

    async def watch(
        self,
        resource: port.Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncGenerator[port.WatchEvent, None]:
        """Yield events after `resource_version` until the server ends the stream.

        Raises:
            GoneError: 410.
            UnavailableError: the stream was cut.
        """
        await self._meet("watch", resource, namespace)
        query = watches.Query(
            resource=resource,
            namespace=namespace,
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            bookmarks=True,
            timeout_s=timeout_seconds,
        )
        watch = self._state.watches.open(query)
        try:
            async with contextlib.aclosing(watch.batches()) as batches:
                async for batch in batches:
                    for kind, obj in batch:
                        yield port.WatchEvent(kind, _copy(obj))
        except watches.CutError as error:
            raise port.UnavailableError(0, "ConnectionFailed", str(error)) from error
        finally:
            watch.close()

    async def create(
        self, resource: port.Resource, namespace: str | None, body: port.Object, *, dry_run: bool = False
    ) -> port.Object:
        """Create an object and return it as the server has it."""
        lost = await self._meet("create", resource, namespace)
        return self._answer(self._state.store.create(resource, namespace, body, dry_run=dry_run), lost)

    async def patch(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch; `metadata.resourceVersion` in the body makes it conditional."""
        lost = await self._meet("patch", resource, namespace, name)
        return self._answer(self._state.store.patch(resource, namespace, name, body), lost)

    async def patch_status(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch to the status subresource."""
        lost = await self._meet("patch", resource, namespace, name, "status")
        patched = self._state.store.patch(resource, namespace, name, body, subresource="status")
        return self._answer(patched, lost)

    async def replace(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Replace an object (PUT)."""
        lost = await self._meet("update", resource, namespace, name)
        return self._answer(self._state.store.replace(resource, namespace, name, body), lost)

    async def delete(
        self,
        resource: port.Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        at_once: bool = False,
    ) -> None:
        """Delete an object, only if uid and resourceVersion still match where they are given."""
        lost = await self._meet("delete", resource, namespace, name)
        last = self._state.store.delete(
            resource,
            namespace,
            name,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_seconds=0 if at_once else None,
        )
        self._answer(last, lost)

    async def version(self) -> Mapping[str, str]:
        """Return the server's /version."""
        await asyncio.sleep(0)
        return dict(discovery.VERSION)

    async def close(self) -> None:
        """Refuse further calls."""
        self._closed = True

    async def _meet(
        self, verb: str, resource: port.Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> bool:
        # A call over a network never answers within the same turn of the loop; nor does this one.
        await asyncio.sleep(0)
        if self._closed:
            raise port.UnavailableError(0, "Closed", f"{verb} {resource.plural}: this client has been closed")
        return await self._state.faults.meet(faults.Call(verb, resource, namespace, name, subresource))

    @staticmethod
    def _answer(stored: port.Object, lost: bool) -> port.Object:
        if lost:
            raise port.UnavailableError(
                0, "ConnectionFailed", "the connection was closed before an answer came"
            )
        return _copy(stored)


def _copy(stored: port.Object) -> port.Object:
    copied: port.Object = patches.copy_json(stored)
    return copied
