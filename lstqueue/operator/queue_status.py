"""The status of each GPUQueue: how many wait and run, and what they use of the quota.

Written at most once per interval and queue, and only when a figure changed; what did not go through is left
to the next turn. It reports what the last pass saw and decides nothing.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import quantities
from lstqueue.engine import kept, model
from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import guard, loop, overloads, queues, tellings
from lstqueue.operator import settings as all_settings

_PENDING = (model.State.WAITING, model.State.HELD_BACK, model.State.CLAIMING)

_LOOK = 1.0
"""Seconds between two looks that found nothing to say."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one time, by queue.

    `jobs` are those of the last pass, `ended` counts the finished ones that are still listed and met their
    deadline (True) or missed it. `settled` are the queues as that pass took them, by name, `given_up`
    how many of each it gave up.
    """

    jobs: Mapping[str, list[model.Job]]
    ended: Mapping[str, Counter[bool]]
    settled: Mapping[str, model.Queue]
    given_up: Mapping[str, int]


class Reporter:
    """Writes the statuses of all queues, for as long as it runs."""

    def __init__(
        self,
        api: port.KubeApi,
        cache: caches.Cache,
        passes: loop.Loop,
        settings: all_settings.Settings,
        *,
        now: Callable[[], int],
    ) -> None:
        self._api = api
        self._cache = cache
        self._loop = passes
        self._interval = settings.queue_status_interval
        self._now = now
        self._seen = -1
        self._refusal = ""

    async def run(self) -> None:
        """Report until cancelled; rests while no pass has been made and all is told."""
        while True:
            await self._loop.next_pass(after=self._seen)
            self._seen = self._loop.passes
            wrote, look = False, self._look()
            for queue in list(self._cache.queues.values()):
                wrote |= await self._spared(queue, look)
            await asyncio.sleep(self._interval if wrote else min(_LOOK, self._interval))

    async def _spared(self, queue: queues.QueueView, look: Look) -> bool:
        """Report on one queue; an error of ours in that keeps no other from its status."""
        report = functools.partial(self._report, queue, look)
        try:
            return await self._cache.guard.calls(port.GPU_QUEUES.kind, queue.name, report)
        except guard.DefectError:
            return True

    def _look(self) -> Look:
        """Group all jobs by their queues: one walk, however many queues there are."""
        known = self._loop.plan.kept if self._loop.plan is not None else None
        last = known if isinstance(known, kept.Kept) else None
        settled = last.queues if last is not None else {}
        given_up = overloads.by_queue(last)
        look = Look(collections.defaultdict(list), collections.defaultdict(Counter), settled, given_up)
        for job in self._loop.snapshot.jobs if self._loop.snapshot is not None else ():
            look.jobs[job.queue].append(job)
        for record in self._cache.records.values():
            if record.ledger.final and record.ledger.met is not None:
                look.ended[self._cache.queue_of(record.ledger)][record.ledger.met] += 1
        return look

    async def _report(self, queue: queues.QueueView, look: Look) -> bool:
        """Write what is new about a queue; return whether there was anything."""
        status = self._figures(queue, look)
        if status == {key: (queue.status or {}).get(key) for key in status}:
            return False
        body = {"metadata": {"resourceVersion": str(queue.version)}, "status": status}
        try:
            raw = await self._api.patch_status(port.GPU_QUEUES, None, queue.name, body)
        except port.NotFoundError:
            return True
        except port.ApiError as error:
            self._seen = -1  # counted by the adapter; the next turn writes what is true then
            if isinstance(error, port.ForbiddenError) and error.message != self._refusal:
                self._refusal = error.message
                _LOG.warning("the status of GPUQueue %s is not written: %s", queue.name, error)
            return True
        self._refusal = ""
        self._cache.apply_queue("MODIFIED", raw)
        return True

    def _figures(self, queue: queues.QueueView, look: Look) -> dict[str, Any]:
        jobs, ended = look.jobs[queue.name], look.ended[queue.name]
        states = Counter(job.state for job in jobs)
        return {
            "observedGeneration": queue.generation,
            "pending": sum(states[state] for state in _PENDING),
            "admitted": states[model.State.ADMITTED],
            "running": states[model.State.RUNNING],
            "usage": _usage(queue, jobs),
            "met": ended[True],
            "missed": ended[False],
            "conditions": tellings.written(
                queue.status or {}, _facts(queue, look), now=self._now(), generation=queue.generation
            ),
        }


def _facts(queue: queues.QueueView, look: Look) -> dict[str, tellings.Told]:
    """Say whether the queue can be read, what its cohort makes of it, and whether all it has can hold."""
    settled = look.settled.get(queue.name)
    valid = not queue.problem
    told: dict[str, tellings.Told] = {
        "Accepted": (valid, "Accepted" if valid else "InvalidSpec", queue.problem)
    }
    conflict = settled.conflict if settled is not None else ""
    if conflict or queue.engine.cohort:
        said = f"It admits nobody: {conflict}." if conflict else ""
        told["Conflict"] = (bool(conflict), "Conflict" if conflict else "NoConflict", said)
    if settled is not None and settled.order is not queue.engine.order:
        said = (
            f"Jobs go in the order {settled.order.value} of the oldest queue of cohort"
            f' "{settled.cohort}", and not in {queue.engine.order.value}.'
        )
        told["OrderOverridden"] = (True, "OrderOfCohort", said)
    if (overload := overloads.told(queue, look.given_up.get(queue.name, 0))) is not None:
        told[overloads.KIND] = overload
    return told


def _usage(queue: queues.QueueView, jobs: list[model.Job]) -> list[dict[str, str]]:
    used: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        for share in job.assigned:
            for name, amount in job.groups[share.group].shape.requests:
                used[share.pool, name] += amount * (share.bound + share.held)
    rows: list[dict[str, str]] = []
    for pool in queue.engine.pools:
        for name, nominal in pool.nominal:
            has = used[pool.name, name]
            row = {
                "pool": pool.name,
                "name": name,
                "used": quantities.format(name, has),
                "nominal": quantities.format(name, nominal),
            }
            if queue.engine.cohort:
                row["borrowed"] = quantities.format(name, max(has - nominal, 0))
            rows.append(row)
    return rows
