"""Random histories through the decision pass; after every event the invariants of architecture are checked.

The world here is a few lines of bookkeeping: what kube-scheduler, kubelets, other people's pods and failing
nodes do to nodes and gangs, with no idea of how the pass decides.
"""

from __future__ import annotations

import dataclasses
import random

from hypothesis import HealthCheck, settings, stateful
from hypothesis import strategies as st

from cases import effort
from lstqueue.engine import decide, fit, invariants, keeping, memory, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
EPOCH = 1_800_000_000_000
QUEUES = (
    model.Queue(
        "lst",
        pools=(
            model.Pool("big", selector=(("size", "big"),), nominal=((GPU, 20),)),
            model.Pool("small", selector=(("size", "small"),), nominal=((GPU, 4),)),
        ),
    ),
    model.Queue("edf", order=model.Order.EDF, pools=(model.Pool("all", nominal=((GPU, 12),)),)),
    model.Queue(
        "fifo", order=model.Order.FIFO, pools=(model.Pool("all", nominal=((GPU, 16),)),), max_importance=1
    ),
)
SIZES = {"a1": 8, "a2": 8, "a3": 8, "a10": 4, "b1": 1, "b2": 1}


@dataclasses.dataclass
class Gang:
    """One job with what really happens to it: parts are [group, pool, node, bound, held]."""

    job: model.Job
    parts: list[list[object]] = dataclasses.field(default_factory=list)
    finished: dict[int, int] = dataclasses.field(default_factory=dict)
    comes_back: bool = False

    @property
    def state(self) -> model.State:
        return self.job.state

    def to(self, state: model.State, since: int) -> None:
        self.job = dataclasses.replace(self.job, state=state, since=since)

    def seen(self) -> model.Job:
        parts = tuple(model.Assigned(*part) for part in self.parts if part[3] or part[4])
        return dataclasses.replace(self.job, assigned=parts)


