"""The bell that starts passes: it batches what rings in a burst, and wakes at a time when nothing does.

A pass starts after `quiet` seconds without a ring, at most `at_most` seconds after the first one, so that a
burst of a thousand events costs one pass and a steady drizzle cannot put passes off for ever; and never
sooner than `apart` seconds after the one before, whatever rings.
"""

from __future__ import annotations

import asyncio


class Bell:
    """One waiter, many ringers, one event loop."""

    def __init__(self, *, quiet: float, at_most: float, apart: float = 0.0) -> None:
        self._quiet = quiet
        self._at_most = at_most
        self._apart = apart
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Ask for a pass."""
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Return when a pass is due: after a batch of rings, or after `seconds` without any."""
        loop = asyncio.get_running_loop()
        earliest = loop.time() + self._apart
        await self._batch(seconds)
        if (left := earliest - loop.time()) > 0:
            await asyncio.sleep(left)
            self._event.clear()  # the pass that comes now sees what rang meanwhile

    async def _batch(self, seconds: float | None) -> None:
        if not await self._rung(seconds):
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + self._at_most
        while True:
            self._event.clear()
            left = until - loop.time()
            if left <= 0 or not await self._rung(min(self._quiet, left)):
                return

    async def _rung(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
