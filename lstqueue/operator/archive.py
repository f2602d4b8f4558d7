"""Writes what is learnt of run times into the ConfigMap of each namespace: some time after ends, all at once.

Nothing waits for it and nothing is lost by it: what could not be written is tried again, ever more rarely,
and what an end of this process keeps from being written is learnt anew from the DeadlineJobs that are over.
Of a namespace that is gone, or going, with all of its DeadlineJobs nothing is written, and all is forgotten.
Each write names the version it was made from; a conflict has the ConfigMap read and the same learnt on top
of what somebody else wrote. Without permission run times are remembered for as long as the process lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from lstqueue.api import names
from lstqueue.kube import backoff, port
from lstqueue.operator import cache as caches
from lstqueue.operator import guard, histories

TOGETHER = 10.0
"""Seconds in which ends are gathered before they are written."""
APART = 300.0
"""Seconds between two writes for a namespace, and between tries, at most, while they fail."""
ABOUT = (
    "Run times that lstqueue has seen in this namespace (docs/operations.md). Entries may be removed; so may "
    "all of it, which forgets them."
)
ENDING = "because it is being terminated"
"""What API servers say of a namespace that is being deleted; for a want of permission they say another."""

_LOG = logging.getLogger(__name__)


class Archive:
    """Works in a task of its own, one write at a time."""

    def __init__(self, api: port.KubeApi, cache: caches.Cache, *, now: Callable[[], int]) -> None:
        self._api = api
        self._cache = cache
        self._now = now
        self._delays = backoff.Backoff(base=TOGETHER, limit=APART)
        self._turns: dict[str, tuple[int, int]] = {}
        """By namespace: how often in a row it failed, and when (ms) it is written again."""
        self._refused: set[str] = set()

    async def run(self) -> None:
        """Write until cancelled."""
        known = self._cache.histories
        while True:
            await known.there.wait()
            await asyncio.sleep(TOGETHER)
            known.there.clear()
            for namespace in known.unwritten():
                at = self._turns.get(namespace, (0, 0))[1]
                if not self._now() < at <= self._now() + int(1000 * APART):
                    await self._store(namespace)
            self._turns = {name: turn for name, turn in self._turns.items() if name in known.shelves}
            self._refused &= known.shelves.keys()
            if known.unwritten():
                known.there.set()

    async def _store(self, namespace: str) -> None:
        """Write one namespace's; what fails is put off."""
        try:
            await self._cache.guard.calls(port.CONFIG_MAPS.kind, namespace, lambda: self._write(namespace))
        except port.ConflictError:
            await self._reread(namespace)
        except port.ApiError as error:
            self._put_off(namespace, error)
        else:
            self._turns[namespace] = 0, self._now() + int(1000 * APART)
            self._refused.discard(namespace)

    async def _write(self, namespace: str) -> None:
        known = self._cache.histories
        version, changed = known.patch(namespace)
        if not changed:
            known.all_known(namespace)
            return
        if version:
            body: dict[str, Any] = {"metadata": {"resourceVersion": version}, "data": changed}
            try:
                raw = await self._api.patch(port.CONFIG_MAPS, namespace, histories.NAME, body)
            except port.NotFoundError:
                known.missing(namespace)
                raise
        else:
            data = {key: text for key, text in changed.items() if text is not None}
            try:
                raw = await self._api.create(port.CONFIG_MAPS, namespace, _made(data))
            except port.ApiError as error:
                if _names_no_namespace(error) and not self._cache.namespaces.jobs(namespace):
                    known.drop(namespace)
                    return
                raise
        self._cache.apply_history("MODIFIED", raw)

    async def _reread(self, namespace: str) -> None:
        """Take in what somebody else wrote, or created; what waits is learnt on top of it."""
        try:
            raw = await self._api.get(port.CONFIG_MAPS, namespace, histories.NAME)
        except port.ApiError as error:
            self._put_off(namespace, error)
            return
        self._cache.apply_history("MODIFIED", raw)

    def _put_off(self, namespace: str, error: port.ApiError) -> None:
        failures = self._turns.get(namespace, (0, 0))[0] + 1
        wait = self._delays.delay(namespace, failures, retry_after=error.retry_after)
        if isinstance(error, port.ForbiddenError | port.InvalidError | guard.DefectError):
            wait = APART
        self._turns[namespace] = failures, self._now() + int(1000 * wait)
        if namespace not in self._refused:
            self._refused.add(namespace)
            _LOG.warning(
                "run times of namespace %s are not stored, and forgotten when the operator ends: %s",
                namespace,
                error,
            )


def _names_no_namespace(error: port.ApiError) -> bool:
    """Whether a create was refused because its namespace is gone, or takes in nothing new until it is."""
    return isinstance(error, port.NotFoundError) or (
        isinstance(error, port.ForbiddenError) and ENDING in error.message
    )


def _made(data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": histories.NAME,
            "labels": {"app.kubernetes.io/managed-by": "lstqueue"},
            "annotations": {f"{names.GROUP}/about": ABOUT},
        },
        "data": data,
    }
