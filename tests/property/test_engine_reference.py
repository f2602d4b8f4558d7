"""The pass against a slow and obvious reading of steps 3 and 4, pod by pod in plain Python."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from cases.reference import LATE, Reference, pools_of
from lstqueue.engine import decide, model
from lstqueue.topology.model import Node, PodShape, Taint, Toleration, resources

GPU, NIC = "nvidia.com/gpu", "rdma/ib"
NOW = 1_800_000_000_000
MINUTE = model.MINUTE


QUEUE_ORDERS = [model.Order.LST, model.Order.EDF, model.Order.FIFO]


def order_of(job: model.Job, order: model.Order, share: int) -> tuple[object, ...]:
    """Step 3 as docs/engine.md writes it, with fractions; all jobs here are new and none has an overhead."""
    if order is model.Order.FIFO:
        return (-job.importance, 0, job.submit, 0, 0, job.submit, job.uid)
    deadline = LATE if job.deadline is None else job.deadline
    estimate = job.estimate
    late = job.deadline is None or estimate is None or job.deadline - NOW - estimate.lo < 0
    if late:
        mid = LATE if estimate is None else estimate.mid
        return (-min(job.importance, 0), 2, mid, deadline, -share, job.submit, job.uid)
    assert estimate is not None
    key = deadline
    if order is model.Order.LST:
        key = 300_000 * ((deadline - Fraction(3, 4) * estimate.mid) // 300_000)
    return (-job.importance, 0, key, deadline, -share, job.submit, job.uid)


def share_of(snapshot: model.Snapshot, job: model.Job) -> int:
    """g: the gang's dominant share of the pool its groups may use first, in ppm."""
    queue = next(queue for queue in snapshot.queues if queue.name == job.queue)
    best = 0
    for pool in queue.pools:
        mine = [group for group in job.groups if first_pool(queue, group) is pool]
        inside = [node for node in snapshot.nodes if set(pool.selector) <= set(node.labels)]
        for name in (GPU, NIC, "cpu", "pods"):
            capacity = sum(dict(node.allocatable).get(name, 0) for node in inside)
            wanted = sum(dict(group.shape.requests).get(name, 0) * group.count for group in mine)
            best = max(best, wanted * 1_000_000 // max(capacity, 1))
    return best


def first_pool(queue: model.Queue, group: model.Group) -> model.Pool | None:
    return next(iter(pools_of(queue, group)), None)


@st.composite
def snapshots(draw: st.DrawFn) -> model.Snapshot:
    nodes: list[Node] = []
    for number in range(draw(st.integers(1, 7))):
        gpus = draw(st.sampled_from([0, 1, 4, 8]))
        has = {
            GPU: gpus,
            NIC: draw(st.sampled_from([0, 0, 2])),
            "cpu": 1000 * draw(st.integers(2, 9)),
            "pods": 6,
        }
        used = {GPU: draw(st.integers(0, gpus)), "cpu": 1000 * draw(st.integers(0, 2)), "pods": 1}
        labels = (("zone", draw(st.sampled_from("ab"))),)
        taints = (Taint("gpu", "", "NoSchedule"),) if draw(st.integers(0, 3)) == 0 else ()
        ready = draw(st.integers(0, 5)) > 0
        nodes.append(Node(f"n{number * 3}", resources(has), resources(used), labels, taints, ready))
    limits = st.integers(0, 20)
    pools = (
        model.Pool("a", (("zone", "a"),), (), ((GPU, draw(limits)),)),
        model.Pool(
            "any", (), (Toleration("gpu", "Exists"),), ((GPU, draw(limits)), (NIC, 4), ("cpu", 12_000))
        ),
    )
    queues = (
        model.Queue("q", draw(st.sampled_from(QUEUE_ORDERS)), pools),
        model.Queue("r", draw(st.sampled_from(QUEUE_ORDERS)), pools[1:]),
    )
    jobs: list[model.Job] = []
    for number in range(draw(st.integers(1, 10))):
        wants = {
            GPU: draw(st.integers(0, 4)),
            NIC: draw(st.sampled_from([0, 0, 0, 1])),
            "cpu": 1000,
            "pods": 1,
        }
        selector = (("zone", "b"),) if draw(st.integers(0, 4)) == 0 else ()
        group = model.Group("g", draw(st.integers(1, 5)), PodShape(resources(wants), selector))
        mid = draw(st.one_of(st.none(), st.integers(1, 50).map(lambda m: m * MINUTE)))
        jobs.append(
            model.Job(
                uid=f"u{number}",
                namespace="ns",
                name=f"j{number}",
                queue=draw(st.sampled_from(["q", "q", "r"])),
                groups=(group,),
                submit=NOW - draw(st.integers(0, 5)),
                deadline=draw(st.one_of(st.none(), st.integers(-5, 60).map(lambda m: NOW + m * MINUTE))),
                estimate=None if mid is None else model.Estimate(mid // 4, mid, mid * 2),
                importance=draw(st.sampled_from([-1, 0, 0, 0, 1])),
            )
        )
    return model.Snapshot(tuple(nodes), queues, tuple(jobs))


@settings(max_examples=effort.examples(48), deadline=None)
@given(snapshots())
def test_admissions_are_those_of_the_slow_reading(snapshot: model.Snapshot) -> None:
    orders = {queue.name: queue.order for queue in snapshot.queues}
    ranked = [(order_of(job, orders[job.queue], share_of(snapshot, job)), job) for job in snapshot.jobs]
    line = [job for _, job in sorted(ranked, key=lambda pair: pair[0])]
    assert list(decide.decide(snapshot, NOW, model.Config(sharing=False)).admit) == Reference(snapshot).walk(
        line
    )
