"""Step 4 where room is kept for somebody: whom a reservation binds, and where those find a place.

Bound is who stands behind the owner in line, is expected to be there still at the start (by its pessimistic
run time, for ever if that is not known), and may have nobody suspended: whoever may is at its last moment,
and does not wait for somebody with slack. One that is bound is placed in what the owner will not need, so
that it delays nobody for whom room is kept. Once a reservation was put off `Config.reserve_slips` times
those that cannot be suspended are bound as well, wherever they stand. What is kept, and for whom, is the
business of `reserve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lstqueue.engine import gangs, model, order, rights, room


@dataclass(frozen=True, slots=True)
class Keeping:
    """A reservation that stands, with its owner's place in line; `whole` is the room in columns."""

    turn: order.Turn
    reservation: model.Reservation
    whole: room.Release


class Guests:
    """The reservations that stand, in the order of the line.

    `owed` says what of the room that is free now must be free at the start as well: the place, less what
    others are expected to leave there until then. It is asked once a pass, and only if somebody is bound.
    """

    def __init__(
        self,
        keepings: Sequence[Keeping] = (),
        *,
        queues: Mapping[str, model.Queue] | None = None,
        config: model.Config | None = None,
        owed: Callable[[Keeping], room.Release] | None = None,
    ) -> None:
        self.keepings = tuple(keepings)
        self._queues = {} if queues is None else queues
        self._config = model.Config() if config is None else config
        self._ask = owed
        self._owed: dict[int, room.Release] = {}

    def binding(self, turn: order.Turn) -> tuple[int, ...]:
        """Which reservations (by their index) a job has to respect."""
        if not self.keepings:
            return ()
        return tuple([i for i, keeping in enumerate(self.keepings) if self._binds(keeping, turn)])

    def _binds(self, keeping: Keeping, turn: order.Turn) -> bool:
        here, config = turn.standing, self._config
        if keeping.turn is turn:
            return False
        tired = keeping.reservation.slips >= config.reserve_slips
        if tired and (not here.job.preemptible or here.job.stays):
            return True
        if turn.rank < keeping.turn.rank:
            return False
        if here.finish is not None and here.finish.hi <= keeping.reservation.start:
            return False
        return rights.denial(here, self._queues[turn.gang.queue], config) is not None

    def place(self, gang: gangs.Gang, free: room.Room, binding: tuple[int, ...]) -> room.Placement | None:
        """Charge a gang in what reservations leave; None, and nothing charged, when it does not fit there."""
        if not binding or not free.could_place(gang):
            return free.place(gang)
        owed = [self._owing(index) for index in binding]
        free.charge_all(owed)
        taken = free.place(gang)
        free.release_all(owed)
        return taken

    def latest(self, binding: tuple[int, ...]) -> int:
        """When the last of some reservations starts, in ms since the epoch."""
        return max(self.keepings[index].reservation.start for index in binding)

    def earliest(self, binding: tuple[int, ...]) -> int:
        """When the first of some reservations starts, in ms since the epoch."""
        return min(self.keepings[index].reservation.start for index in binding)

    def _owing(self, index: int) -> room.Release:
        found = self._owed.get(index)
        if found is None:
            keeping = self.keepings[index]
            found = self._owed[index] = keeping.whole if self._ask is None else self._ask(keeping)
        return found


NONE = Guests()
"""Nothing is kept for anybody."""
