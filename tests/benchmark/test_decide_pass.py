"""How long a decision pass takes, in CPU time. Prints; asserts only a floor so wide that it is a defect."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable

import pytest

from lstqueue.engine import decide, memory, model
from lstqueue.topology import domains
from lstqueue.topology.model import Node, PodShape, resources

pytestmark = pytest.mark.benchmark

GPU = "nvidia.com/gpu"
GIB = 1 << 30
NOW = 1_800_000_000_000
HOUR = model.HOUR
FLOOR_S = 30.0
SHAPES = 50
NODE = resources({"cpu": 128_000, "memory": 1024 * GIB, GPU: 8, "pods": 110})


def shapes(rng: random.Random) -> list[tuple[int, PodShape]]:
    """About 50 distinct gangs: (members, pod shape)."""
    found: list[tuple[int, PodShape]] = []
    for number in range(SHAPES):
        members, gpus = rng.choice([(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8), (4, 4), (16, 8)])
        requests = resources(
            {
                GPU: gpus,
                "cpu": 1000 * gpus * rng.randint(4, 14),
                "memory": GIB * gpus * (16 + number),
                "pods": 1,
            }
        )
        found.append((members, PodShape(requests)))
    return found


def job(rng: random.Random, number: int, kind: tuple[int, PodShape]) -> model.Job:
    mid = int(rng.lognormvariate(1.0, 1.0) * HOUR)
    submit = NOW - rng.randint(0, 12 * HOUR)
    has_deadline = rng.random() < 0.8
    return model.Job(
        uid=f"uid-{number:05d}",
        namespace="team",
        name=f"job-{number}",
        queue=f"queue-{number % 4}",
        groups=(model.Group("worker", kind[0], kind[1]),),
        submit=submit,
        deadline=NOW + int(mid * rng.uniform(1.1, 8)) if has_deadline else None,
        estimate=model.Estimate(mid // 4, mid, mid * 3 // 2),
        overhead=2 * model.MINUTE,
    )


def cluster(nodes: int, share: float, seed: int = 1) -> model.Snapshot:
    """Nodes of which running jobs hold about `share`, placed by passes of the engine itself."""
    rng = random.Random(seed)
    kinds = shapes(rng)
    names = [f"node-{i:04d}" for i in range(nodes)]
    left = int(nodes * 8 * share)
    jobs: list[model.Job] = []
    while left > 0:
        count, shape = rng.choice(kinds)
        count = min(count, rng.choice([1, 1, 2]))
        jobs.append(job(rng, 100_000 + len(jobs), (count, shape)))
        left -= count * dict(shape.requests)[GPU]
    empty = tuple(
        Node(name, NODE, labels=(("kubernetes.io/hostname", name), ("gpu", "h100"))) for name in names
    )
    pool = model.Pool("main", selector=(("gpu", "h100"),), nominal=((GPU, nodes * 8),))
    queues = tuple(model.Queue(f"queue-{i}", pools=(pool,)) for i in range(4))
    snapshot = model.Snapshot(empty, queues, tuple(jobs))
    return running(snapshot, rng)


def running(snapshot: model.Snapshot, rng: random.Random) -> model.Snapshot:
    """The snapshot after everything that fits was admitted and runs; the rest is dropped."""
    plan = decide.decide(snapshot, NOW, model.Config(forecast_depth=0))
    by_uid = {one.uid: one for one in snapshot.jobs}
    used: dict[str, dict[str, int]] = {node.name: {} for node in snapshot.nodes}
    jobs: list[model.Job] = []
    for admission in plan.admit:
        one = by_uid[admission.uid]
        parts: list[model.Assigned] = []
        for index, placed in enumerate(admission.groups):
            for node, pods in placed.nodes:
                parts.append(model.Assigned(index, placed.pool, node, pods, 0))
                for name, amount in one.groups[index].shape.requests:
                    used[node][name] = used[node].get(name, 0) + amount * pods
        assert one.estimate is not None
        since = NOW - rng.randint(0, one.estimate.mid)
        told = model.Published(model.Band.REST, None, model.Verdict(model.Level.UNKNOWN), "")
        jobs.append(
            dataclasses.replace(
                one, state=model.State.RUNNING, since=since, assigned=tuple(parts), published=told
            )
        )
    nodes = tuple(dataclasses.replace(node, used=resources(used[node.name])) for node in snapshot.nodes)
    return dataclasses.replace(snapshot, nodes=nodes, jobs=tuple(jobs))


def with_waiting(snapshot: model.Snapshot, count: int, seed: int = 2) -> model.Snapshot:
    rng = random.Random(seed)
    kinds = shapes(random.Random(1))
    jobs = tuple(job(rng, number, rng.choice(kinds)) for number in range(count))
    return dataclasses.replace(snapshot, jobs=snapshot.jobs + jobs)


def applied(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    """The snapshot with the plan's statuses published, its admissions, claims and promises written."""
    claims = {claiming.uid: claiming for claiming in plan.claim}
    updates = {update.uid: update for update in plan.updates}
    placed = {admission.uid: admission for admission in plan.admit}
    slots = {promise.uid: promise.slot for promise in plan.promise}
    jobs: list[model.Job] = []
    for one in snapshot.jobs:
        if (update := updates.get(one.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            one = dataclasses.replace(one, published=told)
        if (admission := placed.get(one.uid)) is not None:
            parts: list[model.Assigned] = []
            for index, group in enumerate(admission.groups):
                parts += [model.Assigned(index, group.pool, node, 0, pods) for node, pods in group.nodes]
            one = dataclasses.replace(one, state=model.State.ADMITTED, since=plan.now, assigned=tuple(parts))
        if (slot := slots.get(one.uid)) is not None:
            one = dataclasses.replace(one, slot=slot)
        if (claiming := claims.get(one.uid)) is not None:
            claim = dataclasses.replace(claiming.claim, committed=True)
            one = dataclasses.replace(one, state=model.State.CLAIMING, claim=claim)
        jobs.append(one)
    return dataclasses.replace(
        snapshot, jobs=tuple(jobs), forecast_at=plan.now, changed=False, round=plan.round
    )


def measure(name: str, run: Callable[[], model.Plan], repeat: int = 5) -> model.Plan:
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        plan = run()
        best = min(best, time.process_time() - begin)
    print(f"{name}: {best * 1000:.0f} ms CPU, {dict(plan.counts)}")
    assert best < FLOOR_S
    return plan


def one_more(snapshot: model.Snapshot) -> model.Snapshot:
    """A new gang that has to wait, and wants its verdict."""
    rng = random.Random(9)
    late = dataclasses.replace(job(rng, 77_777, shapes(random.Random(1))[5]), deadline=NOW + 200 * HOUR)
    return dataclasses.replace(snapshot, jobs=(*snapshot.jobs, late), changed=True)


def a_pod_less(snapshot: model.Snapshot) -> model.Snapshot:
    """The pods of a running gang are gone; it holds its place for new ones."""
    one = somebody_running(snapshot)
    part = one.assigned[0]
    waits = dataclasses.replace(part, bound=0, held=part.bound)
    changed = dataclasses.replace(one, assigned=(waits, *one.assigned[1:]))
    jobs = tuple(changed if other is one else other for other in snapshot.jobs)
    return dataclasses.replace(snapshot, jobs=jobs, nodes=nodes_without(snapshot, one))


def one_less(snapshot: model.Snapshot) -> model.Snapshot:
    """A running gang has ended; the last forecast is young."""
    one = somebody_running(snapshot)
    jobs = tuple(other for other in snapshot.jobs if other is not one)
    return dataclasses.replace(snapshot, jobs=jobs, nodes=nodes_without(snapshot, one), changed=True)


def somebody_running(snapshot: model.Snapshot) -> model.Job:
    wanted = {victim.uid for one in snapshot.jobs if one.claim is not None for victim in one.claim.victims}
    alone = (one for one in snapshot.jobs if len(one.assigned) == 1 and one.assigned[0].bound)
    return next(one for one in alone if one.uid not in wanted)


def nodes_without(snapshot: model.Snapshot, one: model.Job) -> tuple[Node, ...]:
    part = one.assigned[0]
    gone = dict(one.groups[part.group].shape.requests)
    found: list[Node] = []
    for node in snapshot.nodes:
        if node.name == part.node:
            left = {name: amount - gone.get(name, 0) * part.bound for name, amount in node.used}
            node = dataclasses.replace(node, used=resources(left))
        found.append(node)
    return tuple(found)


def measure_changes(
    snapshot: model.Snapshot, plan: model.Plan, config: model.Config = decide.DEFAULTS
) -> None:
    """Passes after one change, with the memory of passes before it and without."""
    kept = memory.Memory()
    settled = applied(snapshot, plan)
    settled = applied(settled, decide.decide(settled, NOW + 1000, config, kept))
    print(f"{sum(one.slot is not None for one in settled.jobs)} promised jobs")
    for name, changed in (
        ("nothing changed", settled),
        ("a pod of a running gang changed", a_pod_less(settled)),
        ("a gang ended", one_less(settled)),
        ("one more gang, its verdict at once", one_more(settled)),
    ):
        measure(
            f"{name}, without a memory", lambda changed=changed: decide.decide(changed, NOW + 1001, config), 3
        )
        best = float("inf")
        for _ in range(7):
            decide.decide(settled, NOW + 1000, config, kept)
            begin = time.process_time()
            made = decide.decide(changed, NOW + 1001, config, kept)
            best = min(best, time.process_time() - begin)
        assert made == decide.decide(changed, NOW + 1001, config)
        print(f"{name}: {best * 1000:.0f} ms CPU")


def test_a_thousand_waiting_gangs_on_two_thousand_nodes() -> None:
    print()
    half = cluster(2000, 0.5)
    print(f"{len(half.jobs)} running jobs")
    cold = with_waiting(half, 1000)
    plan = measure("cold, 1,000 new gangs, half full", lambda: decide.decide(cold, NOW))
    measure_changes(cold, plan)


def test_a_thousand_waiting_gangs_on_a_full_cluster() -> None:
    print()
    full = cluster(2000, 1.0)
    print(f"{len(full.jobs)} running jobs")
    cold = with_waiting(full, 1000)
    plan = measure("cold, 1,000 new gangs, full", lambda: decide.decide(cold, NOW))
    measure_changes(cold, plan)


def linked(snapshot: model.Snapshot, required: str) -> model.Snapshot:
    """The same on an interconnect, leaf groups of 16 nodes and blocks of 128; who waits requires a level."""
    names = [node.name for node in snapshot.nodes]
    paths: dict[str, domains.Path] = {n: (f"b{i // 128}", f"l{i // 16}") for i, n in enumerate(names)}
    uplinks = dict.fromkeys(paths.values(), 1_600_000)
    links = dict.fromkeys(paths, 400_000)
    found = domains.arrange(["block", "leafgroup"], paths, uplinks=uplinks, links=links)
    asked = model.Locality(required=required)
    jobs = tuple(one if one.assigned else dataclasses.replace(one, locality=asked) for one in snapshot.jobs)
    return dataclasses.replace(snapshot, jobs=jobs, domains=found)


@pytest.mark.parametrize("required", ["", "leafgroup"])
def test_a_thousand_waiting_gangs_on_an_interconnect(required: str) -> None:
    print()
    cold = linked(with_waiting(cluster(2000, 0.9), 1000), required)
    plan = measure(f"cold, 1,000 new gangs, required {required!r}", lambda: decide.decide(cold, NOW), 3)
    settled = applied(cold, plan)
    kept = memory.Memory()
    settled = applied(settled, decide.decide(settled, NOW + 1000, memory=kept))
    due = dataclasses.replace(settled, changed=True, forecast_at=0)
    measure("a pass that forecasts everybody", lambda: decide.decide(due, NOW + 1000, memory=kept), 3)


def test_a_thousand_waiting_gangs_of_which_most_are_promised() -> None:
    print()
    config = model.Config(promise_most=100_000, promise_area=1e9)
    cold = with_waiting(cluster(2000, 1.0), 1000)
    plan = measure("cold, all promised that fit", lambda: decide.decide(cold, NOW, config), 1)
    measure_changes(cold, plan, config)


def test_five_thousand_waiting_gangs_on_a_nearly_full_cluster() -> None:
    print()
    full = cluster(2000, 0.97)
    print(f"{len(full.jobs)} running jobs")
    cold = with_waiting(full, 5000)
    plan = measure("cold, 5,000 new gangs", lambda: decide.decide(cold, NOW))
    settled = applied(cold, plan)
    quiet = dataclasses.replace(settled, changed=True, forecast_at=NOW)
    measure("a pass without a forecast", lambda: decide.decide(quiet, NOW + 1000))
    due = dataclasses.replace(quiet, forecast_at=0)
    measure("a pass that forecasts everybody", lambda: decide.decide(due, NOW + 1000))


def test_fifty_thousand_waiting_gangs_on_a_nearly_full_cluster() -> None:
    print()
    cold = with_waiting(cluster(2000, 0.97), 50_000)
    measure("cold, 50,000 new gangs", lambda: decide.decide(cold, NOW), 2)
    kept = memory.Memory()
    settled = applied(cold, decide.decide(cold, NOW, memory=kept))
    for _ in range(2):
        settled = applied(settled, decide.decide(settled, NOW + 1000, memory=kept))
    measure("nothing changed", lambda: decide.decide(settled, NOW + 1000, memory=kept), 3)
