"""Step 2: who is given up in an overload, at the edges of each rule, and who is not."""

from __future__ import annotations

import dataclasses
import heapq

import pytest

from lstqueue.engine import decide, model
from lstqueue.topology.model import Node, PodShape, Requirement, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000  # a full step of time, so nothing is rounded
MINUTE, HOUR = model.MINUTE, model.HOUR
DEADLINE, SHED, REST = model.Band.DEADLINE, model.Band.SHED, model.Band.REST
QUEUE = model.Queue("q", pools=(model.Pool("p", nominal=((GPU, 64),)),))
NODE = Node("n0", resources({GPU: 8, "cpu": 64_000, "pods": 40}))
MOST = 617_299 * 10 * HOUR // 1_000_000  # η(10 h) = 0.4 + 0.5 exp(-10/12) of the ten hours


def job(uid: str, run: int = HOUR, within: int = 10 * HOUR, **more: object) -> model.Job:
    """A gang of the whole node that runs for `run` ms and is due `within` ms."""
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW, "deadline": NOW + within,
        "groups": (group(8),), "estimate": model.Estimate(1, run, run),
    }  # fmt: skip
    return model.Job(**(base | more))


def group(gpus: int, count: int = 1, **more: object) -> model.Group:
    requests = resources({GPU: gpus, "cpu": 1000, "pods": 1})
    return model.Group("g", count, PodShape(requests, **more))


def running(uid: str, run: int, since: int, within: int = 10 * HOUR, **more: object) -> model.Job:
    parts = (model.Assigned(0, "p", "n0", 0, 1),)
    return job(uid, run, within, state=model.State.RUNNING, since=since, assigned=parts, **more)


def world(*jobs: model.Job, queue: model.Queue = QUEUE, node: Node = NODE) -> model.Snapshot:
    return model.Snapshot((node,), (queue,), jobs)


def was_shed(one: model.Job) -> model.Job:
    return dataclasses.replace(one, published=model.Published(band=SHED))


def bands(snapshot: model.Snapshot, now: int = NOW, config: model.Config | None = None) -> dict[str, str]:
    """Bands as jobs' statuses say them after a pass."""
    plan = decide.decide(snapshot, now, config or model.Config())
    said = {one.uid: one.published.band for one in snapshot.jobs}
    said |= {update.uid: update.band for update in plan.updates}
    return {uid: "" if band is None else band.name for uid, band in said.items()}


def shed(*jobs: model.Job, queue: model.Queue = QUEUE, node: Node = NODE, now: int = NOW) -> list[str]:
    said = bands(world(*jobs, queue=queue, node=node), now)
    return sorted(uid for uid, band in said.items() if band == "SHED")


