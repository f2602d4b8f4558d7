"""Events on the users' own objects: what `kubectl describe job` says of what happened to a Job, and why.

Telling is a courtesy: it never delays a decision or a write. What is to be told waits in a bounded queue and
goes out through an allowance of its own, one at a time; what cannot be told after a few tries is dropped and
counted. The same reason for the same object within ten minutes is one Event whose count goes up. Nothing is
ever read back: an Event is for people.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import base, times
from lstqueue.kube import port

WAITING = 1000
"""What may wait to be told; beyond that the oldest is dropped."""
REMEMBERED = 5000
"""Events that are remembered so that their count can go up."""
TOGETHER = 10 * 60_000
"""Ms within which the same is told by counting."""
REPORTER = "lstqueue.dev/operator"

_TRIES = 4
_FIRST_PAUSE = 1.0
_NAME = 200

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Note:
    """What to tell: a reason in one word, and a sentence.

    `warning`: somebody should do something. `once`: it is about a state and not about something that
    happened, so that one Event says it while the API server keeps that, whichever process tells it again.
    """

    subject: Subject
    reason: str
    message: str
    warning: bool = False
    once: bool = False


@dataclass(slots=True)
class _Told:
    """An Event as it was written last."""

    name: str
    count: int
    at: int


class Recorder:
    """Writes Events; `tell` may be called from anywhere in the loop's thread.

    Attributes:
        sent: Events written or counted up.
        failed: those given up on after several tries.
        dropped: those that were pushed out of the queue.
    """

    def __init__(self, api: port.KubeApi, *, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        self._waiting: OrderedDict[tuple[str, str], Note] = OrderedDict()
        self._repeats: dict[tuple[str, str], int] = {}
        self._there = asyncio.Event()
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self.sent = 0
        self.failed = 0
        self.dropped = 0

    def tell(self, note: Note) -> None:
        """Queue a note; one that waits already for the same object and reason takes the newer words."""
        key = (note.subject.uid, note.reason)
        self._repeats[key] = self._repeats.get(key, 0) + 1
        self._waiting[key] = note
        if len(self._waiting) > WAITING:
            oldest, _ = self._waiting.popitem(last=False)
            self._repeats.pop(oldest, None)
            self.dropped += 1
        self._there.set()

    async def run(self) -> None:
        """Write what was told until cancelled."""
        while True:
            await self._there.wait()
            if not self._waiting:
                self._there.clear()
                continue
            key, note = self._waiting.popitem(last=False)
            await self._deliver(note, self._repeats.pop(key, 1))

    async def _deliver(self, note: Note, times_told: int) -> None:
        # One time for all tries, so that they share a name.
        pause, at = _FIRST_PAUSE, self._now()
        for left in reversed(range(_TRIES)):
            try:
                await self._write(note, times_told, at)
            except port.UnavailableError as error:
                if not left:
                    self._give_up(note, error)
                    return
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
                pause *= 4
            except port.ApiError as error:
                self._give_up(note, error)
                return
            else:
                self.sent += 1
                return

    def _give_up(self, note: Note, error: port.ApiError) -> None:
        self.failed += 1
        where = f"{note.subject.kind} {note.subject.namespace}/{note.subject.name}"
        _LOG.warning("event %s of %s could not be written: %s", note.reason, where, error)

    async def _write(self, note: Note, times_told: int, now: int) -> None:
        key = (note.subject.uid, note.reason)
        told = self._told.get(key)
        fresh = told is not None and now - told.at < TOGETHER and not note.once
        if told is not None and fresh and await self._count(note, told, times_told, now):
            return
        body = render(note, at=now, count=times_told)
        # On a conflict an earlier try of this very note went through and its reply was lost, or, of what is
        # to be told once, another process has told it.
        with contextlib.suppress(port.ConflictError):
            await self._api.create(port.EVENTS, note.subject.namespace, body)
        self._told[key] = _Told(body["metadata"]["name"], times_told, now)
        self._told.move_to_end(key)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    async def _count(self, note: Note, told: _Told, more: int, now: int) -> bool:
        """Count an Event up; False when it is not there any more."""
        body = {
            "count": told.count + more,
            "lastTimestamp": _seconds(now),
            "message": base.cut(note.message),
        }
        try:
            await self._api.patch(port.EVENTS, note.subject.namespace, told.name, body)
        except port.NotFoundError:
            return False
        told.count, told.at = told.count + more, now
        return True


def render(note: Note, *, at: int, count: int = 1) -> dict[str, Any]:
    """Return the Event as the API has it.

    Its name depends on what is told and when, so that tries meet; not on when where it is told once.
    """
    subject = note.subject
    told = f"{subject.uid}/{note.reason}/{note.message if note.once else at}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name[:_NAME]}.{digest}", "namespace": subject.namespace},
        "involvedObject": _reference(subject),
        "reason": note.reason,
        "message": base.cut(note.message),
        "type": "Warning" if note.warning else "Normal",
        "source": {"component": "lstqueue"},
        "reportingComponent": REPORTER,
        "reportingInstance": "lstqueue",
        "firstTimestamp": _seconds(at),
        "lastTimestamp": _seconds(at),
        "count": count,
    }


def _reference(subject: Subject) -> Mapping[str, str]:
    return {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }


def _seconds(ms: int) -> str:
    return times.format(ms // 1000 * 1000)
