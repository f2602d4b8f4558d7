"""Pods behind our gate for which nobody speaks any more: they are let go as if we had never had them.

The template of a user's own Job keeps our gate after its first release, and the Job may outlive the
DeadlineJob that spoke for it; nor can anybody be kept from copying such a template. What has no DeadlineJob
is none of our business and has to run as it would without us. What has one, even one that is over, is led,
or let go, by the lifecycle. Children of inline gangs are never touched: they are about to go.
"""

from __future__ import annotations

import asyncio
import functools
import logging

from lstqueue.jobs import existing, inline, kinds, views
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import events, keeper, units

GRACE = 5_000
"""Ms for which a DeadlineJob, or the end of a Job, may be on its way to us."""
LABELLED = 60_000
"""The same for a Job with the queue label, for which one is written anew."""
AGAIN = 60_000
"""Ms after which what could not be let go is looked at again."""

_ADAPTERS = {kind: adapter for (_, kind), adapter in kinds.ADAPTERS.items()}
"""Those who make pods behind our gate, by kind."""

_LOG = logging.getLogger(__name__)


class Strays:
    """Works in a task of its own, and asks the API server before it believes that a Job has nobody."""

    def __init__(self, api: port.KubeApi, cache: caches.Cache, told: events.Recorder) -> None:
        self._api = api
        self._cache = cache
        self._told = told
        self._since: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._mentioned: set[str] = set()

    async def run(self) -> None:
        """Look after strays until cancelled."""
        while True:
            self._cache.strayed.clear()
            wait = await self._round()
            try:
                async with asyncio.timeout(wait):
                    await self._cache.strayed.wait()
            except TimeoutError:
                continue

    async def _round(self) -> float | None:
        """Look at all strays; return the seconds until one is due again, None for never."""
        now, by_owner = _now(), self._by_owner()
        self._since = {owner: self._since.get(owner, now) for owner in by_owner}
        self._due = {owner: self._due.get(owner, now + GRACE) for owner in by_owner}
        for owner, pods in by_owner.items():
            if self._due[owner] > now:
                continue
            try:
                look = functools.partial(self._look, owner, pods)
                self._due[owner] = await self._cache.guard.calls(port.PODS.kind, pods[0].name, look)
            except port.ApiError as error:
                _LOG.warning("pods of %s could not be let go: %s", pods[0].name, error)
                changed = isinstance(error, port.ConflictError | port.NotFoundError)
                self._due[owner] = _now() + (GRACE if changed else AGAIN)
        return max(0, min(self._due.values()) - _now()) / 1000 if self._due else None

    def _by_owner(self) -> dict[str, list[views.PodView]]:
        found: dict[str, list[views.PodView]] = {}
        for uid in sorted(self._cache.strays):
            pod = self._cache.stray(uid)
            if pod is None or pod.maker[0] not in _ADAPTERS:
                self._cache.strays.discard(uid)
            else:
                found.setdefault(pod.owner, []).append(pod)
        return found

    async def _look(self, owner: str, pods: list[views.PodView]) -> int:
        """Let the pods of one job go if it has nobody; return when (ms) to look at what is left."""
        raw = await self._job(owner, pods[0])
        again = _now() + AGAIN
        if raw is None or inline.owning_job(raw):
            return again
        view = _ADAPTERS[pods[0].maker[0]].unit(raw)
        if view.suspended or view.over or view.deleting:
            # Its controller takes them away.
            return again
        if self._cache.units.spoken_for((view.kind, view.namespace, view.name), owner):
            return again
        if view.queue is not None and not view.manager and _now() < self._since[owner] + LABELLED:
            return self._since[owner] + LABELLED
        for pod in pods:
            raw = await self._api.patch(port.PODS, pod.namespace, pod.name, existing.let_go_pod(pod))
            self._cache.apply_pod("MODIFIED", raw)
        if owner not in self._mentioned:
            if len(self._mentioned) >= units.OWNERS:
                self._mentioned.clear()
            self._mentioned.add(owner)
            subject = events.Subject(view.api_version, view.kind, view.namespace, view.name, owner)
            words = keeper.LEFT_RUNNING
            self._told.tell(events.Note(subject, units.LEFT_RUNNING, words, warning=True, once=True))
        return _now() + GRACE

    async def _job(self, owner: str, pod: views.PodView) -> port.Object | None:
        """Read the job that controls a pod, None where there is none."""
        kind, name = pod.maker
        try:
            raw = await self._api.get(_ADAPTERS[kind].RESOURCE, pod.namespace, name)
        except port.NotFoundError:
            return None
        return raw if raw["metadata"]["uid"] == owner else None


def _now() -> int:
    """Return ms by the loop's clock, which nobody sets: all that counts here is how long ago."""
    return int(asyncio.get_running_loop().time() * 1000)
