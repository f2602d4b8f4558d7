"""Kinds of gangs, for step 2: what equal gangs of a queue ask for, and on which nodes that may be.

Found out once per kind, from nodes (but not what uses them), queues and names of resources alone. A gang
(`gangs.Gang`) says how one is placed now; a kind says which limits bound it, one day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import gangs, model, quota
from lstqueue.topology import table
from lstqueue.topology.table import Mask

MOST = 1 << 58
"""Amounts are cut to this, so that the groups of a gang add up within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What equal gangs of a queue ask for, by group: amounts by resource, and where these may be.

    `areas` are the nodes, `pools` the pools of the `queue`. `number` is its place in `Kinds.made`.
    """

    number: int
    queue: str
    amounts: tuple[tuple[int, ...], ...]
    areas: tuple[Mask, ...]
    pools: tuple[tuple[str, ...], ...]


class Kinds:
    """Tells kinds of gangs apart, by nodes (but not what uses them), queues and resources alone.

    `alike` says that all of those made so far may use the same nodes and pools.
    """

    def __init__(
        self, nodes: table.NodeTable, queues: Mapping[str, model.Queue], resources: Sequence[str]
    ) -> None:
        self._nodes, self._queues = nodes, queues
        self._row = {name: row for row, name in enumerate(resources)}
        self.made: list[Kind] = []
        self.alike = True
        self._known: dict[tuple[str, tuple[model.Group, ...]], Kind | None] = {}
        self._of_gang: dict[int, Kind | None] = {}
        self._places: dict[object, tuple[Mask, tuple[str, ...]] | None] = {}
        self._areas: dict[bytes, Mask] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, job: model.Job, gang: gangs.Gang | None) -> Kind | None:
        """The kind of a job's gang; None when no pool lists what a group asks for.

        Equal gangs are of one kind, and to hash the groups of a job costs more than all else here.
        """
        if gang is not None and id(gang) in self._of_gang:
            return self._of_gang[id(gang)]
        key = (job.queue, job.groups)
        if key not in self._known:
            self._known[key] = self._make(*key)
        found = self._known[key]
        if gang is not None:
            self._of_gang[id(gang)] = found
        return found

    def _make(self, queue: str, groups: tuple[model.Group, ...]) -> Kind | None:
        places: list[tuple[Mask, tuple[str, ...]]] = []
        asked: list[tuple[int, ...]] = []
        for group in groups:
            place = self._place(queue, group)
            if place is None:
                return None
            places.append(place)
            amounts = [0] * len(self._row)
            for name, amount in group.shape.requests:
                if amount > 0 and (row := self._row.get(name)) is not None:
                    amounts[row] = min(amount * group.count, MOST)
            asked.append(tuple(amounts))
        areas, pools = tuple(mask for mask, _ in places), tuple(names for _, names in places)
        made = Kind(len(self.made), queue, tuple(asked), areas, pools)
        first = self.made[0] if self.made else made
        same_area = all(area is first.areas[0] for area in areas)
        same_pools = queue == first.queue and all(names == first.pools[0] for names in pools)
        self.alike = self.alike and same_area and same_pools
        self.made.append(made)
        return made

    def _place(self, queue: str, group: model.Group) -> tuple[Mask, tuple[str, ...]] | None:
        """Where pods like those of a group may run: nodes, and pools of the queue."""
        shape = group.shape
        names = tuple([name for name, amount in shape.requests if amount > 0])
        asked = (queue, names, shape.selector, shape.affinity, shape.tolerations)
        if asked not in self._places:
            self._places[asked] = self._find(queue, group)
        return self._places[asked]

    def _find(self, queue: str, group: model.Group) -> tuple[Mask, tuple[str, ...]] | None:
        options = quota.listing(self._queues[queue].pools, group)
        if not options:
            return None
        masks = [
            self._nodes.mask(group.shape, selector=pool.selector, tolerations=pool.tolerations, lasting=True)
            for pool in options
        ]
        union = np.logical_or.reduce(masks)
        # Equal sets of nodes are one object, so that they can be told apart by identity.
        return self._areas.setdefault(union.tobytes(), union), tuple(pool.name for pool in options)
