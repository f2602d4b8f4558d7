"""Step 5, second half: whom a job may have suspended, and what each of them costs.

Most of it depends on the victim alone: what time does not change is kept in columns (`flock`), what it does
is found out once per pass (`Herd`). The rest depends on who asks, and is a few comparisons of
columns (`Herd.allowed`).

*No-harm*: a victim with a deadline of its own must still meet it after a suspension, even if it has to wait
until the other has finished, and must afterwards have more slack left than the other has now. Without this
rule jobs at their last moment suspend each other until none of them gains (docs/engine.md, step 5).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lstqueue.engine import flock as flocks
from lstqueue.engine import model, order, ripening, switches
from lstqueue.engine.rights import Candidate
from lstqueue.engine.standing import NEVER, NO_SLACK
from lstqueue.topology.table import Ints, Mask

Floats = npt.NDArray[np.float64]


class Bar(enum.Enum):
    """Why a job is nobody's victim; where several hold, the first here is named."""

    CLAIMED = "already suspended for another"
    PROMISED = "in the room that it was promised"
    NOT_PREEMPTIBLE = "not preemptible"
    CAP = "suspended often enough today"
    MIN_RUN = "not past its minimum run"
    SHARE = "within the best-effort share of the queue"
    UNSAVED = "before its next checkpoint, after suspensions that saved nothing"
    NEARLY_DONE = "nearly done"


BARS = tuple(Bar)
_OPEN = len(BARS)
"""Stands for no bar where bars are counted by their place in `BARS`."""


