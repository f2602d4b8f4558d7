"""Keeps an intake in step with one kind on the server: a paged LIST, then a watch, for as long as it runs.

The reflector remembers of each object only who it is and at which version, so that a relist can say what
vanished and what changed. It holds no objects and decides nothing: a callback projects what it needs, at
once. Callbacks are synchronous, in the server's order, and their errors end the reflector: an intake that
lost an event is worse than none.

No event is lost between LIST and watch, since the watch begins at the list's resourceVersion; nor by a cut,
since it goes on from the last version seen. When the server no longer has that version (410 as an answer or
inside the stream), everything is listed again, and what vanished meanwhile is told as DELETED.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from lstqueue.kube import backoff, port

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"

_TRUST = 5
"""Failures in a row after which the last resourceVersion is doubted (a restored etcd, an event that cannot be
read) and everything is listed again."""

_SHORT = 1.0
"""Seconds under which a watch that ends without an event has failed: else two servers could spin on it."""

_STEADY = 10.0
"""Seconds after which a watch that then fails has not failed in a row with what went before. A server takes
about three of them to say that it does not know a version yet."""

_JITTER = 0.2
"""Part of the watch's length that varies, so that the watches of a process do not all end together."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """What a reflector has done since it was made.

    Attributes:
        events: events of watches, without bookmarks.
        relists: complete LISTs after the first.
        restarts: watches begun after the first, relists included.
        vanished: objects found missing by a LIST, told as DELETED.
        errors: failed lists and watches by the server's reason (or ours: Timeout, Silent, ...).
    """

    events: int = 0
    relists: int = 0
    restarts: int = 0
    vanished: int = 0
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Identity:
    """What is remembered of an object."""

    namespace: str
    name: str
    version: str


class _FailedError(Exception):
    """Carries an error of the API through code that must not mistake a callback's for one."""

    def __init__(self, error: port.ApiError) -> None:
        super().__init__(str(error))
        self.error = error


