"""What is free, nodes and quota together, and the whole-gang fit in it: all groups or none.

The pass, the forecast and the question "could this ever fit" use the same `Room.place`, on different rooms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import gangs, model, quota, siting
from lstqueue.topology import capacity, placement, rivals, roughly, table, tree
from lstqueue.topology.table import Ints

TRIES = 64
"""Placements tried for one gang over its combinations of pools; groups × pools is seldom above four."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Where one group was placed."""

    member: gangs.Member
    option: gangs.Option
    nodes: Ints
    pods: Ints


Placement = list[Taken]


@dataclass(frozen=True, slots=True)
class Release:
    """What becomes free when a job ends: amounts[resource, i] on nodes[i], and quota of its queue.

    No node appears twice.
    """

    queue: str
    nodes: Ints
    amounts: Ints
    charges: quota.Charges


class Room:
    """A ledger of nodes and one of quota that are charged together."""

    __slots__ = ("_left", "_rough", "ledger", "quota")

    def __init__(self, ledger: capacity.Ledger, quotas: quota.Quota, *, rough: bool = False) -> None:
        """`rough` has gangs of one group placed well on an interconnect, and not best: in forecasts."""
        self.ledger = ledger
        self.quota = quotas
        self._left, self._rough = TRIES, rough

    def copy(self, *, rough: bool = False) -> Room:
        """An independent room in the same state."""
        return Room(self.ledger.copy(), self.quota.copy(), rough=rough or self._rough)

    def alone(self, one: gangs.Alone) -> Room:
        """A copy for one gang, so that what comes and goes is counted in its rows only."""
        return Room(self.ledger.only(one.rows, one.wide), self.quota.copy())

    def empty(self) -> Room:
        """The room if nothing ran anywhere and every node were ready."""
        return Room(capacity.Ledger.empty(self.ledger.rows), self.quota.copy(unused=True))

    def place(self, gang: gangs.Gang) -> Placement | None:
        """Charge the whole gang and say where it went; None, and nothing charged, when it does not fit.

        Groups go largest pod first, each into one pool, pools in the listed order; when a later group does
        not fit, earlier ones try their next pool, at most `TRIES` placements in all. When that finds nothing,
        smallest first is tried. With one group the answer is exact; with several a placement may exist that
        neither order finds. On an interconnect all groups are placed together, once for each choice of pools.
        """
        total, first = self.ledger.total, gang.members[0]
        if not any([total[option.row] >= first.count for option in first.options]):
            return None  # so it is for nearly all of a long line, and whatever the order of groups
        taken: Placement = []
        rows = self.ledger.rows
        if (fabric := rows.fabric) is not None and rows.rule is None:
            self._left = TRIES
            return self._place_together(fabric, gang, [])
        for members in (gang.members, gang.members[::-1])[: len(gang.members)]:
            self._left = TRIES
            if self._place(members, taken):
                return taken
        return None

    def could_place(self, gang: gangs.Gang) -> bool:
        """Whether `place` would succeed; nothing stays charged."""
        if gang.plain:
            member = gang.members[0]
            return any(
                self.ledger.total[option.row] >= member.count and self.quota.fits(option.charges)
                for option in member.options
            )
        taken = self.place(gang)
        if taken is None:
            return False
        self.undo(taken)
        return True

    def undo(self, taken: Placement) -> None:
        """Take a placement back."""
        for part in taken:
            self.ledger.undo(part.option.row, part.nodes, part.pods)
            self.quota.give(part.option.charges)

    def release(self, part: Release) -> None:
        """Free what a job held that was placed before this pass."""
        self.quota.give(part.charges)
        if len(part.nodes):
            self.ledger.give(part.nodes, part.amounts)

    def charge(self, part: Release) -> None:
        """The opposite of `release`: take what a claim or a job holds."""
        self.quota.take(part.charges)
        if len(part.nodes):
            self.ledger.give(part.nodes, -part.amounts)

    def release_all(self, parts: Sequence[Release]) -> None:
        """`release` for many at once."""
        self._move(parts, 1)

    def charge_all(self, parts: Sequence[Release]) -> None:
        """`charge` for many at once."""
        self._move(parts, -1)

    def _move(self, parts: Sequence[Release], sign: int) -> None:
        if not parts:
            return
        for part in parts:
            for slot, amount in part.charges:
                self.quota.free[slot] += sign * amount
        nodes = np.concatenate([part.nodes for part in parts])
        amounts = np.concatenate([part.amounts for part in parts], axis=1)
        self.ledger.give_all(nodes, sign * amounts)

    def quota_fits(self, gang: gangs.Gang) -> bool:
        """Whether quota alone would let the gang in now."""
        self._left = TRIES
        return self._quota_fits(gang.members)

    def _place(self, members: tuple[gangs.Member, ...], taken: Placement) -> bool:
        if len(taken) == len(members):
            return True
        member = members[len(taken)]
        for option in member.options:
            if self.ledger.total[option.row] < member.count or not self.quota.fits(option.charges):
                continue
            if (rule := self.ledger.rows.rule) is None:
                chosen = placement.choose(self.ledger, option.row, member.count)
            else:
                chosen = rivals.choose(self.ledger, option.row, member.count, rule)
            if chosen is None or self._left <= 0:
                return False
            self._left -= 1
            part = Taken(member, option, *chosen)
            self.ledger.take(option.row, *chosen)
            self.quota.take(option.charges)
            taken.append(part)
            if self._place(members, taken):
                return True
            self.undo([taken.pop()])
        return False

    def _place_together(
        self, fabric: tree.Tree, gang: gangs.Gang, chosen: list[gangs.Choice]
    ) -> Placement | None:
        """Charge the gang in the first choice of pools that holds all of it, some having been chosen."""
        if len(chosen) == len(gang.members):
            self._left -= 1
            in_order = sorted(chosen, key=_by_rank)
            if self._rough and gang.plain:
                member, option = in_order[0]
                one = roughly.choose(self.ledger, fabric, option.row, member.count)
                found = None if one is None else [one]
            else:
                found = siting.find(self.ledger, fabric, gang, in_order)
            if found is None:
                return None
            taken = [Taken(*choice, *piece) for choice, piece in zip(in_order, found, strict=True)]
            for part in taken:
                self.ledger.take(part.option.row, part.nodes, part.pods)
                self.quota.take(part.option.charges)
            return taken
        member = gang.members[len(chosen)]
        for option in member.options:
            if self._left <= 0:
                return None
            if self.ledger.total[option.row] < member.count or not self.quota.fits(option.charges):
                continue
            self.quota.take(option.charges)
            try:
                placed = self._place_together(fabric, gang, [*chosen, (member, option)])
            finally:
                self.quota.give(option.charges)
            if placed is not None:
                return placed
        return None

    def _quota_fits(self, members: tuple[gangs.Member, ...]) -> bool:
        if not members:
            return True
        for option in members[0].options:
            if self._left <= 0 or not self.quota.fits(option.charges):
                continue
            self._left -= 1
            self.quota.take(option.charges)
            fits = self._quota_fits(members[1:])
            self.quota.give(option.charges)
            if fits:
                return True
        return False


