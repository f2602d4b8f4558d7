"""A pass with a memory plans what a pass without one plans, whatever happened in between."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, moments
from cases.moments import GPU, MINUTE, NOW
from lstqueue.engine import decide, explain, memory, model
from lstqueue.topology.model import Node, PodShape, Taint, resources

CONFIGS = (
    model.Config(),
    model.Config(order=model.Order.EDF),
    model.Config(promising=True),
    model.Config(promising=True, slot_grace=20_000, promise_most=2, promise_again=1),
    model.Config(shedding=False, forecast_depth=3),
    model.Config(late_hysteresis=0, trigger_least=24 * model.HOUR),
)
TIMES = (0, 0, 1, 999, MINUTE, 5 * MINUTE, 17 * MINUTE, 61 * MINUTE, 30 * model.HOUR, -MINUTE)
PARTS = (
    "deadline",
    "estimate",
    "published",
    "state",
    "assigned",
    "groups",
    "saved",
    "importance",
    "queue",
    "reservation",
    "slot",
)
STEPS = 30


class World:
    """A snapshot to which something happens; what is new comes from a few others, drawn beforehand."""

    def __init__(self, drawn: list[model.Snapshot], seed: int) -> None:
        self.pick = random.Random(seed)
        self.seen = drawn[0]
        self.stock = [job for one in drawn for job in one.jobs]
        self.queues = [queue for one in drawn for queue in one.queues]
        self.now, self.config = NOW, CONFIGS[0]

    def step(self, plan: model.Plan) -> None:
        """Let something happen after a pass, time apart often nothing or one thing."""
        for _ in range(self.pick.choice([0, 1, 1, 1, 2, 3])):
            seldom = [self.queue, self.configure]  # after these nothing is remembered
            self.pick.choice([*[self.job] * 9, *[self.node] * 3, *[self.said] * 2, *seldom])()
        if self.pick.random() < 0.4:
            self.seen = moments.apply(self.seen, plan)
        self.now += self.pick.choice(TIMES)
        if plan.wake_at is not None and self.pick.random() < 0.3:
            self.now = plan.wake_at
        if self.pick.random() < 0.2:
            self.shuffle()

    def set(self, **fields: Any) -> None:
        self.seen = dataclasses.replace(self.seen, **fields)

    def job(self) -> None:
        """A job is new, gone, edited, or an equal object."""
        if not self.stock:
            return
        new = self.pick.choice(self.stock)
        if self.seen.jobs and self.pick.random() < 0.7:
            new = dataclasses.replace(new, uid=self.pick.choice(self.seen.jobs).uid)
        others = [job for job in self.seen.jobs if job.uid != new.uid]
        old = next((job for job in self.seen.jobs if job.uid == new.uid), new)
        part = self.pick.choice(PARTS)
        edited = dataclasses.replace(old, **{part: getattr(new, part)})
        claims = [job.claim for job in (*self.stock, *self.seen.jobs) if job.claim is not None]
        if old.claim is not None and self.pick.random() < 0.7:
            edited = dataclasses.replace(old, claim=self.pick.choice(claims))
        avoiding = dataclasses.replace(old, avoid=("node-1",))
        found = self.pick.choice(
            [[new], [edited], [edited], [edited], [dataclasses.replace(old)], [], [avoiding]]
        )
        self.set(jobs=(*others, *found))

    def node(self) -> None:
        """A node is new, gone, used more or less, changed in itself, or an equal object."""
        nodes = {node.name: node for node in self.seen.nodes}
        name = f"node-{self.pick.randint(0, 4)}"
        node = nodes.pop(name, Node(name, resources({GPU: 8, "cpu": 16_000, "pods": 20})))
        use: dict[str, Any] = {"used": resources({GPU: self.pick.randint(0, 8), "pods": 3})}
        changes: list[dict[str, Any] | None] = [
            *[use] * 10,
            *({}, {}, None),
            {"ready": not node.ready},
            {"unschedulable": not node.unschedulable},
            {"taints": () if node.taints else (Taint("gpu", "", "NoSchedule"),)},
            {"allocatable": resources({GPU: 4, "cpu": 16_000, "pods": 20})},
        ]
        change = self.pick.choice(changes)
        if change is not None:
            nodes[name] = dataclasses.replace(node, **change)
        self.set(nodes=tuple(nodes.values()))

    def queue(self) -> None:
        """A queue is another, goes or comes back."""
        new = self.pick.choice(self.queues)
        others = [queue for queue in self.seen.queues if queue.name != new.name]
        self.set(queues=(*others, *([new] if self.pick.random() < 0.8 else [])))

    def said(self) -> None:
        """What was said is to be said anew; the forecast is older or younger."""
        restate = frozenset(job.uid for job in self.seen.jobs if self.pick.random() < 0.2)
        at = self.pick.choice([0, self.now, self.now - MINUTE])
        self.set(restate=restate, forecast_at=at, changed=self.pick.random() < 0.5)

    def configure(self) -> None:
        self.config = self.pick.choice(CONFIGS)

    def shuffle(self) -> None:
        nodes, jobs = list(self.seen.nodes), list(self.seen.jobs)
        self.pick.shuffle(nodes)
        self.pick.shuffle(jobs)
        self.set(nodes=tuple(nodes), jobs=tuple(jobs))


def told(seen: model.Snapshot, plan: model.Plan) -> list[str]:
    """What is said of every job, to the letter."""
    return [repr(explain.explain(seen, plan, job.uid)) for job in seen.jobs]


@settings(max_examples=effort.examples(8), deadline=None)
@given(st.lists(moments.snapshots(), min_size=2, max_size=3), st.integers(0, 1 << 32))
def test_plans_and_explanations_are_those_of_a_pass_without_a_memory(
    drawn: list[model.Snapshot], seed: int
) -> None:
    world, kept = World(drawn, seed), memory.Memory()
    before: tuple[model.Snapshot, model.Plan, list[str]] | None = None
    for _ in range(STEPS):
        plan = decide.decide(world.seen, world.now, world.config, kept)
        plain = decide.decide(world.seen, world.now, world.config)
        assert repr(plan) == repr(plain)
        if before is not None:
            assert told(*before[:2]) == before[2]  # a later pass changes nothing about an earlier plan
            before = None
        if world.pick.random() < 0.2:
            before = world.seen, plan, told(world.seen, plain)
            assert told(world.seen, plan) == before[2]
        world.step(plan)


def test_a_claim_that_moves_is_read_anew() -> None:
    has = resources({GPU: 8, "pods": 20})
    nodes = (Node("n0", has, resources({GPU: 8, "pods": 1})), Node("n1", has))
    queue = model.Queue("q", pools=(model.Pool("p", nominal=((GPU, 16),)),))
    group = model.Group("g", 1, PodShape(resources({GPU: 8, "pods": 1})))
    runs = model.Job("v", "ns", "v", "q", (group,), 0, state=model.State.RUNNING, since=NOW, attempt=1)
    runs = dataclasses.replace(runs, assigned=(model.Assigned(0, "p", "n0", 1, 0),))
    places = [(model.GroupPlacement("p", ((name, 1),)),) for name in ("n0", "n1")]
    claims = [model.Claim(place, (model.Victim("v", 1),), NOW + MINUTE) for place in places]
    owner = model.Job("j", "ns", "j", "q", (group,), 0, state=model.State.CLAIMING, claim=claims[0])
    seen = model.Snapshot(nodes, (queue,), (owner, runs))
    kept = memory.Memory()
    assert decide.decide(seen, NOW, memory=kept).admit == ()
    moved = dataclasses.replace(seen, jobs=(dataclasses.replace(owner, claim=claims[1]), runs))
    assert [one.groups for one in decide.decide(moved, NOW, memory=kept).admit] == [places[1]]


def test_a_job_that_nearly_came_back_in_time_is_late_again() -> None:
    """It needs more than 10 min of slack to come back, and loses that before its return is published."""
    least = 10 * MINUTE + 1
    told = model.Published(band=model.Band.REST)
    group = model.Group("g", 1, PodShape(resources({GPU: 8, "pods": 1})))
    job = model.Job("j", "ns", "j", "q", (group,), 0, NOW + 30 * MINUTE + least, published=told)
    job = dataclasses.replace(job, estimate=model.Estimate(30 * MINUTE, 30 * MINUTE, 30 * MINUTE))
    seen = model.Snapshot((), (model.Queue("q"),), (job,))
    kept = memory.Memory()
    bands = [decide.decide(seen, NOW + later, memory=kept).updates[0].band for later in (0, 1)]
    assert bands == [model.Band.DEADLINE, model.Band.REST]


def sizes(kept: object, known: set[int]) -> int:
    """How many objects can be reached from a memory, those in `known` apart."""
    todo, count = [kept], 0
    while todo:
        one = todo.pop()
        if id(one) in known or isinstance(one, type | str | int | float | None.__class__):
            continue
        known.add(id(one))
        count += 1
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += list(one)
        else:
            todo += [getattr(one, name) for name in getattr(type(one), "__slots__", ()) if hasattr(one, name)]
            todo += list(getattr(one, "__dict__", {}).values())
    return count


def test_a_memory_does_not_grow_while_jobs_come_and_go() -> None:
    has = resources({GPU: 8, "cpu": 16_000, "pods": 20})
    nodes = tuple(Node(f"node-{i}", has) for i in range(4))
    queues = (model.Queue("lst", pools=(model.Pool("all", nominal=((GPU, 32),)),)),)
    kept, reached = memory.Memory(), []
    for round_ in range(160):
        jobs = []
        for number in range(round_, round_ + 10):
            requests = resources({GPU: 1 + number % 8, "cpu": 10 * number, "pods": 1})
            shape = PodShape(requests, selector=(("zone", f"z{number}"),) if number % 3 else ())
            jobs.append(
                model.Job(
                    uid=f"u{number:05}",
                    namespace="ns",
                    name=f"n{number}",
                    queue="lst",
                    groups=(model.Group("g", 1, shape),),
                    submit=NOW,
                    avoid=(f"node-{number % 4}",) if number % 2 else (),
                )
            )
        decide.decide(model.Snapshot(nodes, queues, tuple(jobs)), NOW + round_, memory=kept)
        reached.append(sizes(kept, set()))
    assert max(reached[80:]) <= 1.2 * max(reached[:80])