class Histories(stateful.RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = EPOCH
        self.memory = memory.Memory()
        self.gangs: dict[str, Gang] = {}
        self.foreign: dict[str, int] = dict.fromkeys(SIZES, 0)
        self.down: set[str] = set()
        self.gone: set[str] = set()
        self.forecast_at, self.changed, self.number = 0, True, 0

    # What the world looks like.

    def snapshot(self) -> model.Snapshot:
        used: dict[str, dict[str, int]] = {}
        for name, pods in self.foreign.items():
            used[name] = {GPU: pods, "cpu": 1000 * pods, "pods": pods}
        for gang in self.gangs.values():
            for group, _, name, bound, _ in gang.parts:
                for resource, amount in gang.job.groups[group].shape.requests:
                    here = used[str(name)]
                    here[resource] = here.get(resource, 0) + amount * bound
        nodes: list[Node] = []
        for name, gpus in SIZES.items():
            if name in self.gone:
                continue
            labels = (("size", "big" if gpus > 1 else "small"),)
            has = resources({GPU: gpus, "cpu": 1000 * (gpus + 2), "pods": 12})
            nodes.append(Node(name, has, resources(used[name]), labels, ready=name not in self.down))
        jobs = tuple(gang.seen() for gang in self.gangs.values())
        return model.Snapshot(tuple(nodes), QUEUES, jobs, self.forecast_at, self.changed)

    def of(self, *states: model.State) -> list[Gang]:
        return [gang for gang in self.gangs.values() if gang.state in states]

    # What happens.

    @stateful.rule(
        queue=st.sampled_from(["lst", "edf", "fifo", "lst", "none"]),
        groups=st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from([0, 1, 1, 2, 3, 4, 8])), min_size=1, max_size=2
        ),
        hours=st.one_of(st.none(), st.integers(1, 100)),
        runs=st.one_of(st.none(), st.integers(1, 60)),
        importance=st.integers(-1, 2),
    )
    def submit(
        self, queue: str, groups: list[tuple[int, int]], hours: int | None, runs: int | None, importance: int
    ) -> None:
        self.number += 1
        made: list[model.Group] = []
        for index, (count, gpus) in enumerate(groups):
            shape = PodShape(resources({GPU: gpus, "cpu": 1000, "pods": 1}))
            made.append(model.Group(f"g{index}", count, shape))
        mid = None if runs is None else runs * 10 * model.MINUTE
        uid = f"{(self.number * 7919) % 1000:03d}"
        self.gangs[uid] = Gang(
            model.Job(
                uid=uid,
                namespace="ns",
                name=f"job-{self.number}",
                queue=queue,
                groups=tuple(made),
                submit=self.now,
                deadline=None if hours is None else self.now + hours * model.HOUR // 4,
                estimate=None if mid is None else model.Estimate(mid // 4, mid, mid * 3 // 2),
                importance=importance,
                overhead=2 * model.MINUTE,
            )
        )
        self.changed = True

    @stateful.rule(minutes=st.integers(1, 600))
    def time_passes(self, minutes: int) -> None:
        self.now += minutes * model.MINUTE

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def pods_bind(self, pick: random.Random) -> None:
        for gang in self.of(model.State.ADMITTED):
            for part in gang.parts:
                room = {node.name: node for node in self.snapshot().nodes}
                if (
                    part[2] in room
                    and part[2] not in self.down
                    and pick.random() < 0.8
                    and self.fits(gang, part)
                ):
                    part[3], part[4] = part[3] + part[4], 0
            if not any(part[4] for part in gang.parts):
                gang.to(model.State.RUNNING, self.now)

    def fits(self, gang: Gang, part: list[object]) -> bool:
        node = next(node for node in self.snapshot().nodes if node.name == part[2])
        has, used = dict(node.allocatable), dict(node.used)
        requests = gang.job.groups[part[0]].shape.requests
        return all(used.get(name, 0) + amount * part[4] <= has[name] for name, amount in requests)

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def a_member_succeeds(self, pick: random.Random) -> None:
        parts = [(g, part) for g in self.of(model.State.RUNNING) for part in g.parts if part[3]]
        if parts:
            gang, part = pick.choice(parts)
            part[3] -= 1
            gang.finished[part[0]] = gang.finished.get(part[0], 0) + 1  # type: ignore[index, arg-type]

    @stateful.rule(pick=st.randoms(use_true_random=False), fails=st.booleans())
    def a_gang_ends(self, pick: random.Random, fails: bool) -> None:
        if gangs := self.of(model.State.RUNNING, model.State.ADMITTED):
            self.end(pick.choice(gangs), comes_back=fails)

    def end(self, gang: Gang, *, comes_back: bool) -> None:
        gang.to(model.State.ENDING, self.now)
        gang.comes_back = comes_back
        for part in gang.parts:
            part[4] = 0
        self.changed = True

    @stateful.rule(pick=st.randoms(use_true_random=False))
    def pods_leave(self, pick: random.Random) -> None:
        for gang in self.of(model.State.ENDING):
            for part in gang.parts:
                if pick.random() < 0.7:
                    part[3] = 0
            if any(part[3] for part in gang.parts):
                continue
            if not gang.comes_back:
                del self.gangs[gang.job.uid]
                continue
            avoid = tuple(sorted({str(part[2]) for part in gang.parts}))[:1]
            gang.parts, gang.finished = [], {}
            gang.job = dataclasses.replace(gang.job, not_before=self.now + model.MINUTE, avoid=avoid)
            gang.to(model.State.WAITING, 0)
        self.changed = True

    @stateful.rule(name=st.sampled_from(sorted(SIZES)), deleted=st.booleans())
    def a_node_is_lost(self, name: str, deleted: bool) -> None:
        (self.gone if deleted else self.down).add(name)
        if deleted:
            self.foreign[name] = 0
        for gang in self.of(model.State.RUNNING, model.State.ADMITTED):
            if any(part[2] == name and (part[3] or part[4]) for part in gang.parts):
                self.end(gang, comes_back=True)
        for gang in self.gangs.values():
            for part in gang.parts:
                if deleted and part[2] == name:
                    part[3] = 0

    @stateful.rule(name=st.sampled_from(sorted(SIZES)))
    def a_node_returns(self, name: str) -> None:
        self.down.discard(name)
        self.gone.discard(name)
        self.changed = True

    @stateful.rule(name=st.sampled_from(sorted(SIZES)), pods=st.integers(-3, 2))
    def foreign_pods(self, name: str, pods: int) -> None:
        node = next((node for node in self.snapshot().nodes if node.name == name), None)
        if node is None:
            return
        free = dict(node.allocatable)[GPU] - dict(node.used).get(GPU, 0)
        self.foreign[name] = max(0, self.foreign[name] + min(pods, max(free, 0)))
        self.changed = True

    @stateful.rule(shuffle=st.randoms(use_true_random=False), hold=st.booleans())
    def a_pass(self, shuffle: random.Random, hold: bool) -> None:
        if hold and (waiting := self.of(model.State.WAITING)):
            gang = shuffle.choice(waiting)
            gang.job = dataclasses.replace(gang.job, held_back="Its template was refused.")
            gang.to(model.State.HELD_BACK, 0)
        plan = self.decide(shuffle)
        self.apply(plan)

    def decide(self, shuffle: random.Random) -> model.Plan:
        seen = self.snapshot()
        plan = decide.decide(seen, self.now, memory=self.memory)
        assert invariants.of_plan(seen, plan) == ()
        assert keeping.of_plan(seen, plan, model.Config()) == ()
        other = dataclasses.replace(
            seen,
            nodes=tuple(shuffle.sample(seen.nodes, len(seen.nodes))),
            jobs=tuple(shuffle.sample(seen.jobs, len(seen.jobs))),
            queues=tuple(shuffle.sample(seen.queues, len(seen.queues))),
        )
        assert decide.decide(other, self.now) == plan
        return plan

    def apply(self, plan: model.Plan) -> None:
        for update in plan.updates:
            gang = self.gangs[update.uid]
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            gang.job = dataclasses.replace(gang.job, published=told)
        kept = {made.uid: made.reservation for made in plan.reserve}
        for uid in (*kept, *[lost.uid for lost in plan.unreserve], *[one.uid for one in plan.admit]):
            gang = self.gangs[uid]
            gang.job = dataclasses.replace(gang.job, reservation=kept.get(uid))
        for admission in plan.admit:
            gang = self.gangs[admission.uid]
            for index, group in enumerate(admission.groups):
                gang.parts += [[index, group.pool, node, 0, pods] for node, pods in group.nodes]
            gang.to(model.State.ADMITTED, self.now)
        if plan.forecast:
            self.forecast_at, self.changed = self.now, False
        self.changed = self.changed or bool(plan.admit)

    # What must hold.

    @stateful.invariant()
    def state_is_sound(self) -> None:
        finished = {uid: gang.finished for uid, gang in self.gangs.items()}
        broken = invariants.of_snapshot(self.snapshot(), finished)
        assert [one for one in broken if one.rule is not invariants.Rule.FOREIGN_OVERCOMMIT] == []

    def teardown(self) -> None:
        """When arrivals stop and the cluster is whole, everything that fits an empty pool gets to run."""
        self.foreign = dict.fromkeys(SIZES, 0)
        self.down, self.gone = set(), set()
        for gang in self.of(model.State.HELD_BACK):
            gang.to(model.State.WAITING, 0)
        for gang in self.of(model.State.ENDING):
            gang.comes_back = False
        always = random.Random(0)
        always.random = lambda: 0.0
        for _ in range(2 * len(self.gangs) + 2):
            self.now += 2 * model.MINUTE
            for gang in self.of(model.State.WAITING):
                gang.job = dataclasses.replace(gang.job, avoid=())
            self.apply(self.decide(random.Random(1)))
            self.pods_bind(always)
            for gang in self.of(model.State.RUNNING):
                self.end(gang, comes_back=False)
            self.pods_leave(always)
            self.state_is_sound()
        never = {*fit.NEVER_FITS, model.Code.QUEUE_NOT_FOUND, model.Code.IMPORTANCE_TOO_HIGH}
        assert [gang.job for gang in self.gangs.values() if gang.job.published.code not in never] == []


Histories.TestCase.settings = settings(
    max_examples=effort.examples(10),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_histories = Histories.TestCase
