"""Work that cannot be suspended, for step 2: what it holds of nodes and of quotas, and until when.

Columns over the assigned pods, in the order in which they leave. They follow from jobs, nodes and names of
resources, so they are kept until a job that cannot be suspended comes, goes or is another; a pass only adds
up, for each set of nodes, the columns of those on it. It does not say which jobs count as stuck (`overload`).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lstqueue.engine import model, standing
from lstqueue.engine.standing import Standing
from lstqueue.topology import table
from lstqueue.topology.table import Ints, Mask

Floats = npt.NDArray[np.float64]
Row = tuple[int, ...]
"""One part of a job: column of its node (-1: gone), number of its pool, amounts by resource."""


class Ends:
    """What leaves when: sums over it without looking at every end. Times in ms since the epoch."""

    __slots__ = ("_areas", "_sums", "_times")

    def __init__(self, times: Sequence[int], amounts: Sequence[int]) -> None:
        """Take the `times`, first to last, with what leaves at each."""
        self._times = times
        self._sums = list(itertools.accumulate(amounts, initial=0))
        products = (time * amount for time, amount in zip(times, amounts, strict=True))
        self._areas = list(itertools.accumulate(products, initial=0))

    def __bool__(self) -> bool:
        return bool(self._times)

    @property
    def total(self) -> int:
        """All of it."""
        return self._sums[-1]

    def held(self, since: int, until: int) -> int:
        """What is held between two times before it leaves, in resource units × ms."""
        first = bisect.bisect_right(self._times, since)
        last = max(bisect.bisect_right(self._times, until), first)
        left = self._areas[last] - self._areas[first] - since * (self._sums[last] - self._sums[first])
        return left + (until - since) * (self.total - self._sums[last])

    def held_for(self, since: int, spans: Ints) -> Floats:
        """`held` from `since` for many spans (ms), rounded."""
        lasts = np.maximum(np.array(self._times, dtype=np.int64) - since, 0)
        sums = np.array(self._sums, dtype=np.float64)
        areas = np.concatenate([np.zeros(1), (lasts * np.diff(sums)).cumsum()])
        over = lasts.searchsorted(spans, side="right")
        held: Floats = areas[over] + spans * (sums[-1] - sums[over])
        return held


NOTHING = Ends((), ())
Held = tuple[tuple[int, Ends], ...]
"""By resource: what has no foreseeable end, and the rest."""


class Columns:
    """Who is stuck, as columns: `amounts[resource, part]`, the parts in the order of `ends`."""

    def __init__(self, ends: Ints, rows: Sequence[Row], pools: Mapping[tuple[str, str], int]) -> None:
        self._pools = pools
        if rows:
            table_of = np.array(rows, dtype=np.int64).T
            self._nodes, self._pool, self._amounts = table_of[0], table_of[1], table_of[2:].copy()
            self._ends, self._starts = np.unique(ends, return_index=True)
        self.empty = not rows

    def on(self, area: Mask) -> Held:
        """What is held on the nodes of a mask. Only where not `empty`, like `within`."""
        return self._held((self._nodes >= 0) & area[self._nodes])

    def within(self, queues: Collection[str], pools: Collection[str]) -> Held:
        """What is held of some pools by jobs of some queues, wherever it runs."""
        wanted = [self._pools.get(key, -1) for key in itertools.product(queues, pools)]
        return self._held(np.isin(self._pool, wanted))

    def _held(self, inside: Mask) -> Held:
        sums = np.add.reduceat(self._amounts * inside, self._starts, axis=1)
        found: list[tuple[int, Ends]] = []
        for row in sums:
            some = row.nonzero()[0]
            times, amounts = self._ends[some].tolist(), row[some].tolist()
            stays = amounts.pop() if times and times[-1] == standing.NEVER else 0
            found.append((stays, Ends(times[: len(amounts)], amounts) if amounts else NOTHING))
        return tuple(found)


class Stuck:
    """Makes columns of jobs, and keeps those of the pass before."""

    def __init__(self, nodes: table.NodeTable, resources: Sequence[str]) -> None:
        self._index, self._resources = nodes.index, resources
        self._pools: dict[tuple[str, str], int] = {}
        self._here: list[Standing] = []
        self._made = Columns(np.zeros(0, dtype=np.int64), (), self._pools)
        self.rows: dict[str, list[Row]] = {}
        """By uid; whoever knows that a job is another drops it."""

    def columns(self, here: list[Standing]) -> Columns:
        """The columns of placed jobs."""
        if here != self._here:
            self._here, self._made = here, self._make(here)
        return self._made

    def _make(self, here: Iterable[Standing]) -> Columns:
        ends: list[int] = []
        rows: list[Row] = []
        for one in sorted(here, key=_end):
            if (parts := self.rows.get(one.job.uid)) is None:
                parts = self.rows[one.job.uid] = [self._row(one.job, part) for part in one.job.assigned]
            rows += parts
            ends += [_end(one)] * len(parts)
        return Columns(np.array(ends, dtype=np.int64), rows, self._pools)

    def _row(self, job: model.Job, part: model.Assigned) -> Row:
        requests, pods = dict(job.groups[part.group].shape.requests), part.bound + part.held
        pool = self._pools.setdefault((job.queue, part.pool), len(self._pools))
        amounts = [min(requests.get(name, 0) * pods, table.LIMIT) for name in self._resources]
        return (self._index.get(part.node, -1), pool, *amounts)


def _end(here: Standing) -> int:
    return standing.NEVER if here.finish is None else here.finish.mid
