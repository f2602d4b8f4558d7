"""Step 5, for `wake_at`: when time alone first adds to the victims that a job may ask for.

A protection ends; a victim comes to its next checkpoint, where it has nothing to lose but its restart; or
the slack of the one who asks has shrunk so far that a suspension for it does a victim no harm. A score of
jobs ask in vain in a pass, in a long line thousands, and the pass is to look again at the first such time of
all. So each kind is sorted by time once, and who asks looks only at what comes before the time known so far,
which is little or nothing.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lstqueue.engine import model, order, switches
from lstqueue.engine.rights import Candidate
from lstqueue.engine.standing import NEVER, NO_SLACK
from lstqueue.topology.table import Ints, Mask

if TYPE_CHECKING:
    from lstqueue.engine import victims


class _Ripe:
    """Some of a herd by when each may be asked for, the first first, with the slack a restart would leave it.

    `most` is the most such slack of those up to each.
    """

    __slots__ = ("all", "most", "times")

    def __init__(
        self, times: Sequence[int] = (), places: Sequence[int] = (), spared: Ints | None = None
    ) -> None:
        self.times = times
        self.all: list[tuple[int, int, int]] = []
        self.most: list[int] = []
        if spared is not None:
            self.all = list(zip(times, places, spared.tolist(), strict=True))
            self.most = np.maximum.accumulate(spared).tolist()

    def first(self, before: int, least: int) -> int:
        """When the first comes that has more than the `least` slack; `before` if that is not earlier."""
        place = bisect.bisect_right(self.most, least)
        return min(self.times[place], before) if place < len(self.most) else before

    def until(self, before: int, least: int) -> Sequence[tuple[int, int, int]]:
        """Those of before a time, unless none of them has more than the `least` slack."""
        count = bisect.bisect_left(self.times, before)
        return self.all[:count] if count and self.most[count - 1] > least else ()


class Ripening:
    """The herd of a pass, by when somebody of it may be asked for. `until` is when its bars end.

    It is of the herd, so it does not hold it; who asks gives it.
    """

    def __init__(self, herd: victims.Herd, until: Ints, now: int) -> None:
        flock, config = herd.flock, herd.config
        self._until, self._now, self._config = until, now, config
        self._saves_at = herd.saves_at
        spared = flock.slack - np.maximum(flock.restore, config.harm_least)
        self._spared: Ints = np.where(flock.slack > NO_SLACK, spared, NO_SLACK)
        self._barred: Mask = ~herd.open & ~herd.claimed & (until > now)
        bound = herd.open & ~herd.claimed & (flock.slack > NO_SLACK)
        self._bound: Mask = bound & (herd.saves_at > now)
        self._bound &= herd.left - (herd.saves_at - now) > flock.restore
        self._horizon = now
        self._unbarred, self._saving = _Ripe(), _Ripe()
        # For so long from now on what a suspension costs of their slack stays as it is.
        floor = np.where(flock.runs & ~flock.saves, config.harm_least - herd.weight, NEVER)
        some = (bound & (floor > 0)).nonzero()[0]
        some = some[herd.after[some].argsort()]
        self._rising: list[int] = some.tolist()
        self._rising_after: list[int] = herd.after[some].tolist()
        self._floor: list[int] = floor[some].tolist()

    def first(self, herd: victims.Herd, who: Candidate, allowed: Mask, before: int) -> int:
        """When time alone may first give a candidate more victims than those that it is `allowed` now.

        `before` (ms since the epoch) if that is not earlier.
        """
        if before > self._horizon:
            self._look_ahead(before)
        if who.rank is not None:
            return self._by_rank(herd, before)
        before = self._unbars(herd, who, before)
        if who.band is model.Band.SHED:
            return before
        return self._saves(herd, who, allowed, self._rises(herd, who, allowed, before))

    def _look_ahead(self, before: int) -> None:
        """Sort what comes before a time: in a pass only earlier ones are asked about after that."""
        self._horizon = before
        self._unbarred = self._sorted(self._barred, self._until)
        self._saving = self._sorted(self._bound, self._saves_at)

    def _sorted(self, some: Mask, times: Ints) -> _Ripe:
        places = (some & (times < self._horizon)).nonzero()[0]
        places = places[times[places].argsort(kind="stable")]
        return _Ripe(times[places].tolist(), places.tolist(), self._spared[places])

    def _unbars(self, herd: victims.Herd, who: Candidate, before: int) -> int:
        """When a protection ends of somebody whom nothing else protects, or not for ever."""
        times = self._unbarred.times
        if not times or times[0] >= before:
            return before
        harmless = who.band is not model.Band.SHED
        if not herd.some_lower(who):
            return self._unbarred.first(before, who.mid) if harmless else before
        lower = herd.lower(who)
        for at, i, spared in self._unbarred.until(before, -NEVER):
            if lower[i] or (harmless and spared > who.mid):
                return at
        return before

    def _rises(self, herd: victims.Herd, who: Candidate, allowed: Mask, before: int) -> int:
        """When somebody first has enough slack: the candidate's shrinks, a victim's stays as it is.

        That holds for as long as the floor covers what the victim loses.
        """
        enough = who.latest - self._now + self._config.harm_margin + 1
        least = bisect.bisect_right(self._rising_after, enough - (before - self._now))
        for place in range(bisect.bisect_left(self._rising_after, enough) - 1, least - 1, -1):
            i, gap = self._rising[place], enough - self._rising_after[place]
            if gap <= self._floor[place] and not (allowed[i] or _is_out(herd, who, i)):
                return self._now + gap
        return before

    def _saves(self, herd: victims.Herd, who: Candidate, allowed: Mask, before: int) -> int:
        """When somebody first has a checkpoint behind it, and so slack enough to be suspended."""
        enough = who.latest - self._now + self._config.harm_margin
        least = max(who.mid, enough - (before - self._now))
        for at, i, spared in self._saving.until(before, least):
            spares = spared > who.mid and spared > enough - (at - self._now)
            if spares and not (allowed[i] or _is_out(herd, who, i)):
                return at
        return before

    def _by_rank(self, herd: victims.Herd, before: int) -> int:
        """When time alone may first put somebody behind a candidate: the end of a bar, or the next step."""
        moves = order.policy(herd.flock.queue, self._config) in (model.Order.LST, model.Order.SERVICE)
        if moves and herd.some_free:
            before = min(before, (self._now // switches.STEP + 1) * switches.STEP)
        return min(before, self._unbarred.times[0]) if self._unbarred.times else before


def _is_out(herd: victims.Herd, who: Candidate, i: int) -> bool:
    """Whether one is taken by somebody, or has had the candidate suspended."""
    return bool(herd.taken[i]) or herd.here[i].job.uid in who.displaced_by
