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

from lstqueue.engine import estimate, fit, gangs, model, order, quota
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

    `allocatable` and `used` have a row per resource and a column per node.
    """

    jobs: Sequence[model.Job]
    standings: Mapping[str, Standing]
    queues: Mapping[str, model.Queue]
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    nodes: table.NodeTable
    resources: tuple[str, ...]
    allocatable: Ints
    used: Ints
    now: int
    config: model.Config


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource of a set of `nodes` (how many), or of the quota of a `queue` ("": of nodes).

    `rate` is what is there for the counted jobs; `ends` are (time, amount) of work that cannot be suspended
    and leaves later. Work of others and work without a foreseeable end is taken off the rate for good.
    """

    resource: str
    queue: str
    nodes: int
    rate: int
    ends: tuple[tuple[int, int], ...] = ()

    def offers(self, since: int, until: int) -> int:
        """What it offers between two times, in resource units × ms."""
        span = until - since
        stuck = sum(amount * min(max(end - since, 0), span) for end, amount in self.ends)
        return max(self.rate * span - stuck, 0)


@dataclass(slots=True)
class Entry:
    """One job that counts. `left` is its expected work in ms, `weight` how often it counts.

    `could` be given up at some time, `may` now; the difference is the min-run of a running job.
    """

    here: Standing
    deadline: int
    profile: int
    left: int
    weight: int
    could: bool
    may: bool


@dataclass(slots=True)
class Load:
    """All that is asked, and of what. `entries` by deadline; `demand[limit, profile]` of one gang."""

    tick: int
    entries: list[Entry] = field(default_factory=list)
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
    profiles = _Profiles(scene)
    load.entries = _entries(scene, profiles, load.tick, without)
    if len(load.entries) < 2 or not any(entry.could for entry in load.entries):
        load.entries = []
        return load
    counted = {entry.here.job.uid for entry in load.entries}
    stuck = [here for here in scene.standings.values() if _is_stuck(here, counted)]
    _limit_nodes(scene, load, profiles, stuck)
    _limit_quotas(scene, load, profiles, stuck)
    return load


def _entries(scene: Scene, profiles: _Profiles, tick: int, without: frozenset[str]) -> list[Entry]:
    houses = {name: _House(queue, scene.config) for name, queue in scene.queues.items()}
    on_time, given_up = model.Band.DEADLINE, model.Band.SHED
    found: list[Entry] = []
    for here in scene.standings.values():
        if here.band is not on_time or here.left is None or here.finish is None:
            continue
        job = here.job
        house, deadline = houses.get(job.queue), job.deadline
        if house is None or deadline is None or job.uid in without:
            continue
        placed = estimate.is_placed(job)
        if not placed and (house.closed or order.barred(job, scene.queues) is not None):
            continue
        left = here.finish.mid - tick if placed else here.left.mid
        if left <= 0 or deadline <= tick or (profile := profiles.of(job)) is None:
            continue
        was_shed = job.published.band is given_up
        could = house.sheds and job.state is not model.State.CLAIMING and (job.preemptible or not placed)
        settled = not placed or was_shed or job.since + house.min_run_of(job) <= tick
        weight = scene.config.shed_weight if was_shed and could else 1
        found.append(Entry(here, deadline, profile, left, weight, could, could and settled))
    found.sort(key=_deadline)  # of equals by uid, since they come in that order
    return found


def _deadline(entry: Entry) -> int:
    return entry.deadline


class _House:
    """What a queue says of its jobs. `closed`: who waits there cannot start, and so competes with nobody."""

    def __init__(self, queue: model.Queue, config: model.Config) -> None:
        self.closed = queue.held or queue.drained or queue.observed
        # A fifo queue starts its jobs in their order whatever becomes of their deadlines.
        self.sheds = queue.shedding and order.policy(queue, config) is not model.Order.FIFO
        self._min_run = queue.min_run

    def min_run_of(self, job: model.Job) -> int:
        return self._min_run if job.min_run is None else job.min_run


