"""When queues last took back what they had lent: kept in their statuses, since jobs end and are moved.

It is written before the claim that takes back, and counts from when that was decided. So nothing that happens
in between lets a queue take back twice; should the claim come to nothing, it has lost an occasion.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping

from lstqueue.api import times
from lstqueue.kube import port
from lstqueue.operator import queues as queue_views

Write = Callable[[port.KubeApi], Awaitable[None]]
"""Writes what has to be written first."""


class Occasions:
    """Those of all queues; `apply` takes in a GPUQueue as the API server has it."""

    def __init__(
        self,
        queues: Mapping[str, queue_views.QueueView],
        apply: Callable[[str, port.Object], None],
    ) -> None:
        self._queues = queues
        self._apply = apply
        self._begun: dict[str, int] = {}  # by the UID of the queue, in ms since the epoch

    def begin(self, queue: str, at: int) -> Write:
        """Note that a queue takes back at `at` (ms since the epoch), or goes on to; return what writes it."""
        view = self._queues.get(queue)
        if view is not None and self._last(view) + view.engine.reclaim_grace <= at:
            self._begun[view.uid] = at
        return functools.partial(self._write, queue)

    def by_queue(self) -> dict[str, int]:
        """Return when each queue last did, in ms since the epoch; those that never did are left out."""
        return {name: last for name, view in self._queues.items() if (last := self._last(view))}

    async def _write(self, queue: str, api: port.KubeApi) -> None:
        """Write the last one into the status of its queue, if it is not there.

        Raises:
            port.ApiError: the API server did not take it.
        """
        view = self._queues.get(queue)
        if view is None or self._last(view) <= view.reclaimed:
            return
        status = {"reclaimedAt": times.format(self._last(view))}
        self._apply("MODIFIED", await api.patch_status(port.GPU_QUEUES, None, queue, {"status": status}))

    def _last(self, view: queue_views.QueueView) -> int:
        return max(view.reclaimed, self._begun.get(view.uid, 0))