def test_what_may_be_asked_until_a_deadline_falls_with_its_distance() -> None:
    long, short = job("long", MOST - HOUR), job("short", HOUR)
    assert shed(long, short) == []
    assert shed(dataclasses.replace(long, estimate=model.Estimate(1, MOST - HOUR + 1, MOST)), short) == [
        "long"
    ]
    near = 858_370 * HOUR // 1_000_000  # η(1 h) = 0.4 + 0.5 exp(-1/12) = 0.860022 or so; safely below
    assert shed(job("a", near // 2, HOUR), job("b", near // 2, HOUR)) == []
    assert shed(job("a", HOUR, HOUR), job("b", 1, HOUR)) == ["a"]


def test_the_largest_per_value_goes_and_no_more_than_need_be() -> None:
    jobs = [job("a", 4 * HOUR), job("b", 3 * HOUR), job("c", 2 * HOUR)]
    assert shed(*jobs) == ["a"]
    assert shed(dataclasses.replace(jobs[0], value=2), *jobs[1:]) == ["b"]
    equal = [job("a", 4 * HOUR), job("b", 4 * HOUR, submit=NOW - 1)]
    assert shed(*equal) == ["a"]  # of equals the newer


def test_deadlines_are_walked_upwards_and_a_later_one_does_not_count_for_an_earlier() -> None:
    early, late = job("early", 3 * HOUR, 8 * HOUR), job("late", 9 * HOUR, 48 * HOUR)
    assert shed(early, late) == []
    assert shed(early, job("late", 23 * HOUR, 48 * HOUR)) == ["late"]
    # What was given up for an early deadline makes room for later ones.
    assert shed(early, job("other", 5 * HOUR, 8 * HOUR), late) == ["other"]


def test_a_job_alone_in_its_sum_is_not_given_up() -> None:
    assert shed(job("a", 9 * HOUR)) == []
    assert shed(job("a", 9 * HOUR), job("later", HOUR, 900 * HOUR)) == []
    assert shed(job("a", 9 * HOUR), job("b", 8 * HOUR)) == ["a"]  # then b is alone


def test_a_running_job_counts_with_what_remains_and_is_protected_in_its_min_run() -> None:
    other = job("b", 2 * HOUR)
    assert shed(running("r", 6 * HOUR, NOW - 3 * HOUR), other) == []
    assert shed(running("r", 8 * HOUR, NOW - 3 * HOUR), other) == ["r"]
    assert shed(running("r", 6 * HOUR, NOW - 14 * MINUTE), other) == ["b"]
    assert shed(running("r", 6 * HOUR, NOW - 15 * MINUTE), other) == ["r"]
    assert shed(running("r", 6 * HOUR, NOW - 15 * MINUTE, min_run=HOUR), other) == ["b"]
    # A job that was given up already and started in what room was left is not unhurt by that.
    assert shed(was_shed(running("r", 6 * HOUR, NOW - MINUTE)), other) == ["r"]
    assert shed(running("r", 6 * HOUR, NOW - 3 * HOUR, preemptible=False), job("b", 6 * HOUR)) == ["b"]


def test_a_job_already_given_up_weighs_double() -> None:
    jobs = [job("a", 2 * HOUR), job("b", MOST - 5 * HOUR, value=100)]
    assert shed(*jobs) == []
    assert shed(was_shed(jobs[0]), jobs[1]) == []  # 2 x 2 h and the rest fit: it is back
    fuller = [*jobs, job("c", 2 * HOUR - 1, submit=NOW - 1)]
    assert shed(*fuller) == []
    assert shed(was_shed(fuller[0]), *fuller[1:]) == ["a"]
    once = model.Config(shed_weight=1)
    assert bands(world(was_shed(fuller[0]), *fuller[1:]), config=once)["a"] == "DEADLINE"
    # It counts double in the choice as well, against one that is larger but not twice as large.
    larger = job("d", 3 * HOUR)
    assert shed(jobs[0], larger, job("e", 2 * HOUR)) == ["d"]
    assert shed(was_shed(jobs[0]), larger, job("e", 2 * HOUR)) == ["a"]
    assert shed(was_shed(jobs[0]), job("d", 4 * HOUR + 1), job("e", 2 * HOUR)) == ["d"]


def test_of_less_area_the_longer_narrow_job_is_given_up_before_the_wide_one() -> None:
    wide = job("w", 3 * HOUR)  # 24 GPU hours, 8.5 by the root of its width
    narrow = job("n", 5 * HOUR, groups=(group(4),))  # 20, and 10
    full = [wide, narrow, job("e", MOST - 4 * HOUR, value=1000)]
    assert shed(*full) == ["n"]
    by_area = model.Config(shed_width=1)
    assert bands(world(*full), config=by_area)["w"] == "SHED"
    assert bands(world(*full), config=by_area)["n"] == "DEADLINE"


def test_pods_of_others_shrink_the_offer_and_our_own_of_lower_bands_do_not() -> None:
    jobs = [job("a", 3 * HOUR, groups=(group(4),)), job("b", 2 * HOUR, groups=(group(4),))]
    foreign = dataclasses.replace(NODE, used=resources({GPU: 5}))
    assert shed(*jobs) == []
    assert shed(*jobs, node=foreign) == ["a"]
    best_effort = running("r", 9 * HOUR, NOW - HOUR, deadline=None)
    bound = dataclasses.replace(best_effort, assigned=(model.Assigned(0, "p", "n0", 1, 0),))
    ours = dataclasses.replace(NODE, used=resources({GPU: 8, "cpu": 1000, "pods": 1}))
    assert shed(*jobs, best_effort) == []
    assert shed(*jobs, bound, node=ours) == []


@pytest.mark.parametrize("why", [{"preemptible": False}, {"stays": True}])
def test_work_that_cannot_be_suspended_takes_its_room_until_it_ends(why: dict[str, bool]) -> None:
    jobs = [job("a", 3 * HOUR), job("b", 2 * HOUR)]

    def holder(hours: int | None) -> model.Job:
        estimate = None if hours is None else model.Estimate(hours * HOUR, hours * HOUR, hours * HOUR)
        return dataclasses.replace(running("r", HOUR, NOW - HOUR), deadline=None, estimate=estimate, **why)

    assert shed(*jobs, holder(2)) == []  # an hour more, nine are left
    assert shed(*jobs, holder(4)) == ["a"]
    assert shed(*jobs, holder(None)) == ["a"]


def test_cordoned_nodes_are_out_and_nodes_that_are_not_ready_come_back() -> None:
    jobs = [job("a", 3 * HOUR), job("b", 2 * HOUR)]
    assert shed(*jobs, node=dataclasses.replace(NODE, ready=False)) == []
    assert shed(*jobs, node=dataclasses.replace(NODE, unschedulable=True)) == ["a"]


def test_quota_is_a_limit_like_nodes() -> None:
    jobs = [job("a", 3 * HOUR, groups=(group(2),)), job("b", 4 * HOUR, groups=(group(2),))]
    assert shed(*jobs) == []
    tight = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((GPU, 2),)),))
    assert shed(*jobs, queue=tight) == ["b"]


