"""Step 2, first half: how much the deadline jobs ask for, of what, until when, and how much of it there is.

A *limit* is one resource of one set of nodes on which some group of a job may run, or of the pools of a queue
that some group may use (its quota). It bounds every group that can go nowhere else. The demand on it until a
deadline D is the work of all counted jobs with deadlines up to D; what may be asked is a share η of what it
offers until D. The share falls with distance, because the far future brings arrivals nobody knows of yet.

Time enters in steps (`Config.shed_step`): all of this depends on now only through the last full step, so the
passes between two steps agree and the pass knows exactly when it must look again. Sums are integers where
something is decided; floats only find the limits that may be exceeded, and err towards finding too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lstqueue.engine import fit, gangs, model, order, quota, standing, stuck
from lstqueue.engine.gangs import PPM
from lstqueue.engine.standing import Standing
from lstqueue.topology import table
from lstqueue.topology.table import Ints, Mask

SETS = 32
"""Sets of nodes told apart; of more the commonest, and the union of the others as one."""
MOST = 1 << 58
"""Amounts are cut to this, so that the groups of a gang add up within 64 bits."""
MARGIN = 1 + 1e-9
"""Wider than the rounding of any sum of floats here; what lies within it is decided in integers."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scene:
    """What step 2 looks at, `standings` in the order of uids.

    `allocatable`, `used` and `bound` (of it what our jobs use) have a row per resource and a column per node.
    `lasting` and `standings` are of the same jobs; `kinds`, `counted` and `stuck` are what earlier passes
    left. `safe` are the jobs (uids) that nobody may suspend though they can be.
    """

    lasting: Mapping[str, standing.Lasting]
    standings: dict[str, Standing]
    queues: Mapping[str, model.Queue]
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    nodes: table.NodeTable
    resources: tuple[str, ...]
    allocatable: Ints
    used: Ints
    bound: Ints
    kinds: Kinds
    counted: Counted
    stuck: stuck.Stuck
    safe: frozenset[str]
    now: int
    config: model.Config


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource of a set of `nodes` (how many), or of the quota of a `queue` ("": of nodes) or a cohort.

    `rate` is what is there for the counted jobs; `ends` are of work that cannot be suspended and leaves
    later. Work of others and work without a foreseeable end is taken off the rate for good.
    """

    resource: str
    queue: str
    nodes: int
    rate: int
    ends: stuck.Ends = stuck.NOTHING

    def offers(self, since: int, until: int) -> int:
        """What it offers between two times, in resource units × ms."""
        offered = self.rate * (until - since)
        return max(offered - self.ends.held(since, until) if self.ends else offered, 0)


@dataclass(slots=True)
class Entry:
    """One job that counts. `left` is its expected work in ms, `weight` how often it counts.

    `could` be given up at some time, `may` now; the difference is the min-run of a running job. Shared
    between passes: never written to.
    """

    job: model.Job
    deadline: int
    kind: Kind
    left: int
    weight: int
    could: bool
    may: bool


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What equal gangs of a queue ask for, by group: amounts by resource, and where these may be.

    `areas` are the nodes, `pools` the pools of the `queue`.
    """

    queue: str
    amounts: tuple[tuple[int, ...], ...]
    areas: tuple[Mask, ...]
    pools: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Counted:
    """The entries of the pass before, by uid and with what they were made of; of one step of time."""

    tick: int = -1
    entries: dict[str, tuple[standing.Lasting, Entry | None]] = field(default_factory=dict)

    def at(self, tick: int) -> dict[str, tuple[standing.Lasting, Entry | None]]:
        """Those that still count at `tick`."""
        if tick != self.tick:
            self.tick, self.entries = tick, {}
        return self.entries


@dataclass(slots=True)
class Load:
    """All that is asked, and of what.

    `entries` by deadline, `ages` their places in the order of uids, `profiles` the numbers of their kinds;
    `demand[limit, profile]` of one gang.
    """

    tick: int
    entries: list[Entry] = field(default_factory=list)
    ages: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    profiles: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    limits: list[Limit] = field(default_factory=list)
    demand: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    merged: int = 0