def _is_stuck(here: Standing, counted: set[str]) -> bool:
    """Whether it holds room that no counted job can have before it ends by itself."""
    return estimate.is_placed(here.job) and not here.job.preemptible and here.job.uid not in counted


class _Profiles:
    """The distinct gangs among the counted jobs, as rows of numbers: one per group of a gang.

    `sets` are the sets of nodes, `shares` the (queue, pools) on which the groups depend.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._row = {name: row for row, name in enumerate(scene.resources)}
        self._known: dict[object, int | None] = {}
        self._places: dict[object, tuple[int, int] | None] = {}
        self.count = 0
        self.sets: dict[bytes, int] = {}
        self.masks: list[Mask] = []
        self.shares: dict[tuple[str, tuple[str, ...]], int] = {}
        self.rows: list[tuple[int, int, int]] = []  # (profile, set, share) per group
        self.amounts: list[list[int]] = []  # per group and resource

    def of(self, job: model.Job) -> int | None:
        """Number of the gang's profile; None when no pool lists what a group asks for."""
        gang = self._scene.gangs.get(job.uid)
        key = (job.queue, job.groups) if gang is None else id(gang)
        if key not in self._known:
            self._known[key] = self._make(job)
        return self._known[key]

    def _make(self, job: model.Job) -> int | None:
        places: list[tuple[int, int]] = []
        for group in job.groups:
            shape = group.shape
            names = tuple([name for name, amount in shape.requests if amount > 0])
            asked = (job.queue, names, shape.selector, shape.affinity, shape.tolerations)
            if asked not in self._places:
                self._places[asked] = self._find(job.queue, group)
            place = self._places[asked]
            if place is None:
                return None
            places.append(place)
        for group, place in zip(job.groups, places, strict=True):
            amounts = [0] * len(self._row)
            for name, amount in group.shape.requests:
                if amount > 0 and (row := self._row.get(name)) is not None:
                    amounts[row] = min(amount * group.count, MOST)
            self.rows.append((self.count, *place))
            self.amounts.append(amounts)
        self.count += 1
        return self.count - 1

    def _find(self, queue: str, group: model.Group) -> tuple[int, int] | None:
        """Where pods like those of a group may run: (set of nodes, pools of the queue) by number."""
        options = quota.listing(self._scene.queues[queue].pools, group)
        if not options:
            return None
        masks = [
            self._scene.nodes.mask(
                group.shape, selector=pool.selector, tolerations=pool.tolerations, lasting=True
            )
            for pool in options
        ]
        union = np.logical_or.reduce(masks)
        which = self.sets.setdefault(union.tobytes(), len(self.masks))
        if which == len(self.masks):
            self.masks.append(union)
        share = (queue, tuple(pool.name for pool in options))
        return which, self.shares.setdefault(share, len(self.shares))


def _limit_nodes(scene: Scene, load: Load, profiles: _Profiles, stuck: list[Standing]) -> None:
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
        for row in np.flatnonzero(asked.any(axis=0)).tolist():
            resource = scene.resources[row]
            rate, ends = _less_stuck(int(offered[row, index]), _stuck_on(scene, area, resource, stuck))
            load.limits.append(Limit(resource, "", nodes, rate, ends))
            load.demand = _stacked(load.demand, asked[:, row])


def _areas(load: Load, profiles: _Profiles, masks: npt.NDArray[np.bool_]) -> tuple[Mask, int]:
    """The sets of nodes to tell apart, one per row, and how many were merged into the last."""
    if len(masks) <= SETS:
        return masks, 0
    jobs = np.bincount([entry.profile for entry in load.entries], minlength=profiles.count)
    uses = [0] * len(masks)
    for profile, which, _ in profiles.rows:
        uses[which] += int(jobs[profile])
    ranked = sorted(profiles.sets.items(), key=lambda pair: (-uses[pair[1]], pair[0]))
    kept = [which for _, which in ranked[: SETS - 1]]
    others = [which for _, which in ranked[SETS - 1 :]]
    return np.vstack([masks[kept], masks[others].any(axis=0)]), len(others)


