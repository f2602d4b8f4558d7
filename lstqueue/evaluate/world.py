"""A cluster on a virtual clock: nodes, gangs, and what becomes of a plan.

It stands in for the API server, the controllers, the kubelets and the operator's bookkeeping, and does
nothing of its own accord: time passes because `replay` says so, jobs start and stop because a plan does. A
move goes the way it goes in a cluster: an admission is held, then bound, then works; a suspended gang is
charged until its pods are gone; a claim is written before anybody is suspended for it. What a run leaves
behind (saved work, suspensions, whom it had to give way to) is counted as the operator counts it.

Snapshots cost what has changed: a job or a node is another object only when it is another.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from lstqueue.engine import model
from lstqueue.evaluate import (
    digest,
    interconnects,
    inventory,
    lives,
    machines,
    mishaps,
    teams,
    workload,
)
from lstqueue.topology import model as topology
from lstqueue.topology import slowdown

GPU = workload.GPU
POOL = "all"
NO_LIMIT = 1 << 40
"""A quota that nothing reaches."""
_AVOIDED = 5 * model.MINUTE
"""How long at most nodes are avoided that did not come free in time; as the operator does."""


Shape = inventory.Shape


class What(enum.IntEnum):
    """What may happen to a job without anybody deciding it."""

    BOUND = 0
    WORKS = 1
    ENDED = 2
    GONE = 3
    FORGIVEN = 4  # nodes that failed it may be tried again
    UNREADY = 5  # it had its time to be complete; `podwise`


Happening = tuple[int, int, What, str, int]
"""(time in ms since the epoch, sequence number, what, uid, attempt it is about)."""


class Witness(Protocol):
    """Sees every move, and judges it."""

    def arrived(self, life: lives.Life, at: int) -> None:
        """A job was submitted and is known."""

    def admitted(self, life: lives.Life, at: int) -> None:
        """A gang was given room; `life.assigned` says where."""

    def suspended(self, life: lives.Life, at: int, order: model.Suspend, kept: int) -> None:
        """A gang was told to stop, and `kept` ms of this run outlive it."""

    def struck(self, life: lives.Life, at: int, kept: int) -> None:
        """A mishap of a node ended a run, of which `kept` ms are saved."""

    def resized(self, node: str, gpus: int) -> None:
        """A node has so many GPUs from now on."""

    def serves(self, node: str, gpus: int, at: int) -> None:
        """So many of them can be used from now on."""

    def released(self, life: lives.Life, at: int) -> None:
        """All room of a gang is free."""

    def ended(self, life: lives.Life, at: int) -> None:
        """A gang has done all of its work, at `life.completed`; its room is free."""


class World:
    """`jobs` are those submitted and not completed, by uid in the order of arrival."""

    def __init__(
        self,
        shape: Shape,
        costs: lives.Costs,
        queue: model.Queue,
        *,
        log: digest.Log,
        witnesses: Iterable[Witness] = (),
        wear: mishaps.Wear | None = None,
        several: teams.Teams | None = None,
        interconnect: interconnects.Interconnect | None = None,
    ) -> None:
        self._interconnect = interconnect
        self.shape, self.costs = shape, costs
        self.queue = replace(
            queue,
            name=lives.QUEUE,
            # Nodes are the limit: a quota that says the same would only be reckoned twice.
            pools=(model.Pool(POOL, nominal=((GPU, NO_LIMIT),)),),
        )
        self._several = several
        self._queues = (self.queue,)
        self._standing = None if several is None else several.standing(self.queue)
        self._now = 0
        self.jobs: dict[str, lives.Life] = {}
        self.gpus = shape.gpus
        self.busy = 0  # GPUs of gangs that hold room
        self.partial = 0  # of them those of incomplete gangs, which a plan never makes
        self._placed = 0  # gangs that do
        self._shed_at = 0  # when somebody was last given up
        self._round: model.Round | None = None  # whom passes look at again
        self._reclaimed: dict[str, int] = {}  # when each queue last took back
        self._log, self._witnesses = log, tuple(witnesses)
        self._ahead: list[Happening] = []
        self._sequence = 0
        self._machines = machines.Machines(shape.machines)
        self._done: list[lives.Life] = []
        self._wear = wear or mishaps.Wear(mishaps.Rates(), shape.nodes, seed=0, since=0)
        self._groups: dict[tuple[workload.Pods, ...], tuple[model.Group, ...]] = {}

    # Time

    @property
    def waiting(self) -> bool:
        """Whether a job is there that holds no room."""
        return self._placed < len(self.jobs)

    @property
    def next_at(self) -> int | None:
        """When something happens next by itself, in ms since the epoch; None: nothing will but mishaps."""
        times = (self._ahead[0][0] if self._ahead else None, self._wear.next_repair)
        return min((time for time in times if time is not None), default=None)

    @property
    def out(self) -> int:
        """GPUs that are out of service."""
        return self._machines.out

    @property
    def next_mishap(self) -> int | None:
        """When something goes wrong next, in ms since the epoch; None: nothing ever will."""
        return self._wear.next_mishap

    def pass_time(self, now: int) -> bool:
        """Let everything happen that is due; return whether the operator would want to decide anew."""
        self._now = now
        rung = False
        while True:
            first = self._ahead[0][0] if self._ahead and self._ahead[0][0] <= now else None
            worn = self._wear_out(now if first is None else first)
            rung |= worn
            if first is None:
                return rung
            if worn:
                continue  # it may have ended what was to happen
            at, _, what, uid, attempt = heapq.heappop(self._ahead)
            life = self.jobs.get(uid)
            if life is None or (life.attempt != attempt and what is not What.FORGIVEN):
                continue
            rung |= self._happens(life, what, at)

    def _happens(self, life: lives.Life, what: What, at: int) -> bool:
        if what is What.FORGIVEN:
            life.avoid, life.seen = (), None
            return True
        if what is What.GONE:
            if life.state is model.State.ENDING:
                self._gone(life, at)
            return True
        if life.state not in (model.State.ADMITTED, model.State.RUNNING):
            return False  # it was suspended before
        if what is What.BOUND:
            self._bound(life)
            return False
        if what is What.WORKS:
            self._works(life, at)
        else:
            self._ended(life, at)
        return True

    def _later(self, at: int, what: What, life: lives.Life) -> None:
        self._sequence += 1
        heapq.heappush(self._ahead, (at, self._sequence, what, life.uid, life.attempt))

    # What a pass looks at

    def snapshot(self, *, forecast_at: int, changed: bool) -> model.Snapshot:
        """Return the cluster as the operator sees it."""
        costs = self.costs
        return model.Snapshot(
            nodes=self._machines.seen(),
            queues=self._queues if self._standing is None else self._standing.as_of(self._now),
            jobs=tuple([life.seen or life.engine_job(costs) for life in self.jobs.values()]),
            forecast_at=forecast_at,
            changed=changed,
            shed_at=self._shed_at,
            reclaimed=dict(self._reclaimed),
            round=self._round,
            domains=None if self._interconnect is None else self._interconnect.domains,
        )

    # Arrivals

    def arrive(self, uid: str, work: workload.Work, estimate: model.Estimate | None, at: int) -> lives.Life:
        """Submit a job; return what is to become of it."""
        groups = self._groups.get(work.pods)
        if groups is None:
            made = [
                model.Group(f"g{index}", pods.count, topology.PodShape(pods.requests))
                for index, pods in enumerate(work.pods)
            ]
            groups = self._groups[work.pods] = tuple(made)
        life = self.jobs[uid] = lives.Life(uid, work, groups, estimate)
        if self._interconnect is not None:
            life.locality = self._interconnect.locality(work)
        life.queue = "" if self._several is None else self._several.of(work)
        self._log.note(at, "submitted", work.key, [("runs", work.duration), ("due", work.deadline or 0)])
        for witness in self._witnesses:
            witness.arrived(life, at)
        return life

    def take_completed(self) -> list[lives.Life]:
        """Return those who completed since this was asked last, in the order in which they did."""
        done, self._done = self._done, []
        return done

    # The plan

    def apply(self, plan: model.Plan, now: int) -> bool:
        """Carry a plan out as the operator does; return whether that calls for another pass by itself."""
        self._promise(plan, now)
        for update in plan.updates:
            self._tell(update, now)
        for suspend in plan.suspend:
            self._suspend(suspend, now)
        for drop in plan.drop:
            self._drop(drop, now)
        # Whoever a reservation held back that is lost or moved may start.
        frees = bool(plan.unreserve) or any(self.jobs[one.uid].reservation for one in plan.reserve)
        for lost in plan.unreserve:
            self._reserve(lost.uid, None, now)
        for kept in plan.reserve:
            self._reserve(kept.uid, kept.reservation, now)
        for claiming in plan.claim:
            life = self.jobs[claiming.uid]
            life.state, life.seen, life.reservation = model.State.CLAIMING, None, None
            life.claim = replace(claiming.claim, committed=True)
            if claiming.reclaims:
                self._reclaimed[claiming.queue] = now
            self._log.note(now, "claimed", life.work.key, _places(claiming.claim.groups))
        for admission in plan.admit:
            self._admit(admission, now)
        return bool(plan.suspend or plan.drop or plan.claim or plan.revoke or frees)

    def _promise(self, plan: model.Plan, now: int) -> None:
        """Write down what is promised, and what is no more."""
        self._round = plan.round
        if plan.sheds:
            self._shed_at = now
        for lost in plan.revoke:
            life = self.jobs[lost.uid]
            life.slot, life.broken, life.seen = None, lost.cause, None
            self._log.note(now, "revoked", life.work.key, [(lost.cause.value, 0)])
        for promise in plan.promise:
            life = self.jobs[promise.uid]
            life.slot, life.promised, life.seen = promise.slot, True, None
            spans = [("from", promise.slot.start), ("until", promise.slot.finish), ("for", promise.slot.hi)]
            self._log.note(now, "promised", life.work.key, [*spans, *_places(promise.slot.groups)])

    def _reserve(self, uid: str, reservation: model.Reservation | None, now: int) -> None:
        life = self.jobs[uid]
        life.reservation, life.seen = reservation, None
        places = [] if reservation is None else _places(reservation.groups)
        self._log.note(now, "reserved", life.work.key, places)

    def _tell(self, update: model.Update, now: int) -> None:
        life = self.jobs[update.uid]
        self._log.told(now, update, life.work.key)
        life.published = model.Published(update.band, update.code, update.verdict, update.slack)
        life.seen = None
        if life.first_level is None and update.verdict is not None:
            life.first_level = update.verdict.level
        if life.first_finish is None and update.verdict is not None:
            life.first_finish = update.verdict.finish

    def _admit(self, admission: model.Admission, now: int) -> None:
        life, costs = self.jobs[admission.uid], self.costs
        parts: list[model.Assigned] = []
        for index, group in enumerate(admission.groups):
            parts += [model.Assigned(index, group.pool, node, 0, count) for node, count in group.nodes]
        life.assigned = tuple(parts)
        if self._interconnect is not None:
            life.slowdown = self._interconnect.slowdown(life.work, admission.groups)
            life.home = admission.domain
        life.attempt += 1
        self.busy += life.work.gpus
        self._placed += 1
        self._log.note(now, "admitted", life.work.key, _places(admission.groups))
        if costs.bind + costs.lag:
            self._later(now + costs.bind + costs.lag, What.BOUND, life)
        else:
            self._bound(life)
        self._start(life, now)

    def _start(self, life: lives.Life, now: int) -> None:
        """Have a gang begin in the room that it has."""
        costs = self.costs
        life.state, life.since = model.State.ADMITTED, now
        life.claim, life.reservation, life.seen = None, None, None
        life.starts_at = now + costs.bind + (costs.restore if life.ran else costs.launch)
        life.ends_at = life.starts_at + slowdown.stretched(life.work.duration - life.saved, life.slowdown)
        if life.published.code is not None:
            life.published = replace(life.published, code=None)
        for witness in self._witnesses:
            witness.admitted(life, now)
        self._later(life.starts_at + costs.lag, What.WORKS, life)
        self._later(life.ends_at + costs.lag, What.ENDED, life)

    def _suspend(self, wanted: model.Suspend, now: int) -> None:
        life = self.jobs[wanted.uid]
        placed = life.state in (model.State.ADMITTED, model.State.RUNNING)
        if life.attempt != wanted.attempt or not placed or life.ends_at <= now:
            return  # it is through, and its room free in a moment
        ran = max(0, now - life.starts_at) if life.state is model.State.RUNNING else 0
        worth = self._kept(ran, asked=True)
        kept = slowdown.shrunk(worth, life.slowdown)
        self._leave(life, now, lost=ran - worth, ran=ran, kept=kept, for_uid=wanted.for_uid)
        life.gave_back += wanted.why is model.Why.RECLAIMED
        self._log.note(now, "suspended", life.work.key)
        for witness in self._witnesses:
            witness.suspended(life, now, wanted, kept)
        self._vacate(life, now)

    def _vacate(self, life: lives.Life, now: int) -> None:
        """Have the pods of a gang leave."""
        costs = self.costs
        life.assigned = tuple(
            [
                model.Assigned(part.group, part.pool, part.node, part.bound, 0)
                for part in life.assigned
                if part.bound
            ]
        )
        life.state, life.since, life.seen = model.State.ENDING, 0, None
        if life.assigned and costs.termination + costs.lag:
            self._later(now + costs.termination + costs.lag, What.GONE, life)
        else:
            self._gone(life, now)

    def _kept(self, ran: int, *, asked: bool) -> int:
        """How much of a run outlives its end, asked for in time or not."""
        costs = self.costs
        if asked and costs.saves_on_suspend:
            return ran
        return ran // costs.checkpoint * costs.checkpoint if costs.checkpoint else 0

    def _leave(self, life: lives.Life, now: int, *, ran: int, lost: int, kept: int, for_uid: str) -> None:
        """Count what a suspension for another leaves behind, by the operator's rules."""
        life.saved += kept
        life.lost += lost
        life.preempted += 1
        worked = life.state is model.State.RUNNING
        if worked:
            life.ran = True
            life.wasted = 0 if kept else life.wasted + 1
            life.fruitless = max(life.fruitless, life.wasted)
        else:
            life.restoring += now - life.since  # a start for nothing
        recent = [at for at in life.suspensions if now - at < model.HOUR * 24]
        life.suspensions = (*recent, now)
        known = () if worked and ran >= self.queue.min_run else life.displaced_by
        if for_uid:
            known = (*[uid for uid in known if uid != for_uid], for_uid)
        life.displaced_by = known[-lives.DISPLACED_BY :]

    # Mishaps

    def _wear_out(self, now: int) -> bool:
        """Let happen what goes wrong and is put right by `now`; return whether anything did."""
        changes = self._wear.take(now)
        for mishap, begins in changes:
            at = mishap.at if begins else mishap.until
            name = self._machines.names[mishap.node]
            self._log.note(at, f"{mishap.kind.value}-{'begins' if begins else 'ends'}", name)
            if begins:
                self._hit(mishap, name, at)
            self._refit(mishap.node, name, at)
        return bool(changes)

    def _hit(self, mishap: mishaps.Mishap, name: str, at: int) -> None:
        """End the runs that a mishap ends; a GPU that is lost ends that of whoever has it."""
        there = [life for life in self.jobs.values() if any(part.node == name for part in life.assigned)]
        if mishap.kind is mishaps.Kind.GPU:
            which = self._machines.lost(mishap)
            for life in there:
                which -= lives.gpus_on(life, name)
                if which < 0:
                    self._strike(life, at, asked=False)
                    return
            return
        for life in there:
            self._strike(life, at, asked=mishap.kind in machines.ASKED)

    def _strike(self, life: lives.Life, at: int, *, asked: bool) -> None:
        """End the run of a gang; who is only asked to leave may save its work. Its pods are gone at once."""
        if life.state is model.State.ENDING:
            self._gone(life, at)
            return
        if life.ends_at <= at:
            return  # it is through, and its end known in a moment
        worked = life.state is model.State.RUNNING
        ran = max(0, at - life.starts_at) if worked else 0
        worth = self._kept(ran, asked=asked)
        kept = slowdown.shrunk(worth, life.slowdown)
        life.saved += kept
        life.lost += ran - worth
        life.struck += 1
        if worked:
            life.ran = True
            life.wasted = 0 if kept else life.wasted
            life.displaced_by = () if ran >= self.queue.min_run else life.displaced_by
        else:
            life.restoring += at - life.since
        self._log.note(at, "struck", life.work.key)
        for witness in self._witnesses:
            witness.struck(life, at, kept)
        self._gone(life, at)

    def _refit(self, index: int, name: str, at: int) -> None:
        """Give the node the shape that what lasts leaves of it."""
        gpus, usable = self._machines.refit(index, self._wear.down)
        for witness in self._witnesses:
            witness.resized(name, gpus)
            witness.serves(name, usable, at)

    def _drop(self, drop: model.Drop, now: int) -> None:
        life = self.jobs[drop.uid]
        if life.state is not model.State.CLAIMING:
            return
        life.state, life.claim, life.seen = model.State.WAITING, None, None
        self._log.note(now, "dropped", life.work.key)
        if drop.avoid:
            life.avoid = tuple(sorted({*life.avoid, *drop.avoid}))
            self._later(min(drop.avoid_until, now + _AVOIDED), What.FORGIVEN, life)

    # What happens

    def _bound(self, life: lives.Life) -> None:
        life.assigned = tuple(
            [model.Assigned(part.group, part.pool, part.node, part.held, 0) for part in life.assigned]
        )
        life.seen = None
        self._machines.charge(life, 1)

    def _works(self, life: lives.Life, at: int) -> None:
        life.state, life.since, life.seen = model.State.RUNNING, life.starts_at, None
        if life.first_start is None:
            life.first_start = life.starts_at
        if life.ran:
            life.restoring += self.costs.restore
        self._log.note(at, "works", life.work.key)

    def _ended(self, life: lives.Life, at: int) -> None:
        life.completed = life.ends_at
        self._release(life, at)
        del self.jobs[life.uid]
        self._done.append(life)
        self._log.note(at, "completed", life.work.key)
        for witness in self._witnesses:
            witness.ended(life, at)

    def _gone(self, life: lives.Life, at: int) -> None:
        self._release(life, at)
        life.state, life.since, life.seen = model.State.WAITING, 0, None
        self._log.note(at, "waits", life.work.key)

    def _release(self, life: lives.Life, at: int) -> None:
        self._machines.charge(life, -1)
        self.busy -= life.work.gpus
        self._placed -= 1
        life.assigned = ()
        for witness in self._witnesses:
            witness.released(life, at)


def _places(groups: tuple[model.GroupPlacement, ...]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for group in groups:
        found += group.nodes
    return found