def share_ppm(spans: Ints, config: model.Config) -> Ints:
    """The part η of an offer over `spans` ms that may be asked for, in ppm so that decisions are exact.

    η(h) = floor + extra · exp(−h / decay): the longer the horizon, the more is kept for later arrivals.
    """
    shares = config.shed_floor + config.shed_extra * np.exp(-np.maximum(spans, 0) / config.shed_decay)
    return np.rint(shares * PPM).astype(np.int64)


def tick_of(now: int, config: model.Config) -> int:
    """The last full step of time; step 2 sees no finer."""
    return now // config.shed_step * config.shed_step


def measure(scene: Scene, without: frozenset[str] = frozenset()) -> Load:
    """Count who asks for what.

    Args:
        scene: Where things stand.
        without: Jobs (uids) that do not count, because they could never fit.

    Returns:
        The load; empty when there is nobody who could be given up for another.
    """
    load = Load(tick_of(scene.now, scene.config))
    profiles = _Profiles()
    found = _entries(scene, load.tick, without)
    if len(found) < 2 or not any([entry.could for entry in found]):
        return load
    numbers = profiles.number([entry.kind for entry in found])
    deadlines = np.array([entry.deadline for entry in found], dtype=np.int64)
    load.ages = deadlines.argsort(kind="stable")  # of equals by uid, since they come in that order
    load.entries = [found[age] for age in load.ages.tolist()]
    load.profiles = numbers[load.ages]
    others = scene.stuck.columns(_stuck(scene, {entry.job.uid for entry in found}))
    _limit_nodes(scene, load, profiles, others)
    _limit_quotas(scene, load, profiles, others)
    return load


def _entries(scene: Scene, tick: int, without: frozenset[str]) -> list[Entry]:
    counted = scene.counted.at(tick)
    houses = {name: _House(queue, scene.config) for name, queue in scene.queues.items()}
    found: list[Entry] = []
    for uid, lasting in scene.lasting.items():
        made = counted.get(uid)
        if made is None or made[0] is not lasting:
            made = counted[uid] = lasting, _entry(scene, lasting, houses, tick)
        if (entry := made[1]) is not None and uid not in without:
            found.append(entry)
    return found


def _entry(scene: Scene, lasting: standing.Lasting, houses: Mapping[str, _House], tick: int) -> Entry | None:
    here, placed = lasting.here, lasting.placed
    job, given_up = here.job, model.Band.SHED
    house, deadline = houses.get(job.queue), job.deadline
    if here.band is not model.Band.DEADLINE or here.left is None or here.finish is None:
        return None
    if house is None or deadline is None:
        return None
    if not placed and (house.closed or order.barred(job, scene.queues) is not None):
        return None
    left = here.finish.mid - tick if placed else here.left.mid
    if left <= 0 or deadline <= tick or (kind := scene.kinds.of(job, scene.gangs.get(job.uid))) is None:
        return None
    was_shed = job.published.band is given_up
    promised = job.slot is not None and scene.config.promising
    could = house.sheds and job.state is not model.State.CLAIMING and (job.movable or not placed)
    could = could and not promised
    settled = not placed or was_shed or job.since + house.min_run_of(job) <= tick
    weight = scene.config.shed_weight if was_shed and could else 1
    return Entry(job, deadline, kind, left, weight, could, could and settled)


class _House:
    """What a queue says of its jobs. `closed`: who waits there cannot start, and so competes with nobody."""

    def __init__(self, queue: model.Queue, config: model.Config) -> None:
        self.closed = queue.held or queue.drained or queue.observed or bool(queue.conflict)
        # A fifo queue starts its jobs in their order whatever becomes of their deadlines.
        self.sheds = queue.shedding and order.policy(queue, config) is not model.Order.FIFO
        self._min_run = queue.min_run

    def min_run_of(self, job: model.Job) -> int:
        return self._min_run if job.min_run is None else job.min_run


def _stuck(scene: Scene, counted: set[str]) -> list[Standing]:
    """Those that hold room which no counted job can have before they end by themselves."""
    found: list[Standing] = []
    for uid, lasting in scene.lasting.items():
        stays = not lasting.here.job.movable or uid in scene.safe
        if lasting.placed and stays and uid not in counted:
            found.append(lasting.here)
    return found


