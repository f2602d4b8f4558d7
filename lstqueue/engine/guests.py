"""Step 4 where room is kept for somebody: whom a reservation binds, and where those find a place.

Bound is who stands behind the owner in line, is expected to be there still at the start (by its pessimistic
run time, for ever if that is not known), and may have nobody suspended: whoever may is at its last moment,
and does not wait for somebody with slack. One that is bound is placed in what the owner will not need, so
that it delays nobody for whom room is kept. Once a reservation was put off `Config.reserve_slips` times
those that cannot be suspended are bound as well, wherever they stand. In a cohort nobody is bound who would
be on nominal quota of its queue where the owner, of another, would borrow: what it began in, it would have to
give back. What is kept, and for whom, is the business of `reserve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lstqueue.engine import model, order, rights, room, standing


@dataclass(frozen=True, slots=True)
class Keeping:
    """A reservation that stands, with its owner's place in line; `whole` is the room in columns."""

    turn: order.Turn
    reservation: model.Reservation
    whole: room.Release


Ahead = tuple[int, str]
"""(how many begins of slots are soon enough, whose own slot does not bind): equal ones bind the same way."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a job has to respect: reservations by their index, and slots. Equal ones leave the same room."""

    keepings: tuple[int, ...] = ()
    ahead: Ahead | None = None

    def __bool__(self) -> bool:
        return bool(self.keepings) or self.ahead is not None


class Slots(Protocol):
    """The slots of promised jobs, as far as they bind others (`slots.Respect`)."""

    def binding(self, turn: order.Turn) -> Ahead | None:
        """What of the calendar a job has to respect; None: nothing."""

    def place(self, turn: order.Turn, free: room.Room) -> room.Placement | None:
        """Charge a gang in what slots leave; None, and nothing charged, when it does not fit there."""

    def latest(self, turn: order.Turn) -> int:
        """When the last of the slots that bind a job ends, in ms since the epoch."""

    def earliest(self) -> int:
        """When the first slot ahead starts, in ms since the epoch."""


FREE = Binding()


def _unknown(turn: order.Turn) -> standing.Standing:
    raise ValueError(f"jobs[{turn.job.uid}]: give `find` where room is kept for somebody")


class Guests:
    """The reservations that stand, in the order of the line.

    `owed` says what of the room that is free now must be free at the start as well: the place, less what
    others are expected to leave there until then. It is asked once a pass, and only if somebody is bound.
    `find` says how somebody in line stands, `yields` whether an owner (the first) gives way to a job of
    another queue; `starts` hears who starts.
    """

    def __init__(
        self,
        keepings: Sequence[Keeping] = (),
        *,
        find: Callable[[order.Turn], standing.Standing] = _unknown,
        queues: Mapping[str, model.Queue] | None = None,
        config: model.Config | None = None,
        owed: Callable[[Keeping], room.Release] | None = None,
        slots: Slots | None = None,
        yields: Callable[[order.Turn, order.Turn], bool] = lambda _, __: False,
        starts: Callable[[order.Turn, room.Placement], None] = lambda _, __: None,
    ) -> None:
        self.keepings = tuple(keepings)
        self._queues = {} if queues is None else queues
        self._config = model.Config() if config is None else config
        self._find = find
        self._ask, self._slots, self._yields, self._starts = owed, slots, yields, starts
        self._owed: dict[int, room.Release] = {}

    def binding(self, turn: order.Turn) -> Binding:
        """What a job has to respect."""
        ahead = None if self._slots is None else self._slots.binding(turn)
        if not self.keepings and ahead is None:
            return FREE
        return Binding(tuple([i for i, one in enumerate(self.keepings) if self._binds(one, turn)]), ahead)

    def _binds(self, keeping: Keeping, turn: order.Turn) -> bool:
        here, config = self._find(turn), self._config
        if keeping.turn is turn:
            return False
        tired = keeping.reservation.slips >= config.reserve_slips
        if not tired or here.job.movable:
            if turn.rank < keeping.turn.rank:
                return False
            if here.finish is not None and here.finish.hi <= keeping.reservation.start:
                return False
            if rights.denial(here, self._queues[turn.gang.queue], config) is None:
                return False
        return not self._yields(keeping.turn, turn)

    def place(self, turn: order.Turn, free: room.Room, binding: Binding) -> room.Placement | None:
        """Charge a gang in what is left to it; None, and nothing charged, when it does not fit there."""
        taken = self._place(turn, free, binding)
        if taken is not None:
            self._starts(turn, taken)
        return taken

    def _place(self, turn: order.Turn, free: room.Room, binding: Binding) -> room.Placement | None:
        if not binding or not free.could_place(turn.gang):
            return free.place(turn.gang)
        owed = [self._owing(index) for index in binding.keepings]
        free.charge_all(owed)
        if binding.ahead is None or self._slots is None:
            taken = free.place(turn.gang)
        else:
            taken = self._slots.place(turn, free)
        free.release_all(owed)
        return taken

    def _owing(self, index: int) -> room.Release:
        found = self._owed.get(index)
        if found is None:
            keeping = self.keepings[index]
            found = self._owed[index] = keeping.whole if self._ask is None else self._ask(keeping)
        return found


def latest(keepings: Sequence[Keeping], binding: Binding, turn: order.Turn, ask: Callable[[], Slots]) -> int:
    """When the last of what binds a job is over, or starts if that is enough, in ms since the epoch.

    `ask` gives the slots, where some bind it.
    """
    times = [keepings[index].reservation.start for index in binding.keepings]
    return max([*times, ask().latest(turn)] if binding.ahead is not None else times)


def earliest(keepings: Sequence[Keeping], binding: Binding, ask: Callable[[], Slots]) -> int:
    """When the first of what binds a job starts, in ms since the epoch."""
    times = [keepings[index].reservation.start for index in binding.keepings]
    return min([*times, ask().earliest()] if binding.ahead is not None else times)


NONE = Guests()
"""Nothing is kept for anybody."""
