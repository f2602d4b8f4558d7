"""What a claim takes: all of its place, less what the victims made for it still hold there.

A claim owns room before it is free. Charging it only beyond what its own victims hold keeps the sum right at
every moment: the pods of a victim are charged until they are gone, and what they leave is the claim's at
once, so nobody else can take it. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import estimate, model, quota, room
from lstqueue.engine.standing import Standing
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
    victims: Sequence[model.Job],
    release: Callable[[model.Job], room.Release],
    place: room.Release,
) -> Stake:
    """Read a claim.

    Args:
        here: The owner.
        claim: What it claims.
        victims: `known_victims` of it.
        release: What ends with a job.
        place: What its whole place would be released as, with `parts_at`.
    """
    whole = merged(place)
    held = {column: i for i, column in enumerate(whole.nodes.tolist())}
    there: Ints = np.zeros(whole.amounts.shape, dtype=np.int64)
    paid: dict[int, int] = {}
    for job in victims:
        part = release(job)
        for i, column in enumerate(part.nodes.tolist()):
            if column in held:
                there[:, held[column]] += part.amounts[:, i]
        for slot, amount in part.charges:
            paid[slot] = paid.get(slot, 0) + amount
    beyond: Ints = np.maximum(whole.amounts - there, 0)
    charges = tuple((slot, max(amount - paid.get(slot, 0), 0)) for slot, amount in whole.charges)
    charged = room.Release(whole.queue, whole.nodes, beyond, charges)
    return Stake(here, claim, whole, charged, tuple(victims))


def known_victims(claim: model.Claim, jobs: Mapping[str, model.Job]) -> tuple[model.Job, ...]:
    """Those of a claim's victims that are there, in the attempt it names."""
    found: list[model.Job] = []
    for victim in claim.victims:
        job = jobs.get(victim.uid)
        if job is not None and job.attempt == victim.attempt:
            found.append(job)
    return tuple(found)


def parts_at(job: model.Job, groups: Sequence[model.GroupPlacement]) -> list[model.Assigned]:
    """What a job would be assigned in a place; what that has for groups that are not there is left out."""
    parts: list[model.Assigned] = []
    for index, group in enumerate(groups[: len(job.groups)]):
        parts += [model.Assigned(index, group.pool, node, 0, count) for node, count in group.nodes]
    return parts


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


def together(parts: Sequence[room.Release]) -> room.Release:
    """Several parts of one job as one, with every node and every slot of quota once."""
    nodes = np.unique(np.concatenate([part.nodes for part in parts]))
    amounts = np.zeros((parts[0].amounts.shape[0], len(nodes)), dtype=np.int64)
    for part in parts:
        amounts[:, np.searchsorted(nodes, part.nodes)] += part.amounts
    charges = tuple(charge for part in parts for charge in part.charges)
    return merged(room.Release(parts[0].queue, nodes, amounts, charges))


def merged(part: room.Release) -> room.Release:
    """The same with every slot of quota once."""
    sums: dict[int, int] = {}
    for slot, amount in part.charges:
        sums[slot] = sums.get(slot, 0) + amount
    charges: quota.Charges = tuple(sorted(sums.items()))
    return room.Release(part.queue, part.nodes, part.amounts, charges)