class Kinds:
    """Tells kinds of gangs apart, by nodes (but not what uses them), queues and resources alone."""

    def __init__(
        self, nodes: table.NodeTable, queues: Mapping[str, model.Queue], resources: Sequence[str]
    ) -> None:
        self._nodes, self._queues = nodes, queues
        self._row = {name: row for row, name in enumerate(resources)}
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
        return Kind(queue, tuple(asked), areas, pools)

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


class _Profiles:
    """The kinds among the counted jobs, numbered as they come, as rows of numbers: one per group.

    `masks` are the sets of nodes, `shares` the (queue, pools) on which the groups depend.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._sets: dict[int, int] = {}
        self.masks: list[Mask] = []
        self.shares: dict[tuple[str, tuple[str, ...]], int] = {}
        self.rows: list[tuple[int, int, int]] = []  # (profile, set, share) per group
        self.amounts: list[tuple[int, ...]] = []  # per group and resource

    @property
    def count(self) -> int:
        """How many kinds there are."""
        return len(self._numbers)

    def number(self, kinds: Sequence[Kind]) -> Ints:
        """The numbers of kinds."""
        numbers = self._numbers
        found: list[int] = []
        for kind in kinds:
            known = numbers.get(id(kind))
            found.append(self._add(kind) if known is None else known)
        return np.array(found, dtype=np.int64)

    def _add(self, kind: Kind) -> int:
        number = self._numbers[id(kind)] = len(self._numbers)
        for amounts, area, pools in zip(kind.amounts, kind.areas, kind.pools, strict=True):
            which = self._sets.setdefault(id(area), len(self.masks))
            if which == len(self.masks):
                self.masks.append(area)
            share = self.shares.setdefault((kind.queue, pools), len(self.shares))
            self.rows.append((number, which, share))
            self.amounts.append(amounts)
        return number


def _limit_nodes(scene: Scene, load: Load, profiles: _Profiles, others: stuck.Columns) -> None:
    """Add the limits of sets of nodes."""
    rows = np.array(profiles.rows, dtype=np.int64)
    amounts = np.array(profiles.amounts, dtype=np.int64)
    masks = np.array(profiles.masks)
    areas, load.merged = _areas(load, profiles, masks)
    # Counts of nodes are far below 2**24, so the sums are exact.
    outside = masks.astype(np.float32) @ (~areas).astype(np.float32).T
    offered = _offered(scene) @ areas.T
    for index, area in enumerate(areas):
        inside = outside[rows[:, 1], index] == 0
        asked = _per_profile(rows[inside, 0], amounts[inside], profiles.count)
        nodes = int(area.sum())
        if not nodes:
            continue  # of running jobs whose nodes were relabelled: giving one up makes no room for another
        held = None if others.empty else others.on(area)
        for row in np.flatnonzero(asked.any(axis=0)).tolist():
            rate, ends = _less_stuck(int(offered[row, index]), row, held)
            load.limits.append(Limit(scene.resources[row], "", nodes, rate, ends))
            load.demand = _stacked(load.demand, asked[:, row])


def _areas(load: Load, profiles: _Profiles, masks: npt.NDArray[np.bool_]) -> tuple[Mask, int]:
    """The sets of nodes to tell apart, one per row, and how many were merged into the last."""
    if len(masks) <= SETS:
        return masks, 0
    jobs = np.bincount(load.profiles, minlength=profiles.count)
    uses = [0] * len(masks)
    for profile, which, _ in profiles.rows:
        uses[which] += int(jobs[profile])
    ranked = sorted(range(len(masks)), key=lambda which: (-uses[which], masks[which].tobytes()))
    kept, others = ranked[: SETS - 1], ranked[SETS - 1 :]
    return np.vstack([masks[kept], masks[others].any(axis=0)]), len(others)


def _limit_quotas(scene: Scene, load: Load, profiles: _Profiles, others: stuck.Columns) -> None:
    """Add the limits of quotas: pools of one queue, or of one cohort, that all list the resource."""
    rows = np.array(profiles.rows, dtype=np.int64)
    amounts = np.array(profiles.amounts, dtype=np.int64)
    for queues, names, whose in _purses(scene, profiles):
        within = [other in queues and set(pools) <= set(names) for other, pools in profiles.shares]
        inside = np.array(within)[rows[:, 2]]
        asked = _per_profile(rows[inside, 0], amounts[inside], profiles.count)
        may = [
            most for queue in queues for pool, most in _quotas(scene.queues[queue], whose) if pool in names
        ]
        held = None if others.empty else others.within(queues, names)
        for row in np.flatnonzero(asked.any(axis=0)).tolist():
            resource = scene.resources[row]
            if not all(resource in most for most in may):
                continue
            total = sum(most[resource] for most in may)
            rate, ends = _less_stuck(total, row, held)
            load.limits.append(Limit(resource, whose, 0, rate, ends))
            load.demand = _stacked(load.demand, asked[:, row])


Purse = tuple[tuple[str, ...], tuple[str, ...], str]
"""(queues, pools, the name of the queue or the account of the cohort): what has one quota."""


def _purses(scene: Scene, profiles: _Profiles) -> list[Purse]:
    """Of which pools somebody's quota may be exceeded, each once."""
    found: dict[Purse, None] = {}
    for queue, names in profiles.shares:
        found[(queue,), names, queue] = None
        if (account := scene.queues[queue].account) != queue:
            members = tuple(one.name for one in scene.queues.values() if one.account == account)
            found[members, names, account] = None
    return list(found)


