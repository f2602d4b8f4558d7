"""The running jobs of a queue or cohort as columns, for step 5: what time does not change about them.

Kept between passes, and brought up to date by who changed (`Roll`): making columns of 600 running jobs costs
0.7 ms, putting one in or taking one out 0.05. What a pass was given is never written to, so that its
explanations stay true. What the columns mean for a victim at some moment is the business of `victims`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lstqueue.engine import model, order, register, room
from lstqueue.engine.gangs import PPM
from lstqueue.engine.standing import NEVER, NO_SLACK, Lasting, Standing
from lstqueue.topology import capacity as capacities
from lstqueue.topology import table
from lstqueue.topology.table import Ints


class Figures(NamedTuple):
    """What a flock knows of one job, as a row; made once per job, since a flock changes with every one."""

    band: int
    tier: int
    slack: int
    finish: int
    since: int
    runs: bool
    saves: bool
    checkpoint: int
    restore: int
    min_run: int
    preemptible: bool
    wasted: int
    cap: int
    filled: int
    share: int


def figures(one: Standing, queue: model.Queue, capacity: Capacity) -> Figures:
    """Read a running job of a queue."""
    job = one.job
    return Figures(
        band=one.band,
        tier=order.tier(one),
        slack=NO_SLACK if one.slack is None else one.slack,
        finish=NEVER if one.finish is None else one.finish.mid,
        since=job.since,
        runs=job.state is model.State.RUNNING,
        saves=job.saves_on_suspend,
        checkpoint=job.checkpoint,
        restore=job.restore,
        min_run=queue.min_run if job.min_run is None else job.min_run,
        preemptible=job.movable,
        wasted=job.wasted,
        cap=queue.cap,
        filled=_filled(job.suspensions, queue.cap),
        share=capacity.share(job),
    )


def _filled(suspensions: Sequence[int], cap: int) -> int:
    """When a job came to be suspended as often as its cap allows, of its last times; NO_SLACK: it was not."""
    return sorted(suspensions)[-cap] if 0 < cap <= len(suspensions) else NO_SLACK


class Flock:
    """The running jobs of one queue or cohort in the order of their uids, whatever the time.

    `share` is g in ppm of the pool's capacity, over the resources that somebody waits for.
    `releases` is what each of them leaves; `owner[e]` has something on node `columns[e]`.
    """

    def __init__(self, queue: model.Queue, found: register.Register[str]) -> None:
        """Take what is known of everybody, of which nothing is copied."""
        self.queue, self._found = queue, found
        self.here: list[Standing] = found.lists[0]
        self.releases: list[room.Release] = found.lists[1]
        rows = dict(zip(Figures._fields, found.figures, strict=True))
        self.band, self.tier, self.slack = rows["band"], rows["tier"], rows["slack"]
        self.finish, self.since, self.share = rows["finish"], rows["since"], rows["share"]
        self.checkpoint, self.restore, self.cap = rows["checkpoint"], rows["restore"], rows["cap"]
        self.min_run, self.wasted, self.filled = rows["min_run"], rows["wasted"], rows["filled"]
        self.runs, self.saves = rows["runs"].astype(np.bool_), rows["saves"].astype(np.bool_)
        self.preemptible = rows["preemptible"].astype(np.bool_)

    def place(self, uid: str) -> int | None:
        """Where in `here` a job is; None: it is not there."""
        return self._found.place(uid)

    def places(self, uids: Iterable[str]) -> list[int]:
        """Where in `here` those are of some jobs that are there."""
        return [place for place in map(self._found.place, uids) if place is not None]

    def given_up(self, some: Collection[Standing]) -> Flock:
        """The same with some standings that step 2 put into band SHED."""
        if not some:
            return self
        here, figures = self.here.copy(), self._found.figures.copy()
        band, tier = Figures._fields.index("band"), Figures._fields.index("tier")
        for one in some:
            if (place := self.place(one.job.uid)) is not None:
                here[place] = one
                figures[band, place], figures[tier, place] = one.band, order.tier(one)
        found = register.Register(self._found.keys, (here, self.releases), figures)
        return Flock(self.queue, found)

    @functools.cached_property
    def owner(self) -> Ints:
        """Of each of `columns` the place in `here`."""
        counts = np.array([len(part.nodes) for part in self.releases], dtype=np.int64)
        return np.repeat(np.arange(len(counts)), counts)

    @functools.cached_property
    def columns(self) -> Ints:
        """The nodes that they hold."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.releases)])

    @functools.cached_property
    def amounts(self) -> Ints:
        """What is held there, by resource: `amounts[resource, e]`."""
        return np.concatenate([part.amounts for part in self.releases], axis=1)


class Roll:
    """Makes the flocks of one queue or cohort (`names` are those of its queues), each from the one before.

    `figures` and `release` tell of a job what is not known yet.
    """

    def __init__(
        self,
        queue: model.Queue,
        names: Collection[str],
        *,
        figures: Callable[[Standing], Figures],
        release: Callable[[model.Job], room.Release],
    ) -> None:
        self._names = names
        self._ask, self._release = figures, release
        self._open = register.Changes()
        self._queue = queue
        self._found: register.Register[str] = register.empty(len(Figures._fields), 2)
        self._flock = Flock(queue, self._found)

    def change(self, uids: Iterable[str]) -> None:
        """Note who is new, another or gone, or stands in another way."""
        self._open.note(uids)

    def read(self, lasting: Mapping[str, Lasting]) -> Flock:
        """The flock of everybody who owns room now.

        Args:
            lasting: Everybody's standing by uid; those whom nobody changed are not asked for.
        """
        changed = self._open.some
        if changed is None:
            self._found = register.empty(len(Figures._fields), 2)
            changed = {uid for uid, one in lasting.items() if one.placed}
        if changed:
            come: list[register.Row[str]] = []
            for uid in sorted(changed):
                one = lasting.get(uid)
                if one is not None and one.placed and one.here.job.queue in self._names:
                    items = one.here, self._release(one.here.job)
                    come.append((uid, items, self._ask(one.here)))
            places = [place for place in map(self._found.place, changed) if place is not None]
            self._found = self._found.changed(sorted(places), come)
            self._flock = Flock(self._queue, self._found)
            self._open.some = set()
        return self._flock


class Capacity:
    """What the pools of a queue have in all, for the share that a job holds of them."""

    def __init__(self, queue: model.Queue, rows: capacities.Rows, nodes: table.NodeTable) -> None:
        self.height = len(rows.resources)
        self._totals: dict[str, Mapping[str, int]] = {}
        for pool in queue.pools:
            sums = rows.allocatable[:, nodes.selected(pool.selector)].sum(axis=1).tolist()
            self._totals[pool.name] = dict(zip(rows.resources, sums, strict=True))

    def share(self, job: model.Job) -> int:
        """The share of one running job in ppm."""
        held: dict[tuple[str, str], int] = {}
        for part in job.assigned:
            for name, amount in job.groups[part.group].shape.requests:
                key = (part.pool, name)
                held[key] = held.get(key, 0) + amount * (part.bound + part.held)
        most = 0
        for (pool, name), amount in held.items():
            total = self._totals.get(pool, {}).get(name)
            if total is not None:
                most = max(most, amount * PPM // max(total, 1))
        return most
