"""What a claim takes: all of its place, less what the victims made for it still hold there.

A claim owns room before it is free. Charging it only beyond what its own victims hold keeps the sum right at
every moment: the pods of a victim are charged until they are gone, and what they leave is the claim's at
once, so nobody else can take it. Nothing is decided here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import estimate, model, quota, room
from lstqueue.engine.standing import Standing
from lstqueue.topology import table
from lstqueue.topology.table import Ints


@dataclass(frozen=True, slots=True)
class Stake:
    """A claim in the columns of a pass.

    `whole` is the place, `charged` what of it the room is charged now. `victims` are those of its victims
    that are still known in the attempt it names, whatever their state.
    """

    here: Standing
    claim: model.Claim
    whole: room.Release
    charged: room.Release
    victims: tuple[model.Job, ...]

    @property
    def rest(self) -> room.Release:
        """What will be charged besides once the victims have left."""
        paid = dict(self.charged.charges)
        charges = tuple((slot, amount - paid[slot]) for slot, amount in self.whole.charges)
        amounts = self.whole.amounts - self.charged.amounts
        return room.Release(self.whole.queue, self.whole.nodes, amounts, charges)

    @property
    def running(self) -> tuple[model.Job, ...]:
        """Victims that nobody has suspended yet."""
        return tuple(job for job in self.victims if estimate.is_placed(job))

    @property
    def sunk(self) -> bool:
        """Whether somebody left for it already, so that giving it up would have cost that for nothing.

        A victim that is gone altogether ended by itself. One whose pods still leave may have as well: that
        is not known here, and counts as a sacrifice.
        """
        return len(self.running) < len(self.victims)


def of(
    here: Standing,
    claim: model.Claim,
    free: room.Room,
    nodes: table.NodeTable,
    jobs: Mapping[str, model.Job],
) -> Stake:
    """Read a claim; parts of it on nodes or for groups that are not there are left out."""
    victims: list[model.Job] = []
    for victim in claim.victims:
        job = jobs.get(victim.uid)
        if job is not None and job.attempt == victim.attempt:
            victims.append(job)
    parts: list[model.Assigned] = []
    for index, group in enumerate(claim.groups[: len(here.job.groups)]):
        parts += [model.Assigned(index, group.pool, node, 0, count) for node, count in group.nodes]
    owned = dataclasses.replace(here.job, assigned=tuple(parts))
    whole = _merged(room.release_of(owned, free, nodes))
    held: Ints = np.zeros(free.ledger.free.shape, dtype=np.int64)
    paid: dict[int, int] = {}
    for job in victims:
        there = room.release_of(job, free, nodes)
        held[:, there.nodes] += there.amounts
        for slot, amount in there.charges:
            paid[slot] = paid.get(slot, 0) + amount
    beyond: Ints = np.maximum(whole.amounts - held[:, whole.nodes], 0)
    charges = tuple((slot, max(amount - paid.get(slot, 0), 0)) for slot, amount in whole.charges)
    charged = room.Release(whole.queue, whole.nodes, beyond, charges)
    return Stake(here, claim, whole, charged, tuple(victims))


def survey(
    standings: Iterable[Standing],
    free: room.Room,
    nodes: table.NodeTable,
    jobs: Mapping[str, model.Job],
) -> dict[str, Stake]:
    """Read and charge the claims of everybody who has one, by the uid of the owner."""
    found: dict[str, Stake] = {}
    for here in standings:
        if here.job.state is model.State.CLAIMING and here.job.claim is not None:
            stake = found[here.job.uid] = of(here, here.job.claim, free, nodes, jobs)
            free.charge(stake.charged)
    return found


def lacking(stake: Stake, free: room.Room) -> tuple[list[int], bool]:
    """What keeps a charged claim from starting now, its victims where they are.

    Returns:
        (indices of nodes that have not all of its place free, whether its queue has the quota).
    """
    whole, charged = stake.whole, stake.charged
    there = free.ledger.free[:, whole.nodes] + charged.amounts
    short = ((there < whole.amounts) & (whole.amounts > 0)).any(axis=0)
    paid = dict(charged.charges)
    enough = all(free.quota.free[slot] + paid[slot] >= amount for slot, amount in whole.charges if amount > 0)
    return whole.nodes[short].tolist(), enough


def _merged(part: room.Release) -> room.Release:
    """The same with every quota slot once."""
    sums: dict[int, int] = {}
    for slot, amount in part.charges:
        sums[slot] = sums.get(slot, 0) + amount
    charges: quota.Charges = tuple(sorted(sums.items()))
    return room.Release(part.queue, part.nodes, part.amounts, charges)
