"""Keeps the domains of the interconnect in step with the cluster: what to watch, when to look, what to tell.

A task of its own beside the loop. The objects that sources are read from are watched here; nodes are those of
the cache. It looks some time after something changed, so that a hundred nodes that join are one change, and
hands the domains to the cache, which has a pass made. What may not be read, or is not there, is a condition
in the status of the Interconnect and stops nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from lstqueue.kube import port, reflector
from lstqueue.operator import bell, blame, fabric_sources, fabric_status, guard, interconnects
from lstqueue.operator import cache as caches
from lstqueue.operator import settings as all_settings
from lstqueue.topology.domains import Domains

QUIET = 1.0
"""Seconds without a change after which it looks."""
AT_MOST = 10.0
"""Seconds after the first change, at most."""

AGAIN = 60.0
"""Seconds after which it looks again whether what is watched can still be read."""
PATIENCE = 30.0
"""Seconds for which the first pass waits for sources that do not answer."""

_LOG = logging.getLogger(__name__)

Watch = Callable[..., reflector.Reflector]


class Fabric:
    """The interconnect of a cluster.

    `watch` makes a reflector of (resource, callback, namespace=, fields=). `interconnects` and `nodes` say
    when these were read; `ready` is set once domains were looked for with all that could be read.
    """

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        watch: Watch,
        *,
        now: Callable[[], int],
        settings: all_settings.Settings,
    ) -> None:
        self._cache = cache
        self._watch = watch
        self._apart = settings.queue_status_interval
        self._bell = bell.Bell(quiet=QUIET, at_most=AT_MOST)
        self._views: dict[str, interconnects.View] = {}
        self._watching: dict[fabric_sources.Watched, tuple[reflector.Reflector, asyncio.Task[Any]]] = {}
        self._objects: dict[fabric_sources.Watched, dict[str, port.Object]] = {}
        self._told = fabric_status.Reporter(api, cache.guard, now=now, wrote=self.apply)
        self._warned = ""
        self.guard = cache.guard
        self.known = interconnects.Interconnect()
        self.ready = asyncio.Event()
        cache.occupancy.on_places = self._bell.ring

    @guard.one("Interconnect")
    def apply(self, event: str, raw: interconnects.Object) -> None:
        """Take in an Interconnect."""
        uid = raw["metadata"]["uid"]
        if event == "DELETED":
            self._views.pop(uid, None)
        else:
            seen = interconnects.view(raw)
            known = self._views.get(uid)
            if known is not None and known.version >= seen.version:
                return
            self._views[uid] = seen
            if known is not None and known.spec == seen.spec and known.problem == seen.problem:
                return
        self._bell.ring()

    async def run(self, *read: asyncio.Event) -> None:
        """Look until cancelled, the first time once `read`, of nodes and of Interconnects, are set."""
        for event in read:
            await event.wait()
        try:
            async with asyncio.TaskGroup() as group:
                self._rewatch(group)
                await self._patience()
                while True:
                    self._rewatch(group)
                    self._look()
                    self.ready.set()
                    pending = await self._told.tell(self._views, self.known)
                    await self._bell.wait(self._apart if pending else AGAIN if self._watching else None)
        finally:
            self._watching.clear()

    async def _patience(self) -> None:
        """Wait for what the sources are read from, but not for ever: jobs can go without it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for source, _ in self._watching.values():
                    await source.answered.wait()

    def _rewatch(self, group: asyncio.TaskGroup) -> None:
        """Watch what the sources are read from, and nothing else."""
        view = interconnects.chosen(self._views.values())
        sources = view.spec.sources if view is not None and view.spec is not None else ()
        wanted = {place for source in sources if (place := fabric_sources.watched(source)) is not None}
        for place in self._watching.keys() - wanted:
            self._watching.pop(place)[1].cancel()
            self._objects.pop(place, None)
        for place in sorted(wanted - self._watching.keys(), key=str):
            source = self._watch(
                place.resource,
                self._taker(place),
                namespace=place.namespace or None,
                fields=f"metadata.name={place.name}" if place.name else "",
            )
            self._watching[place] = source, group.create_task(self._follow(source))

    async def _follow(self, source: reflector.Reflector) -> None:
        ringing = asyncio.create_task(self._answered(source))
        try:
            await source.run()
        finally:
            ringing.cancel()

    async def _answered(self, source: reflector.Reflector) -> None:
        """Look once there is an answer, which may be that there is nothing, or that it may not be read."""
        await source.answered.wait()
        self._bell.ring()

    def _taker(self, place: fabric_sources.Watched) -> Callable[[str, port.Object], None]:
        def take(event: str, raw: port.Object) -> None:
            there = self._objects.setdefault(place, {})
            if event == "DELETED":
                there.pop(raw["metadata"]["uid"], None)
            else:
                there[raw["metadata"]["uid"]] = raw
            self._bell.ring()

        return take

    def _look(self) -> None:
        heard = {place: self._heard(place, source) for place, (source, _) in self._watching.items()}
        view = interconnects.chosen(self._views.values())

        def look() -> None:
            if self.known.look(view, heard, self._cache.nodes):
                self._seen(self.known.domains)

        self.guard.attempt("Interconnect", view.name if view is not None else "of labels", look)
        gone = next((state.problem for state in self.known.states.values() if state.stale), "")
        if view is None and gone and gone != self._warned:
            # There is no status to say it in.
            _LOG.warning("domains are those that labels of nodes told before, for now %s", gone)
        self._warned = gone

    def _seen(self, domains: Domains | None) -> None:
        """Hand over the domains; what they ask of gangs is part of what the engine knows of these."""
        if _roots(domains) != _roots(self._cache.domains):
            for record in self._cache.records.values():
                record.engine_job = None
        self._cache.occupancy.near = blame.homes(domains)
        self._cache.see(domains)

    def _heard(self, place: fabric_sources.Watched, source: reflector.Reflector) -> interconnects.Heard:
        error = source.last_error
        there = tuple(sorted(self._objects.get(place, {}).values(), key=_identity))
        if isinstance(error, port.ForbiddenError | port.NotFoundError):
            return interconnects.Heard(there, f"{place.title} cannot be read: {error.message}")
        if not source.synced.is_set():
            # What there is may be the first pages of a list.
            why = error or "there is no answer so far"
            return interconnects.Heard(pending=f"{place.title} has not been read yet: {why}")
        return interconnects.Heard(there)


def _roots(domains: Domains | None) -> str:
    """The level of which a gang needs one domain whatever it asks for, "" for none."""
    return domains.levels[0].name if domains is not None and not domains.spans and domains.levels else ""


def _identity(raw: interconnects.Object) -> tuple[str, str]:
    meta = raw["metadata"]
    return meta.get("namespace", ""), meta["name"]
