"""Step 5, second half: whom a job may have suspended, and what each of them costs.

Most of it depends on the victim alone and is found out once per pass and queue (`bar`, `Herd`). The rest
depends on who asks, and is a few comparisons of columns (`Herd.allowed`).

*No-harm*: a victim with a deadline of its own must still meet it after a suspension, even if it has to wait
until the other has finished, and must afterwards have more slack left than the other has now. Without this
rule jobs at their last moment suspend each other until none of them gains (docs/engine.md, step 5).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lstqueue.engine import model, order, room
from lstqueue.engine.gangs import PPM
from lstqueue.engine.rights import Candidate
from lstqueue.engine.standing import Standing
from lstqueue.topology import table
from lstqueue.topology.table import Ints, Mask

Floats = npt.NDArray[np.float64]

NO_SLACK = -(1 << 60)
"""Stands for the slack of a job without a deadline; less than any."""
NEVER = 1 << 60


class Bar(enum.Enum):
    """Why a job is nobody's victim."""

    NOT_PREEMPTIBLE = "not preemptible"
    CLAIMED = "already suspended for another"
    CAP = "suspended often enough today"
    MIN_RUN = "not past its minimum run"
    UNSAVED = "before its next checkpoint, after suspensions that saved nothing"
    NEARLY_DONE = "nearly done"


class Barred(NamedTuple):
    """A bar, and when (ms since the epoch) time alone may lift it; None: never."""

    bar: Bar
    until: int | None


def run_time(job: model.Job, now: int) -> int:
    """How long it has been running, in ms; 0 while it only starts."""
    return max(now - job.since, 0) if job.state is model.State.RUNNING else 0


def unsaved(job: model.Job, now: int) -> int:
    """Run time in ms lost by a suspension now: since the last checkpoint, or none if it saves then."""
    if job.saves_on_suspend:
        return 0
    run = run_time(job, now)
    return run % job.checkpoint if job.checkpoint > 0 else run


def next_checkpoint(job: model.Job, now: int) -> int | None:
    """When what a suspension loses falls to nothing again; None when it never does or loses nothing."""
    if job.saves_on_suspend or job.checkpoint <= 0 or job.state is not model.State.RUNNING:
        return None
    return now - unsaved(job, now) + job.checkpoint


def bar(here: Standing, queue: model.Queue, now: int, config: model.Config) -> Barred | None:
    """What protects a placed job from everybody; None when nothing does."""
    job = here.job
    if not job.preemptible:
        return Barred(Bar.NOT_PREEMPTIBLE, None)
    recent = sorted(time for time in job.suspensions if now - time < config.cap_window)
    if len(recent) >= queue.cap:
        freed = recent[len(recent) - queue.cap] + config.cap_window if queue.cap else None
        return Barred(Bar.CAP, freed)
    runs = job.state is model.State.RUNNING
    run = run_time(job, now)
    least = queue.min_run if job.min_run is None else job.min_run
    if run < least:
        return Barred(Bar.MIN_RUN, job.since + least if runs else None)
    keeps = job.saves_on_suspend or (job.checkpoint > 0 and run >= job.checkpoint)
    if job.wasted >= config.wasted_most and not keeps:
        return Barred(Bar.UNSAVED, job.since + job.checkpoint if runs and job.checkpoint > 0 else None)
    if here.finish is not None and here.finish.mid - now <= unsaved(job, now) + job.restore:
        saved = next_checkpoint(job, now)
        worth = saved is not None and here.finish.mid - saved > job.restore
        return Barred(Bar.NEARLY_DONE, saved if worth else None)
    return None


