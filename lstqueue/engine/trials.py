"""Step 5, the question a search for victims asks again and again: would the gang fit if these had left?

Nothing is decided here. A gang of several groups is placed in a copy of the room from which those have gone.
For one group the sum of the pods that fit decides, and it only grows as others leave; so the shortest
sufficient beginning of a list is found by letting them leave one by one, in plain integers of the few nodes
they hold: 3 µs each, where a copy of the room with its count of every node costs 60.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lstqueue.engine import gangs, kept, quota, room, victims
from lstqueue.topology import capacity, together
from lstqueue.topology.table import Ints, Mask

FEW = 16
"""Up to so many are asked about one by one."""


class Trial:
    """What would fit if some of a herd had left."""

    def __init__(
        self,
        known: kept.Kept,
        herd: victims.Herd,
        gang: gangs.Gang,
        quotas: quota.Quota | None = None,
        most: Mapping[int, int] | None = None,
        inside: Mask | None = None,
    ) -> None:
        """Ask about a gang, in the quota that is free or in less (`quotas`), `most` of a slot at most.

        `inside` are the nodes on which it may be, all that are its own when None.
        """
        self._most = {} if most is None else most
        self._herd = herd
        alone = known.world.alone(gang)
        self._gang = alone.gang
        free = known.free.quota if quotas is None else quotas
        ledger = known.free.ledger.only(alone.rows, alone.wide)
        self._free = room.Room(ledger if inside is None else ledger.within(inside), free)
        self._last: tuple[list[int], room.Placement] = [], []

    def fits(self, gone: Ints) -> bool:
        """Whether the whole gang would."""
        if self._gang.plain and len(gone) <= FEW:
            return self._first(gone) is not None
        return self.without(gone).could_place(self._gang)

    def placement(self, gone: Ints) -> room.Placement:
        """Where it would go; ask `fits` first. Asked of the same again, mostly: nobody was spared.

        Raises:
            ValueError: It does not fit.
        """
        who = sorted(gone.tolist())
        if who == self._last[0]:
            return self._last[1]
        taken = self.without(gone).place(self._gang)
        if taken is None:
            raise ValueError("gone: the gang does not fit without these; ask fits first")
        self._last = who, taken
        return taken

    def after(self, gone: Sequence[int], placement: room.Placement) -> room.Room:
        """What is free once some have left and the gang is where `placement` of the same has it."""
        free = self.without(np.array(gone, dtype=np.int64))
        free.charge_all(room.release_after(self._gang.queue, placement, free))
        return free

    def shortest(self, ranked: Ints) -> Ints:
        """The shortest beginning of `ranked`, all of which fits, that fits as well."""
        if self._gang.plain:
            return ranked[: self._first(ranked)]
        low, high = 1, len(ranked)
        while low < high:
            middle = (low + high) // 2
            if self.fits(ranked[:middle]):
                high = middle
            else:
                low = middle + 1
        return ranked[:high]

    def touched(self, gone: Ints) -> Mask:
        """Which of `gone` hold something on the nodes where the gang would go."""
        used = np.zeros(self._free.ledger.free.shape[1], dtype=np.bool_)
        for part in self.placement(gone):
            used[part.nodes] = True
        releases = self._herd.releases
        return np.array([bool(used[releases[index].nodes].any()) for index in gone.tolist()], dtype=np.bool_)

    def _first(self, ranked: Ints) -> int | None:
        """How many of `ranked` must leave, one at least and in this order, for a gang of one group to fit."""
        member, has = self._gang.members[0], self._free.quota.free
        pods = _Pods(self._free.ledger, [option.row for option in member.options])
        back: dict[int, int] = {}
        allowed = [
            all(asked <= self._most.get(slot, asked) for slot, asked in option.charges)
            for option in member.options
        ]
        for number, index in enumerate(ranked.tolist(), start=1):
            part = self._herd.releases[index]
            for slot, amount in part.charges:
                back[slot] = back.get(slot, 0) + amount
            pods.give(part.nodes.tolist(), part.amounts.T.tolist())
            for option, total, fine in zip(member.options, pods.totals, allowed, strict=True):
                if not fine or total < member.count:
                    continue
                if all(has[slot] + back.get(slot, 0) >= asked for slot, asked in option.charges):
                    return number
        return None

    def without(self, gone: Ints) -> room.Room:
        """What is free once some have left."""
        free, releases = self._free.copy(), self._herd.releases
        free.release_all([releases[index] for index in gone.tolist()])
        for slot, most in self._most.items():
            free.quota.free[slot] = min(free.quota.free[slot], most)
        return free


class _Pods:
    """How many equal pods fit, in `totals` of some rows of a ledger, as its nodes become free one by one.

    Of pods that go together it is the most that one domain takes.
    """

    def __init__(self, ledger: capacity.Ledger, rows: Sequence[int]) -> None:
        self._ledger, self._rows = ledger, rows
        self.totals: list[int] = [int(ledger.total[row]) for row in rows]
        needs = enumerate(ledger.rows.amounts[:, rows[0]].tolist()) if rows else ()
        self._needs = [(resource, amount) for resource, amount in needs if amount]
        self._free: dict[int, list[int]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._together = {
            place: _Together(*ledger.sums(row))
            for place, row in enumerate(rows)
            if not ledger.rows.rows[row].bound.free
        }

    def give(self, nodes: list[int], amounts: list[list[int]]) -> None:
        """Free amounts (per node, by resource) on nodes."""
        ledger, counts = self._ledger, self._counts
        for node, more in zip(nodes, amounts, strict=True):
            free = self._free.get(node)
            if free is None:
                free = ledger.free[:, node].tolist()
            self._free[node] = free = [have + part for have, part in zip(free, more, strict=True)]
            fits = min([free[resource] // need for resource, need in self._needs], default=capacity.MANY)
            for place, row in enumerate(self._rows):
                key = place, node
                before = counts[key] if key in counts else int(ledger.counts[row, node])
                counts[key] = max(min(fits, int(ledger.limit[row, node])), 0)
                if (sums := self._together.get(place)) is None:
                    self.totals[place] += counts[key] - before
                else:
                    most = sums.add(node, counts[key] - before)
                    self.totals[place] = max(self.totals[place], most)


class _Together:
    """Pods of one row by domain, some of them moved in plain integers."""

    def __init__(self, sums: together.Sums, place: int) -> None:
        self._sums, self._place = sums, place
        self._inner: dict[int, int] = {}
        self._caps: dict[int, int] = {}

    def add(self, node: int, more: int) -> int:
        """Have a node take more pods; return what its domain takes then."""
        sums, place = self._sums, self._place
        element = int(sums.within[node])
        domain = int(sums.outer[element])
        before = self._inner.get(element, int(sums.inner[place, element]))
        after = self._inner[element] = before + more
        cap = self._caps.get(domain, int(sums.caps[place, domain]))
        self._caps[domain] = cap + after - after % sums.unit - (before - before % sums.unit)
        return self._caps[domain]
