"""Step 5, second half: whom a job may have suspended, and what each of them costs.

Most of it depends on the victim alone: what time does not change is read once per change of a queue's running
jobs (`Flock`), what it does once per pass (`Herd`). The rest depends on who asks, and is a few comparisons of
columns (`Herd.allowed`).

*No-harm*: a victim with a deadline of its own must still meet it after a suspension, even if it has to wait
until the other has finished, and must afterwards have more slack left than the other has now. Without this
rule jobs at their last moment suspend each other until none of them gains (docs/engine.md, step 5).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from lstqueue.engine import model, order, room
from lstqueue.engine.gangs import PPM
from lstqueue.engine.rights import Candidate
from lstqueue.engine.standing import Standing
from lstqueue.topology import capacity as capacities
from lstqueue.topology import table
from lstqueue.topology.table import Ints, Mask

Floats = npt.NDArray[np.float64]

NO_SLACK = -(1 << 60)
"""Stands for the slack of a job without a deadline; less than any."""
NEVER = 1 << 60


class Bar(enum.Enum):
    """Why a job is nobody's victim; where several hold, the first here is named."""

    CLAIMED = "already suspended for another"
    NOT_PREEMPTIBLE = "not preemptible"
    CAP = "suspended often enough today"
    MIN_RUN = "not past its minimum run"
    UNSAVED = "before its next checkpoint, after suspensions that saved nothing"
    NEARLY_DONE = "nearly done"


BARS = tuple(Bar)
_OPEN = len(BARS)
"""Stands for no bar where bars are counted by their place in `BARS`."""


class Flock:
    """The running jobs of one queue as columns, in the order of their uids, whatever the time.

    `share` is g in ppm of the pool's capacity, over the resources that somebody waits for.
    `amounts[resource, e]` on node `columns[e]` belong to `owner[e]`; `releases` has the same by job.
    """

    def __init__(
        self,
        queue: model.Queue,
        placed: Iterable[Standing],
        release: Callable[[model.Job], room.Release],
        capacity: Capacity,
    ) -> None:
        self.queue = queue
        self.here = list(placed)
        self.index = {one.job.uid: i for i, one in enumerate(self.here)}
        self.releases = [release(one.job) for one in self.here]
        self._read()
        counts = _ints(len(part.nodes) for part in self.releases)
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.columns = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.releases)])
        empty: Ints = np.zeros((capacity.height, 0), dtype=np.int64)
        self.amounts = np.concatenate([empty, *(part.amounts for part in self.releases)], axis=1)
        self.share = _ints(capacity.share(one.job) for one in self.here)

    def _read(self) -> None:
        jobs = [one.job for one in self.here]
        least = self.queue.min_run
        self.band = _ints(one.band for one in self.here)
        self.tier = _ints(order.tier(one) for one in self.here)
        self.slack = _ints(NO_SLACK if one.slack is None else one.slack for one in self.here)
        self.finish = _ints(NEVER if one.finish is None else one.finish.mid for one in self.here)
        self.since = _ints(job.since for job in jobs)
        self.runs = _bools(job.state is model.State.RUNNING for job in jobs)
        self.saves = _bools(job.saves_on_suspend for job in jobs)
        self.checkpoint = _ints(job.checkpoint for job in jobs)
        self.restore = _ints(job.restore for job in jobs)
        self.min_run = _ints(least if job.min_run is None else job.min_run for job in jobs)
        self.preemptible = _bools(job.preemptible for job in jobs)
        self.wasted = _ints(job.wasted for job in jobs)