def test_only_those_who_can_go_nowhere_else_count_on_a_set_of_nodes() -> None:
    there = (("zone", "a"),)
    nodes = (dataclasses.replace(NODE, labels=there), dataclasses.replace(NODE, name="n1"))
    bound = [job(f"a{i}", 4 * HOUR, groups=(group(8, selector=there),), submit=NOW - i) for i in range(2)]
    free = job("free", 4 * HOUR)
    for jobs, expected in (([bound[0], free], []), (bound, ["a0"]), ([*bound, free], ["a0"])):
        said = bands(model.Snapshot(nodes, (QUEUE,), tuple(jobs)))
        assert [uid for uid, band in said.items() if band == "SHED"] == expected


def test_a_queue_may_refuse_shedding_and_then_only_others_are_given_up() -> None:
    never = dataclasses.replace(QUEUE, shedding=False)
    assert shed(job("a", 4 * HOUR), job("b", 4 * HOUR), queue=never) == []
    other = model.Queue("other", pools=QUEUE.pools)
    jobs = (job("a", 5 * HOUR), job("b", 3 * HOUR, queue="other"))
    said = bands(model.Snapshot((NODE,), (never, other), jobs))
    assert said == {"a": "DEADLINE", "b": "SHED"}


def test_fifo_queues_and_policies_know_no_shedding() -> None:
    fifo = dataclasses.replace(QUEUE, order=model.Order.FIFO)
    jobs = (job("a", 5 * HOUR), job("b", 3 * HOUR))
    assert shed(*jobs, queue=fifo) == []
    for config in (model.Config(order=model.Order.FIFO), model.Config(shedding=False)):
        assert set(bands(world(*jobs), config=config).values()) == {"DEADLINE"}
    assert bands(world(*jobs), config=model.Config(order=model.Order.EDF))["a"] == "SHED"


def test_jobs_that_cannot_start_take_nothing_from_anybody() -> None:
    other = job("b", 2 * HOUR)
    assert shed(job("a", 5 * HOUR), other) == ["a"]
    assert shed(job("a", 5 * HOUR, groups=(group(9),)), other) == []
    assert shed(job("a", 5 * HOUR, state=model.State.HELD_BACK, held_back="No."), other) == []
    assert shed(job("a", 5 * HOUR, queue="none"), other) == []
    assert shed(job("a", 5 * HOUR), other, queue=dataclasses.replace(QUEUE, held=True)) == []
    assert shed(job("a", 5 * HOUR), other, queue=dataclasses.replace(QUEUE, observed=True)) == []
    assert shed(job("a", 5 * HOUR, not_before=NOW + HOUR), other) == ["a"]  # it is back soon


def test_late_jobs_and_those_without_deadline_are_no_part_of_an_overload() -> None:
    late = job("late", 9 * HOUR, 9 * HOUR, estimate=model.Estimate(9 * HOUR + 1, 9 * HOUR + 1, 9 * HOUR + 1))
    assert shed(late, job("none", 9 * HOUR, deadline=None), job("a", 6 * HOUR)) == []


