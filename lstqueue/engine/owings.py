"""Whether all that is owed has its room, asked anew only of what is owed more than the pass before.

The calendar of a pass is made of many entries, and hardly any is another than the pass before. What had its
room has it as long as no more is owed on its nodes and of its quotas, and there is no less of them. The
answer is exact, other than that of a calendar, so it is the same whatever an earlier pass has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lstqueue.engine import calendar
from lstqueue.topology.table import Ints

Event = tuple[int, int]
"""(ms since the epoch, how much more is free from then on)."""


class Owings:
    """Belongs to a world: while that stays, so do nodes, queues and the columns of what is owed."""

    def __init__(self) -> None:
        self._entries: dict[str, list[calendar.Entry]] = {}
        self._same: dict[
            int, calendar.Entry
        ] = {}  # by their identity, which they keep as long as they are here
        self._offered: Ints | None = None

    def fits(
        self, offered: Ints, nominal: Sequence[int], entries: Sequence[calendar.Entry], now: int
    ) -> bool:
        """Whether at no time from now on more is owed of any node or quota than there is."""
        before = self._offered
        if before is None:
            changed, columns = list(entries), set(range(offered.shape[1]))
        else:
            others = [entry for entry in entries if id(entry) not in self._same]
            changed = [entry for entry in others if not self._known(entry, now)]
            columns = set(np.flatnonzero((offered < before).any(axis=0)).tolist())
        columns.update(column for one in changed for column in one.part.nodes.tolist())
        slots = {slot for one in changed for slot, _ in one.part.charges}
        fine = _of_nodes(offered, entries, now, columns) and _of_quota(nominal, entries, now, slots)
        if not fine:
            self._offered, self._same = None, {}
            return False
        self._offered, same = offered, {id(entry): entry for entry in entries}
        if same.keys() != self._same.keys():
            self._same, self._entries = same, {}
            for entry in entries:
                self._entries.setdefault(entry.uid, []).append(entry)
        return True

    def _known(self, entry: calendar.Entry, now: int) -> bool:
        """Whether as much was owed before; one that owns two places is looked at again."""
        before = self._entries.get(entry.uid, ())
        if len(before) != 1 or entry.part is not before[0].part:
            return False
        return entry.ends <= before[0].ends and max(entry.begins, now) >= before[0].begins


class Shortages:
    """Where and when more is owed than there is, exactly.

    Args:
        offered: Per resource and node what there is for our jobs.
        nominal: The quota by slot.
        entries: What is owed.
        now: ms since the epoch; what was before does not matter.
    """

    def __init__(
        self, offered: Ints, nominal: Sequence[int], entries: Sequence[calendar.Entry], now: int
    ) -> None:
        of_nodes = _events_of_nodes(entries, now, None)
        of_quota = _events_of_quota(entries, now, None)
        self._nodes = {
            place: times
            for place, several in of_nodes.items()
            if (times := _lacking(int(offered[place]), several))
        }
        self._quota = {slot: times for slot, several in of_quota.items()
                       if (times := _lacking(nominal[slot], several))}  # fmt: skip

    def touch(self, entry: calendar.Entry) -> bool:
        """Whether something of what is owed to somebody is short while it is owed."""
        part = entry.part
        for column, amounts in zip(part.nodes.tolist(), part.amounts.T.tolist(), strict=True):
            for row, amount in enumerate(amounts):
                if amount and _meets(self._nodes.get((row, column), ()), entry):
                    return True
        return any(amount and _meets(self._quota.get(slot, ()), entry) for slot, amount in part.charges)


Span = tuple[int, int]
"""(from, until), in ms since the epoch."""


def _meets(spans: Iterable[Span], entry: calendar.Entry) -> bool:
    return any(begins < entry.ends and entry.begins < ends for begins, ends in spans)


def _lacking(free: int, events: list[Event]) -> list[Span]:
    """When what is free is negative."""
    found: list[Span] = []
    since: int | None = None
    for time, amount in sorted(events, key=lambda event: (event[0], -event[1])):
        free += amount
        if free < 0 and since is None:
            since = time
        elif free >= 0 and since is not None:
            if time > since:
                found.append((since, time))
            since = None
    return found


def _of_nodes(offered: Ints, entries: Iterable[calendar.Entry], now: int, columns: set[int]) -> bool:
    events = _events_of_nodes(entries, now, columns) if columns else {}
    return all(_stays(int(offered[place]), several) for place, several in events.items())


def _events_of_nodes(
    entries: Iterable[calendar.Entry], now: int, columns: set[int] | None
) -> dict[tuple[int, int], list[Event]]:
    """By resource and node what is taken and given back; of all nodes where `columns` is None."""
    events: dict[tuple[int, int], list[Event]] = {}
    for one in entries:
        if one.ends <= now:
            continue
        for index, column in enumerate(one.part.nodes.tolist()):
            if columns is not None and column not in columns:
                continue
            for row, amount in enumerate(one.part.amounts[:, index].tolist()):
                if amount:
                    several = events.setdefault((row, column), [])
                    several += (max(one.begins, now), -amount), (one.ends, amount)
    return events


def _of_quota(nominal: Sequence[int], entries: Iterable[calendar.Entry], now: int, slots: set[int]) -> bool:
    events = _events_of_quota(entries, now, slots) if slots else {}
    return all(_stays(nominal[slot], several) for slot, several in events.items())


def _events_of_quota(
    entries: Iterable[calendar.Entry], now: int, slots: set[int] | None
) -> dict[int, list[Event]]:
    """By slot of quota what is taken and given back; of all where `slots` is None."""
    events: dict[int, list[Event]] = {}
    for one in entries:
        if one.ends <= now:
            continue
        for slot, amount in one.part.charges:
            if slots is None or slot in slots:
                several = events.setdefault(slot, [])
                several += (max(one.begins, now), -amount), (one.ends, amount)
    return events


def _stays(free: int, events: list[Event]) -> bool:
    """Whether what is free never gets negative; at the same time what ends comes free first."""
    for _, amount in sorted(events, key=lambda event: (event[0], -event[1])):
        free += amount
        if free < 0:
            return False
    return True
