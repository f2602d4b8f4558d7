"""What a pass leaves to the next, so that the next costs what has changed. It decides nothing.

A pass is a function of snapshot, time and configuration, with a memory or without one. So whatever is kept
here follows from frozen inputs alone, and is dropped as soon as one of those is another:

- a `World` is of one configuration, the same nodes (what uses them apart), queues and resources. When one of
  these changes all of it is forgotten; that is seldom, and costs one pass from scratch;
- in it what follows from one job is kept by uid, until the job is another or gone;
- what time changes as well is kept with the time until which it stands (`standing.Lasting`, `Counted`).

Sums over jobs are integers, from which a job that changed is taken before it is added again. What an earlier
pass kept for its explanations is never written to. A property test runs random histories with a memory and
without one, and wants equal plans.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

from lstqueue.engine import (
    cohorts,
    demand,
    differences,
    fabrics,
    fit,
    gangs,
    holdings,
    kinds,
    leavers,
    lineup,
    means,
    model,
    overload,
    owings,
    quota,
    room,
    roster,
    seats,
    siting,
    soundness,
    stakes,
    standing,
    stuck,
    tenure,
)
from lstqueue.engine import flock as flocks
from lstqueue.topology import capacity, table, tree
from lstqueue.topology.model import PODS, Node, PodShape
from lstqueue.topology.table import Ints

Thing = TypeVar("Thing")

SPARE = 64
"""Gangs and kinds of gangs that may be kept besides twice as many as are in use."""
_NAME = operator.attrgetter("name")


class Memory:
    """Belongs to one caller, who gives it to every pass; passes may not overlap.

    It holds about as much as the last snapshot, whatever came before.
    """

    def __init__(self) -> None:
        self._world: World | None = None
        self._fabrics = fabrics.Fabrics()

    def recall(self, snapshot: model.Snapshot, config: model.Config) -> World:
        """Take in a snapshot; what it leaves as it was is known already.

        Raises:
            ValueError: A name or uid appears twice, a group is empty, or an assignment names no group.
        """
        world, self._world = self._world, None  # what fails on the way leaves nothing behind
        listed, known = ((), {}) if world is None else (world.listed, world.jobs)
        jobs, changed, gone = differences.take(listed, known, snapshot.jobs)
        queues = soundness.named("queues", snapshot.queues, _NAME)
        soundness.check(jobs[uid] for uid in changed)
        nodes = {node.name: node for node in snapshot.nodes}
        if world is not None:
            world.take_out(changed, gone)
            asked = world.asked([jobs[uid] for uid in changed])
            if not world.is_of(config, queues, nodes, snapshot, asked):
                world = None
        if world is None:
            asked = _asked(jobs.values(), queues)
            fabric = self._fabrics.of(snapshot.domains, snapshot.nodes)
            made = fabrics.columns(snapshot.nodes, fabric)
            world, changed = World(config, queues, made, asked, snapshot.domains, fabric), list(jobs)
        world.take_in(jobs, changed, nodes)
        self._world, world.listed = world, snapshot.jobs
        return world


class World:
    """What follows from nodes, queues, configuration and jobs. `jobs` are in the order of their uids."""

    def __init__(
        self,
        config: model.Config,
        queues: Mapping[str, model.Queue],
        nodes: table.NodeTable,
        resources: tuple[str, ...],
        domains: model.Domains | None = None,
        fabric: tree.Tree | None = None,
    ) -> None:
        self._given, self._domains, self.fabric = queues, domains, fabric
        queues = cohorts.settle(queues, nodes.nodes)
        self.config, self.queues, self.nodes, self.resources = config, queues, nodes, resources
        self.allocatable, self.used = nodes.amounts(resources)
        self.stage = siting.Stage(nodes, resources, self.allocatable, fabric)
        self._seen: Mapping[str, Node] = {node.name: node for node in nodes.nodes}
        self._quota = quota.Quota(queues.values(), ())
        self._holdings = holdings.Holdings(resources, nodes)
        rule = config.switches.placing
        self._gangs = gangs.Gangs(nodes, queues, self._quota, resources, self.allocatable, fabric, rule)
        self._ledger = capacity.Ledger(self._gangs.rows(), self.allocatable.copy())
        self.possible = fit.Possibility(self._room)
        self.kinds = kinds.Kinds(nodes, queues, resources)
        self.counted = demand.Counted(config, queues, self.kinds)
        self.stuck = stuck.Stuck(nodes, resources)
        self.bounds = overload.Bounds()
        self.leavers = leavers.Leavers(self.release, leavers.at_the_latest)
        self.expected = leavers.Leavers(self.release, leavers.as_expected)
        self.roster = roster.Roster(config)
        self.lineup = lineup.Lineup(config, queues)
        self.owing = owings.Owings()
        self.tenures = tenure.Tenures(self._tenure, self.roster.find)
        self._begin()

    def _begin(self) -> None:
        """Know of no job yet: what `take_in` fills."""
        self.jobs: Mapping[str, model.Job] = {}
        self.listed: Sequence[model.Job] = ()
        self.gangs: dict[str, gangs.Gang] = {}
        self.ending: set[str] = set()
        self.states: Counter[model.State] = Counter()
        self.claiming: set[str] = set()
        self.reserved: set[str] = set()
        self.quiet: dict[str, tuple[standing.Lasting, model.Band, model.Code | None]] = {}
        self.muffled: set[str] = set()
        self._charges: dict[str, quota.Charges] = {}
        self._releases: dict[str, room.Release] = {}
        self._stakes: dict[str, stakes.Stake] = {}
        self._kept: dict[str, room.Release] = {}
        self.fixed: set[str] = set()
        self._rolls: dict[str, flocks.Roll] = {}
        self._capacities: dict[str, flocks.Capacity] = {}
        self._means: dict[str, means.Means] = {}
        self._parts: dict[str, int] = {}
        self._asking: Counter[str] = Counter()

    # Taking in

    def asked(self, changed: Collection[model.Job]) -> tuple[str, ...]:
        """Resources that those who wait, or own a slot, ask for: who is known, and those who changed.

        Where nobody does nothing of a plan depends on them, so they stay what they were.
        """
        asking = {name for name, several in self._asking.items() if several}
        if not asking and not any(_asks(job, self.queues) for job in changed):
            return self.resources
        return tuple(sorted(asking.union(_asked(changed, self.queues))))

    def is_of(
        self,
        config: model.Config,
        queues: Mapping[str, model.Queue],
        nodes: Mapping[str, Node],
        snapshot: model.Snapshot,
        resources: tuple[str, ...],
    ) -> bool:
        """Whether all that a world is made of is as it was, and not too much has gathered in it."""
        if (self.config, self.resources, self._given) != (config, resources, queues):
            return False
        if self._domains is not snapshot.domains:
            return False
        if not len(snapshot.nodes) == len(nodes) == len(self._seen):
            return False
        seen = self._seen
        moved = itertools.compress(nodes, map(operator.is_not, nodes.values(), map(seen.get, nodes)))
        if not all([name in seen and _stays(seen[name], nodes[name]) for name in moved]):
            return False
        if len(self._gangs) > SPARE:
            used = len({id(gang) for gang in self.gangs.values()})
            if len(self._gangs) > 2 * used + SPARE:
                return False
        return len(self.kinds) <= 2 * len(self.jobs) + SPARE

    def take_out(self, changed: Collection[str], gone: Collection[str]) -> None:
        """Take those that are another or gone out of every sum and every table."""
        for uid in (*changed, *gone):
            if (job := self.jobs.get(uid)) is not None:
                self.states[job.state] -= 1
                self._holdings.remove(job)
                self._quota.give(self._charges.pop(uid))
                self._ask(job, -1)
                self._forget(uid)
        for uid in gone:
            self.roster.drop(uid)
        self._note(changed)
        self._note(gone)

    def take_in(
        self, jobs: Mapping[str, model.Job], changed: Iterable[str], nodes: Mapping[str, Node]
    ) -> None:
        """Take what is new, or what became of it, into the sums."""
        self._use(nodes)
        for uid in changed:
            job = jobs[uid]
            self.states[job.state] += 1
            if job.state is model.State.ENDING:
                self.ending.add(uid)
                self.roster.drop(uid)
            else:
                self.roster.change(uid)
            if job.state is model.State.CLAIMING:
                self.claiming.add(uid)
            if job.reservation is not None:
                self.reserved.add(uid)
            if job.slot is not None:
                self.tenures.add(uid)
            self._charges[uid] = ()
            if job.assigned:  # of a long line hardly anybody holds something
                self._holdings.add(job)
                self._charges[uid] = self._quota.held(job)
                self._quota.take(self._charges[uid])
                if not self.evictable(job):
                    self.fixed.add(uid)
            if _tries(job, self.queues):
                self.gangs[uid] = self._gangs.of(job)
            self._ask(job, 1)
        self.jobs = jobs
        rows = self._gangs.rows()
        if rows is not self._ledger.rows:
            self._ledger = self._ledger.widened(rows)
        self._ledger.settle(self.allocatable - self.used - self._holdings.held)

    def _note(self, uids: Collection[str]) -> None:
        """Have who is new, another or gone be put in or taken out of what is kept in order."""
        self.lineup.change(uids)
        self.counted.change(uids)
        for roll in self._rolls.values():
            roll.change(uids)

    def _ask(self, job: model.Job, sign: int) -> None:
        """Count what a job asks for, if that makes a difference."""
        if _asks(job, self.queues):
            self._asking[PODS] += sign
            for group in job.groups:
                for name, _ in group.shape.requests:
                    self._asking[name] += sign

    def _use(self, nodes: Mapping[str, Node]) -> None:
        """Take in what pods use now."""
        seen = self._seen
        known = map(operator.is_not, nodes.values(), map(seen.__getitem__, nodes))
        if moved := list(itertools.compress(nodes.values(), known)):
            self.used = self.used.copy()
            self.nodes.write_used(self.used, self.resources, moved)
        self._seen = nodes

    def _forget(self, uid: str) -> None:
        tables: tuple[MutableMapping[str, Any], ...] = (
            self.gangs,
            self.quiet,
            self.stuck.rows,
            self._releases,
            self._stakes,
            self._kept,
            self._parts,
        )
        for one in tables:
            one.pop(uid, None)
        self.leavers.forget(uid)
        self.expected.forget(uid)
        self.tenures.forget(uid)
        self.reserved.discard(uid)
        self.fixed.discard(uid)
        self.ending.discard(uid)
        self.claiming.discard(uid)
        self.muffled.discard(uid)

    # Asking

    def _room(self) -> room.Room:
        return room.Room(self._ledger, self._quota)

    def free(self) -> room.Room:
        """What is free before anything is decided; the caller's own."""
        return self._room().copy()

    @property
    def rows(self) -> capacity.Rows:
        """The rows of every gang that was asked for so far."""
        return self._gangs.rows()

    @property
    def bound(self) -> Ints:
        """What our jobs use of `used`; of this pass only."""
        return self._holdings.bound

    def refresh(self, now: int) -> None:
        """Bring the standings of everybody who is not ending up to date."""
        found = self.roster.refresh(self.jobs, now)
        self.leavers.change(found)
        self.expected.change(found)
        self.tenures.change(found)
        self._note(found)

    def hush(self, uid: str, one: standing.Lasting, band: model.Band, code: model.Code | None) -> None:
        """Note that there is nothing to tell of a job as long as it stands like this."""
        self.quiet[uid] = one, band, code
        self.roster.fresh.discard(uid)
        (self.muffled.discard if band is one.here.band else self.muffled.add)(uid)

    def release(self, job: model.Job) -> room.Release:
        """What ends with a job."""
        found = self._releases.get(job.uid)
        if found is not None and self.jobs.get(job.uid) is job:
            return found
        if self.jobs.get(job.uid) is not job:  # a plan made before this job changed is being explained
            return self._release_of(job, job.assigned, self._quota.held(job))
        made = self._releases[job.uid] = self._release_of(job, job.assigned, self._charges[job.uid])
        return made

    def _release_of(
        self, job: model.Job, parts: Sequence[model.Assigned], charges: quota.Charges
    ) -> room.Release:
        return room.release_of(job, parts, resources=self.resources, nodes=self.nodes, charges=charges)

    def stake(self, here: standing.Standing, claim: model.Claim) -> stakes.Stake:
        """The claim of a job of the snapshot."""
        who, uid = stakes.known_victims(claim, self.jobs), here.job.uid
        stake = self._stakes.get(uid)
        if stake is None or stake.victims != who:
            stake = self._stakes[uid] = self.new_stake(here, claim, who)
        return dataclasses.replace(stake, here=here)

    def new_stake(
        self, here: standing.Standing, claim: model.Claim, who: tuple[model.Job, ...]
    ) -> stakes.Stake:
        """A claim that nobody has made yet, on what `who` hold."""
        parts = stakes.parts_at(here.job, claim.groups)
        place = self._release_of(here.job, parts, self._quota.held(here.job, parts))
        return stakes.of(here, claim, who, self.release, place)

    def _tenure(
        self, uid: str, before: tenure.Owed | None, basis: standing.Lasting | None, now: int
    ) -> tenure.Owed:
        job = self.jobs[uid]
        if before is not None:  # only time has passed
            return tenure.of(
                job, before.seat, before.whole, before.before, basis, now=now, config=self.config
            )
        slot = tenure.slot_of(job)
        seat = seats.of(job, slot, self.queues.get(job.queue), self.config)
        whole = self.place(job, slot.groups)
        old = None if job.slot_before is None else self.place(job, job.slot_before.groups)
        return tenure.of(job, seat, whole, old, basis, now=now, config=self.config)

    def evictable(self, job: model.Job) -> bool:
        """Whether a job can be told to leave for a slot, and does so in time."""
        return seats.evictable(job, self.queues.get(job.queue), self.config)

    def kept(self, job: model.Job, reservation: model.Reservation) -> room.Release:
        """The room that is kept for a job of the snapshot, in columns."""
        found = self._kept.get(job.uid)
        if found is None:
            found = self._kept[job.uid] = self.place(job, reservation.groups)
        return found

    def place(self, job: model.Job, groups: tuple[model.GroupPlacement, ...]) -> room.Release:
        """What a job would hold in a place, in columns."""
        parts = stakes.parts_at(job, groups)
        return stakes.merged(self._release_of(job, parts, self._quota.held(job, parts)))

    def gang(self, job: model.Job) -> gangs.Gang:
        """The gang of a job, be it waiting or not; its queue must be there."""
        return self.gangs.get(job.uid) or self._gangs.of(job)

    def gang_near(self, job: model.Job, home: str) -> gangs.Gang:
        """The gang of a job that goes into a domain rather than elsewhere; "" for where it was last."""
        return self._gangs.of(dataclasses.replace(job, home=home)) if home else self.gang(job)

    def firm(self, gang: gangs.Gang) -> gangs.Gang | None:
        """A gang of this world where its nodes stay; None: nowhere."""
        return self._gangs.firm(gang)

    def near(self, gang: gangs.Gang) -> gangs.Gang | None:
        """A gang of this world in one domain of the level it prefers; None: it prefers none."""
        return self._gangs.near(gang)

    def alone(self, gang: gangs.Gang) -> gangs.Alone:
        """A gang of this world in rows of its own."""
        return self._gangs.alone(gang)

    def flock(
        self, queue: str, jobs: Mapping[str, model.Job], lasting: Mapping[str, standing.Lasting]
    ) -> flocks.Flock:
        """The running jobs of a queue, or of its cohort, as they stood when `jobs` were all there were."""
        account = self.queues[queue].account
        roll = self._rolls.get(account) if jobs is self.jobs else None
        if roll is None:  # the first; or a plan made before this pass is being explained
            names = frozenset([one.name for one in self.queues.values() if one.account == account])
            roll = flocks.Roll(self.queues[queue], names, figures=self._figures_of, release=self.release)
            if jobs is self.jobs:
                self._rolls[account] = roll
        return roll.read(lasting)

    def held_part(self, job: model.Job) -> int:
        """The part (ppm) of what its queue has that a job of the snapshot holds."""
        found = self._parts.get(job.uid)
        if found is None:
            found = self._parts[job.uid] = self._means_of(job.queue).held(job)
        return found

    def whole_part(self, job: model.Job) -> int:
        """The part (ppm) of what its queue has that its gang is."""
        return self._means_of(job.queue).whole(job)

    def _means_of(self, queue: str) -> means.Means:
        found = self._means.get(queue)
        if found is None:
            found = self._means[queue] = means.Means(self.queues[queue], self.nodes.nodes)
        return found

    def _figures_of(self, one: standing.Standing) -> flocks.Figures:
        queue = self.queues[one.job.queue]
        capacity_of = self._capacities.get(queue.name)
        if capacity_of is None:
            capacity_of = self._capacities[queue.name] = flocks.Capacity(queue, self._ledger.rows, self.nodes)
        return flocks.figures(one, queue, capacity_of)


def _asked(jobs: Iterable[model.Job], queues: Mapping[str, model.Queue]) -> tuple[str, ...]:
    """Names of the resources that those who wait, or own a slot, ask for."""
    shapes: dict[int, PodShape] = {}  # many pods are of few
    for job in jobs:
        if _asks(job, queues):
            for group in job.groups:
                shapes[id(group.shape)] = group.shape
    names = {name for shape in shapes.values() for name, _ in shape.requests}
    return tuple(sorted(names | {PODS}))


def _asks(job: model.Job, queues: Mapping[str, model.Queue]) -> bool:
    """Whether what a job asks for makes a difference."""
    return _tries(job, queues) or (job.slot is not None and job.queue in queues)


def _tries(job: model.Job, queues: Mapping[str, model.Queue]) -> bool:
    """Whether a job has a gang that is looked at."""
    return (job.state is model.State.WAITING or job.state is model.State.CLAIMING) and job.queue in queues


def _stays(known: Node, node: Node) -> bool:
    """Whether nothing but what uses a node is another."""
    before = (known.allocatable, known.labels, known.taints, known.ready, known.unschedulable)
    now = (node.allocatable, node.labels, node.taints, node.ready, node.unschedulable)
    return before == now and known.suspect is node.suspect
