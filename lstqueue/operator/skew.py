"""How far our clock is ahead of the API server's: what time alone brings about is final only if it is not.

Deadlines and limits are measured by our own clock. One that runs ahead for a minute would end jobs for good
whose time has not come. So, before that is written, the server is asked for its time: the creation timestamp
of an object that it is only asked to try to create. Between two such questions the server's time goes on with
the loop's clock, which nobody sets. A clock that is behind does no such harm: it is late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lstqueue.api import durations, errors, names, times
from lstqueue.kube import port
from lstqueue.operator import clocks

_HOLDS = 30.0
"""Seconds for which the loop's clock is taken to go as the server's does."""
_PATIENCE = 600.0
"""Seconds of nothing but errors after which the server is taken to be as it was last known."""
_PAUSE = 180.0
"""Seconds without a question after which such a time begins anew."""

_LOG = logging.getLogger(__name__)


class UntimelyError(port.UnavailableError):
    """The server's time is not to be had; nothing but what needs that has to wait."""


class SkewError(UntimelyError):
    """Our clock is ahead."""


class Skew:
    """Measures when asked, and not more often than it has to.

    Attributes:
        ahead: ms by which our clock was ahead when that was last asked for; negative where it was behind.
    """

    def __init__(self, api: port.KubeApi, *, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        # One question at a time: who comes meanwhile shares its answer, or its error.
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._error: port.ApiError | None = None
        self._origin: int | None = None
        self._measured_at = float("-inf")
        self._failing = (float("-inf"), float("-inf"))
        self.ahead = 0

    async def check(self, namespace: str) -> None:
        """Return if what our clock says may be acted on for good; the question is asked in `namespace`.

        A server that does not let us ask there, or has done nothing but fail for ten minutes, is taken to be
        as it was last known; one that never was is believed to agree, this time.

        Raises:
            SkewError: our clock is ahead.
            UntimelyError: the server did not answer.
        """
        came_at = _loop_time()
        async with self._asking:
            if self._asked_at <= came_at and self._is_due():
                await self._ask(namespace)
            elif self._error is not None and self._asked_at > came_at:
                raise _untimely(self._error)
        self.ahead = self._lead()
        if clocks.beyond(self.ahead, 0):
            ahead = durations.format(self.ahead - self.ahead % 1000)
            words = f"our clock is {ahead} ahead of the API server's; nothing is ended for want of time"
            raise SkewError(0, "ClockSkew", words)

    def _is_due(self) -> bool:
        # A clock that is said to be ahead may be right: the loop's stands still while a machine sleeps.
        return _loop_time() >= self._measured_at + _HOLDS or clocks.beyond(self._lead(), 0)

    def _lead(self) -> int:
        """Return by how much our clock is ahead now, as far as is known."""
        return 0 if self._origin is None else self._now() - self._origin - _ms()

    async def _ask(self, namespace: str) -> None:
        self._error = None
        try:
            raw = await self._try(namespace)
            server = times.parse(raw["metadata"]["creationTimestamp"])
        except (port.ForbiddenError, port.InvalidError, KeyError, errors.BadValueError) as error:
            # It may be about to go: that says nothing of any other, and whoever waits asks in their own.
            _LOG.warning("the API server does not tell its time in namespace %s: %s", namespace, error)
        except port.ApiError as error:
            self._error, self._asked_at = error, _loop_time()
            since, last = self._failing
            since = since if self._asked_at - last < _PAUSE else self._asked_at
            self._failing = since, self._asked_at
            if self._asked_at - since < _PATIENCE:
                raise _untimely(error) from error
            self._error = None
            _LOG.warning("the API server has not told its time for long, and is not waited for: %s", error)
        else:
            self._failing = (float("-inf"), float("-inf"))
            # Only now: the question may have waited for its turn. A slow answer makes us too careful at most.
            self._origin = server - _ms()
            self._measured_at = self._asked_at = _loop_time()

    async def _try(self, namespace: str) -> port.Object:
        """Have the server try to create an Event; should only that fail, a DeadlineJob.

        A webhook may be in the way of either, and what waits for the time may be all that is left to do.
        """
        try:
            return await self._api.create(port.EVENTS, namespace, _probe(namespace), dry_run=True)
        except (port.ForbiddenError, port.InvalidError):
            raise
        except port.ApiError as error:
            if not error.status:
                raise  # nobody answers
            return await self._api.create(port.DEADLINE_JOBS, namespace, _probe_job(namespace), dry_run=True)


def _untimely(error: port.ApiError) -> UntimelyError:
    return UntimelyError(error.status, error.reason, error.message, retry_after=error.retry_after)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


def _ms() -> int:
    return int(_loop_time() * 1000)


def _probe(namespace: str) -> port.Object:
    """Return an Event that is never stored."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": names.PROBE, "namespace": namespace},
        "involvedObject": {"kind": "Namespace", "name": namespace, "namespace": namespace},
        "reason": "Clock",
        "type": "Normal",
        "source": {"component": "lstqueue"},
    }


def _probe_job(namespace: str) -> port.Object:
    """Return a DeadlineJob that is never stored."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "DeadlineJob",
        "metadata": {"generateName": names.PROBE, "namespace": namespace},
        "spec": {"queue": "clock", "jobRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "clock"}},
    }
