"""Who counts in step 2, as columns: those of band 0, waiting or running, what they ask for and until when.

What one job asks for follows from its standing and its queue, whatever the time, and is kept until either is
another; a pass only adds up what time does to the columns. Which limits that meets is the business of
`overload`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
    """The jobs that count at one time, in columns, by their deadlines and of equal ones by uid.

    `left` is their expected work in ms, `weight` how often they count. They `could` be given up at some time,
    `may` now; the difference is the min-run of a running job. `kinds` are places in `Kinds.made`.
    """

    jobs: list[model.Job]
    deadlines: Ints
    left: Ints
    weight: Ints
    could: Mask
    may: Mask
    placed: Mask
    kinds: Ints
    submits: Ints

    def __len__(self) -> int:
        return len(self.jobs)

    def ages(self) -> Ints:
        """Their places in the order of uids."""
        by_uid = sorted(range(len(self.jobs)), key=[job.uid for job in self.jobs].__getitem__)
        ages = np.zeros(len(by_uid), dtype=np.int64)
        ages[by_uid] = np.arange(len(by_uid))
        return ages


class Counted:
    """The figures of jobs, kept between passes; of one configuration, the same queues and kinds.

    `fixed` are those (uids) that own room and cannot be suspended.
    """

    def __init__(self, config: model.Config, queues: Mapping[str, model.Queue], known: kinds.Kinds) -> None:
        self._config, self._queues, self._kinds = config, queues, known
        self._houses = {name: _House(queue, config) for name, queue in queues.items()}
        self._found: register.Register[tuple[int, str]] = register.empty(len(Figures._fields), 1)
        self._keys: dict[str, tuple[int, str] | None] = {}  # None of those who do not count
        self._open = register.Changes()
        self.fixed: set[str] = set()

    def asks(
        self,
        lasting: Mapping[str, standing.Lasting],
        gangs_of: Mapping[str, gangs.Gang],
        tick: int,
        without: frozenset[str],
    ) -> Asks:
        """Those who count at `tick` (ms since the epoch)."""
        self._renew(lasting, gangs_of)
        (jobs,) = self._found.lists
        deadline, end, placed, weight, could, settles, kind, submit = figures = self._found.figures
        counts = (end > tick * placed) & (deadline > tick)
        if without:
            counts &= np.array([job.uid not in without for job in jobs], dtype=np.bool_)
        if not counts.all():
            places = counts.nonzero()[0]
            jobs = [jobs[place] for place in places.tolist()]
            deadline, end, placed, weight, could, settles, kind, submit = figures[:, places]
        return Asks(
            jobs=jobs,
            deadlines=deadline,
            left=end - tick * placed,
            weight=weight,
            could=could > 0,
            may=(could > 0) & (settles <= tick),
            placed=placed > 0,
            kinds=kind,
            submits=submit,
        )

    def _renew(self, lasting: Mapping[str, standing.Lasting], gangs_of: Mapping[str, gangs.Gang]) -> None:
        """Put in and take out who changed."""
        changed = self._open.some
        if changed is None:
            self._found, changed = register.empty(len(Figures._fields), 1), set(lasting)
            self._keys.clear()
            self.fixed.clear()
        if not changed:
            return
        out: list[int] = []
        come: list[register.Row[tuple[int, str]]] = []
        for uid in changed:
            if (key := self._keys.pop(uid, None)) is not None and (at := self._found.place(key)) is not None:
                out.append(at)
            self.fixed.discard(uid)
            if (one := lasting.get(uid)) is None:
                continue
            job = one.here.job
            if one.placed and not job.movable:
                self.fixed.add(uid)
            figures = self._figures(one, gangs_of.get(uid))
            self._keys[uid] = None if figures is None else (figures.deadline, uid)
            if figures is not None:
                come.append(((figures.deadline, uid), (job,), figures))
        self._open.some = set()
        come.sort(key=_key)
        self._found = self._found.changed(sorted(out), come)

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

    def others(self, asks: Asks, uids: Collection[str]) -> list[str]:
        """Those of some jobs that are known and do not count among them."""
        inside = {job.uid for job in asks.jobs} if uids else set[str]()
        return [uid for uid in uids if uid in self._keys and uid not in inside]

    def change(self, uids: Iterable[str]) -> None:
        """Note who is new, another or gone, or stands in another way."""
        self._open.note(uids)


def _key(row: register.Row[tuple[int, str]]) -> tuple[int, str]:
    return row[0]


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
