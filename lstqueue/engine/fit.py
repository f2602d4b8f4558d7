"""Step 4, fit: walk the line once, quota first, then the whole gang on nodes; admit what fits.

Within a pass room only shrinks, so a lane that failed once has failed for the pass. A job that lacks room
does not hold up others of an `lst` or `edf` queue. In a strict `fifo` queue it does: whoever stands behind it
waits, fit or not. Those that could never fit, may not be tried yet, or stand in a queue that only observes,
block nobody.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from lstqueue.engine import gangs, guests, model, order, room, windows

NEVER_FITS = frozenset(
    (model.Code.RESOURCE_NOT_IN_QUEUE, model.Code.QUOTA_TOO_SMALL, model.Code.NO_MATCHING_NODES)
)
"""Codes of jobs for which waiting does not help: the job, the queue or the cluster must change."""


@dataclass(slots=True)
class Fitted:
    """What the walk decided: a code for everyone who stays, a placement for everyone who goes.

    `heads` names, per strict lane that is blocked, the uid of the job at its head, `bound` those who would
    fit on room that is kept for others: which (`guests.Binding`), by uid. `relaxed` are those who wait for a
    better domain, and until when (ms since the epoch).
    """

    codes: dict[str, model.Code] = field(default_factory=dict)
    placed: dict[str, room.Placement] = field(default_factory=dict)
    heads: dict[str | int, str] = field(default_factory=dict)
    bound: dict[str, guests.Binding] = field(default_factory=dict)
    relaxed: dict[str, int] = field(default_factory=dict)
    tries: int = 0


class Possibility:
    """Whether a gang could fit if nothing else ran; found out once per gang, in a room made when needed.

    `free` gives a room of the same nodes, queues and gangs, whatever runs in it.
    """

    def __init__(self, free: Callable[[], room.Room]) -> None:
        self._free = free
        self._empty: room.Room | None = None
        self._known: dict[int, model.Code | None] = {}

    def code(self, gang: gangs.Gang) -> model.Code | None:
        """Why the gang can never fit as things are; None when it could."""
        if id(gang) not in self._known:
            self._known[id(gang)] = self._find(gang)
        return self._known[id(gang)]

    def empty(self) -> room.Room:
        """The room in which nothing runs."""
        free = self._free()
        if self._empty is None:
            self._empty = free.empty()
        elif self._empty.ledger.rows is not free.ledger.rows:
            self._empty.ledger = self._empty.ledger.widened(free.ledger.rows, lasting=True)
        return self._empty

    def _find(self, gang: gangs.Gang) -> model.Code | None:
        if gang.unlisted is not None:
            return model.Code.RESOURCE_NOT_IN_QUEUE
        empty = self.empty()
        if empty.could_place(gang):
            return None
        return model.Code.NO_MATCHING_NODES if empty.quota_fits(gang) else model.Code.QUOTA_TOO_SMALL


def walk(
    line: list[order.Turn],
    free: room.Room,
    possible: Possibility,
    now: int,
    keep: Callable[[order.Turn], None] = lambda _: None,
    reserved: guests.Guests = guests.NONE,
    opening: windows.Windows = windows.NONE,
    until: Callable[[order.Turn], int | None] = lambda _: None,
    relax: Callable[[order.Turn, room.Room], int | None] = lambda _, __: None,
) -> Fitted:
    """Admit in order whatever fits, charging `free` as it goes.

    `keep` is told who lacks room or quota; `reserved` says where room is kept for somebody, `opening` what
    windows leave later, `until` when at the latest somebody will have left who starts now, and `relax` until
    when somebody waits for a better domain.
    """
    done = Fitted()
    stuck: dict[object, model.Code] = {}
    for turn in line:
        job = turn.job
        if turn.lane in stuck and not turn.strict and turn.plain and job.not_before <= now:
            done.codes[job.uid] = stuck[turn.lane]  # so it is for nearly all of a long line
        elif (code := untried(turn, possible, now)) is not None:
            done.codes[job.uid] = code
        elif turn.lane in stuck:
            never = possible.code(turn.gang) if turn.strict else None
            done.codes[job.uid] = never or stuck[turn.lane]
        elif opening.concern(turn.gang.queue) and not opening.allow(turn.gang, free, until(turn)):
            # Others of its lane may run shorter, so they are tried.
            code = done.codes[job.uid] = possible.code(turn.gang) or model.Code.WINDOW
            _block(done, turn, stuck, code)
        elif (better := relax(turn, free)) is not None:
            done.codes[job.uid], done.relaxed[job.uid] = model.Code.TOPOLOGY, better
        elif not _places(done, turn, free, reserved, stuck, opening, until):
            if job.uid in done.bound:
                continue
            code = done.codes[job.uid] = _why(turn.gang, free, possible)
            if code not in NEVER_FITS:
                keep(turn)
            if not turn.strict:
                stuck[turn.lane] = code
            _block(done, turn, stuck, code)
    return done


def _block(done: Fitted, turn: order.Turn, stuck: dict[object, model.Code], code: model.Code) -> None:
    """Have the head of a strict line hold up everybody behind it, unless it could never start."""
    if turn.strict and code not in NEVER_FITS:
        stuck[turn.lane] = model.Code.HEAD_OF_LINE
        done.heads[turn.lane] = turn.job.uid


def untried(turn: order.Turn, possible: Possibility, now: int) -> model.Code | None:
    """Why a job in line is not even tried; None when it is."""
    if turn.gang.unlisted is not None:
        return model.Code.RESOURCE_NOT_IN_QUEUE
    if turn.observed:
        return possible.code(turn.gang) or model.Code.OBSERVING
    if turn.job.not_before > now:
        return possible.code(turn.gang) or model.Code.BACKING_OFF
    return None


def _places(
    done: Fitted,
    turn: order.Turn,
    free: room.Room,
    reserved: guests.Guests,
    stuck: dict[object, model.Code],
    opening: windows.Windows,
    until: Callable[[order.Turn], int | None],
) -> bool:
    """Try one job; one that only room kept for others would hold is noted as `bound`."""
    uid, binding = turn.job.uid, reserved.binding(turn)
    key = turn.lane, binding
    if key in stuck and free.could_place(turn.gang):
        done.codes[uid], done.bound[uid] = stuck[key], binding
        return False
    done.tries += 1
    place = functools.partial(reserved.place, turn, free, binding)
    if opening.concern(turn.gang.queue):
        taken = opening.place(turn.gang.queue, until(turn), free, place)
    else:
        taken = place()
    if taken is not None:
        done.placed[uid] = taken
        return True
    if binding and free.could_place(turn.gang):
        done.codes[uid], done.bound[uid] = model.Code.RESERVED, binding
        stuck[key] = model.Code.RESERVED
        _block(done, turn, stuck, model.Code.RESERVED)
    return False


def _why(gang: gangs.Gang, free: room.Room, possible: Possibility) -> model.Code:
    never = possible.code(gang)
    if never is not None:
        return never
    return model.Code.NO_ROOM if free.quota_fits(gang) else model.Code.QUOTA_EXCEEDED
