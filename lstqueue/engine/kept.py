"""The working state of one pass, kept with its plan so that `explain` needs no second computation.

`survey` reads a snapshot into columns and ledgers; what the steps find out is added as they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lstqueue.engine import fit, gangs, model, order, outlook, quota, room
from lstqueue.engine.standing import Standing
from lstqueue.topology import capacity, table


@dataclass(slots=True)
class Kept:
    """What a pass knows. `free` is charged by step 4, so afterwards it is the room that is left.

    `line` are the waiting jobs that may be tried, first to last; `codes` says of everyone who stays why.
    """

    snapshot: model.Snapshot
    now: int
    config: model.Config
    queues: Mapping[str, model.Queue]
    nodes: table.NodeTable
    free: room.Room
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    standings: Mapping[str, Standing]
    line: list[order.Turn] = field(default_factory=list)
    codes: dict[str, model.Code] = field(default_factory=dict)
    fitted: fit.Fitted = field(default_factory=fit.Fitted)
    outlooks: dict[str, outlook.Outlook] = field(default_factory=dict)
    updates: dict[str, model.Update] = field(default_factory=dict)


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
    waiting = [here.job for here in standings.values() if here.job.state is model.State.WAITING]
    made = gangs.Gangs(nodes, queues, quotas, waiting)
    free = made.allocatable - made.used
    room.charge_holds(free, made.resources, nodes, snapshot.jobs)
    here = room.Room(capacity.Ledger(made.rows(), free), quotas)
    return Kept(snapshot, now, config, queues, nodes, here, made.of, fit.Possibility(here), standings)


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
