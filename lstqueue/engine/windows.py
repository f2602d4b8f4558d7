"""Quota that a queue's windows keep free: what is charged while one lasts, and who may begin before one.

While a window lasts, its share of every quota of the queue is charged as if somebody used it. Before it
begins a job may only start if it is expected to be gone by then (its pessimistic run time; without an
estimate it never is), or fits in what the window leaves, beside those who run and are expected to be there
still. Nobody is suspended for a window, so who outruns its estimate, or ran before the window was set up,
stays in it. When windows recur is no business of the engine: it is given intervals (`Queue.windows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import estimate, gangs, model, quota, room
from lstqueue.engine.standing import Standing

_MILLION = 1_000_000


@dataclass(slots=True)
class _Coming:
    """A window from `start` to `end` (ms since the epoch), what is `left` of each slot in it, and `kept`."""

    start: int
    end: int
    left: dict[int, int]
    kept: quota.Charges


@dataclass(frozen=True, slots=True)
class Edge:
    """At `time` (ms since the epoch) so much quota of a queue comes free; negative: it does no more."""

    time: int
    queue: str
    charges: quota.Charges


class Windows:
    """What every queue may still use in each of the windows that are to begin.

    Of a cohort the windows of all queues concern each of them: what one keeps free is not lent.
    """

    __slots__ = ("_accounts", "_coming", "active", "edges")

    def __init__(self, queues: Iterable[model.Queue], quotas: quota.Quota, now: int) -> None:
        self._accounts = quotas.accounts
        self._coming: dict[str, list[_Coming]] = {}
        self.active: list[Edge] = []
        self.edges: list[Edge] = []
        slots: dict[str, list[int]] = {}
        for (owner, _, _), slot in quotas.slots.items():
            slots.setdefault(owner, []).append(slot)
        for queue in queues:
            for window in queue.windows:
                self._add(queue.name, window, slots.get(queue.name, []), quotas, now)
        for coming in self._coming.values():
            coming.sort(key=_start)
            _overlap(coming)

    def _add(
        self, queue: str, window: model.Window, slots: Sequence[int], quotas: quota.Quota, now: int
    ) -> None:
        if window.end <= now:
            return
        kept = {slot: -(-quotas.nominal[slot] * window.keep_free // _MILLION) for slot in slots}
        charges = quotas.twice(tuple(kept.items()))  # what is kept free is not lent either
        ends = Edge(window.end, queue, charges)
        if window.start <= now:
            self.active.append(ends)
            return
        left = {slot: quotas.most[slot] - amount for slot, amount in charges}
        account = self._accounts.get(queue, queue)
        self._coming.setdefault(account, []).append(_Coming(window.start, window.end, left, charges))
        begins = Edge(window.start, queue, tuple((slot, -amount) for slot, amount in charges))
        self.edges += [begins, ends]

    def copy(self) -> Windows:
        """An independent copy."""
        other = object.__new__(Windows)
        other.active, other.edges = self.active, self.edges
        other._accounts = self._accounts
        other._coming = {
            account: [_Coming(one.start, one.end, dict(one.left), one.kept) for one in coming]
            for account, coming in self._coming.items()
        }
        return other

    def kept(self, queue: str, slot: int) -> Edge | None:
        """What keeps quota of a slot free now, with all that it keeps; None: nothing."""
        for edge in self.active:
            if edge.queue == queue and any(one == slot and amount for one, amount in edge.charges):
                return edge
        return None

    def horizon(self, queue: str) -> int | None:
        """The end of the last window that concerns a queue and is known (ms since the epoch); None: none."""
        own, accounts = self._accounts.get(queue), self._accounts
        edges = (*self.active, *self.edges)
        return max((edge.time for edge in edges if accounts.get(edge.queue) == own), default=None)

    def begin(self, now: int) -> None:
        """Forget the windows that have begun by `now` (ms since the epoch); those are charged."""
        for account, coming in self._coming.items():
            if coming and coming[0].start <= now:
                self._coming[account] = [one for one in coming if one.start > now]

    def concern(self, queue: str) -> bool:
        """Whether a window of the queue is to begin."""
        return bool(self._of(queue))

    def _of(self, queue: str) -> Sequence[_Coming]:
        return self._coming.get(self._accounts.get(queue, queue), ())

    def stay(self, queue: str, charges: quota.Charges, until: int | None) -> None:
        """Note that somebody is expected to hold quota until then (ms since the epoch; None: for ever)."""
        for one in self._met(queue, until):
            for slot, amount in charges:
                if slot in one.left:
                    one.left[slot] -= amount

    def allow(self, gang: gangs.Gang, free: room.Room, until: int | None) -> bool:
        """Whether the windows that a gang would meet leave the quota for it, whoever uses that now."""
        least = self.least(gang.queue, until)
        if not least:
            return True
        then = free.quota.copy(unused=True)
        for slot, left in least.items():
            then.free[slot] = left
        return room.Room(free.ledger, then).quota_fits(gang)

    def place(
        self, queue: str, until: int | None, free: room.Room, place: Callable[[], room.Placement | None]
    ) -> room.Placement | None:
        """Have `place` charge a gang of the queue in what the windows leave that it would meet."""
        spared = tuple(
            (slot, free.quota.free[slot] - left)
            for slot, left in self.least(queue, until).items()
            if free.quota.free[slot] > left
        )
        free.quota.take(spared)
        taken = place()
        free.quota.give(spared)
        for part in taken or ():
            self.stay(queue, part.option.charges, until)
        return taken

    def spans(self) -> Iterator[tuple[int, Edge]]:
        """Every window that is not over: when it begins (ms since the epoch; 0: it has), and its end."""
        for edge in self.active:
            yield 0, edge
        for begins, ends in zip(self.edges[::2], self.edges[1::2], strict=True):
            yield begins.time, ends

    def crossings(self, queue: str, lasts: int) -> list[int]:
        """From when on (ms since the epoch) somebody who runs `lasts` ms would meet one window more."""
        return [one.start - lasts + 1 for one in self._of(queue)]

    def first(self, queue: str, until: int | None) -> int:
        """When the first window begins (ms since the epoch) that somebody would meet; there is one."""
        return self._met(queue, until)[0].start

    def _met(self, queue: str, until: int | None) -> Sequence[_Coming]:
        coming = self._of(queue)
        return coming if until is None else [one for one in coming if one.start < until]

    def least(self, queue: str, until: int | None) -> dict[int, int]:
        """What is left of each slot in the fullest of the windows that somebody would meet."""
        least: dict[int, int] = {}
        for one in self._met(queue, until):
            for slot, left in one.left.items():
                least[slot] = min(left, least.get(slot, left))
        return least


NONE = Windows((), quota.Quota((), ()), 0)
"""No queue has any."""


def _start(one: _Coming) -> int:
    return one.start


def _overlap(coming: Sequence[_Coming]) -> None:
    """Keep from everybody in a window what others of the cohort keep free as it begins; in their order."""
    lasting: list[_Coming] = []
    for one in coming:
        lasting = [other for other in lasting if other.end > one.start]
        for other in lasting:
            _spare(one, other.kept)
            if other.start == one.start:
                _spare(other, one.kept)
        lasting.append(one)


def _spare(one: _Coming, kept: quota.Charges) -> None:
    for slot, amount in kept:
        if slot in one.left:
            one.left[slot] -= amount


def until(here: Standing) -> int | None:
    """When somebody who runs or starts now is expected to have left (ms since the epoch), at the latest."""
    return None if here.finish is None else here.finish.hi


def releases(edges: Iterable[Edge], rows: int) -> list[tuple[estimate.Finish, list[room.Release]]]:
    """Edges as what becomes free when, for a play of `rows` resources."""
    nowhere, nothing = np.zeros(0, dtype=np.int64), np.zeros((rows, 0), dtype=np.int64)
    return [
        (
            estimate.Finish(edge.time, edge.time, edge.time),
            [room.Release(edge.queue, nowhere, nothing, edge.charges)],
        )
        for edge in edges
    ]
