"""The working state of one pass, kept with its plan so that `explain` needs no second computation.

`survey` takes columns and ledgers from the memory; what the steps find out is added as they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lstqueue.engine import (
    calendar,
    fit,
    gangs,
    guests,
    memory,
    model,
    order,
    outlook,
    overload,
    owings,
    rights,
    room,
    shed,
    stakes,
    standing,
    switches,
    tenure,
    victims,
    windows,
)
from lstqueue.engine.standing import Standing
from lstqueue.topology import table

if TYPE_CHECKING:
    from lstqueue.engine import lending


@dataclass(slots=True)
class Settled:
    """What a pass does about claims, by the uid of the owner."""

    admit: dict[str, stakes.Stake] = field(default_factory=dict)
    drop: dict[str, model.Drop] = field(default_factory=dict)
    suspend: list[model.Suspend] = field(default_factory=list)


@dataclass(slots=True)
class Preempted:
    """What step 5 found out.

    `claim` are the new claims by uid of the owner, `reclaims` of these who takes back what was lent, `coming`
    those who wait for room that is leaving anyway. `searches` counts.
    """

    claim: dict[str, stakes.Stake] = field(default_factory=dict)
    reclaims: set[str] = field(default_factory=set)
    coming: set[str] = field(default_factory=set)
    searches: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """The best-effort job of a queue that stands in line as if it were `due` then (ms since the epoch).

    It is `overdue` once that is past. `share` is its queue's, in ppm.
    """

    due: int
    overdue: bool
    share: int


@dataclass(slots=True)
class Reservations:
    """What a pass does about reservations, by the uid of the owner: those made or put off, and those lost."""

    made: dict[str, model.Reserve] = field(default_factory=dict)
    lost: dict[str, model.Unreserve] = field(default_factory=dict)


@dataclass(slots=True)
class Sharing:
    """The best-effort share of a pass, by uid.

    `safe` are the running jobs that it protects, `heads` those who stand in line by it, `withheld` the room
    that is kept for them.
    """

    safe: frozenset[str] = frozenset()
    heads: dict[str, Head] = field(default_factory=dict)
    withheld: dict[str, list[room.Release]] = field(default_factory=dict)


@dataclass(slots=True)
class Wording:
    """What was worked out for a sentence and serves for others.

    `sentences` are those said of equal gangs, by gang, code and whether their deadlines are past saving.
    `calm` is the room once everybody has left whose end is known, where that was asked for, and `causes` why
    it holds no gang like this one.
    """

    sentences: dict[tuple[int, model.Code, bool], str] = field(default_factory=dict)
    calm: room.Room | None = None
    causes: dict[int, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Owing:
    """All that is owed over time, each form of it made when it is asked for first (`slots`).

    `entries` are what is owed as the pass begins; `short` says where there is less, found out once
    (`looked`). `whole` is the calendar of the pass, with what it promises, `near` one of what begins before a
    time (ms since the epoch).
    """

    entries: list[calendar.Entry] | None = None
    whole: calendar.Calendar | None = None
    near: tuple[int, calendar.Calendar] | None = None
    short: owings.Shortages | None = None
    looked: bool = False


@dataclass(slots=True)
class Promised:
    """What a pass knows and does about slots, by the uid of the owner.

    `owed` are those that stand, `claim` are new claims of those whose time has come, `suspend` those who
    leave for their own, `made` the slots that are new or moved, `lost` the promises that cannot be kept.
    `doubts` say why slots that are not given up yet could not be had as things are. `soonest` are the
    earliest deadlines that would be promised to those that get none, where there is one; `round` is whom of
    those the next passes look at again. `sweeps` are the jobs of each that are promised together. `ahead` are
    the slots that others may be in, by their starts, with uids of their owners and ends.
    """

    owed: dict[str, tenure.Owed] = field(default_factory=dict)
    claim: dict[str, stakes.Stake] = field(default_factory=dict)
    suspend: list[model.Suspend] = field(default_factory=list)
    made: dict[str, model.Promise] = field(default_factory=dict)
    lost: dict[str, model.Revoke] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    round: model.Round | None = None
    sweeps: dict[str, dict[str, order.Turn | None]] | None = None
    soonest: dict[str, int | None] = field(default_factory=dict)
    owing: Owing = field(default_factory=Owing)
    ahead: list[tuple[int, str, int]] = field(default_factory=list)

    def holds(self, uid: str) -> bool:
        """Whether a job is promised its deadline, by this plan or one before."""
        return uid in self.made or (uid in self.owed and uid not in self.lost)

    def due(self, stake: stakes.Stake) -> bool:
        """Whether a claim is of a slot: it needs no other reason."""
        one = self.owed.get(stake.here.job.uid)
        return one is not None and one.slot.groups == stake.claim.groups

    @property
    def seated(self) -> frozenset[str]:
        """Those (uids) whose room nobody may take."""
        return frozenset([uid for uid, one in self.owed.items() if one.seated])


@dataclass(slots=True)
class Kept:
    """What a pass knows. `free` is charged by step 4, so afterwards it is the room that is left.

    `jobs` are all of the snapshot in the order of their uids; `lasting` and `standings` those that are not
    ending. `waiting`, `owning` (who owns room), `ending` and `claiming` are uids, in their order. `line`
    are the waiting jobs that may be tried, first to last; `codes` says of everyone who stays why. `used` is
    what bound pods use, with the rows of the ledger, `foreign` what of that is no job's. `staked` are all
    claims by uid of the owner, `drained` the suspensions that a queue's administrator asked for. `windows`
    say what of their quotas queues may use later. `keepings` are the reservations that stand. `world` goes on
    to later passes. `wake` is the first time found so far at which time alone can change the plan.
    """

    snapshot: model.Snapshot
    now: int
    config: model.Config
    world: memory.World
    queues: Mapping[str, model.Queue]
    nodes: table.NodeTable
    jobs: Mapping[str, model.Job]
    free: room.Room
    gangs: Mapping[str, gangs.Gang]
    possible: fit.Possibility
    used: table.Ints
    foreign: table.Ints
    lasting: Mapping[str, standing.Lasting]
    standings: standing.Standings
    waiting: tuple[str, ...]
    owning: tuple[str, ...]
    ending: tuple[str, ...]
    claiming: tuple[str, ...]
    wake: int = standing.NEVER
    _placed: list[Standing] | None = None
    staked: dict[str, stakes.Stake] = field(default_factory=dict)
    claims: Settled = field(default_factory=Settled)
    drained: list[model.Suspend] = field(default_factory=list)
    preempted: Preempted = field(default_factory=Preempted)
    shedding: shed.Shedding = field(default_factory=shed.Shedding)
    keepings: Sequence[guests.Keeping] = ()
    reservations: Reservations = field(default_factory=Reservations)
    windows: windows.Windows = windows.NONE
    promised: Promised = field(default_factory=Promised)
    sharing: Sharing = field(default_factory=Sharing)
    line: list[order.Turn] = field(default_factory=list)
    codes: dict[str, model.Code] = field(default_factory=dict)
    fitted: fit.Fitted = field(default_factory=fit.Fitted)
    outlooks: dict[str, outlook.Outlook] = field(default_factory=dict)
    updates: dict[str, model.Update] = field(default_factory=dict)
    herds: dict[str, victims.Herd] = field(default_factory=dict)
    lendings: dict[str, lending.Lending] = field(default_factory=dict)
    wording: Wording = field(default_factory=Wording)

    def here(self, turn: order.Turn) -> Standing:
        """How a job in line stands."""
        return self.standings[turn.job.uid]

    def windowed(self, turn: order.Turn) -> dict[int, int]:
        """What windows that a job in line would meet, should it start now, leave of each slot of quota."""
        queue = turn.gang.queue
        return self.windows.least(queue, self.until(turn)) if self.windows.concern(queue) else {}

    def until(self, turn: order.Turn) -> int | None:
        """When a job in line would have left at the latest, should it start now (ms since the epoch)."""
        return windows.until(self.here(turn))

    @property
    def placed(self) -> list[Standing]:
        """The standings of those that own room, as step 2 leaves them; made when they are asked for."""
        if self._placed is None:
            self._placed = list(map(self.standings.__getitem__, self.owning))
        return self._placed

    def rouse(self, time: int) -> None:
        """Have the next pass be no later than `time`, unless that is over."""
        if self.now < time < self.wake:
            self.wake = time

    def rank_of(self, here: Standing) -> order.Rank | None:
        """The place in the order of a job that waits, where it decides who has to leave for it; else None."""
        if not self.config.switches.by_rank:
            return None
        policy = order.policy(self.queues[here.job.queue], self.config)
        place = order.rank(policy, here, self.gangs[here.job.uid].share, self.config)
        tier_alone = self.config.switches.preempts is switches.Preempts.TIER
        return order.end_of_tier(place) if tier_alone else place

    def candidate(self, turn: order.Turn) -> rights.Candidate:
        """A job in line that may have others suspended now."""
        if turn.who is not None:
            return turn.who
        here = self.here(turn)
        return rights.candidate(here, self.queues[here.job.queue], self.now, rank=self.rank_of(here))

    def scene(self) -> overload.Scene:
        """What step 2 looks at."""
        world = self.world
        return overload.Scene(
            lasting=self.lasting,
            standings=self.standings,
            queues=self.queues,
            gangs=self.gangs,
            possible=self.possible,
            nodes=self.nodes,
            resources=world.resources,
            allocatable=world.allocatable,
            used=self.used,
            bound=world.bound,
            kinds=world.kinds,
            counted=world.counted,
            stuck=world.stuck,
            bounds=world.bounds,
            safe=self.sharing.safe,
            wake=self.wake,
            now=self.now,
            config=self.config,
        )

    def going(self) -> list[stakes.Stake]:
        """Claims that go on: their owners neither start in this pass nor lose them."""
        done = self.claims.admit.keys() | self.claims.drop.keys()
        return [stake for uid, stake in self.staked.items() if uid not in done]

    def herd(self, queue: str) -> victims.Herd:
        """Whom jobs of a queue, or of its cohort, may ask for; made once per pass."""
        account = self.queues[queue].account
        herd = self.herds.get(account)
        if herd is None:
            claimed = frozenset(job.uid for stake in self.staked.values() for job in stake.victims)
            shed = [self.standings[uid] for uid in self.shedding.given]
            herd = self.herds[account] = victims.Herd(
                self.world.flock(queue, self.jobs, self.lasting).given_up(shed),
                claimed=claimed,
                safe=self.sharing.safe,
                seated=self.promised.seated,
                now=self.now,
                config=self.config,
            )
        return herd


def survey(snapshot: model.Snapshot, world: memory.World, now: int) -> Kept:
    """Read the nodes, what they hold, what each queue has left, and where everybody stands."""
    world.refresh(now)
    lasting = world.roster.lasting()
    known = Kept(
        snapshot=snapshot,
        now=now,
        config=world.config,
        world=world,
        queues=world.queues,
        nodes=world.nodes,
        jobs=world.jobs,
        free=world.free(),
        gangs=dict(world.gangs),
        possible=world.possible,
        used=world.used,
        foreign=np.maximum(world.used - world.bound, 0),
        lasting=lasting,
        standings=standing.Standings(lasting, now),
        claiming=tuple(sorted(world.claiming)),
        waiting=tuple(world.roster.waiting),
        owning=tuple(world.roster.placed),
        ending=tuple(sorted(world.ending)),
        wake=world.roster.wake(),
    )
    for uid in known.claiming:
        here = known.standings[uid]
        if here.job.claim is not None:
            known.staked[uid] = world.stake(here, here.job.claim)
    known.free.charge_all([stake.charged for stake in known.staked.values()])
    _open_windows(known)
    return known


def _open_windows(known: Kept) -> None:
    """Charge what windows keep free now, and find out what they will leave."""
    if not any(queue.windows for queue in known.queues.values()):
        return
    opened = known.windows = windows.Windows(known.queues.values(), known.free.quota, known.now)
    for edge in (*opened.active, *opened.edges):
        known.rouse(edge.time)
    for edge in opened.active:
        known.free.quota.take(edge.charges)
    for uid, one in known.lasting.items():
        here = known.standings[uid]
        stake = known.staked.get(uid)
        if one.placed and opened.concern(here.job.queue):
            opened.stay(here.job.queue, known.free.quota.held(here.job), windows.until(here))
        elif stake is not None:
            opened.stay(here.job.queue, stake.whole.charges, windows.until(here))
