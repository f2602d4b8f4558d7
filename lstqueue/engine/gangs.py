"""Gangs in the form the fit works on: which pools each group may use, at what charge, on which nodes.

Jobs with equal groups in the same queue share one `Gang`, so that what is found out about one shape is known
for all of them. A `Gang` says nothing of what is free now; `room` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lstqueue.engine import fabrics, model, quota
from lstqueue.topology import capacity, eligibility, rules, table, together, tree

PPM = 1_000_000
Key = tuple[str, tuple[model.Group, ...], tuple[str, ...], model.Locality, str]
"""(queue, groups, nodes to avoid, what it asks of the interconnect, where it was): gangs with equal ones are
equal."""


@dataclass(frozen=True, slots=True)
class Option:
    """One pool a group may use: its row in the ledger and what all its members cost there."""

    pool: str
    row: int
    charges: quota.Charges


@dataclass(frozen=True, slots=True)
class Member:
    """One group of a gang; `group` is its index in the job, `options` follow the queue's order of pools.

    `bound` says which of its pods share domains of an interconnect.
    """

    group: int
    count: int
    options: tuple[Option, ...]
    bound: together.Bound = together.FREE


Choice = tuple[Member, Option]
"""A group and the pool chosen for it."""


@dataclass(frozen=True, slots=True)
class Gang:
    """All equal gangs of a queue. `members` come largest pod first; `share` is g, the dominant share in ppm.

    `unlisted` is the first group (by index) whose extended resources no pool lists together; None: all are.
    `least` is the bandwidth in MB/s that its ring needs, `home` the nodes (first, last + 1) of the domain of
    its last place, None for anywhere.
    """

    queue: str
    members: tuple[Member, ...]
    share: int
    unlisted: int | None
    least: int = 0
    home: tuple[int, int] | None = None

    @property
    def plain(self) -> bool:
        """Whether sums say if it fits: it has one group, and its place need not have some bandwidth."""
        return len(self.members) == 1 and not self.least


@dataclass(frozen=True, slots=True)
class Alone:
    """A gang in rows of its own, where trials are many and must be cheap: `wide` are these in the ledger."""

    gang: Gang
    wide: tuple[int, ...]
    rows: capacity.Rows


class Gangs:
    """Makes gangs and collects the ledger's rows for them. New gangs only add rows, so that old ones stay.

    Depends on nodes (but not on what uses them), queues and resources alone.
    """

    def __init__(
        self,
        nodes: table.NodeTable,
        queues: Mapping[str, model.Queue],
        charges: quota.Quota,
        resources: tuple[str, ...],
        allocatable: table.Ints,
        fabric: tree.Tree | None = None,
        rule: rules.Rule | None = None,
    ) -> None:
        self._nodes, self._queues, self._quota = nodes, queues, charges
        self._fabric, self._rule = fabric, rule
        self._gangs: dict[Key, Gang] = {}
        self._rows: list[capacity.Row] = []
        self._row_ids: dict[tuple[object, ...], int] = {}
        self._capacities: dict[tuple[tuple[str, str], ...], list[int]] = {}
        self._alone: dict[int, Alone] = {}
        self._near: dict[int, Gang] = {}
        self._firm: dict[int, Gang | None] = {}
        self.resources, self.allocatable = resources, allocatable
        self._made = capacity.Rows((), resources, allocatable, fabric, rule=rule)

    def __len__(self) -> int:
        return len(self._gangs)

    def rows(self) -> capacity.Rows:
        """The rows of every gang, for a ledger."""
        if len(self._made.rows) < len(self._rows):
            self._made = capacity.Rows(
                self._rows, self.resources, self.allocatable, self._fabric, rule=self._rule
            )
        return self._made

    def of(self, job: model.Job) -> Gang:
        """The gang of a job, whose queue must be there."""
        home = job.home if self._fabric is not None else ""
        key = (job.queue, job.groups, job.avoid, job.locality, home)
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = self._make(*key)
            asked = job.locality
            if asked.preferred and self._fabric is not None:
                nearer = dataclasses.replace(asked, required=asked.preferred, preferred="")
                near = self._make(job.queue, job.groups, job.avoid, nearer, home)
                if near.members[0].bound.required > gang.members[0].bound.required:
                    self._near[id(gang)] = near
        return gang

    def near(self, gang: Gang) -> Gang | None:
        """The same gang in one domain of the level it prefers; None: it prefers none, or none further in."""
        return self._near.get(id(gang))

    def firm(self, gang: Gang) -> Gang | None:
        """A gang of these where its nodes stay: without spot pools. None: one of its groups has no other."""
        if id(gang) not in self._firm:
            spot = {pool.name for pool in self._queues[gang.queue].pools if pool.spot}
            members = [
                dataclasses.replace(
                    member, options=tuple(one for one in member.options if one.pool not in spot)
                )
                for member in gang.members
            ]
            same = tuple(members) == gang.members
            found = gang if same else dataclasses.replace(gang, members=tuple(members))
            self._firm[id(gang)] = found if all(member.options for member in members) else None
        return self._firm[id(gang)]

    def alone(self, gang: Gang) -> Alone:
        """A gang of these in rows of its own."""
        alone = self._alone.get(id(gang))
        if alone is None:
            wide = tuple(sorted({option.row for member in gang.members for option in member.options}))
            place = {row: i for i, row in enumerate(wide)}
            members: list[Member] = []
            for member in gang.members:
                moved = tuple(dataclasses.replace(one, row=place[one.row]) for one in member.options)
                members.append(dataclasses.replace(member, options=moved))
            narrow = dataclasses.replace(gang, members=tuple(members))
            alone = self._alone[id(gang)] = Alone(narrow, wide, self.rows().only(wide))
        return alone

    def _make(
        self,
        queue: str,
        groups: tuple[model.Group, ...],
        avoid: tuple[str, ...],
        locality: model.Locality,
        home: str,
    ) -> Gang:
        members: list[tuple[tuple[int, int, int], Member]] = []
        demand: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
        unlisted: int | None = None
        for index, group in enumerate(groups):
            pools = quota.listing(self._queues[queue].pools, group)
            bound = fabrics.bound(self._fabric, locality, group.count)
            options: list[Option] = []
            for pool in pools:
                charges = self._quota.charges(queue, pool.name, group, group.count)
                options.append(Option(pool.name, self._row(pool, group, avoid, bound), charges))
            size = (0, 0)
            if pools:
                size = self._size(pools[0], dict(group.shape.requests))
                wanted = demand.setdefault(pools[0].selector, {})
                for name, amount in group.shape.requests:
                    wanted[name] = wanted.get(name, 0) + amount * group.count
            elif unlisted is None:
                unlisted = index
            member = Member(index, group.count, tuple(options), bound or together.FREE)
            members.append(((-size[0], -size[1], index), member))
        shares = [self._share(selector, wanted) for selector, wanted in demand.items()]
        in_order = tuple(member for _, member in sorted(members, key=lambda pair: pair[0]))
        share = max(shares, default=0)
        place = fabrics.span(self._fabric, home)
        if place is not None and self._nodes.suspect()[place[0] : place[1]].all():
            place = None
        return Gang(queue, in_order, share, unlisted, locality.min_bandwidth, place)

    def _size(self, pool: model.Pool, requests: dict[str, int]) -> tuple[int, int]:
        # Accelerators decide which pods are hard to place, the rest settles what they leave equal.
        extended = {name: amount for name, amount in requests.items() if eligibility.is_extended(name)}
        return self._share(pool.selector, extended), self._share(pool.selector, requests)

    def _share(self, selector: tuple[tuple[str, str], ...], amounts: dict[str, int]) -> int:
        totals = self._capacities.get(selector)
        if totals is None:
            sums = self.allocatable[:, self._nodes.selected(selector)].sum(axis=1)
            totals = self._capacities[selector] = [int(total) for total in sums]
        pairs = zip(self.resources, totals, strict=True)
        return max(amounts.get(name, 0) * PPM // max(total, 1) for name, total in pairs)

    def _row(
        self, pool: model.Pool, group: model.Group, avoid: tuple[str, ...], bound: together.Bound | None
    ) -> int:
        """The row of a group in a pool; without a bound, which nothing meets, no node is its."""
        asked = (group.shape, pool.selector, pool.tolerations, avoid, bound)
        row = self._row_ids.get(asked)
        if row is not None:
            return row
        mask = self._nodes.mask(group.shape, selector=pool.selector, tolerations=pool.tolerations)
        lasting = self._nodes.mask(
            group.shape, selector=pool.selector, tolerations=pool.tolerations, lasting=True
        )
        if bound is None:
            mask = lasting = np.zeros(len(self._nodes), dtype=np.bool_)
        elif (inside := fabrics.inside(self._fabric, bound)) is not None:
            mask, lasting = mask & inside, lasting & inside
        avoided = [self._nodes.index[name] for name in avoid if name in self._nodes.index]
        if avoided:
            mask = mask.copy()
            mask[avoided] = False
        same = (group.shape.requests, mask.tobytes(), lasting.tobytes(), bound)
        row = self._row_ids.get(same)
        if row is None:
            extended = (name for name, _ in group.shape.requests if eligibility.is_extended(name))
            spare = self._nodes.offers_other(frozenset(extended)) | self._nodes.suspect()
            row = len(self._rows)
            row_bound = bound or together.FREE
            self._rows.append(capacity.Row(group.shape.requests, mask, lasting, spare, row_bound))
        self._row_ids[asked] = self._row_ids[same] = row
        return row
