"""How far our clock is ahead of the API server's: what time alone brings about is final only if it is not.

Deadlines and limits are measured by our own clock. One that runs ahead for a minute would end jobs for good
whose time has not come. So, before that is written, the server is asked for its time: the creation timestamp
of an object that it is only asked to try to create. A clock that is behind does no such harm: it is late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lstqueue.api import durations, errors, names, times
from lstqueue.kube import port

TOLERATED = 60_000
"""Ms by which our clock may be ahead."""
_HOLDS = 30.0
"""Seconds of the loop's clock, which nobody sets, for which a measurement is taken to hold."""

_LOG = logging.getLogger(__name__)


class SkewError(port.UnavailableError):
    """Our clock is ahead; the same is tried again later."""


class Skew:
    """Measures when asked, and not more often than it has to.

    Attributes:
        ahead: ms by which our clock was ahead when it was measured last; negative where it was behind.
    """

    def __init__(self, api: port.KubeApi, *, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        self._until = 0.0
        self.ahead = 0

    async def check(self, namespace: str) -> None:
        """Return if what our clock says may be acted on for good; the question is asked in `namespace`.

        A server that does not let us ask is believed to agree.

        Raises:
            SkewError: our clock is ahead.
            ApiError: the server did not answer.
        """
        if asyncio.get_running_loop().time() >= self._until:
            await self._measure(namespace)
        if self.ahead > TOLERATED:
            ahead = durations.format(self.ahead - self.ahead % 1000)
            words = f"our clock is {ahead} ahead of the API server's; nothing is ended for want of time"
            raise SkewError(0, "ClockSkew", words)

    async def _measure(self, namespace: str) -> None:
        asked_at = self._now()
        try:
            raw = await self._api.create(port.EVENTS, namespace, _probe(namespace), dry_run=True)
            server = times.parse(raw["metadata"]["creationTimestamp"])
        except (port.ForbiddenError, port.InvalidError, KeyError, errors.BadValueError) as error:
            _LOG.warning("the API server's time is not known, and ours is believed: %s", error)
            self.ahead = 0
        else:
            self.ahead = asked_at - server
        # One that was set right must not go on being mistrusted.
        self._until = asyncio.get_running_loop().time() + (_HOLDS if self.ahead <= TOLERATED else 0.0)


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