def _by_rank(choice: gangs.Choice) -> int:
    return choice[0].group


def release_of(
    job: model.Job,
    parts: Sequence[model.Assigned],
    *,
    resources: Sequence[str],
    nodes: table.NodeTable,
    charges: quota.Charges,
) -> Release:
    """What ends with an admitted, running or ending job; nodes that are gone give nothing back.

    Args:
        job: The job.
        parts: What it is assigned, or would be.
        resources: The rows of amounts.
        nodes: Their columns.
        charges: What it costs its queue, `Quota.held`.
    """
    rows = {name: row for row, name in enumerate(resources)}
    sums: dict[int, list[int]] = {}
    for part in parts:
        column = nodes.index.get(part.node)
        if column is None:
            continue
        amounts = sums.setdefault(column, [0] * len(rows))
        for name, amount in job.groups[part.group].shape.requests:
            if (row := rows.get(name)) is not None:
                amounts[row] += min(amount * (part.bound + part.held), table.LIMIT)
    columns = np.array(list(sums), dtype=np.int64)
    freed = np.array(list(sums.values()), dtype=np.int64).reshape(len(sums), len(rows)).T
    return Release(job.queue, columns, freed, charges)


def release_after(queue: str, taken: Placement, room: Room) -> list[Release]:
    """What ends with a gang that `Room.place` placed, group by group."""
    amounts = room.ledger.rows.amounts
    return [
        Release(queue, part.nodes, amounts[:, part.option.row, None] * part.pods, part.option.charges)
        for part in taken
    ]


def by_group(taken: Placement, nodes: table.NodeTable) -> Mapping[int, model.GroupPlacement]:
    """The placement in the words of a plan, by index of the group."""
    placed: dict[int, model.GroupPlacement] = {}
    for part in taken:
        pairs = zip(part.nodes.tolist(), part.pods.tolist(), strict=True)
        names = tuple((nodes.names[node], pods) for node, pods in pairs)
        placed[part.member.group] = model.GroupPlacement(part.option.pool, names)
    return placed
