"""A bound on what we ask of the API server, and the count of it.

Writes pass a token bucket and then one of a few places in flight; reads need only a place; watches neither.
What must never queue behind a thousand status patches (renewing a Lease) should use the bare client.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

from lstqueue.kube import port

_T = TypeVar("_T")

_PAUSE = 1.0
"""Seconds of pause after a 429 that names none."""

_LONGEST_PAUSE = 60.0
"""Seconds of pause at most: nothing that an API server can mean by more would help a queue."""

_EARLY = 1e-5
"""Seconds by which a timer may fire early: without it, rounding could make a waiter spin."""


class Bucket:
    """A token bucket on the running loop's clock, first come first served.

    It keeps one number, the time at which all tokens would be back, rather than a token count: comparing
    times never drifts.

    Args:
        rate: tokens per second; 0 is no limit.
        burst: tokens that may be taken at once after a rest.
    """

    def __init__(self, *, rate: float, burst: int) -> None:
        if rate < 0:
            raise ValueError(f"rate must be 0 (no limit) or more writes per second, not {rate!r}")
        if burst < 1:
            raise ValueError(f"burst must be at least 1, not {burst!r}")
        self._interval = 1 / rate if rate else 0.0
        self._tolerance = self._interval * (burst - 1)
        self._full_at = 0.0
        self._paused_until = 0.0
        self._turn = asyncio.Lock()

    async def take(self) -> float:
        """Wait for a token; return the seconds waited."""
        loop = asyncio.get_running_loop()
        if not self._interval and self._paused_until <= loop.time() and not self._turn.locked():
            return 0.0
        asked = loop.time()
        async with self._turn:
            # A pause may begin while we sleep, hence the loop.
            while True:
                wait = self._next_at() - loop.time()
                if wait <= _EARLY:
                    break
                await asyncio.sleep(wait)
            self._full_at = max(self._full_at, loop.time()) + self._interval
        return loop.time() - asked

    def pause(self, seconds: float) -> None:
        """Give no token for a while, and no burst after it."""
        until = asyncio.get_running_loop().time() + seconds
        self._paused_until = max(self._paused_until, until)
        self._full_at = max(self._full_at, until + self._tolerance)

    def _next_at(self) -> float:
        return max(self._full_at - self._tolerance, self._paused_until)


class LimitedApi:
    """`port.KubeApi` in front of another one, with limits and counts.

    Args:
        api: the adapter that does the work; closed with this one.
        rate: writes per second; 0 is no limit.
        burst: writes at once after a rest.
        in_flight: requests, reads included, that may be unanswered at a time.
        fence: called when a write is about to be sent, after all waiting; what it raises, a
            `port.FencedError`, keeps it from that.

    Attributes:
        requests: requests sent, by (verb, plural of the kind). Dry runs count as the verb `dry_run`, as they
            leave nothing behind. Watches count when they begin.
        errors: refused or unanswered requests, by (verb, plural, HTTP code or 0).
        throttled: seconds that writes have waited for the bucket in all.
        waiting: writes that wait for the bucket now.
    """

    def __init__(
        self,
        api: port.KubeApi,
        *,
        rate: float = 50.0,
        burst: int = 100,
        in_flight: int = 16,
        fence: Callable[[], None] | None = None,
    ) -> None:
        if in_flight < 1:
            raise ValueError(f"in_flight must be at least 1, not {in_flight!r}")
        self._api = api
        self._bucket = Bucket(rate=rate, burst=burst)
        self._places = asyncio.Semaphore(in_flight)
        self._fence = fence
        self.requests: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str, int]] = Counter()
        self.throttled = 0.0
        self.waiting = 0

    async def get(self, resource: port.Resource, namespace: str | None, name: str) -> port.Object:
        """Return one object."""
        return await self._read("get", resource.plural, lambda: self._api.get(resource, namespace, name))

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
        """Return one page of a LIST, filtered by the server."""
        return await self._read(
            "list",
            resource.plural,
            lambda: self._api.list_page(
                resource,
                namespace=namespace,
                labels=labels,
                fields=fields,
                limit=limit,
                continue_token=continue_token,
                resource_version=resource_version,
            ),
        )

    def watch(
        self,
        resource: port.Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[port.WatchEvent]:
        """Pass a watch through, unlimited."""
        self.requests["watch", resource.plural] += 1
        return self._api.watch(
            resource,
            resource_version=resource_version,
            namespace=namespace,
            labels=labels,
            fields=fields,
            timeout_seconds=timeout_seconds,
        )

    async def create(
        self, resource: port.Resource, namespace: str | None, body: port.Object, *, dry_run: bool = False
    ) -> port.Object:
        """Create an object and return it as the server has it."""
        return await self._write(
            "dry_run" if dry_run else "create",
            resource.plural,
            lambda: self._api.create(resource, namespace, body, dry_run=dry_run),
        )

    async def patch(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch."""
        return await self._write(
            "patch", resource.plural, lambda: self._api.patch(resource, namespace, name, body)
        )

    async def patch_status(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Apply a merge patch to the status subresource."""
        return await self._write(
            "patch_status", resource.plural, lambda: self._api.patch_status(resource, namespace, name, body)
        )

    async def replace(
        self, resource: port.Resource, namespace: str | None, name: str, body: port.Object
    ) -> port.Object:
        """Replace an object (PUT)."""
        return await self._write(
            "replace", resource.plural, lambda: self._api.replace(resource, namespace, name, body)
        )

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
        """Delete an object."""
        await self._write(
            "delete",
            resource.plural,
            lambda: self._api.delete(
                resource,
                namespace,
                name,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                at_once=at_once,
            ),
        )

    async def version(self) -> Mapping[str, str]:
        """Return the server's /version."""
        return await self._read("get", "version", self._api.version)

    async def close(self) -> None:
        """Close the adapter behind."""
        await self._api.close()

    async def _write(self, verb: str, plural: str, send: Callable[[], Awaitable[_T]]) -> _T:
        # The token first: a place held while waiting for one would be lost to the reads.
        self.waiting += 1
        try:
            waited = await self._bucket.take()
            self.throttled += waited
        finally:
            self.waiting -= 1
        return await self._read(verb, plural, send, fence=self._fence)

    async def _read(
        self,
        verb: str,
        plural: str,
        send: Callable[[], Awaitable[_T]],
        *,
        fence: Callable[[], None] | None = None,
    ) -> _T:
        async with self._places:
            if fence is not None:
                fence()
            self.requests[verb, plural] += 1
            try:
                return await send()
            except port.ApiError as error:
                self.errors[verb, plural, error.status] += 1
                if error.status == 429:
                    self._bucket.pause(min(error.retry_after or _PAUSE, _LONGEST_PAUSE))
                raise