def test_the_given_up_come_after_the_deadline_band_whatever_their_importance_and_before_the_rest() -> None:
    nodes = tuple(dataclasses.replace(NODE, name=f"n{i}") for i in range(4))
    tight = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((GPU, 64),)),))
    jobs = (
        job("kept", 5 * HOUR, groups=(group(8, 4),)),
        job("shed", 6 * HOUR, groups=(group(8, 4),), importance=5),
        job("best", HOUR, deadline=None, groups=(group(8, 4),), importance=9),
    )
    snapshot = model.Snapshot(nodes, (tight,), jobs)
    assert bands(snapshot) == {"kept": "DEADLINE", "shed": "SHED", "best": "REST"}
    order: list[str] = []
    while snapshot.jobs:
        plan = decide.decide(snapshot, NOW)
        (admission,) = plan.admit
        order.append(admission.uid)
        told = model.Published(band=SHED)
        left = tuple(
            dataclasses.replace(one, published=told) if one.uid == "shed" else one
            for one in snapshot.jobs
            if one.uid != admission.uid
        )
        snapshot = dataclasses.replace(snapshot, jobs=left)
    assert order == ["kept", "shed", "best"]


def test_many_sets_of_nodes_are_told_apart_up_to_a_bound() -> None:
    def on(numbers: list[int]) -> tuple[tuple[Requirement, ...], ...]:
        names = tuple(f"n{i}" for i in numbers)
        return ((Requirement("metadata.name", "In", names, field=True),),)

    def merged(count: int) -> dict[str, int]:
        nodes = tuple(dataclasses.replace(NODE, name=f"n{i}") for i in range(count))
        jobs = [job(f"u{i:02}", 8 * HOUR, groups=(group(8, affinity=on([i])),)) for i in range(count)]
        jobs += [job(f"v{i:02}", 8 * HOUR, groups=(group(8, affinity=on([i])),)) for i in range(31)]
        queue = dataclasses.replace(QUEUE, pools=(model.Pool("p", nominal=((GPU, 9999),)),))
        return dict(decide.decide(model.Snapshot(nodes, (queue,), tuple(jobs)), NOW).counts)

    counts = merged(32)
    assert (counts["shed"], counts["node_sets_merged"]) == (31, 0)
    counts = merged(40)  # nine jobs alone on their nodes, seen as one set
    assert counts["node_sets_merged"] == 9
    assert counts["shed"] > 31


@pytest.mark.parametrize(
    ("name", "value"),
    [("shed_floor", 0), ("shed_extra", 2.9), ("shed_decay", 0), ("shed_weight", 0), ("shed_step", 0)],
)
def test_figures_of_the_configuration_are_checked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"config\.{name} is {value}; it must be"):
        model.Config(**{name: value})


def test_a_sweep_is_given_up_whole_and_says_so() -> None:
    whole = [job(f"s{i}", 3 * HOUR, sweep="ns/search") for i in range(2)]
    found = decide.decide(world(job("a", HOUR), *whole), NOW)
    told = {update.uid: update for update in found.updates}
    assert {uid: update.band for uid, update in told.items()} == {"a": DEADLINE, "s0": SHED, "s1": SHED}
    reasons = {uid: told[uid].verdict.reason for uid in ("s0", "s1")}
    assert sum('it goes with the others of its sweep "search"' in reason for reason in reasons.values()) == 1


def test_a_sweep_alone_gives_nobody_up() -> None:
    whole = [job(f"s{i}", 6 * HOUR, sweep="ns/search") for i in range(2)]
    assert bands(world(*whole)) == {"s0": "DEADLINE", "s1": "DEADLINE"}


def test_a_queue_that_may_keep_its_jobs_is_not_sorted_anew_at_every_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everybody goes into a heap once per limit at most, in a cohort as well."""
    moves: list[object] = []

    def push(heap: list[object], entry: object) -> None:
        moves.append(entry)
        heappush(heap, entry)

    heappush = heapq.heappush
    monkeypatch.setattr(heapq, "heappush", push)
    pool = model.Pool("p", nominal=((GPU, 4),))
    lenders = [model.Queue(name, pools=(pool,), cohort="c") for name in ("a", "b")]
    jobs = [job(f"{name}{i:03}", within=10 * HOUR + i * MINUTE, queue=name, groups=(group(gpus),))
            for i in range(200) for name, gpus in (("a", 2), ("b", 1))]  # fmt: skip
    config = model.Config(forecast_depth=0)
    plan = decide.decide(model.Snapshot((NODE,), tuple(lenders), tuple(jobs)), NOW, config)
    limits = 6  # two resources of the nodes, the quota of a queue and of the cohort
    assert sum(update.band is SHED for update in plan.updates) > 200
    assert len(moves) <= limits * len(jobs)
