"""What is owed to the owner of a slot, and from when to when that stands as it is.

Between two passes hardly anything becomes of the many slots there are: time alone makes a difference at a few
moments of each, its edges. So what was found out about a slot is kept until the next of them, as long as its
owner stands as it did; a pass looks closer at the others only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lstqueue.engine import calendar, either, model, room, seats, standing


@dataclass(frozen=True, slots=True)
class Owed:
    """The slot of a job, with its room in columns.

    It is `seated` when it runs there and its time has come, so that it stays: nobody may take its room. Until
    then others may be in the slot, and it may be elsewhere. `entries` are what the calendar owes for it: in
    either place while it is not known whether a move was written (`model.Job.slot_before`).

    All of it stands from `at` until `until`, as long as `basis` does: how its owner stands, None of one that
    ends. `wake` is when time alone makes a difference next. All in ms since the epoch.
    """

    job: model.Job
    slot: model.Slot
    whole: room.Release
    before: room.Release | None
    seated: bool
    seat: seats.Seat
    entries: tuple[calendar.Entry, ...]
    at: int
    until: int
    wake: int
    basis: standing.Lasting | None

    def stands(self, basis: standing.Lasting | None, now: int) -> bool:
        """Whether nothing is to be found out anew at `now`."""
        return self.basis is basis and self.at <= now < self.until


Make = Callable[[str, Owed | None, standing.Lasting | None, int], Owed]
"""Finds out what is owed to a job (uid): what was before, if only time has passed, its basis, and now."""


class Tenures:
    """What is owed to those who have slots (uids), kept from pass to pass.

    `settled` are those of whom a pass found that their slots stay as they are, as long as what is owed does.
    `usable` are those whose nodes were found to be such that they may run there.
    """

    def __init__(self, make: Make, basis: Callable[[str], standing.Lasting | None]) -> None:
        self._make, self._basis = make, basis
        self._owners: set[str] = set()
        self._found: dict[str, Owed] = {}
        self._span = 0, 0
        self.settled: set[str] = set()
        self.usable: set[str] = set()

    def add(self, uid: str) -> None:
        """Take in who has a slot."""
        self._owners.add(uid)

    def forget(self, uid: str) -> None:
        """Forget a job that is another now, or gone."""
        self._found.pop(uid, None)
        for one in (self._owners, self.settled, self.usable):
            one.discard(uid)

    def change(self, uids: Collection[str]) -> None:
        """Have owners be looked at who stand otherwise."""
        if not self._owners.isdisjoint(uids):
            self._span = 0, 0

    def at(self, now: int) -> dict[str, Owed]:
        """What is owed at `now` (ms since the epoch), by uid; the caller's own."""
        found = self._found
        if len(found) < len(self._owners) or not self._span[0] <= now < self._span[1]:
            for uid in self._owners:
                before, basis = found.get(uid), self._basis(uid)
                if before is None or not before.stands(basis, now):
                    found[uid] = self._make(uid, before, basis, now)
                    self.settled.discard(uid)
            self._found = found = dict(sorted(found.items()))
            self._span = now, min([one.until for one in found.values()], default=standing.NEVER)
        return found.copy()


def of(
    job: model.Job,
    seat: seats.Seat,
    whole: room.Release,
    before: room.Release | None,
    basis: standing.Lasting | None,
    *,
    now: int,
    config: model.Config,
) -> Owed:
    """Find out how things are with the slot of a job at `now`.

    Args:
        job: The owner, with its slot.
        seat: How it stands to that.
        whole: The room of the slot.
        before: The room of the slot that it moves from, if that is not written yet.
        basis: How the owner stands; None of one that ends.
        now: ms since the epoch.
        config: Figures.

    Raises:
        ValueError: The job has no slot.
    """
    slot, grace = slot_of(job), config.slot_grace
    seated = seat.there and (now >= seat.due or not seat.evictable)
    entry = calendar.Entry(job.uid, slot.start, slot.finish, whole)
    if not seat.placed or basis is None:
        edges = [slot.start - grace, slot.start + grace + 1]
    else:
        edges = [seat.due, slot.finish, seats.outrun(basis.here, config) + 1]
        if seated and (last := seats.ends(basis.here, now, config)) is not None:
            ends = max(min(slot.finish, last + grace), now + 1)
            entry = calendar.Entry(job.uid, min(now, slot.start), ends, whole)
    wake = min((edge for edge in edges if edge > now), default=standing.NEVER)
    until = min(wake, entry.ends) if entry.ends > now else wake
    entries = [entry]
    if before is not None and (old := job.slot_before) is not None:
        entries = either.of([entry, calendar.Entry(job.uid, old.start, old.finish, before)])
    return Owed(job, slot, whole, before, seated, seat, tuple(entries), now, until, wake, basis)


def slot_of(job: model.Job) -> model.Slot:
    """The slot of a job that has one.

    Raises:
        ValueError: It has none.
    """
    if job.slot is None:
        raise ValueError(f"jobs[{job.uid}].slot is missing; only who has one is owed it")
    return job.slot
