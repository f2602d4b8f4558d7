"""Hands writes of one DeadlineJob to the writer, and keeps the account of how they fare.

A write that goes through ends the row of failures and has its job looked at again: what was put off while it
was under way is due now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from lstqueue.kube import port
from lstqueue.operator import cache as caches
from lstqueue.operator import writer

Urgency = writer.Urgency


class Retry(Protocol):
    """Called when a write did not go through; `start`: it was one that a start cannot do without."""

    def __call__(self, uid: str, error: port.ApiError, *, start: bool) -> None:
        """Find out what is, and look again later."""


class Outbox:
    """Submits writes; `retry` hears of each that failed."""

    def __init__(self, cache: caches.Cache, write: writer.Writer, retry: Retry) -> None:
        self._cache = cache
        self._writer = write
        self._retry = retry

    def submit(
        self,
        urgency: Urgency,
        uid: str,
        run: Callable[[], Awaitable[None]],
        *,
        start: bool = False,
        done: Callable[[], None] | None = None,
        dropped: Callable[[], None] | None = None,
    ) -> None:
        """Queue a write.

        Args:
            urgency: what goes first.
            uid: of the DeadlineJob.
            run: does the calls.
            start: whether a start cannot do without it.
            done: instead of `went_through`.
            dropped: called when a newer write took its place.
        """
        self._writer.submit(
            urgency,
            uid,
            run,
            done=done or (lambda: self.went_through(uid)),
            failed=lambda error: self._retry(uid, error, start=start),
            dropped=dropped or _nothing,
        )

    def went_through(self, uid: str) -> None:
        """Note that the API server took a write."""
        record = self._cache.records.get(uid)
        if record is not None and record.failures and not record.odd:
            record.failures, record.retry_at, record.engine_job = 0, 0, None
        self._cache.touch(uid)


def _nothing() -> None:
    """Nobody needs to be told."""