class Herd:
    """The running jobs of one queue as columns, in the order of their uids: whom one may ask for.

    `here` are those that nothing protects by itself, `barred` says of the others what does. `share` is g in
    ppm of the pool's capacity, over the resources that somebody waits for; `weight` is the run time in ms
    that a suspension loses, `after` the slack it leaves. `amounts[resource, e]` on node `columns[e]` belong
    to `owner[e]`.
    """

    def __init__(
        self,
        queue: model.Queue,
        placed: Iterable[Standing],
        claimed: frozenset[str],
        free: room.Room,
        nodes: table.NodeTable,
        now: int,
        config: model.Config,
    ) -> None:
        self._now, self._config = now, config
        self.barred: dict[str, Barred] = {}
        later: list[tuple[int, int, int, int]] = []
        self.here: list[Standing] = []
        for one in placed:
            found = Barred(Bar.CLAIMED, None) if one.job.uid in claimed else bar(one, queue, now, config)
            if found is None:
                self.here.append(one)
            else:
                self.barred[one.job.uid] = found
                if found.until is not None:
                    later.append((found.until, one.band, order.tier(one), _spared(one, config)))
        self.later: Ints = np.array(sorted(later), dtype=np.int64).reshape(len(later), 4).T
        self.here.sort(key=lambda one: one.job.uid)
        self.index = {one.job.uid: i for i, one in enumerate(self.here)}
        self.releases = [room.release_of(one.job, free, nodes) for one in self.here]
        self._read(config)
        self._hold(queue, free, nodes)

    def _read(self, config: model.Config) -> None:
        jobs, now = [one.job for one in self.here], self._now
        slacks = [NO_SLACK if one.slack is None else one.slack for one in self.here]
        lefts = [0 if one.finish is None else one.finish.mid - now for one in self.here]
        saves = [next_checkpoint(job, now) for job in jobs]
        self.taken: Mask = np.zeros(len(jobs), dtype=np.bool_)
        self.band = _ints(one.band for one in self.here)
        self.tier = _ints(order.tier(one) for one in self.here)
        self.slack = _ints(slacks)
        self.unsaved = _ints(unsaved(job, now) for job in jobs)
        self.restore = _ints(job.restore for job in jobs)
        self.left = _ints(lefts)
        self.saves_at = _ints(NEVER if saved is None else saved for saved in saves)
        grows = [job.state is model.State.RUNNING and not job.saves_on_suspend for job in jobs]
        self.growing: Mask = np.array(grows, dtype=np.bool_)
        self.weight = self.unsaved + self.restore
        self.after = self.slack - np.maximum(self.weight, config.harm_least)

    def _hold(self, queue: model.Queue, free: room.Room, nodes: table.NodeTable) -> None:
        """What each of them holds, on nodes and of the queue's quota."""
        counts = _ints(len(part.nodes) for part in self.releases)
        self.owner = np.repeat(np.arange(len(counts)), counts)
        height = len(free.ledger.free)
        self.columns = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.releases)])
        empty: Ints = np.zeros((height, 0), dtype=np.int64)
        self.amounts = np.concatenate([empty, *(part.amounts for part in self.releases)], axis=1)
        capacity = _Capacity(queue, free, nodes)
        self.share = _ints(capacity.share(one.job) for one in self.here)

    def allowed(self, who: Candidate) -> Mask:
        """Which of `here` may be suspended for a candidate."""
        lower = (self.band > who.band) & (self.tier <= who.tier)
        if who.band is model.Band.SHED:
            return lower & self._others(who)  # it was given up for the others' sake
        if who.tiers:
            lower |= self.tier < who.tier
        mask: Mask = (lower | self.harmless(who)) & self._others(who)
        return mask

    def harmless(self, who: Candidate) -> Mask:
        """Which of `here` would meet their own deadlines all the same."""
        config = self._config
        mask: Mask = (self.after > who.mid) & (self.after > who.slack + config.harm_margin)
        if who.slack > config.pressing:
            mask &= self.unsaved <= config.unsaved_most
        return mask

    def displaced(self, who: Candidate) -> Mask:
        """Which of `here` the candidate was suspended for, so that it may not pay them back yet."""
        mask: Mask = np.zeros(len(self.here), dtype=np.bool_)
        mask[[self.index[uid] for uid in who.displaced_by if uid in self.index]] = True
        return mask

    def losses(self, who: Candidate) -> Floats:
        """What a suspension of each costs per share of the pool; times `share` it is the cost.

        A harmless victim's loss is divided by the root of its remaining run time in units of 10 min (less
        counts as one): of equal losses the one of a long job delays it least.
        """
        config = self._config
        long = np.sqrt(np.maximum(self.left, config.harm_least) / config.harm_least)
        found: Floats = np.where(self.harmless(who), self.weight / long, self.weight)
        return found

    def wakes(self, who: Candidate) -> list[int]:
        """When time alone may give a candidate more victims than now."""
        now, config = self._now, self._config
        until, band, tier, spared = self.later
        some = (band > who.band) & (tier <= who.tier)
        if who.band is model.Band.SHED:
            return _list(until[some])
        some |= spared > who.mid
        if who.tiers:
            some |= tier < who.tier
        times = _list(until[some])
        no = ~self.allowed(who) & self._others(who) & (self.slack > NO_SLACK)
        # The candidate's slack shrinks while a victim's stays as it is, as long as the floor covers its loss.
        gap = who.slack + config.harm_margin - self.after + 1
        floor = np.where(self.growing, config.harm_least - self.weight, NEVER)
        times += _list(now + gap[no & (gap > 0) & (gap <= floor)])
        # At its next checkpoint a victim has nothing to lose but its restart.
        saved = self.slack - np.maximum(self.restore, config.harm_least)
        wait = self.saves_at - now
        then = no & (self.saves_at < NEVER) & (saved > who.mid) & (self.left - wait > self.restore)
        then &= saved > who.slack - wait + config.harm_margin
        return times + _list(self.saves_at[then])

    def _others(self, who: Candidate) -> Mask:
        mask: Mask = ~self.taken & ~self.displaced(who)
        return mask


class _Capacity:
    """What the pools of a queue have in all, for the share that a job holds of them."""

    def __init__(self, queue: model.Queue, free: room.Room, nodes: table.NodeTable) -> None:
        rows = free.ledger.rows
        self._resources = rows.resources
        self._totals: dict[str, Mapping[str, int]] = {}
        for pool in queue.pools:
            sums = rows.allocatable[:, nodes.selected(pool.selector)].sum(axis=1).tolist()
            self._totals[pool.name] = dict(zip(rows.resources, sums, strict=True))

    def share(self, job: model.Job) -> int:
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


def _spared(one: Standing, config: model.Config) -> int:
    """The slack that a suspension right after a checkpoint would leave."""
    if one.slack is None:
        return NO_SLACK
    return one.slack - max(one.job.restore, config.harm_least)


def _list(times: Ints) -> list[int]:
    return [int(time) for time in times]


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