class Herd:
    """A flock at one moment: whom one may ask for, and what that costs.

    `bar` is what protects each of `here` from everybody (its place in `BARS`), `unsaved` the run time in ms
    that a suspension now loses, `weight` that and the restart, `after` the slack it leaves. `nobody` is the
    mask of none of them.
    """

    def __init__(
        self,
        flock: flocks.Flock,
        *,
        claimed: frozenset[str],
        safe: frozenset[str],
        seated: frozenset[str],
        now: int,
        config: model.Config,
    ) -> None:
        self.flock, self._now, self.config = flock, now, config
        self._safe, self._seated = safe, seated
        self.here, self.share = flock.here, flock.share
        self.releases = flock.releases
        run: Ints = np.where(flock.runs, np.maximum(now - flock.since, 0), 0)
        saves = (flock.checkpoint > 0) & ~flock.saves
        lost = np.where(saves, run % np.maximum(flock.checkpoint, 1), run)
        self.unsaved: Ints = np.where(flock.saves, 0, lost)
        self.saves_at: Ints = np.where(saves & flock.runs, now - self.unsaved + flock.checkpoint, NEVER)
        self.left: Ints = np.where(flock.finish == NEVER, 0, flock.finish - now)
        self.weight = self.unsaved + flock.restore
        self.after = flock.slack - np.maximum(self.weight, config.harm_least)
        self._until = self._bar(run)
        self.open = self.bar == _OPEN
        self.claimed: Mask = np.zeros(len(self.here), dtype=np.bool_)
        self.claimed[flock.places(claimed)] = True
        self.taken: Mask = np.zeros(len(self.here), dtype=np.bool_)
        self.nobody: Mask = np.zeros(len(self.here), dtype=np.bool_)
        self._below: dict[tuple[model.Band, int, bool], Mask] = {}
        self._some_below: dict[tuple[model.Band, int, bool], bool] = {}
        self._any_below: dict[tuple[model.Band, int, bool], bool] = {}
        self._ranks: list[order.Rank] = self._ranked() if config.switches.by_rank else []
        self._bound()

    @property
    def some_free(self) -> bool:
        """Whether anybody may still be asked for."""
        return bool(self._free.any())

    def of(self, queue: str) -> Mask:
        """Which of `here` are of one queue."""
        return np.array([one.job.queue == queue for one in self.here], dtype=np.bool_)

    def take(self, chosen: Sequence[int]) -> None:
        """Have some of `here` be suspended for somebody, so that nobody else asks for them."""
        self.taken[list(chosen)] = True
        self._bound()

    def _bound(self) -> None:
        """Note who may still be asked for, and the most slack that one of them would have left.

        Most searches of an overloaded queue end here: of 5,300 candidates in a line of 50,000 all but 670 had
        nobody to ask for, and one comparison with the most says so instead of one per victim.
        """
        self._free: Mask = self.open & ~self.claimed & ~self.taken
        self._some_below.clear()
        self._slackest = int(self.after.max(initial=NO_SLACK, where=self._free))
        saved = self._free & (self.unsaved <= self.config.unsaved_most)
        self._slackest_saved = int(self.after.max(initial=NO_SLACK, where=saved))

    def _ranked(self) -> list[order.Rank]:
        """Where each of `here` would stand in the line, at the last step of time."""
        config, shares = self.config, self.share.tolist()
        policy, tick = order.policy(self.flock.queue, config), self._now // switches.STEP * switches.STEP
        pairs = zip(self.here, shares, strict=True)
        return [order.rank(policy, one, share, config, running_at=tick) for one, share in pairs]

    def _bar(self, run: Ints) -> Ints:
        """Set `bar`; return when (ms since the epoch) time alone may lift it, NEVER for never."""
        flock, config = self.flock, self.config
        self.bar: Ints = np.full(len(run), _OPEN)
        until: Ints = np.full(len(run), NEVER)
        known = (flock.finish != NEVER) & (not config.switches.by_rank)
        then = np.where(known & (flock.finish - self.saves_at > flock.restore), self.saves_at, NEVER)
        self._protect(Bar.NEARLY_DONE, known & (self.left <= self.weight), until, then)
        keeps = flock.saves | ((flock.checkpoint > 0) & (run >= flock.checkpoint))
        then = np.where(flock.runs & (flock.checkpoint > 0), flock.since + flock.checkpoint, NEVER)
        wasted = (flock.wasted >= config.wasted_most) & (not config.switches.by_rank)
        self._protect(Bar.UNSAVED, wasted & ~keeps, until, then)
        if self._safe:
            self._protect(Bar.SHARE, self._mask(self._safe), until, NEVER)  # until somebody comes or goes
        then = np.where(flock.runs, flock.since + flock.min_run, NEVER)
        self._protect(Bar.MIN_RUN, run < flock.min_run, until, then)
        often, freed = self._often()
        self._protect(Bar.CAP, often, until, freed)
        self._protect(Bar.NOT_PREEMPTIBLE, ~flock.preemptible, until, NEVER)
        if self._seated:
            self._protect(Bar.PROMISED, self._mask(self._seated), until, NEVER)
        return until

    def _mask(self, uids: frozenset[str]) -> Mask:
        mask: Mask = np.zeros(len(self.here), dtype=np.bool_)
        mask[self.flock.places(uids)] = True
        return mask

    def _protect(self, bar: Bar, mask: Mask, until: Ints, then: Ints | int) -> None:
        if not mask.any():
            return  # as of most bars in most passes
        self.bar[mask] = BARS.index(bar)
        until[mask] = then if isinstance(then, int) else then[mask]

    def _often(self) -> tuple[Mask, Ints]:
        """Who was suspended as often as the queue allows, and until when that counts."""
        window = self.config.cap_window
        recently: Mask = self.flock.filled > self._now - window
        freed: Ints = np.where(recently, self.flock.filled + window, NEVER)
        often: Mask = recently | (self.flock.cap == 0)
        return often, freed

    def allowed(self, who: Candidate, *, even_claimed: bool = False) -> Mask:
        """Which of `here` may be suspended for a candidate, be they (only if so) claimed already."""
        if who.rank is not None:
            open_to_it = self.open & ~self.taken if even_claimed else self._free
            return open_to_it & np.array([rank > who.rank for rank in self._ranks], dtype=np.bool_)
        harms_none = who.band is not model.Band.SHED
        if not even_claimed:  # asked twenty times a pass, mostly in vain
            slack, config = who.latest - self._now, self.config
            most = self._slackest if slack <= config.pressing else self._slackest_saved
            harms_none = harms_none and most > who.mid and most > slack + config.harm_margin
            if not harms_none and not self._has_below(who):
                return self.nobody
        mask = self.lower(who)
        if harms_none:
            mask = mask | self.harmless(who)
        mask = mask & (self.open & ~self.taken if even_claimed else self._free)
        return mask & ~self.displaced(who) if who.displaced_by else mask

    def _has_below(self, who: Candidate) -> bool:
        """Whether somebody of a lower rank than a candidate may still be asked for."""
        key = (who.band, who.tier, who.tiers)
        found = self._some_below.get(key)
        if found is None:
            found = self._some_below[key] = bool((self.lower(who) & self._free).any())
        return found

    def lower(self, who: Candidate) -> Mask:
        """Which of `here` are of a lower rank than a candidate, so that harm does not matter."""
        key = (who.band, who.tier, who.tiers)
        mask = self._below.get(key)
        if mask is None:
            flock = self.flock
            mask = (flock.band > who.band) & (flock.tier <= who.tier)
            if who.tiers and who.band is not model.Band.SHED:  # that one was given up for the others' sake
                mask |= flock.tier < who.tier
            self._below[key] = mask
        return mask

    def some_lower(self, who: Candidate) -> bool:
        """Whether somebody is of a lower rank, be it protected."""
        key = (who.band, who.tier, who.tiers)
        found = self._any_below.get(key)
        if found is None:
            found = self._any_below[key] = bool(self.lower(who).any())
        return found

    def _spare(self, who: Candidate) -> int:
        """The slack above which a victim must stay so that a candidate does it no harm."""
        return max(who.mid, who.latest - self._now + self.config.harm_margin)

    def _presses(self, who: Candidate) -> bool:
        """Whether a candidate cannot wait for the next checkpoint of a victim."""
        return who.latest - self._now <= self.config.pressing

    def harmless(self, who: Candidate) -> Mask:
        """Which of `here` would meet their own deadlines all the same."""
        config = self.config
        mask: Mask = self.after > self._spare(who)
        if not self._presses(who):
            mask &= self.unsaved <= config.unsaved_most
        return mask

    @functools.cached_property
    def movers(self) -> Mask:
        """Which of `here` lose no more than they can spare, should they start again elsewhere at once.

        As things stood at the last step, `Config.move_step`, with what a step may change to spare: so it
        stays as it is until the next one, and holds all the time.
        """
        config, step = self.config, self.config.move_step
        then = Herd(
            self.flock,
            claimed=frozenset(),
            safe=self._safe,
            seated=self._seated,
            now=self._now // step * step,
            config=config,
        )
        spares = then.after > config.harm_margin + step
        spares &= self.flock.saves | (then.unsaved <= config.unsaved_most - step)
        mask: Mask = then.open & spares & (then.left > then.weight + 2 * step)
        return mask

    def displaced(self, who: Candidate) -> Mask:
        """Which of `here` the candidate was suspended for, so that it may not pay them back yet."""
        mask: Mask = np.zeros(len(self.here), dtype=np.bool_)
        mask[self.flock.places(who.displaced_by)] = True
        return mask

    def losses(self, who: Candidate) -> Floats:
        """What a suspension of each costs per share of the pool; times `share` it is the cost.

        A harmless victim's loss is divided by the root of its remaining run time in units of 10 min (less
        counts as one): of equal losses the one of a long job delays it least.
        """
        config = self.config
        if who.rank is not None:  # the last goes first
            places = sorted(range(len(self._ranks)), key=self._ranks.__getitem__, reverse=True)
            last_first: Floats = np.zeros(len(places))
            last_first[places] = np.arange(1.0, len(places) + 1)
            return last_first
        long = np.sqrt(np.maximum(self.left, config.harm_least) / config.harm_least)
        found: Floats = np.where(self.harmless(who), self.weight / long, self.weight)
        return found

    def wake(self, who: Candidate, allowed: Mask, before: int) -> int:
        """When time alone may first give a candidate more victims than those that it is `allowed` now.

        `before` (ms since the epoch) if that is not earlier.
        """
        return self._ripening.first(self, who, allowed, before)

    @functools.cached_property
    def _ripening(self) -> ripening.Ripening:
        """Who becomes a victim when: of no use where everybody finds some."""
        return ripening.Ripening(self, self._until, self._now)

    def bars(self, which_of: Mask) -> list[Bar]:
        """What protects those of some that are protected."""
        found = np.where(self.claimed, BARS.index(Bar.CLAIMED), self.bar)[which_of]
        return [BARS[which] for which in found.tolist() if which != _OPEN]
