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

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lstqueue.engine import demand, fit, gangs, kinds, model, standing, stuck
from lstqueue.engine.gangs import PPM
from lstqueue.engine.standing import Standing
from lstqueue.topology import table
from lstqueue.topology.table import Ints, Mask

SETS = 32
"""Sets of nodes told apart; of more the commonest, and the union of the others as one."""
MARGIN = 1 + 1e-9
"""Wider than the rounding of any sum of floats here; what lies within it is decided in integers."""

Floats = npt.NDArray[np.float64]


class Bounds:
    """The limits of the pass before, which are those of the next if kinds and nodes are the same.

    That is so in nearly all passes where all kinds may use the same nodes and nobody is stuck; elsewhere
    limits depend on more, and are found anew.
    """

    __slots__ = ("_demand", "_key", "_limits")

    def __init__(self) -> None:
        self._key: tuple[bytes, bytes] | None = None

    def recall(self, load: Load, key: tuple[bytes, bytes]) -> bool:
        """Give a load the limits that are known for a key, if they are."""
        if key != self._key:
            return False
        load.limits, load.demand = self._limits, self._demand
        return True

    def keep(self, load: Load, key: tuple[bytes, bytes]) -> None:
        """Keep the limits of a load, which nobody writes to any more."""
        self._key, self._limits, self._demand = key, load.limits, load.demand


@dataclass(frozen=True, slots=True)
class Scene:
    """What step 2 looks at, `standings` in the order of uids.

    `allocatable`, `used` and `bound` (of it what our jobs use) have a row per resource and a column per node.
    `lasting` and `standings` are of the same jobs; `kinds`, `counted`, `stuck` and `bounds` are what earlier
    passes left. `safe` are the jobs (uids) that nobody may suspend though they can be, `wake` is when the
    next pass is to be at the latest (ms since the epoch).
    """

    lasting: Mapping[str, standing.Lasting]
    standings: standing.Standings
    queues: Mapping[str, model.Queue]
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    nodes: table.NodeTable
    resources: tuple[str, ...]
    allocatable: Ints
    used: Ints
    bound: Ints
    kinds: kinds.Kinds
    counted: demand.Counted
    stuck: stuck.Stuck
    bounds: Bounds
    safe: frozenset[str]
    wake: int
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
class Load:
    """All that is asked, and of what.

    `asks` by deadline, `profiles` the numbers of their kinds; `demand[limit, profile]` of one gang.
    """

    tick: int
    asks: demand.Asks
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
    tick = tick_of(scene.now, scene.config)
    found = scene.counted.asks(scene.lasting, scene.gangs, tick, without)
    load = Load(tick, found)
    if len(found) < 2 or not found.could.any():
        return load
    profiles = _Profiles()
    load.profiles = profiles.number(found, scene.kinds)
    others, offered = scene.stuck.columns(_stuck(scene, found)), _offered(scene)
    key = profiles.key, offered.tobytes()
    plain = others.empty and scene.kinds.alike
    if plain and scene.bounds.recall(load, key):
        return load
    profiles.read()
    _limit_nodes(scene, load, profiles, others, offered)
    _limit_quotas(scene, load, profiles, others)
    if plain:
        scene.bounds.keep(load, key)
    return load


def _stuck(scene: Scene, counted: demand.Asks) -> list[Standing]:
    """Those that hold room which no counted job can have before they end by themselves."""
    some = scene.counted.others(counted, sorted(scene.counted.fixed | scene.safe))
    return [scene.lasting[uid].here for uid in some if uid in scene.lasting and scene.lasting[uid].placed]


class _Profiles:
    """The kinds among the counted jobs, numbered, as rows of numbers: one per group.

    Equal `key`s are of the same kinds. `masks` are the sets of nodes, `shares` the (queue, pools) on which
    the groups depend.
    """

    def __init__(self) -> None:
        self._made: list[kinds.Kind] = []
        self.key = b""
        self._sets: dict[int, int] = {}
        self.masks: list[Mask] = []
        self.shares: dict[tuple[str, tuple[str, ...]], int] = {}
        self.rows: list[tuple[int, int, int]] = []  # (profile, set, share) per group
        self.amounts: list[tuple[int, ...]] = []  # per group and resource

    @property
    def count(self) -> int:
        """How many kinds there are."""
        return len(self._made)

    def number(self, found: demand.Asks, known: kinds.Kinds) -> Ints:
        """The numbers of the kinds of jobs, the first by uid first where their order makes a difference."""
        made, some = known.made, np.flatnonzero(np.bincount(found.kinds))
        if not known.alike:
            ages, first = found.ages(), np.full(len(made), len(found))
            np.minimum.at(first, found.kinds, ages)
            some = some[first[some].argsort()]
        self._made = [made[kind] for kind in some.tolist()]
        self.key = some.tobytes()
        numbers = np.zeros(len(made), dtype=np.int64)
        numbers[some] = np.arange(len(some))
        return numbers[found.kinds]

    def read(self) -> None:
        """Find out on which sets of nodes and pools their groups depend."""
        for number, kind in enumerate(self._made):
            for amounts, area, pools in zip(kind.amounts, kind.areas, kind.pools, strict=True):
                which = self._sets.setdefault(id(area), len(self.masks))
                if which == len(self.masks):
                    self.masks.append(area)
                share = self.shares.setdefault((kind.queue, pools), len(self.shares))
                self.rows.append((number, which, share))
                self.amounts.append(amounts)


def _limit_nodes(scene: Scene, load: Load, profiles: _Profiles, others: stuck.Columns, offered: Ints) -> None:
    """Add the limits of sets of nodes."""
    rows = np.array(profiles.rows, dtype=np.int64)
    amounts = np.array(profiles.amounts, dtype=np.int64)
    masks = np.array(profiles.masks)
    areas, load.merged = _areas(load, profiles, masks)
    # Counts of nodes are far below 2**24, so the sums are exact.
    outside = masks.astype(np.float32) @ (~areas).astype(np.float32).T
    there = offered @ areas.T
    for index, area in enumerate(areas):
        inside = outside[rows[:, 1], index] == 0
        asked = _per_profile(rows[inside, 0], amounts[inside], profiles.count)
        nodes = int(area.sum())
        if not nodes:
            continue  # of running jobs whose nodes were relabelled: giving one up makes no room for another
        held = None if others.empty else others.on(area)
        for row in np.flatnonzero(asked.any(axis=0)).tolist():
            rate, ends = _less_stuck(int(there[row, index]), row, held)
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
