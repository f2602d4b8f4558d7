"""The operator put together: sources, cache, loop, writer, relists. Knows nothing of kopf.

Everything comes from reflectors, but for GPUQueues where somebody else calls `cache.apply_queue` (the kopf
shell). Those are relisted: listed at start, before the first decision, and every few minutes after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lstqueue.api import names, times
from lstqueue.kube import backoff, limits, port, reflector, relist
from lstqueue.operator import (
    announce,
    archive,
    bell,
    events,
    fabric,
    histories,
    keeper,
    loop,
    metrics,
    overstayers,
    queue_status,
    strays,
)
from lstqueue.operator import cache as caches
from lstqueue.operator import settings as all_settings

_LOG = logging.getLogger(__name__)

OURS = names.LABEL_JOB
FOREIGN = f"!{names.LABEL_JOB}"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"

DISPENSABLE = (port.PYTORCH_JOBS, port.CRON_JOBS, port.RESOURCE_QUOTAS, port.CONFIG_MAPS, port.INTERCONNECTS)
"""Kinds without which decisions are merely made knowing less: the log says which one cannot be read."""

_HEARD_BY = 120_000
"""Ms after which a new GPUQueue must have come through the shell, reconnects and their back-off included."""

_DEAF = 2
"""Relists in a row that find unheard queues: the first after an outage may be ahead of the watch."""


class DeafError(Exception):
    """The shell's watch does not tell of what is there; only a new process mends that."""