class Herd:
    """A flock at one moment: whom one may ask for, and what that costs.

    `bar` is what protects each of `here` from everybody (its place in `BARS`), `unsaved` the run time in ms
    that a suspension now loses, `weight` that and the restart, `after` the slack it leaves.
    """

    def __init__(self, flock: Flock, claimed: frozenset[str], now: int, config: model.Config) -> None:
        self._flock, self._now, self._config = flock, now, config
        self.here, self.index, self.share = flock.here, flock.index, flock.share
        self.releases, self.owner = flock.releases, flock.owner
        self.columns, self.amounts = flock.columns, flock.amounts
        run: Ints = np.where(flock.runs, np.maximum(now - flock.since, 0), 0)
        saves = (flock.checkpoint > 0) & ~flock.saves
        lost = np.where(saves, run % np.maximum(flock.checkpoint, 1), run)
        self.unsaved: Ints = np.where(flock.saves, 0, lost)
        self.saves_at: Ints = np.where(saves & flock.runs, now - self.unsaved + flock.checkpoint, NEVER)
        self.left: Ints = np.where(flock.finish == NEVER, 0, flock.finish - now)
        self.weight = self.unsaved + flock.restore
        self.after = flock.slack - np.maximum(self.weight, config.harm_least)
        spared = flock.slack - np.maximum(flock.restore, config.harm_least)
        self._spared: Ints = np.where(flock.slack > NO_SLACK, spared, NO_SLACK)  # left after a checkpoint
        self._bar(run)
        self.open = self.bar == _OPEN
        self.claimed: Mask = np.zeros(len(self.here), dtype=np.bool_)
        self.claimed[[self.index[uid] for uid in claimed if uid in self.index]] = True
        self.taken: Mask = np.zeros(len(self.here), dtype=np.bool_)

    def _bar(self, run: Ints) -> None:
        """Set `bar`, and `_until`: when (ms since the epoch) time alone may lift it, NEVER for never."""
        flock, config = self._flock, self._config
        self.bar: Ints = np.full(len(run), _OPEN)
        self._until: Ints = np.full(len(run), NEVER)
        known = flock.finish != NEVER
        then = np.where(known & (flock.finish - self.saves_at > flock.restore), self.saves_at, NEVER)
        self._protect(Bar.NEARLY_DONE, known & (self.left <= self.weight), then)
        keeps = flock.saves | ((flock.checkpoint > 0) & (run >= flock.checkpoint))
        then = np.where(flock.runs & (flock.checkpoint > 0), flock.since + flock.checkpoint, NEVER)
        self._protect(Bar.UNSAVED, (flock.wasted >= config.wasted_most) & ~keeps, then)
        then = np.where(flock.runs, flock.since + flock.min_run, NEVER)
        self._protect(Bar.MIN_RUN, run < flock.min_run, then)
        often, freed = self._often()
        self._protect(Bar.CAP, often, freed)
        self._protect(Bar.NOT_PREEMPTIBLE, ~flock.preemptible, np.full(len(run), NEVER))

    def _protect(self, bar: Bar, mask: Mask, until: Ints) -> None:
        self.bar[mask] = BARS.index(bar)
        self._until[mask] = until[mask]

    def _often(self) -> tuple[Mask, Ints]:
        """Who was suspended as often as the queue allows, and until when that counts."""
        config, cap = self._config, self._flock.queue.cap
        often: Mask = np.full(len(self.here), cap == 0)
        freed: Ints = np.full(len(self.here), NEVER)
        for i, one in enumerate(self.here if cap else ()):
            if len(one.job.suspensions) < cap:
                continue
            recent = sorted(time for time in one.job.suspensions if self._now - time < config.cap_window)
            if len(recent) >= cap:
                often[i], freed[i] = True, recent[len(recent) - cap] + config.cap_window
        return often, freed

    def allowed(self, who: Candidate, *, even_claimed: bool = False) -> Mask:
        """Which of `here` may be suspended for a candidate, be they (only if so) claimed already."""
        flock = self._flock
        mask: Mask = (flock.band > who.band) & (flock.tier <= who.tier)
        if who.band is not model.Band.SHED:  # such a one was given up for the others' sake
            if who.tiers:
                mask |= flock.tier < who.tier
            mask |= self.harmless(who)
        mask &= self.open
        if not even_claimed:
            mask &= ~self.claimed
        return mask & self._others(who)

    def harmless(self, who: Candidate) -> Mask:
        """Which of `here` would meet their own deadlines all the same."""
        config = self._config
        mask: Mask = self.after > max(who.mid, who.slack + config.harm_margin)
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

    def wakes(self, who: Candidate, allowed: Mask) -> list[int]:
        """When time alone may give a candidate more victims than those that it is `allowed` now."""
        now, config, flock = self._now, self._config, self._flock
        later = ~self.open & ~self.claimed & (self._until < NEVER)
        spared = self._spared
        some = (flock.band > who.band) & (flock.tier <= who.tier)
        if who.band is model.Band.SHED:
            return _list(self._until[later & some])
        some |= spared > who.mid
        if who.tiers:
            some |= flock.tier < who.tier
        times = _list(self._until[later & some])
        no = self.open & ~self.claimed & ~allowed & self._others(who) & (flock.slack > NO_SLACK)
        # The candidate's slack shrinks while a victim's stays as it is, as long as the floor covers its loss.
        gap = who.slack + config.harm_margin - self.after + 1
        floor = np.where(flock.runs & ~flock.saves, config.harm_least - self.weight, NEVER)
        times += _list(now + gap[no & (gap > 0) & (gap <= floor)])
        # At its next checkpoint a victim has nothing to lose but its restart.
        wait = self.saves_at - now
        then = no & (self.saves_at < NEVER) & (spared > who.mid) & (self.left - wait > flock.restore)
        then &= spared > who.slack - wait + config.harm_margin
        return times + _list(self.saves_at[then])

    def bars(self) -> list[Bar]:
        """What protects those that are protected."""
        found = np.where(self.claimed, BARS.index(Bar.CLAIMED), self.bar)
        return [BARS[which] for which in found.tolist() if which != _OPEN]

    def _others(self, who: Candidate) -> Mask:
        if not who.displaced_by:
            return ~self.taken
        mask: Mask = ~self.taken & ~self.displaced(who)
        return mask


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


def _list(times: Ints) -> list[int]:
    found: list[int] = times.tolist()
    return found


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _bools(values: Iterable[bool]) -> Mask:
    return np.array(list(values), dtype=np.bool_)
