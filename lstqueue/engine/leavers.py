"""Who owns room and is known to end, by when, kept between passes.

What somebody leaves, and when, follows from its standing, which stands until the job is another or outruns
its estimate. So a pass puts in or takes out who changed, and copies the rest. It decides nothing.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterable, Mapping

from lstqueue.engine import departures, model, room, standing

End = tuple[int, str, room.Release]
"""(when in ms since the epoch, uid, what becomes free)."""
MANY, PART = 32, 8
"""Who changed, beyond which all are put in anew, and beyond which part of all: one more or less copies a
column of everybody's nodes, in the time in which eight are read."""


class Leavers:
    """Those who own room, first to last by their ends, of equal ones by uid.

    `release` says what ends with a job, `end` when (None: nobody knows, or it has none).
    """

    def __init__(
        self,
        release: Callable[[model.Job], room.Release],
        end: Callable[[standing.Lasting], int | None],
    ) -> None:
        self._release, self._end = release, end
        self._keys: list[tuple[int, str]] = []
        self._ends: dict[str, int] = {}
        self._departures = departures.Departures()
        self._open: set[str] = set()

    def change(self, uids: Iterable[str]) -> None:
        """Note whose standing is another, so that what is known of it does not hold any more."""
        self._open.update(uids)

    def forget(self, uid: str) -> None:
        """Drop a job that is another or gone."""
        self._open.discard(uid)
        if uid in self._ends:
            self._remove(uid)

    def read(
        self, lasting: Mapping[str, standing.Lasting], without: Iterable[str] = ()
    ) -> departures.Departures:
        """What they leave; the caller's own.

        Args:
            lasting: Everybody's standing.
            without: Uids of some who leave in another way.
        """
        if len(self._open) > max(MANY, len(self._ends) // PART):
            self._start_anew(lasting)
        for uid in self._open:
            if uid in self._ends:
                self._remove(uid)
            if (at := self._end(lasting[uid])) is not None:
                self._insert(uid, at, lasting[uid].here.job)
        self._open.clear()
        found = self._departures.copy()
        places = [self._place(uid) for uid in without if uid in self._ends]
        for place in sorted(places, reverse=True):
            found.remove(place)
        return found

    def read_with(
        self, lasting: Mapping[str, standing.Lasting], without: Collection[str], more: Iterable[End]
    ) -> departures.Departures:
        """The same with others among them."""
        found = self.read(lasting, without)
        keys = [key for key in self._keys if key[1] not in without]
        for at, uid, part in more:
            place = bisect.bisect_right(keys, (at, uid))
            keys.insert(place, (at, uid))
            found.insert(place, (at, [part]))
        return found

    def _start_anew(self, lasting: Mapping[str, standing.Lasting]) -> None:
        self._ends = {uid: at for uid, one in lasting.items() if (at := self._end(one)) is not None}
        self._keys = sorted((at, uid) for uid, at in self._ends.items())
        self._departures = departures.Departures(
            (at, [self._release(lasting[uid].here.job)]) for at, uid in self._keys
        )
        self._open.clear()

    def _insert(self, uid: str, at: int, job: model.Job) -> None:
        self._ends[uid] = at
        place = self._place(uid)
        self._keys.insert(place, (at, uid))
        self._departures.insert(place, (at, [self._release(job)]))

    def _remove(self, uid: str) -> None:
        place = self._place(uid)
        del self._keys[place], self._ends[uid]
        self._departures.remove(place)

    def _place(self, uid: str) -> int:
        return bisect.bisect_left(self._keys, (self._ends[uid], uid))


def as_expected(one: standing.Lasting) -> int | None:
    """When somebody leaves as expected, NEVER where nobody knows; None when it holds nothing."""
    if not one.placed or not one.here.job.assigned:
        return None
    return standing.NEVER if one.here.finish is None else one.here.finish.mid


def at_the_latest(one: standing.Lasting) -> int | None:
    """When somebody has left at the latest; None when it owns no room, or nobody knows."""
    return one.here.finish.hi if one.placed and one.here.finish is not None else None
