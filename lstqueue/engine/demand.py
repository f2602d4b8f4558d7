"""Who counts in step 2, as columns: those of band 0, waiting or running, what they ask for and until when.

What one job asks for follows from its standing and its queue, whatever the time, and is kept until either is
another; a pass only adds up what time does to the columns. Which limits that meets is the business of
`overload`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lstqueue.engine import gangs, kinds, model, order, register, standing
from lstqueue.topology.table import Ints, Mask


class Figures(NamedTuple):
    """What does not depend on time; times in ms.

    `end` is when it is expected to end if it is `placed`, else the run time it has before it. It `could` be
    given up at some time, from `settles` on; `weight` is how often it counts.
    """

    deadline: int
    end: int
    placed: bool
    weight: int
    could: bool
    settles: int
    kind: int
    submit: int


@dataclass(slots=True)
class Asks:
    """The jobs that count at one time, in columns.

    `left` is their expected work in ms, `weight` how often they count. They `could` be given up at some time,
    `may` now; the difference is the min-run of a running job. `kinds` are places in `Kinds.made`, `rows`
    those of their figures.
    """

    rows: Ints
    deadlines: Ints
    left: Ints
    weight: Ints
    could: Mask
    may: Mask
    placed: Mask
    kinds: Ints
    submits: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, some: Ints) -> Asks:
        """Some of them, in that order."""
        return Asks(
            self.rows[some],
            self.deadlines[some],
            self.left[some],
            self.weight[some],
            self.could[some],
            self.may[some],
            self.placed[some],
            self.kinds[some],
            self.submits[some],
        )


class Counted:
    """The figures of jobs, kept between passes; of one configuration, the same queues and kinds.

    `fixed` are those (uids) that own room and cannot be suspended.
    """

    def __init__(self, config: model.Config, queues: Mapping[str, model.Queue], known: kinds.Kinds) -> None:
        self._config, self._queues, self._kinds = config, queues, known
        self._houses = {name: _House(queue, config) for name, queue in queues.items()}
        self._register = register.Register(len(Figures._fields))
        self._jobs: dict[int, model.Job] = {}
        self._open: set[str] = set()
        self._uids: list[str] = []  # of those that have a row, in order
        self._rows: list[int] = []
        self.fixed: set[str] = set()

    def asks(
        self,
        lasting: Mapping[str, standing.Lasting],
        gangs_of: Mapping[str, gangs.Gang],
        tick: int,
        without: frozenset[str],
    ) -> Asks:
        """Those who count at `tick` (ms since the epoch), in the order of uids."""
        for uid in sorted(self._open):
            self._write(lasting[uid], gangs_of.get(uid))
        self._open.clear()
        rows = np.array(self._rows, dtype=np.int64)
        if without:
            rows = rows[[uid not in without for uid in self._uids]]
        return self._at(rows, tick)

    def _at(self, rows: Ints, tick: int) -> Asks:
        columns = self._register.rows[rows].T
        deadline, end, placed, weight, could, settles, kind, submit = columns
        left = end - tick * placed
        found = Asks(
            rows=rows,
            deadlines=deadline,
            left=left,
            weight=weight,
            could=could > 0,
            may=(could > 0) & (settles <= tick),
            placed=placed > 0,
            kinds=kind,
            submits=submit,
        )
        return found.only(((left > 0) & (deadline > tick)).nonzero()[0])

    def _write(self, one: standing.Lasting, gang: gangs.Gang | None) -> None:
        job, uid = one.here.job, one.here.job.uid
        self._leave(uid)
        if one.placed and not job.movable:
            self.fixed.add(uid)
        row = self._register.write(uid, one, self._figures(one, gang))
        if row >= 0:
            self._jobs[row] = job
            place = bisect.bisect_left(self._uids, uid)
            self._uids.insert(place, uid)
            self._rows.insert(place, row)

    def _figures(self, one: standing.Lasting, gang: gangs.Gang | None) -> Figures | None:
        """What one job asks for; None when it does not count."""
        here, placed = one.here, one.placed
        job, house = here.job, self._houses.get(here.job.queue)
        if here.band is not model.Band.DEADLINE or here.left is None or here.finish is None:
            return None
        if house is None or job.deadline is None:
            return None
        if not placed and (house.closed or order.barred(job, self._queues) is not None):
            return None
        if (kind := self._kinds.of(job, gang)) is None:
            return None
        was_shed = job.published.band is model.Band.SHED
        promised = job.slot is not None and self._config.promising
        could = house.sheds and job.state is not model.State.CLAIMING and (job.movable or not placed)
        could = could and not promised
        return Figures(
            deadline=job.deadline,
            end=here.finish.mid if placed else here.left.mid,
            placed=placed,
            weight=self._config.shed_weight if was_shed and could else 1,
            could=could,
            settles=-standing.NEVER if not placed or was_shed else job.since + house.min_run_of(job),
            kind=kind.number,
            submit=job.submit,
        )

    def jobs(self, asks: Asks) -> list[model.Job]:
        """Whose columns these are."""
        return [self._jobs[row] for row in asks.rows.tolist()]

    def others(self, asks: Asks, uids: Iterable[str]) -> list[str]:
        """Those of some jobs that do not count among them."""
        inside: Mask = np.zeros(len(self._register.rows) + 1, dtype=np.bool_)  # the last for who has no row
        inside[asks.rows] = True
        known = self._register.known
        return [uid for uid in uids if uid in known and not inside[known[uid][1]]]

    def change(self, uids: Iterable[str]) -> None:
        """Note whose standing is another, so that what is known of it does not hold any more."""
        self._open.update(uids)

    def forget(self, uid: str) -> None:
        """Drop a job that is another or gone."""
        self._leave(uid)
        self._open.discard(uid)

    def _leave(self, uid: str) -> None:
        if self._register.forget(uid):
            place = bisect.bisect_left(self._uids, uid)
            del self._uids[place], self._rows[place]
        self.fixed.discard(uid)


class _House:
    """What a queue says of its jobs. `closed`: who waits there cannot start, and so competes with nobody."""

    def __init__(self, queue: model.Queue, config: model.Config) -> None:
        self.closed = queue.held or queue.drained or queue.observed or bool(queue.conflict)
        # A fifo queue starts its jobs in their order whatever becomes of their deadlines.
        self.sheds = queue.shedding and order.policy(queue, config) is not model.Order.FIFO
        self._min_run = queue.min_run

    def min_run_of(self, job: model.Job) -> int:
        """How long its gang runs at least, in ms."""
        return self._min_run if job.min_run is None else job.min_run
