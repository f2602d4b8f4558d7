"""A cluster in which jobs suspend each other, as operator, kubelets, users and administrators make it.

Writes land later or not at all, pods of those that are suspended leave one by one, checkpoints are kept,
gangs end, nodes break. What is on record of a job is what the operator would have there; what has happened to
it is remembered apart from that. It has no idea of how a pass chooses, and checks the invariants of each.
"""

from __future__ import annotations

import dataclasses
import random

from hypothesis import stateful
from hypothesis import strategies as st

from cases.fray_units import Part, Unit
from lstqueue.engine import decide, fit, invariants, justice, keeping, memory, model
from lstqueue.operator import ledger, steps
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
EPOCH = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
NODES = ("n0", "n1", "n2")
CONFIG = model.Config()
QUEUES = {
    "q": model.Queue("q", pools=(model.Pool("p", nominal=((GPU, 20),)),)),
    "t": model.Queue(
        "t", pools=(model.Pool("p", nominal=((GPU, 12),)),), preemption=model.Preemption.TIER, min_run=MINUTE
    ),
}


class Preemptions(stateful.RuleBasedStateMachine):
    QUEUES = QUEUES

    def __init__(self) -> None:
        super().__init__()
        self.now = EPOCH
        self.memory = memory.Memory()
        self.units: dict[str, Unit] = {}
        self.foreign = dict.fromkeys(NODES, 0)
        self.down: set[str] = set()
        self.queues = dict(self.QUEUES)
        self.forecast_at, self.changed, self.number = 0, True, 0
        self.owed: set[tuple[str, str]] = set()  # (who was suspended, for whom), until a full run

    def snapshot(self) -> model.Snapshot:
        used = {name: {GPU: self.foreign[name], "pods": self.foreign[name]} for name in NODES}
        for unit in self.units.values():
            for part in unit.parts:
                there = used[part.node]
                for resource, amount in unit.job.groups[0].shape.requests:
                    there[resource] = there.get(resource, 0) + amount * part.bound
        has = resources({GPU: 8, "pods": 20})
        nodes = tuple(Node(name, has, resources(used[name]), ready=name not in self.down) for name in NODES)
        jobs = tuple(unit.seen(self.now) for unit in self.units.values())
        return model.Snapshot(nodes, tuple(self.queues.values()), jobs, self.forecast_at, self.changed)

    def of(self, *states: model.State) -> list[Unit]:
        return [unit for unit in self.units.values() if unit.job.state in states]

    # What happens. Whatever it is, a pass follows soon.

    @stateful.initialize(pick=st.randoms(use_true_random=False))
    def a_full_cluster(self, pick: random.Random) -> None:
        for _ in range(8):
            size, slack = (
                pick.choice([(1, 4), (1, 8), (2, 4)]),
                pick.choice([None, None, pick.randint(60, 2000)]),
            )
            self.submit(pick, queue="q", size=size, mid=pick.randint(100, 600), slack=slack)
        for minutes in (1, 30):
            self.pods_bind(pick)
            self.time_passes(minutes)

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def jobs_arrive(self, pick: random.Random) -> None:
        for _ in range(pick.randint(1, 3)):
            size = pick.choice([(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (3, 8)])
            slack = pick.choice([pick.randint(1, 90), pick.randint(1, 90), pick.randint(90, 2000), None])
            queue = pick.choice(["q", "q", "t"])
            self.submit(pick, queue=queue, size=size, mid=pick.randint(10, 120), slack=slack)

    def submit(
        self, pick: random.Random, *, queue: str, size: tuple[int, int], mid: int, slack: int | None
    ) -> None:
        self.number += 1
        uid = f"{(self.number * 7919) % 1000:03d}"
        run = mid * MINUTE
        shape = PodShape(resources({GPU: size[1], "pods": 1}))
        self.units[uid] = Unit(
            model.Job(
                uid=uid,
                namespace="ns",
                name=f"job-{self.number}",
                queue=queue,
                groups=(model.Group("g", size[0], shape),),
                submit=self.now,
                deadline=None if slack is None else self.now + run + slack * MINUTE,
                estimate=model.Estimate(run // 2, run, run * 3 // 2),
                importance=pick.choice([0, 0, 0, 1, -1]),
                preemptible=pick.random() < 0.9,
                checkpoint=pick.choice([0, 5 * MINUTE, 40 * MINUTE]),
                saves_on_suspend=pick.random() < 0.3,
                restore=pick.choice([0, 2 * MINUTE, 12 * MINUTE]),
                grace=MINUTE,
            )
        )
        self.changed = True

    @stateful.rule(minutes=st.sampled_from([1, 2, 5, 10, 20, 60, 200]))
    def time_passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE
        self.a_pass(random.Random(minutes))
        if minutes < 10:
            self.a_claim_is_written_or_lost(random.Random(self.now))

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def pods_bind(self, pick: random.Random) -> None:
        for unit in self.of(model.State.ADMITTED):
            for part in unit.parts:
                node = next(node for node in self.snapshot().nodes if node.name == part.node)
                free = 8 - dict(node.used).get(GPU, 0)
                needs = dict(unit.job.groups[0].shape.requests)[GPU] * part.held
                if node.ready and needs <= free and pick.random() < 0.8:
                    part.bound, part.held = part.bound + part.held, 0
            if not any(part.held for part in unit.parts):
                unit.set(state=model.State.RUNNING, since=self.now)
                unit.started()

    @stateful.rule(pick=st.randoms(use_true_random=False), fails=st.booleans())
    def a_gang_ends(self, pick: random.Random, fails: bool) -> None:
        if units := self.of(model.State.RUNNING, model.State.ADMITTED):
            unit = pick.choice(units)
            started = unit.job.state is model.State.RUNNING
            if not started:
                unit.failed_to_start(self.now)
            why = ledger.GANG_FAILED if started else ledger.FAILED_START
            self.leave(unit, returns=fails or not started, why=why)

    def leave(self, unit: Unit, *, returns: bool, why: str, owner: str = "") -> None:
        """Put on record what the operator does, let go what is not bound, and let the pods end."""
        job, running = unit.job, unit.job.state is model.State.RUNNING
        min_run = self.queues[job.queue].min_run
        if running and self.now - job.since >= min_run:
            self.owed = {pair for pair in self.owed if pair[0] != job.uid}
        unit.stop(why, self.now, min_run=min_run, owner=owner)
        unit.set(state=model.State.ENDING, since=0, stays=False)
        unit.returns = returns
        for part in unit.parts:
            part.held = 0
        self.changed = True

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def pods_leave(self, pick: random.Random) -> None:
        for unit in self.of(model.State.ENDING):
            for part in unit.parts:
                if pick.random() < 0.7:
                    part.bound = 0
            if any(part.bound for part in unit.parts):
                continue
            unit.parts = []
            if not unit.returns:
                del self.units[unit.job.uid]
                continue
            unit.set(state=model.State.WAITING, overhead=unit.job.restore)
            unit.note(steps.given_back(unit.status))
        self.changed = True
        self.a_pass(pick)

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def a_finalizer_keeps_or_lets_go(self, pick: random.Random) -> None:
        if units := self.of(model.State.RUNNING):
            unit = pick.choice(units)
            unit.set(stays=not unit.job.stays)
            self.changed = True

    @stateful.rule(name=st.sampled_from(NODES))
    def a_node_breaks_or_returns(self, name: str) -> None:
        if name in self.down:
            self.down.discard(name)
            return
        self.down.add(name)
        for unit in self.of(model.State.RUNNING, model.State.ADMITTED):
            if any(part.node == name for part in unit.parts):
                self.leave(unit, returns=True, why=ledger.NODE_LOST)

    @stateful.rule(name=st.sampled_from(NODES), pods=st.integers(-3, 1))
    def foreign_pods(self, name: str, pods: int) -> None:
        node = next(node for node in self.snapshot().nodes if node.name == name)
        free = 8 - dict(node.used).get(GPU, 0)
        self.foreign[name] = max(0, self.foreign[name] + min(pods, max(free, 0)))
        self.changed = True

    @stateful.rule(
        name=st.sampled_from(["q", "t"]),
        stop=st.sampled_from(["", "", "", "held", "drained", "observed", "observed drained"]),
    )
    def an_administrator_acts(self, name: str, stop: str) -> None:
        self.queues[name] = dataclasses.replace(
            self.QUEUES[name], held=stop == "held", drained="drained" in stop, observed="observed" in stop
        )
        self.changed = True

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def a_claim_is_written_or_lost(self, pick: random.Random) -> None:
        for unit in self.of(model.State.CLAIMING):
            claim = unit.job.claim
            if claim is not None and not claim.committed:
                if pick.random() < 0.8:
                    unit.set(claim=dataclasses.replace(claim, committed=True))
                else:
                    unit.set(state=model.State.WAITING, claim=None)
        self.a_pass(pick)

    def a_pass(self, shuffle: random.Random) -> None:
        seen = self.snapshot()
        plan = decide.decide(seen, self.now, CONFIG, self.memory)
        assert invariants.of_plan(seen, plan) == ()
        assert justice.of_plan(seen, plan, CONFIG) == ()
        assert keeping.of_plan(seen, plan, CONFIG) == ()
        if shuffle.random() < 0.2:
            jobs = tuple(shuffle.sample(seen.jobs, len(seen.jobs)))
            assert decide.decide(dataclasses.replace(seen, jobs=jobs), self.now, CONFIG) == plan
        self.apply(plan)

    def apply(self, plan: model.Plan) -> None:
        for update in plan.updates:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            self.units[update.uid].set(published=told)
        for suspend in plan.suspend:
            victim = self.units[suspend.uid]
            queue = self.queues[victim.job.queue]
            assert not queue.observed, "suspended where nobody is to be touched"
            assert not victim.job.stays, "suspended though nobody can have it leave"
            self.leave(victim, returns=True, why=suspend.why.value, owner=suspend.for_uid)
            if suspend.for_uid:
                self.is_fair(victim, self.units[suspend.for_uid], suspend.why)
                assert (suspend.for_uid, suspend.uid) not in self.owed, "paid back without a full run between"
                self.owed.add((suspend.uid, suspend.for_uid))
                victim.suspended.append(self.now)
        for drop in plan.drop:
            unit = self.units[drop.uid]
            unit.set(state=model.State.WAITING, claim=None)
            unit.avoids(drop, self.now)
        for lost in plan.unreserve:
            self.units[lost.uid].set(reservation=None)
        for made in plan.reserve:
            self.units[made.uid].set(reservation=made.reservation)
        for chosen in (*plan.claim, *plan.admit):
            self.units[chosen.uid].set(reservation=None)
            unit, claimed = self.units[chosen.uid], isinstance(chosen, model.Claiming)
            groups = chosen.claim.groups if claimed else chosen.groups
            used = {node for group in groups for node, _ in group.nodes}
            if claimed or unit.job.claim is None:
                assert not [node for node in used if unit.shuns.get(node, 0) > self.now], "to be avoided"
        for claiming in plan.claim:
            self.units[claiming.uid].set(state=model.State.CLAIMING, claim=claiming.claim)
        for admission in plan.admit:
            unit = self.units[admission.uid]
            unit.parts = [Part(name, 0, count) for name, count in admission.groups[0].nodes]
            unit.set(state=model.State.ADMITTED, since=self.now, claim=None, attempt=unit.job.attempt + 1)
        if plan.forecast:
            self.forecast_at, self.changed = self.now, False
        self.changed = self.changed or bool(plan.admit or plan.claim or plan.suspend or plan.drop)

    def is_fair(self, victim: Unit, owner: Unit, why: model.Why) -> None:
        """Judge a suspension for another."""
        held = self.queues[victim.job.queue].held
        assert not held, "suspended for others where what runs is to go on"

    # What must hold.

    @stateful.invariant()
    def state_is_sound(self) -> None:
        broken = invariants.of_snapshot(self.snapshot())
        assert [one for one in broken if one.rule is not invariants.Rule.FOREIGN_OVERCOMMIT] == []

    @stateful.invariant()
    def nobody_is_suspended_too_often(self) -> None:
        for unit in self.units.values():
            today = [time for time in unit.suspended if self.now - time < CONFIG.cap_window]
            assert len(today) <= self.queues[unit.job.queue].cap

    def teardown(self) -> None:
        """When the world calms down every claim ends soon, and everybody who fits gets to run."""
        self.foreign, self.down, self.queues = dict.fromkeys(NODES, 0), set(), dict(self.QUEUES)
        for unit in self.of(model.State.RUNNING):
            unit.set(stays=False)
        always = random.Random(0)
        always.random = lambda: 0.0
        waited: dict[str, int] = {}
        for _ in range(40 * len(self.units) + 5):
            self.a_claim_is_written_or_lost(always)
            self.pods_bind(always)
            self.time_passes(1)
            self.pods_leave(always)
            for unit in self.of(model.State.RUNNING):
                assert unit.job.estimate is not None
                if unit.job.saved + self.now - unit.job.since >= unit.job.estimate.mid:
                    self.leave(unit, returns=False, why="Succeeded")
            claiming = {unit.job.uid for unit in self.of(model.State.CLAIMING)}
            waited = {uid: waited.get(uid, 0) + 1 for uid in claiming}
            assert max(waited.values(), default=0) <= 6
            self.state_is_sound()
            stays = [unit for unit in self.units.values() if unit.job.published.code not in fit.NEVER_FITS]
            if all(unit.job.state is model.State.RUNNING for unit in stays):
                return
            if not claiming and not self.of(model.State.ENDING, model.State.ADMITTED):
                self.time_passes(60)
        raise AssertionError([unit.job.uid for unit in stays if unit.job.state is not model.State.RUNNING])
