"""The operator put together: sources, cache, loop, writer, sweeps. Knows nothing of kopf.

Pods, nodes and child Jobs come from reflectors; DeadlineJobs and GPUQueues from whoever calls
`cache.apply_ledger` and `apply_queue` (the kopf shell), or from reflectors as well where there is no shell.
Either way they are swept: listed at start, before the first decision, and every few minutes after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from lstqueue.api import names, times
from lstqueue.kube import backoff, limits, port, reflector, sweep
from lstqueue.operator import announce, bell, events, keeper, loop, metrics, queue_status, strays
from lstqueue.operator import cache as caches
from lstqueue.operator import settings as all_settings

_LOG = logging.getLogger(__name__)

OURS = names.LABEL_JOB
FOREIGN = f"!{names.LABEL_JOB}"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"

DISPENSABLE = (port.CRON_JOBS, port.RESOURCE_QUOTAS)
"""Kinds without which decisions are merely made knowing less: the log says which one cannot be read."""

_HEARD_BY = 120_000
"""Ms after which a new object must have come through the shell, reconnects and their back-off included."""

_DEAF = 2
"""Sweeps in a row that find unheard objects: the first after an outage may be ahead of the watches."""


class DeafError(Exception):
    """The shell's watches do not tell of what is there; only a new process mends that."""


class Operator:
    """One operator.

    `fed` says that somebody else feeds our own kinds into the cache. `fence` is called before each write is
    sent; what it raises ends the operator, which then has written nothing more.
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
        self.api = limits.LimitedApi(
            api,
            rate=self.settings.writes_per_second,
            burst=self.settings.write_burst,
            in_flight=self.settings.in_flight,
            fence=fence,
        )
        self.metrics = metrics.Metrics()
        self._bell = bell.Bell(quiet=self.settings.quiet, at_most=self.settings.at_most)
        self.cache = caches.Cache(self._bell.ring)
        # Words have an allowance of their own, so that nothing that counts ever waits for them.
        self.words = limits.LimitedApi(
            api,
            rate=self.settings.events_per_second,
            burst=self.settings.event_burst,
            in_flight=1,
            fence=fence,
        )
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
        )
        self.keeper = keeper.Keeper(self.api, self.cache, self.events, now=now, settings=self.settings)
        self.strays = strays.Strays(self.api, self.cache, self.events, now=now)
        self.synced = asyncio.Event()
        self.reflectors = [
            self._reflector(port.PODS, self.cache.apply_pod, labels=OURS),
            self._reflector(port.PODS, self.cache.apply_pod, labels=FOREIGN, fields=LIVE),
            self._reflector(port.JOBS, self.cache.apply_job),
            self._reflector(port.CRON_JOBS, self.keeper.saw_cron_job, labels=names.LABEL_QUEUE),
            self._reflector(port.NODES, self.cache.apply_node),
            self._reflector(port.NAMESPACES, self.cache.apply_namespace),
            self._reflector(port.RESOURCE_QUOTAS, self.cache.allowances.apply),
        ]
        if not fed:
            self.reflectors += [
                self._reflector(port.GPU_QUEUES, self.cache.apply_queue),
                self._reflector(port.DEADLINE_JOBS, self.cache.apply_ledger),
            ]
        self._fed = fed
        self._now = now
        self._swept = asyncio.Event()
        self._unheard_sweeps = 0
        self._queue_status = queue_status.Reporter(self.api, self.cache, self.loop, self.settings, now=now)

    async def run(self) -> None:
        """Run until cancelled; an error of any part ends all of it, for a restart mends everything."""
        async with asyncio.TaskGroup() as group:
            for source in self.reflectors:
                group.create_task(source.run())
            if self._fed:
                group.create_task(self._sweeps())
            group.create_task(self.loop.writer.work())
            group.create_task(self._decide())
            group.create_task(self._queue_status.run())
            group.create_task(self.events.run())

    async def _decide(self) -> None:
        for source in self.reflectors:
            # What may not be read, or is not there, must not keep all gangs waiting who can go without it.
            there = source.answered if source.resource in DISPENSABLE else source.synced
            await there.wait()
        if self._fed:
            await self._swept.wait()
        self.cache.units.settled()
        self.synced.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loop.steps())
            group.create_task(self.loop.run())
            group.create_task(self.keeper.run())
            group.create_task(self.strays.run())

    async def _sweeps(self) -> None:
        failures, delays = 0, backoff.Backoff(base=self.settings.retry_first, limit=self.settings.retry_most)
        while True:
            try:
                await self._sweep()
            except port.ApiError as error:
                failures += 1
                _LOG.warning("our own kinds could not be listed: %s", error)
                await asyncio.sleep(delays.delay("sweep", failures, retry_after=error.retry_after))
                continue
            failures = 0
            self._swept.set()
            await asyncio.sleep(self.settings.sweep_interval)

    async def _sweep(self) -> None:
        """List our own kinds and take in what the shell's watches missed.

        Raises:
            DeafError: they miss everything, it seems.
        """
        unheard = False
        for resource, known, apply in (
            (port.GPU_QUEUES, self.cache.queue_versions(), self.cache.apply_queue),
            (port.DEADLINE_JOBS, self.cache.ledger_versions(), self.cache.apply_ledger),
        ):
            found = await sweep.sweep(self.api, resource, known, page_size=self.settings.page_size)
            unheard |= self._swept.is_set() and any(self._unheard(known, item) for item in found.changed)
            for item in found.changed:
                apply("MODIFIED", item)
            for uid in found.vanished:
                apply("DELETED", self.cache.remains(uid, found.resource_version))
        self._unheard_sweeps = self._unheard_sweeps + 1 if unheard else 0
        if self._unheard_sweeps >= _DEAF:
            raise DeafError("the watches of our own kinds tell nothing of what is there; start again")

    def _unheard(self, known: Mapping[str, str], item: port.Object) -> bool:
        """Whether the shell should have told of an object long ago and never did."""
        age = self._now() - times.parse(item["metadata"]["creationTimestamp"])
        return item["metadata"]["uid"] not in known and age > _HEARD_BY

    def _reflector(
        self,
        resource: port.Resource,
        on_event: Callable[[str, port.Object], None],
        *,
        labels: str = "",
        fields: str = "",
    ) -> reflector.Reflector:
        return reflector.Reflector(
            self.api,
            resource,
            on_event=self.cache.guard.each(resource.kind, on_event),
            labels=labels,
            fields=fields,
            page_size=self.settings.page_size,
            watch_seconds=self.settings.watch_seconds,
            idle_seconds=self.settings.inactivity_timeout,
        )
