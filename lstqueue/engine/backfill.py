"""Step 4 as EASY backfilling has it (Lifka 1995), for comparisons: `Backfill.EASY`.

The first in line that lacks room is given its *shadow*: the earliest time at which it fits as those who run
end by their expected run times, and its place then. Others behind it start now if they have ended by then, or
if they fit beside that place as well. It is found anew in every pass, so early ends move it forward. Whose
room nobody is known to leave has no shadow and binds nobody; the next that lacks room is asked instead.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

import numpy as np

from lstqueue.engine import departures, fit, gangs, kept, model, order, room
from lstqueue.engine.standing import NEVER


class Shadow:
    """The start that is kept for one job: `at` (ms since the epoch), in the room that will be there then."""

    def __init__(self, turn: order.Turn, at: int, later: room.Room) -> None:
        self.turn, self.at, self._later = turn, at, later

    def place(self, gang: gangs.Gang, free: room.Room, *, brief: bool) -> room.Placement | None:
        """Charge a gang where it does not move the start; None, and nothing charged, where there is no room.

        Args:
            gang: Whose.
            free: The room now.
            brief: Whether it has ended by then, so that it may go anywhere.
        """
        if brief or not free.could_place(gang):
            return free.place(gang)
        taken_then = np.maximum(free.ledger.free - self._later.ledger.free, 0)
        columns = taken_then.any(axis=0).nonzero()[0]
        free.ledger.give(columns, -taken_then[:, columns])
        taken = free.place(gang)
        free.ledger.give(columns, taken_then[:, columns])
        if taken is not None:
            self._later.charge_all(room.release_after(gang.queue, taken, free))
        return taken


def walk(known: kept.Kept) -> fit.Fitted:
    """Admit in order whatever fits and does not move the start of the first that does not."""
    done, free = fit.Fitted(), known.free
    started: list[tuple[int, Sequence[room.Release]]] = []
    shadow: Shadow | None = None
    lacking: list[order.Turn] = []  # for one of whom a start is to be kept as soon as somebody could pass
    stuck: dict[tuple[str | int, bool], model.Code] = {}
    for turn in known.line:
        uid, lane = turn.job.uid, turn.lane
        if (code := fit.untried(turn, known.possible, known.now) or stuck.get((lane, True))) is not None:
            done.codes[uid] = code
            continue
        if not free.could_place(turn.gang):
            done.tries += 1
            code = done.codes[uid] = stuck[lane, True] = _why(known, turn)
            if shadow is None and code not in fit.NEVER_FITS:
                lacking.append(turn)
            continue
        if shadow is None:
            shadow = next(filter(None, (_shadow(known, one, started) for one in lacking)), None)
            lacking.clear()
        finish = known.here(turn).finish
        ends = NEVER if finish is None else finish.mid
        brief = shadow is None or ends <= shadow.at
        if (code := stuck.get((lane, brief))) is not None:
            done.codes[uid] = code
            continue
        done.tries += 1
        taken = free.place(turn.gang) if shadow is None else shadow.place(turn.gang, free, brief=brief)
        if taken is not None:
            done.placed[uid] = taken
            started.append((ends, room.release_after(turn.gang.queue, taken, free)))
        elif shadow is not None:
            done.heads[turn.job.queue] = shadow.turn.job.uid
            done.codes[uid] = stuck[lane, brief] = model.Code.HEAD_OF_LINE
    return done


def _why(known: kept.Kept, turn: order.Turn) -> model.Code:
    never = known.possible.code(turn.gang)
    if never is not None:
        return never
    return model.Code.NO_ROOM if known.free.quota_fits(turn.gang) else model.Code.QUOTA_EXCEEDED


def _shadow(
    known: kept.Kept, turn: order.Turn, started: Sequence[tuple[int, Sequence[room.Release]]]
) -> Shadow | None:
    """When and where a gang fits first as others end; None when that cannot be foreseen."""
    later, coming = known.free.copy(), departures.Departures(ends(known, started))
    done = 0
    if len(turn.gang.members) == 1:  # more room is never worse for it, so what comes too early is passed over
        first = coming.first(later, lambda then: then.could_place(turn.gang))
        if first is None:
            return None
        done = bisect.bisect_left(coming.times, coming.times[max(first[0] - 1, 0)])
        coming.leave(later, 0, done)
    while done < len(coming.times):
        at = coming.times[done]
        last = bisect.bisect_right(coming.times, at)
        coming.leave(later, done, last)
        if later.place(turn.gang) is not None:
            return Shadow(turn, at, later)
        done = last
    return None


def ends(
    known: kept.Kept, started: Sequence[tuple[int, Sequence[room.Release]]]
) -> Iterator[tuple[int, Sequence[room.Release]]]:
    """When what holds room leaves it, where that is known: (ms since the epoch, what becomes free)."""
    for job in known.jobs.values():
        if job.state is model.State.ENDING and job.assigned:
            yield known.now, [known.world.release(job)]
    for here in known.placed:
        if here.finish is not None:
            yield here.finish.mid, [known.world.release(here.job)]
    yield from (one for one in started if one[0] < NEVER)