class Reflector:
    """Tells a callback about every object of one kind, for as long as `run` runs.

    Args:
        api: where to list and watch.
        resource: the kind.
        on_event: called with ADDED, MODIFIED or DELETED and the object. After a relist a DELETED object
            carries only its kind and `metadata` {uid, namespace, name, resourceVersion (the last seen)}, and
            deletions come first, since names may have been taken again. Intakes should key by UID.
        on_synced: called once, after everything of the first complete LIST has been told.
        namespace: of the objects; None is all.
        labels: label selector, applied by the server.
        fields: field selector, applied by the server.
        page_size: objects per page of a LIST.
        watch_seconds: about how long each watch lasts.
        idle_seconds: a watch in which not even a bookmark came for that long is begun anew; servers send one
            a minute. 0 never.
        delays: how long to wait after failures.

    Attributes:
        counts: figures for metrics.
        synced: set with `on_synced`.
        answered: set with `synced`, or once the server says that the kind may not be read, or is not there.
        last_activity: time of the loop's clock at which the server last said something; None before that.
        last_error: the latest failure, None once the server has answered since.
    """

    def __init__(
        self,
        api: port.KubeApi,
        resource: port.Resource,
        *,
        on_event: Callable[[str, port.Object], None],
        on_synced: Callable[[], None] | None = None,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        page_size: int = 500,
        watch_seconds: int = 300,
        idle_seconds: float = 90.0,
        delays: backoff.Backoff | None = None,
    ) -> None:
        self._api = api
        self._resource = resource
        self._on_event = on_event
        self._on_synced = on_synced
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._page_size = page_size
        self._watch_seconds = watch_seconds
        self._idle_seconds = idle_seconds
        self._delays = delays or backoff.Backoff()
        self._known: dict[str, Identity] = {}
        self._version = ""
        self._failures = 0
        self._watches = 0
        self.counts = Counts()
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self.last_activity: float | None = None
        self.last_error: port.ApiError | None = None

    @property
    def resource(self) -> port.Resource:
        """The kind."""
        return self._resource

    @property
    def known(self) -> Mapping[str, Identity]:
        """Who is there, by UID; a live view."""
        return self._known

    async def run(self) -> NoReturn:
        """List and watch until cancelled, or until a callback raises."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except _FailedError as failure:
                await asyncio.sleep(self._failed(failure.error))

    def _failed(self, error: port.ApiError) -> float:
        """Note a failure; return the seconds to wait."""
        self._failures += 1
        self.counts.errors[error.reason] += 1
        if isinstance(error, port.ForbiddenError | port.NotFoundError):
            if str(error) != str(self.last_error):
                _LOG.warning("%s cannot be read, and it is tried again: %s", self._resource.plural, error)
            self.answered.set()
        self.last_error = error
        if not isinstance(error, port.UnavailableError) or self._failures % _TRUST == 0:
            self._version = ""
        return self._delays.delay(self._resource.plural, self._failures, retry_after=error.retry_after)

    def _recovered(self) -> None:
        self._failures = 0
        self.last_error = None

    async def _list(self) -> None:
        # Until the first list is complete nobody decides anything on it, so its pages are passed on as they
        # come and can be freed. Later ones take effect in one step: half of a list is no state of the world.
        at_once = not self._known and not self.synced.is_set()
        seen: set[str] = set()
        changed: list[port.Object] = []
        token = version = ""
        while True:
            page = await self._page(token)
            # Should pages differ, the first version is the safe one: events are seen twice rather than never.
            version = version or page.resource_version
            for item in page.items:
                uid, identity = _identify(item)
                seen.add(uid)
                old = self._known.get(uid)
                if old is None or old.version != identity.version:
                    changed.append(item)
            if at_once:
                self._tell_changed(changed)
                changed.clear()
            token = page.continue_token
            if not token:
                break
        for uid in [uid for uid in self._known if uid not in seen]:
            self.counts.vanished += 1
            self._on_event(DELETED, self._remains(uid, self._known.pop(uid)))
        self._tell_changed(changed)
        self._version = version
        self.last_error = None
        if self.synced.is_set():
            self.counts.relists += 1
        else:
            self.synced.set()
            self.answered.set()
            if self._on_synced is not None:
                self._on_synced()

    async def _page(self, token: str) -> port.Page:
        try:
            page = await self._api.list_page(
                self._resource,
                namespace=self._namespace,
                labels=self._labels,
                fields=self._fields,
                limit=self._page_size,
                continue_token=token,
            )
        except port.ApiError as error:
            raise _FailedError(error) from error
        self.last_activity = asyncio.get_running_loop().time()
        return page

    def _tell_changed(self, objects: list[port.Object]) -> None:
        for item in objects:
            uid, identity = _identify(item)
            what = MODIFIED if uid in self._known else ADDED
            self._known[uid] = identity
            self._on_event(what, item)

    def _remains(self, uid: str, identity: Identity) -> port.Object:
        metadata = {"uid": uid, "name": identity.name, "resourceVersion": identity.version}
        if identity.namespace:
            metadata["namespace"] = identity.namespace
        return {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": metadata,
        }

    async def _follow(self) -> None:
        """Watch from the last version until the stream ends."""
        if self._watches:
            self.counts.restarts += 1
        self._watches += 1
        stretch = 1 + _JITTER * self._delays.jitter(self._resource.plural, self._watches)
        stream = self._api.watch(
            self._resource,
            resource_version=self._version,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            timeout_seconds=round(self._watch_seconds * stretch),
        )
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            heard = await self._consume(stream, loop)
        except _FailedError:
            if loop.time() - started >= _STEADY:
                self._failures = 0
            raise
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if heard or loop.time() - started >= _SHORT:
            self._recovered()
        else:
            raise _FailedError(port.UnavailableError(0, "ShortWatch", "a watch ended as soon as it began"))

    async def _consume(self, stream: AsyncIterator[port.WatchEvent], loop: asyncio.AbstractEventLoop) -> bool:
        """Apply a watch's events to its end; return whether there was one."""
        heard = False
        armed = loop.time()
        try:
            async with asyncio.timeout(self._idle_seconds or None) as silence:
                while (event := await _next(stream)) is not None:
                    now = self.last_activity = loop.time()
                    # Moving a timer with every event would cost as much as the event.
                    if self._idle_seconds and now - armed > self._idle_seconds / 4:
                        silence.reschedule(now + self._idle_seconds)
                        armed = now
                    if not heard:
                        heard = True
                        self._recovered()
                    self._apply(event)
        except TimeoutError:
            if not silence.expired():
                raise
            # Noted, but no failure: a quiet server without bookmarks is merely asked again.
            self.counts.errors["Silent"] += 1
        return heard

    def _apply(self, event: port.WatchEvent) -> None:
        if event.type == BOOKMARK:
            self._version = event.object["metadata"]["resourceVersion"]
            return
        uid, identity = _identify(event.object)
        self.counts.events += 1
        self._version = identity.version
        old = self._known.get(uid)
        if event.type == DELETED:
            if old is not None:
                del self._known[uid]
                self._on_event(DELETED, event.object)
        elif old is None:
            self._known[uid] = identity
            self._on_event(ADDED, event.object)
        elif old.version != identity.version:
            self._known[uid] = identity
            self._on_event(MODIFIED, event.object)


async def _next(stream: AsyncIterator[port.WatchEvent]) -> port.WatchEvent | None:
    try:
        return await anext(stream, None)
    except port.ApiError as error:
        raise _FailedError(error) from error


def _identify(item: port.Object) -> tuple[str, Identity]:
    metadata = item["metadata"]
    return metadata["uid"], Identity(
        metadata.get("namespace", ""), metadata["name"], metadata["resourceVersion"]
    )
