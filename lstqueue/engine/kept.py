"""The working state of one pass, kept with its plan so that `explain` needs no second computation.

`survey` reads a snapshot into columns and ledgers; what the steps find out is added as they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lstqueue.engine import (
    estimate,
    fit,
    gangs,
    model,
    order,
    outlook,
    quota,
    room,
    shed,
    stakes,
    victims,
)
from lstqueue.engine.standing import Standing
from lstqueue.topology import capacity, table


@dataclass(slots=True)
class Settled:
    """What a pass does about claims, by the uid of the owner."""

    admit: dict[str, stakes.Stake] = field(default_factory=dict)
    drop: dict[str, model.Drop] = field(default_factory=dict)
    suspend: list[model.Suspend] = field(default_factory=list)


@dataclass(slots=True)
class Preempted:
    """What step 5 found out.

    `claim` are the new claims by uid of the owner, `coming` those who wait for room that is leaving anyway,
    `wakes` the times at which time alone may give somebody the right or the victims. `searches` counts.
    """

    claim: dict[str, stakes.Stake] = field(default_factory=dict)
    coming: set[str] = field(default_factory=set)
    wakes: list[int] = field(default_factory=list)
    searches: int = 0


@dataclass(slots=True)
class Kept:
    """What a pass knows. `free` is charged by step 4, so afterwards it is the room that is left.

    `line` are the waiting jobs that may be tried, first to last; `codes` says of everyone who stays why.
    `used` is what bound pods use, with the rows of the ledger. `staked` are all claims by uid of the owner,
    `drained` the suspensions that a queue's administrator asked for.
    """

    snapshot: model.Snapshot
    now: int
    config: model.Config
    queues: Mapping[str, model.Queue]
    nodes: table.NodeTable
    free: room.Room
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    used: table.Ints
    standings: Mapping[str, Standing]
    staked: dict[str, stakes.Stake]
    claims: Settled = field(default_factory=Settled)
    drained: list[model.Suspend] = field(default_factory=list)
    preempted: Preempted = field(default_factory=Preempted)
    shedding: shed.Shedding = field(default_factory=shed.Shedding)
    line: list[order.Turn] = field(default_factory=list)
    codes: dict[str, model.Code] = field(default_factory=dict)
    fitted: fit.Fitted = field(default_factory=fit.Fitted)
    outlooks: dict[str, outlook.Outlook] = field(default_factory=dict)
    updates: dict[str, model.Update] = field(default_factory=dict)
    herds: dict[str, victims.Herd] = field(default_factory=dict)

    def going(self) -> list[stakes.Stake]:
        """Claims that go on: their owners neither start in this pass nor lose them."""
        done = self.claims.admit.keys() | self.claims.drop.keys()
        return [stake for uid, stake in self.staked.items() if uid not in done]

    def herd(self, queue: str) -> victims.Herd:
        """Whom jobs of a queue may ask for; made once per pass."""
        herd = self.herds.get(queue)
        if herd is None:
            claimed: set[str] = set()
            for stake in self.staked.values():
                claimed |= {job.uid for job in stake.victims}
            everybody = self.standings.values()
            placed = [one for one in everybody if one.job.queue == queue and estimate.is_placed(one.job)]
            herd = self.herds[queue] = self.herd_of(queue, placed, frozenset(claimed))
        return herd

    def herd_of(
        self, queue: str, placed: Iterable[Standing], claimed: frozenset[str] = frozenset()
    ) -> victims.Herd:
        """Some jobs of a queue that own room, those in `claimed` being another's victims already."""
        return victims.Herd(self.queues[queue], placed, claimed, self.free, self.nodes, self.now, self.config)


def survey(
    snapshot: model.Snapshot, standings: Mapping[str, Standing], now: int, config: model.Config
) -> Kept:
    """Read the nodes, what they hold and what each queue has left.

    Raises:
        ValueError: A name or uid appears twice, a group is empty, or an assignment names no group.
    """
    check(snapshot)
    queues = {queue.name: queue for queue in sorted(snapshot.queues, key=lambda queue: queue.name)}
    nodes = table.NodeTable(snapshot.nodes)
    quotas = quota.Quota(queues.values(), snapshot.jobs)
    trying = (model.State.WAITING, model.State.CLAIMING)
    waiting = [here.job for here in standings.values() if here.job.state in trying]
    made = gangs.Gangs(nodes, queues, quotas, waiting)
    free = made.allocatable - made.used
    room.charge_holds(free, made.resources, nodes, snapshot.jobs)
    here = room.Room(capacity.Ledger(made.rows(), free), quotas)
    possible = fit.Possibility(here)
    jobs = {job.uid: job for job in snapshot.jobs}
    owned = stakes.survey(standings.values(), here, nodes, jobs)
    return Kept(snapshot, now, config, queues, nodes, here, made.of, possible, made.used, standings, owned)


def check(snapshot: model.Snapshot) -> None:
    """Refuse a snapshot that contradicts itself.

    Raises:
        ValueError: Names the object, the field and what it should be.
    """
    _once("queues", (queue.name for queue in snapshot.queues))
    _once("jobs", (job.uid for job in snapshot.jobs))
    for job in snapshot.jobs:
        if not job.groups:
            raise ValueError(f"jobs[{job.uid}].groups is empty; a gang has at least one group")
        for group in job.groups:
            if group.count < 1:
                raise ValueError(
                    f"jobs[{job.uid}].groups[{group.name}].count is {group.count}; give 1 or more"
                )
        for part in job.assigned:
            if not 0 <= part.group < len(job.groups):
                raise ValueError(
                    f"jobs[{job.uid}].assigned.group is {part.group}; it must be 0 to {len(job.groups) - 1}"
                )


def _once(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{kind}: {name} appears twice; give it once")
        seen.add(name)