def _quotas(queue: model.Queue, whose: str) -> list[tuple[str, dict[str, int]]]:
    """By pool what a queue may hold, and to a cohort's account what it brings."""
    if whose != queue.name or queue.account == queue.name:
        return [(pool.name, dict(pool.nominal)) for pool in queue.pools]
    found: list[tuple[str, dict[str, int]]] = []
    for pool in queue.pools:
        limits = dict(pool.limits)
        found.append((pool.name, {name: n + limits[name] for name, n in pool.nominal if name in limits}))
    return found


def _per_profile(profile: Ints, amounts: Ints, count: int) -> Ints:
    sums: Ints = np.zeros((count, amounts.shape[1]), dtype=np.int64)
    np.add.at(sums, profile, amounts)
    return sums


def _stacked(demand: Ints, row: Ints) -> Ints:
    return row[None, :] if not demand.size else np.vstack([demand, row])


def _offered(scene: Scene) -> Ints:
    """Per resource and node what our jobs have or could have: all but what pods that are not ours use.

    Nodes that are not ready count, since that passes and an overload is a matter of hours. Cordoned ones were
    taken out on purpose: they count with what our jobs still hold there.
    """
    offered: Ints = np.maximum(scene.allocatable - np.maximum(scene.used - scene.bound, 0), 0)
    closed = scene.nodes.cordoned()
    if closed.any():
        offered[:, closed] = np.minimum(offered, _owned(scene, closed))[:, closed]
    return offered


def _owned(scene: Scene, area: Mask) -> Ints:
    """Per resource and node what placed jobs use in an area or will, by pods that are bound or expected."""
    place = {name: row for row, name in enumerate(scene.resources)}
    sums: Ints = np.zeros(scene.allocatable.shape, dtype=np.int64)
    for lasting in scene.lasting.values():
        job = lasting.here.job
        for part in job.assigned if lasting.placed else ():
            column = scene.nodes.index.get(part.node)
            if column is None or not area[column]:
                continue
            for name, amount in job.groups[part.group].shape.requests:
                if (row := place.get(name)) is not None:
                    more = min(amount * (part.bound + part.held), table.LIMIT)
                    sums[row, column] = min(int(sums[row, column]) + more, table.LIMIT)
    return sums


def _less_stuck(rate: int, row: int, held: stuck.Held | None) -> tuple[int, stuck.Ends]:
    """What of a rate is left for the counted jobs, one day, and what goes off it before that."""
    if held is None:
        return max(rate, 0), stuck.NOTHING
    stays, ends = held[row]
    return max(rate - stays, 0), ends
