"""A slow and obvious reading of step 2 (shed), and worlds in which it has something to do."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

from hypothesis import strategies as st

from lstqueue.engine import decide, estimate, model
from lstqueue.topology import eligibility
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
MINUTE, HOUR = model.MINUTE, model.HOUR
NOW = 1_800_000_000_000  # a full step
STEP = 5 * MINUTE
DEADLINE, SHED = model.Band.DEADLINE, model.Band.SHED

# The reference: lists and fractions, one question at a time.


def eta(ms: int) -> Fraction:
    return Fraction(round(1_000_000 * (0.4 + 0.5 * math.exp(-ms / (12 * HOUR)))), 1_000_000)


@dataclasses.dataclass
class Asks:
    """One job that counts: its groups with the nodes and pools they may use, its work, its weight."""

    job: model.Job
    groups: list[tuple[model.Group, frozenset[str], frozenset[str]]]
    left: int
    weight: int
    may_go: bool
    placed: bool

    def amount(self, limit: Limit) -> int:
        total = 0
        for group, nodes, pools in self.groups:
            inside = nodes <= limit.nodes if limit.queue is None else pools <= limit.pools
            if inside and limit.queue in (None, self.job.queue):
                total += dict(group.shape.requests).get(limit.resource, 0) * group.count
        return total

    def work(self, limit: Limit, tick: int) -> int:
        assert self.job.deadline is not None
        return self.weight * self.amount(limit) * min(self.left, self.job.deadline - tick)

    def key(self, limit: Limit) -> tuple[Fraction, bool, int, str]:
        width = round(1_000_000 * math.sqrt(self.amount(limit)))
        per_value = Fraction(self.weight * width * self.left, self.job.value)
        return per_value, not self.placed, self.job.submit, self.job.uid


@dataclasses.dataclass
class Limit:
    resource: str
    nodes: frozenset[str] = frozenset()
    queue: str | None = None
    pools: frozenset[str] = frozenset()


def pools_of(queue: model.Queue, group: model.Group) -> list[model.Pool]:
    asked = {name for name, amount in group.shape.requests if "/" in name and amount}
    return [pool for pool in queue.pools if asked <= {name for name, _ in pool.nominal}]


def nodes_for(snapshot: model.Snapshot, group: model.Group, pools: list[model.Pool]) -> frozenset[str]:
    return frozenset(
        node.name
        for node in snapshot.nodes
        for pool in pools
        if eligibility.eligible(
            node, group.shape, selector=pool.selector, tolerations=pool.tolerations, lasting=True
        )
    )


def counted(snapshot: model.Snapshot, now: int, tick: int) -> list[Asks]:
    queues = {queue.name: queue for queue in snapshot.queues}
    found: list[Asks] = []
    plan = decide.decide(snapshot, now, model.Config(shedding=False))
    never = {model.Code.NO_MATCHING_NODES, model.Code.QUOTA_TOO_SMALL, model.Code.RESOURCE_NOT_IN_QUEUE}
    codes = {update.uid: update.code for update in plan.updates}
    bands = {update.uid: update.band for update in plan.updates}
    for job in sorted(snapshot.jobs, key=lambda one: one.uid):
        placed = job.state in (model.State.ADMITTED, model.State.RUNNING)
        code = codes.get(job.uid, job.published.code)
        if job.state in (model.State.ENDING, model.State.HELD_BACK) or job.queue not in queues:
            continue
        if bands.get(job.uid, job.published.band) is not DEADLINE or code in never:
            continue
        queue = queues[job.queue]
        importance = -9 if queue.max_importance is None else queue.max_importance
        if not placed and (queue.held or queue.observed or job.importance > importance > -9):
            continue
        end = estimate.finish(job, now, model.Config())
        assert end is not None
        assert job.deadline is not None
        left = end.mid - tick if placed else end.mid - now - job.overhead
        groups = [
            (
                group,
                nodes_for(snapshot, group, pools_of(queue, group)),
                frozenset(p.name for p in pools_of(queue, group)),
            )
            for group in job.groups
        ]
        if min(left, job.deadline - tick) <= 0 or not all(pools_of(queue, group) for group in job.groups):
            continue
        before = job.published.band is SHED
        could = queue.shedding and queue.order is not model.Order.FIFO and (not kept(job) or not placed)
        least = queue.min_run if job.min_run is None else job.min_run
        settled = not placed or before or job.since + least <= tick
        found.append(Asks(job, groups, left, 2 if before and could else 1, could and settled, placed))
    return found


def kept(job: model.Job) -> bool:
    return job.stays or not job.preemptible


def limits(snapshot: model.Snapshot, asks: list[Asks]) -> list[Limit]:
    found: list[Limit] = []
    by_resource = sorted(
        {name for one in asks for group, *_ in one.groups for name, _ in group.shape.requests}
    )
    wanted = {
        name
        for job in snapshot.jobs
        if job.state is model.State.WAITING
        for group in job.groups
        for name, _ in group.shape.requests
    } | {"pods"}
    for nodes in dict.fromkeys(nodes for one in asks for _, nodes, _ in one.groups if nodes):
        found += [Limit(name, nodes) for name in by_resource if name in wanted]
    for queue, pools in dict.fromkeys((one.job.queue, pools) for one in asks for _, _, pools in one.groups):
        listed = [
            dict(p.nominal) for q in snapshot.queues for p in q.pools if q.name == queue and p.name in pools
        ]
        for name in by_resource:
            if name in wanted and all(name in nominal for nominal in listed):
                found.append(Limit(name, frozenset(), queue, pools))
    return found


def offers(snapshot: model.Snapshot, limit: Limit, asks: list[Asks], now: int, tick: int, until: int) -> int:
    mine = {one.job.uid for one in asks}
    rate = 0
    if limit.queue is None:
        for node in snapshot.nodes:
            if node.name not in limit.nodes:
                continue
            bound = ours = 0
            for job in snapshot.jobs:
                for part in job.assigned:
                    amount = dict(job.groups[part.group].shape.requests).get(limit.resource, 0)
                    if part.node == node.name:
                        bound += amount * part.bound
                        placed = job.state in (model.State.ADMITTED, model.State.RUNNING)
                        ours += amount * (part.bound + part.held) if placed else 0
            foreign = max(dict(node.used).get(limit.resource, 0) - bound, 0)
            here = max(dict(node.allocatable).get(limit.resource, 0) - foreign, 0)
            rate += min(here, ours) if node.unschedulable else here
    else:
        queue = next(queue for queue in snapshot.queues if queue.name == limit.queue)
        rate = sum(dict(pool.nominal)[limit.resource] for pool in queue.pools if pool.name in limit.pools)
    gone = 0
    for job in snapshot.jobs:
        if job.uid in mine or not kept(job) or job.state not in (model.State.ADMITTED, model.State.RUNNING):
            continue
        amount = 0
        for part in job.assigned:
            inside = part.node in limit.nodes if limit.queue is None else part.pool in limit.pools
            if inside and limit.queue in (None, job.queue):
                amount += dict(job.groups[part.group].shape.requests).get(limit.resource, 0) * (
                    part.bound + part.held
                )
        end = estimate.finish(job, now, model.Config())
        if end is None:
            rate -= amount
        else:
            gone += amount * min(max(end.mid - tick, 0), until - tick)
    return max(max(rate, 0) * (until - tick) - gone, 0)


def together(one: Asks, asks: list[Asks]) -> set[str]:
    """It, and who goes with it."""
    same = [other for other in asks if other.job.sweep and other.job.sweep == one.job.sweep and other.may_go]
    return {one.job.uid, *(other.job.uid for other in same)}


def reference(snapshot: model.Snapshot, now: int) -> set[str]:
    """Walk the deadlines upwards; while a sum of two or more is too large, give up its largest."""
    tick = now // STEP * STEP
    asks = counted(snapshot, now, tick)
    given: set[str] = set()
    for until in sorted({one.job.deadline or 0 for one in asks}):
        for limit in limits(snapshot, asks):
            offered = offers(snapshot, limit, asks, now, tick, until)
            while True:
                inside = [one for one in asks if (one.job.deadline or 0) <= until and one.amount(limit)]
                inside = [one for one in inside if one.job.uid not in given]
                asked = sum(one.work(limit, tick) for one in inside)
                able = [one for one in inside if one.may_go]
                parties = {one.job.sweep or one.job.uid for one in inside}
                if len(parties) < 2 or not able or asked <= eta(until - tick) * offered:
                    break
                given |= together(max(able, key=lambda one: one.key(limit)), asks)
    return given


# Worlds.


@st.composite
def worlds(draw: st.DrawFn, most: int = 14) -> model.Snapshot:
    """Clusters of two kinds of nodes with about as much work as they can do, some of it running."""
    used: dict[str, dict[str, int]] = {}
    names = [f"{zone}{number}" for zone in "ab" for number in range(draw(st.integers(0, 2)))] or ["a0"]
    for name in names:
        used[name] = {GPU: draw(st.sampled_from([0, 0, 0, 3])), "cpu": 1000, "pods": 1}
    everywhere = model.Pool("all", nominal=((GPU, draw(st.integers(1, 30))),))
    of_a = model.Pool("a", (("zone", "a"),), nominal=((GPU, draw(st.integers(1, 20))),))
    gpus = draw(st.sampled_from([(), ((GPU, 12),)]))
    of_b = model.Pool("b", (("zone", "b"),), nominal=(("cpu", 20_000), *gpus))
    queues = (
        model.Queue("q", pools=(everywhere,), shedding=draw(st.integers(0, 5)) > 0),
        model.Queue("ab", model.Order.EDF, (of_a, of_b), max_importance=1),
        model.Queue("fifo", model.Order.FIFO, (everywhere,)),
    )
    jobs: list[model.Job] = []
    for number in range(draw(st.integers(2, most))):
        jobs.append(draw(some_job(number, names)))
        for part in jobs[-1].assigned:
            for name, amount in jobs[-1].groups[part.group].shape.requests:
                used[part.node][name] = used[part.node].get(name, 0) + amount * part.bound
    nodes = tuple(
        Node(
            name,
            resources({GPU: 8, "cpu": 16_000, "pods": 20}),
            resources(used[name]),
            (("zone", name[0]),),
            ready=draw(st.integers(0, 9)) > 0,
            unschedulable=draw(st.integers(0, 9)) == 0,
        )
        for name in names
    )
    return model.Snapshot(nodes, queues, tuple(jobs))


@st.composite
def some_job(draw: st.DrawFn, number: int, names: list[str]) -> model.Job:
    groups: list[model.Group] = []
    for index in range(draw(st.sampled_from([1, 1, 1, 2]))):
        asked = {
            GPU: draw(st.sampled_from([0, 1, 2, 4])),
            "cpu": draw(st.sampled_from([100, 4000])),
            "pods": 1,
        }
        selector = draw(st.sampled_from([(), (), (("zone", "a"),)]))
        count = draw(st.integers(1, 2))
        groups.append(model.Group(f"g{index}", count, PodShape(resources(asked), selector)))
    mid = draw(st.integers(1, 60)) * 10 * MINUTE
    runs = draw(st.integers(0, 2)) == 0
    since = NOW - draw(st.integers(0, 40)) * MINUTE
    assigned: list[model.Assigned] = []
    for index, group in enumerate(groups if runs else []):
        bound = draw(st.integers(0, group.count))
        node = draw(st.sampled_from(names))
        assigned.append(model.Assigned(index, "all", node, bound, group.count - bound))
    states = [model.State.RUNNING, model.State.ADMITTED] if runs else [model.State.WAITING]
    deadline = NOW + int(mid * draw(st.sampled_from([0.5, 1, 1.2, 1.5, 2, 3, 8]))) + draw(st.integers(0, 9))
    return model.Job(
        uid=f"u{number:02}",
        namespace="ns",
        name=f"n{number}",
        queue=draw(st.sampled_from(["q", "q", "ab", "fifo"])),
        groups=tuple(groups),
        submit=NOW - draw(st.integers(0, 3)) * HOUR,
        deadline=draw(st.sampled_from([deadline, deadline, deadline, None])),
        estimate=draw(st.sampled_from([model.Estimate(mid // 4, mid, mid * 3 // 2)] * 5 + [None])),
        importance=draw(st.sampled_from([0, 0, 0, 2])),
        overhead=2 * MINUTE,
        state=draw(st.sampled_from(states)),
        since=since if runs else 0,
        assigned=tuple(assigned),
        published=model.Published(band=draw(st.sampled_from([None, None, DEADLINE, SHED]))),
        preemptible=draw(st.integers(0, 3)) > 0,
        stays=runs and draw(st.integers(0, 5)) == 0,
        min_run=draw(st.sampled_from([None, 0, 35 * MINUTE])),
        value=draw(st.sampled_from([1, 1, 1, 3, 10])),
        sweep=draw(st.sampled_from(["", "", "", "", "ns/s", "ns/t"])),
    )
