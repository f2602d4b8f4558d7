"""The one writer: a queue of writes, at most one at a time per DeadlineJob, urgent ones first.

A write is a coroutine function that does its calls and returns; what it needs to know it was given when it
was submitted. A newer write for the same job replaces one that has not begun, and whoever submitted that is
told. Failures, of ours too (see `guard`), are reported to one place and never retried here: the loop decides
anew from what the API shows.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lstqueue.kube import port
from lstqueue.operator import guard

_REPLACED = 100
"""Replaced writes, beyond as many as wait, that may pile up behind urgent ones before they are dropped."""


class Urgency(enum.IntEnum):
    """Lower goes first: gangs that hold capacity before new admissions before words."""

    STEP = 0  # the next step of a gang that holds capacity: suspending, ungating, ending
    COMMIT = 1  # admissions and the children they need
    REPORT = 2  # verdicts and reasons


@dataclass(order=True, slots=True)
class Write:
    """One thing to write for one job, and whom to tell what became of it.

    `done` is called when all calls returned, `failed` with the error of the first that did not, `dropped`
    when a newer write took its place before it began.
    """

    urgency: Urgency
    number: int
    uid: str = field(compare=False)
    run: Callable[[], Awaitable[None]] = field(compare=False)
    done: Callable[[], None] = field(compare=False)
    failed: Callable[[port.ApiError], None] = field(compare=False)
    dropped: Callable[[], None] = field(compare=False)
    replaced: bool = field(compare=False, default=False)


class Writer:
    """Runs writes with a fixed number of workers; cancelled with the task group it is started in."""

    def __init__(self, *, workers: int, watched: guard.Guard | None = None) -> None:
        self._workers = workers
        self._guard = watched or guard.Guard()
        self._numbers = itertools.count()
        self._heap: list[Write] = []
        self._waiting: dict[str, Write] = {}
        self._running: set[str] = set()
        # One permit per write that waits, so that each wakes one worker and not all of them. Owed are
        # those of writes whose jobs have another under way.
        self._permits = asyncio.Semaphore(0)
        self._owed = 0

    def busy(self, uid: str) -> bool:
        """Whether a write for this job is under way; what it shows later may change everything."""
        return uid in self._running

    @property
    def backlog(self) -> int:
        """Number of writes that have not begun."""
        return len(self._waiting)

    def pending(self, uid: str) -> Urgency | None:
        """Return the urgency of a write that waits for this job, None when there is none."""
        waiting = self._waiting.get(uid)
        return waiting.urgency if waiting else None

    def submit(
        self,
        urgency: Urgency,
        uid: str,
        run: Callable[[], Awaitable[None]],
        *,
        done: Callable[[], None],
        failed: Callable[[port.ApiError], None],
        dropped: Callable[[], None],
    ) -> None:
        """Queue a write; it replaces one for the same job that has not begun."""
        older = self._waiting.pop(uid, None)
        if older is not None:
            older.replaced = True
            older.dropped()
        write = Write(urgency, next(self._numbers), uid, run, done, failed, dropped)
        self._waiting[uid] = write
        heapq.heappush(self._heap, write)
        if older is None:
            self._permits.release()
        elif len(self._heap) > 2 * len(self._waiting) + _REPLACED:
            self._heap = sorted(self._waiting.values())

    async def work(self) -> None:
        """Run writes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            await self._permits.acquire()
            write = self._next()
            if write is None:
                # The jobs of all that wait have a write under way: the end of one calls again.
                self._owed += 1
                continue
            self._running.add(write.uid)
            try:
                await self._guard.calls("DeadlineJob", write.uid, write.run)
            except port.ApiError as error:
                self._running.discard(write.uid)
                write.failed(error)
            else:
                self._running.discard(write.uid)
                write.done()
            finally:
                self._running.discard(write.uid)
                for _ in range(self._owed):
                    self._permits.release()
                self._owed = 0

    def _next(self) -> Write | None:
        """Return the most urgent write whose job has none under way."""
        put_off = []
        found = None
        while self._heap and found is None:
            write = heapq.heappop(self._heap)
            if write.replaced:
                continue
            if write.uid in self._running:
                put_off.append(write)
            else:
                found = write
                del self._waiting[write.uid]
        for write in put_off:
            heapq.heappush(self._heap, write)
        return found