class Operator:
    """One operator.

    `fed` says that somebody else feeds GPUQueues into the cache. `fence` is called before each write is sent;
    what it raises, a `port.FencedError`, ends the operator, which then has written nothing more.
    """

    def __init__(
        self,
        api: port.KubeApi,
        *,
        now: Callable[[], int],
        settings: all_settings.Settings | None = None,
        fed: bool = False,
        fence: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings or all_settings.Settings()
        self.api, self.words = _limited(api, self.settings, fence)
        self.metrics = metrics.Metrics()
        self._bell = bell.Bell(
            quiet=self.settings.quiet, at_most=self.settings.at_most, apart=self.settings.pass_every
        )
        self.cache = caches.Cache(self._bell.ring)
        self.events = events.Recorder(self.words, now=now)
        announcer = announce.Announcer(self.events.tell, self.cache.name_of)
        self.loop = loop.Loop(
            self.api,
            self.cache,
            self._bell,
            now=now,
            settings=self.settings,
            figures=self.metrics,
            told=announcer.wrote,
            cleared=announcer.cleared,
            tell=self.events.tell,
        )
        self.keeper = keeper.Keeper(self.api, self.cache, self.events, now=now, settings=self.settings)
        self._archive = archive.Archive(self.words, self.cache, now=now)
        self.strays = strays.Strays(self.api, self.cache, self.events)
        self.overstayers = overstayers.Overstayers(
            self.api, self.cache, self.events, settings=self.settings, now=now
        )
        self.fabric = fabric.Fabric(self.words, self.cache, self._reflector, now=now, settings=self.settings)
        self.synced = asyncio.Event()
        self._nodes = self._reflector(port.NODES, self.cache.apply_node)
        self._interconnects = self._reflector(port.INTERCONNECTS, self.fabric.apply)
        self._pytorch_jobs = self._reflector(port.PYTORCH_JOBS, self.cache.apply_pytorch_job)
        self.reflectors = self._sources()
        if not fed:
            self.reflectors.append(self._reflector(port.GPU_QUEUES, self.cache.apply_queue))
        self._fed = fed
        self._now = now
        self._relisted = asyncio.Event()
        self._unheard_relists = 0
        self._queue_status = queue_status.Reporter(self.api, self.cache, self.loop, self.settings, now=now)

    def _sources(self) -> list[reflector.Reflector]:
        """What tells of everything but GPUQueues."""
        return [
            self._reflector(port.PODS, self.cache.apply_pod, labels=OURS),
            self._reflector(port.PODS, self.cache.apply_pod, labels=FOREIGN, fields=LIVE),
            self._reflector(port.JOBS, self.cache.apply_job),
            self._pytorch_jobs,
            self._reflector(port.CRON_JOBS, self.keeper.saw_cron_job, labels=names.LABEL_QUEUE),
            self._nodes,
            self._interconnects,
            self._reflector(port.NAMESPACES, self.cache.apply_namespace),
            self._reflector(port.RESOURCE_QUOTAS, self.cache.allowances.apply),
            self._reflector(
                port.CONFIG_MAPS, self.cache.apply_history, fields=f"metadata.name={histories.NAME}"
            ),
            self._reflector(port.DEADLINE_JOBS, self.cache.apply_ledger),
        ]

    async def run(self) -> None:
        """Run until cancelled; an error of any part ends all of it, for a restart mends everything."""
        async with asyncio.TaskGroup() as group:
            for source in self.reflectors:
                group.create_task(source.run())
            if self._fed:
                group.create_task(self._relists())
            group.create_task(self.fabric.run(self._nodes.synced, self._interconnects.answered))
            group.create_task(self.loop.writer.work())
            group.create_task(self._decide())
            group.create_task(self._queue_status.run())
            group.create_task(self.events.run())

    def behind(self) -> list[str]:
        """Say which kinds have not been read yet, and why if the server refused."""
        unread = {_told(source) for source in self.reflectors if not self._read(source)}
        if self._fed and not self._relisted.is_set():
            unread.add(port.GPU_QUEUES.plural)
        return sorted(unread)

    def _read(self, source: reflector.Reflector) -> bool:
        """Whether a kind was read, or need not be: clusters may lack those that not everybody uses."""
        optional = source in (self._interconnects, self._pytorch_jobs)
        there = source.answered if optional else source.synced
        return there.is_set()

    async def _decide(self) -> None:
        for source in self.reflectors:
            # What may not be read, or is not there, must not keep all gangs waiting who can go without it.
            there = source.answered if source.resource in DISPENSABLE else source.synced
            await there.wait()
        if self._fed:
            await self._relisted.wait()
        await self.fabric.ready.wait()
        self.cache.units.settled()
        self.synced.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loop.steps())
            group.create_task(self.loop.run())
            group.create_task(self.keeper.run())
            group.create_task(self.strays.run())
            group.create_task(self.overstayers.run())
            group.create_task(self._archive.run())

    async def _relists(self) -> None:
        failures, delays = 0, backoff.Backoff(base=self.settings.retry_first, limit=self.settings.retry_most)
        while True:
            try:
                await self._relist()
            except port.ApiError as error:
                failures += 1
                _LOG.warning("GPUQueues could not be listed: %s", error)
                await asyncio.sleep(delays.delay("relist", failures, retry_after=error.retry_after))
                continue
            failures = 0
            self._relisted.set()
            await asyncio.sleep(self.settings.relist_interval)

    async def _relist(self) -> None:
        """List GPUQueues and take in what the shell's watch missed.

        Raises:
            DeafError: it misses everything, it seems.
        """
        known = self.cache.queue_versions()
        found = await relist.relist(self.api, port.GPU_QUEUES, known, page_size=self.settings.page_size)
        new = [item for item in found.changed if item["metadata"]["uid"] not in known]
        unheard = self._relisted.is_set() and any(self._unheard(item) for item in new)
        for item in found.changed:
            self.cache.apply_queue("MODIFIED", item)
        for uid in found.vanished:
            self.cache.apply_queue("DELETED", self.cache.remains(uid))
        self._unheard_relists = self._unheard_relists + 1 if unheard else 0
        if self._unheard_relists >= _DEAF:
            raise DeafError("the watch of GPUQueues tells nothing of what is there; start again")

    def _unheard(self, queue: port.Object) -> bool:
        """Whether the shell should have told of a new queue long ago."""
        return self._now() - times.parse(queue["metadata"]["creationTimestamp"]) > _HEARD_BY

    def _reflector(
        self,
        resource: port.Resource,
        on_event: Callable[[str, port.Object], None],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> reflector.Reflector:
        return reflector.Reflector(
            self.api,
            resource,
            on_event=on_event,
            namespace=namespace,
            labels=labels,
            fields=fields,
            page_size=self.settings.page_size,
            watch_seconds=self.settings.watch_seconds,
            idle_seconds=self.settings.inactivity_timeout,
        )


def _limited(
    api: port.KubeApi, settings: all_settings.Settings, fence: Callable[[], None] | None
) -> tuple[limits.LimitedApi, limits.LimitedApi]:
    """The API for what counts, and for words, whose own allowance keeps all else from waiting for them."""
    counts = limits.LimitedApi(
        api,
        rate=settings.writes_per_second,
        burst=settings.write_burst,
        in_flight=settings.in_flight,
        fence=fence,
    )
    words = limits.LimitedApi(
        api, rate=settings.events_per_second, burst=settings.event_burst, in_flight=1, fence=fence
    )
    return counts, words


def _told(source: reflector.Reflector) -> str:
    refused = f" ({source.last_error})" if isinstance(source.last_error, port.ForbiddenError) else ""
    return f"{source.resource.plural}{refused}"