def _limit_quotas(scene: Scene, load: Load, profiles: _Profiles, stuck: list[Standing]) -> None:
    """Add the limits of quotas: pools of one queue that all list the resource."""
    rows = np.array(profiles.rows, dtype=np.int64)
    amounts = np.array(profiles.amounts, dtype=np.int64)
    for queue, names in profiles.shares:
        within = [other == queue and set(pools) <= set(names) for other, pools in profiles.shares]
        inside = np.array(within)[rows[:, 2]]
        asked = _per_profile(rows[inside, 0], amounts[inside], profiles.count)
        nominal = [dict(pool.nominal) for pool in scene.queues[queue].pools if pool.name in names]
        for row in np.flatnonzero(asked.any(axis=0)).tolist():
            resource = scene.resources[row]
            if not all(resource in listed for listed in nominal):
                continue
            total = sum(listed[resource] for listed in nominal)
            rate, ends = _less_stuck(total, _stuck_in(queue, names, resource, stuck))
            load.limits.append(Limit(resource, queue, 0, rate, ends))
            load.demand = _stacked(load.demand, asked[:, row])


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
    bound = _held(scene, scene.jobs, expected=False)
    offered: Ints = np.maximum(scene.allocatable - np.maximum(scene.used - bound, 0), 0)
    closed = np.array([node.unschedulable for node in scene.nodes.nodes], dtype=np.bool_)
    if closed.any():
        placed = [here.job for here in scene.standings.values() if estimate.is_placed(here.job)]
        ours = _held(scene, placed, expected=True)
        offered[:, closed] = np.minimum(offered, ours)[:, closed]
    return offered


def _held(scene: Scene, jobs: Sequence[model.Job], *, expected: bool) -> Ints:
    """Per resource and node what jobs use by bound pods, and by those that are `expected`."""
    place = {name: row for row, name in enumerate(scene.resources)}
    index = scene.nodes.index
    sums = [[0] * len(scene.nodes) for _ in place]
    for job in jobs:
        for part in job.assigned:
            column = index.get(part.node)
            pods = part.bound + part.held if expected else part.bound
            if column is None or not pods:
                continue
            for name, amount in job.groups[part.group].shape.requests:
                if (row := place.get(name)) is not None:
                    sums[row][column] += amount * pods
    return np.minimum(np.array(sums, dtype=np.object_), table.LIMIT).astype(np.int64)


Stuck = list[tuple[int | None, int]]
"""(end in ms since the epoch or None, amount) of work that cannot be suspended."""


def _stuck_on(scene: Scene, area: Mask, resource: str, stuck: list[Standing]) -> Stuck:
    found: Stuck = []
    for here in stuck:
        amount = 0
        for part in here.job.assigned:
            column = scene.nodes.index.get(part.node)
            if column is not None and area[column]:
                amount += _asked(here.job, part, resource)
        found.append((None if here.finish is None else here.finish.mid, amount))
    return found


def _stuck_in(queue: str, pools: tuple[str, ...], resource: str, stuck: list[Standing]) -> Stuck:
    found: Stuck = []
    for here in stuck:
        if here.job.queue == queue:
            parts = [part for part in here.job.assigned if part.pool in pools]
            amount = sum(_asked(here.job, part, resource) for part in parts)
            found.append((None if here.finish is None else here.finish.mid, amount))
    return found


def _asked(job: model.Job, part: model.Assigned, resource: str) -> int:
    requests = dict(job.groups[part.group].shape.requests)
    return requests.get(resource, 0) * (part.bound + part.held)


def _less_stuck(rate: int, stuck: Stuck) -> tuple[int, tuple[tuple[int, int], ...]]:
    ends = tuple(sorted((end, amount) for end, amount in stuck if end is not None and amount))
    return max(rate - sum(amount for end, amount in stuck if end is None), 0), ends
