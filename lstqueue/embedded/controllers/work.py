"""A queue of keys to be looked at again, shared by the controllers.

Adding a key that is waiting already changes nothing unless it is to come sooner, so that a burst of events
costs one look. The queue knows no retries and no order beyond time: a handler that is not done adds its key
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)


class WorkQueue(Generic[_K]):
    """Calls `handle(key)` in a later callback of the running loop, once per key and burst.

    Args:
        handle: looks at one key; must not block.
        errors: takes what handlers raise, so that whoever runs the cluster can end with it.
    """

    def __init__(self, handle: Callable[[_K], None], errors: list[Exception]) -> None:
        self._handle = handle
        self._errors = errors
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[_K, tuple[float, asyncio.Handle]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: _K, *, delay: float = 0.0) -> None:
        """Look at `key` after `delay` seconds, or sooner where that is planned already."""
        due = self._loop.time() + delay
        planned = self._waiting.get(key)
        if planned is not None:
            if planned[0] <= due:
                return
            planned[1].cancel()
        if delay > 0:
            handle: asyncio.Handle = self._loop.call_at(due, self._run, key)
        else:
            handle = self._loop.call_soon(self._run, key)
        self._waiting[key] = (due, handle)

    def discard(self, key: _K) -> None:
        """Forget `key` if it waits."""
        planned = self._waiting.pop(key, None)
        if planned is not None:
            planned[1].cancel()

    def close(self) -> None:
        """Forget everything."""
        for key in list(self._waiting):
            self.discard(key)

    def _run(self, key: _K) -> None:
        del self._waiting[key]
        try:
            self._handle(key)
        except Exception as error:
            self._errors.append(error)
            raise
