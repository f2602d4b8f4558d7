"""What becomes of a job that is given up: what it is told, how it comes back, and when a pass looks again."""

from __future__ import annotations

import dataclasses

from lstqueue.engine import decide, explain, model
from lstqueue.topology.model import Node, PodShape, resources

GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
QUEUE = model.Queue("q", pools=(model.Pool("p", nominal=((GPU, 64),)),))
NODE = Node("n0", resources({GPU: 8, "pods": 40}))
SHED, DEADLINE = model.Band.SHED, model.Band.DEADLINE


def job(uid: str, hours: float, within: float = 10, **more: object) -> model.Job:
    run = int(hours * HOUR)
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW,
        "deadline": NOW + int(within * HOUR), "estimate": model.Estimate(run, run, run),
        "groups": (model.Group("g", 1, PodShape(resources({GPU: 8, "pods": 1}))),),
    }  # fmt: skip
    return model.Job(**(base | more))


def running(uid: str, hours: float, within: float = 10, **more: object) -> model.Job:
    parts = (model.Assigned(0, "p", "n0", 0, 1),)
    return job(uid, hours, within, state=model.State.RUNNING, since=NOW - HOUR, assigned=parts, **more)


def world(*jobs: model.Job) -> model.Snapshot:
    return model.Snapshot((NODE,), (QUEUE,), jobs)


def publish(snapshot: model.Snapshot, plan: model.Plan) -> model.Snapshot:
    updates = {update.uid: update for update in plan.updates}
    jobs: list[model.Job] = []
    for one in snapshot.jobs:
        if (update := updates.get(one.uid)) is not None:
            told = model.Published(update.band, update.code, update.verdict, update.slack)
            one = dataclasses.replace(one, published=told, words=update.message)
        jobs.append(one)
    return dataclasses.replace(snapshot, jobs=tuple(jobs), forecast_at=plan.now, changed=False)


def settle(snapshot: model.Snapshot, now: int = NOW) -> tuple[model.Snapshot, model.Plan]:
    for _ in range(4):
        plan = decide.decide(snapshot, now)
        if not plan.updates:
            return snapshot, plan
        snapshot = publish(snapshot, plan)
    raise AssertionError(plan)


def update(plan: model.Plan, uid: str) -> model.Update:
    return next(one for one in plan.updates if one.uid == uid)


def test_a_job_given_up_is_told_so_with_the_figures_and_what_would_help() -> None:
    snapshot = world(running("r", 4), job("a", 4), job("b", 3))
    plan = decide.decide(snapshot, NOW)
    told = update(plan, "a")
    assert told.band is SHED
    assert told.verdict is not None
    assert told.verdict.level is model.Level.AT_RISK
    assert told.verdict.reason == (
        "It is given up for now: 3 jobs due within 10h ask for 80 nvidia.com/gpu hours, and 49 can be counted"
        " on (61 % of its 1 matching node); it is the largest of them by run time, value and, less so, width:"
        " 32 nvidia.com/gpu hours at value 1. It runs while room is left; a higher spec.value, a smaller gang"
        " or a later deadline helps."
    )
    assert told.verdict.start == (NOW + 6 * HOUR, NOW + 6 * HOUR)  # after b, which is kept
    kept = update(plan, "b")
    assert kept.band is DEADLINE
    assert kept.verdict is not None
    assert kept.verdict.level is model.Level.LIKELY
    assert dict(plan.counts)["shed"] == 1
    assert decide.decide(publish(snapshot, plan), NOW).updates == ()


def test_the_explanation_of_a_job_given_up_says_so_as_well() -> None:
    snapshot = world(running("r", 4), job("a", 4), job("b", 3))
    answer = explain.explain(snapshot, decide.decide(snapshot, NOW), "a")
    assert answer.message.endswith("a later deadline helps.")
    assert "It is given up for now: 3 jobs" in answer.message


def test_a_running_job_given_up_is_told_so_while_it_keeps_running() -> None:
    plan = decide.decide(world(running("r", 8), job("b", 3)), NOW)
    told = update(plan, "r")
    assert (told.band, told.code, plan.suspend) == (SHED, None, ())
    assert told.verdict is not None
    assert told.verdict.level is model.Level.AT_RISK
    assert told.verdict.reason.startswith("It is given up for now: 2 jobs")
    assert told.verdict.finish == (NOW + 7 * HOUR, NOW + 7 * HOUR)


def test_a_deadline_that_cannot_hold_by_the_forecast_stays_unlikely() -> None:
    plan = decide.decide(world(running("r", 4), job("a", 8), job("b", 2)), NOW)
    told = update(plan, "a")
    assert told.band is SHED
    assert told.verdict is not None
    assert told.verdict.level is model.Level.UNLIKELY
    assert told.verdict.reason.startswith("It is given up for now")


def test_who_comes_back_gets_a_new_verdict_at_once() -> None:
    snapshot, _ = settle(world(running("r", 4), job("a", 4), job("b", 3)))
    roomy = dataclasses.replace(snapshot, jobs=snapshot.jobs[:2])
    plan = decide.decide(roomy, NOW)
    # Twice its 4 h and the 3 h of the other still are too much for the 6.2 h that may be asked of ten.
    assert plan.updates == ()
    plan = decide.decide(dataclasses.replace(snapshot, jobs=snapshot.jobs[1:2]), NOW)
    assert update(plan, "a").band is DEADLINE
    later = dataclasses.replace(roomy.jobs[1], deadline=NOW + 40 * HOUR)
    plan = decide.decide(dataclasses.replace(roomy, jobs=(roomy.jobs[0], later)), NOW)
    told = update(plan, "a")
    assert told.band is DEADLINE
    assert told.verdict is not None
    assert told.verdict.level is model.Level.LIKELY
    assert told.verdict.reason.startswith("With pessimistic run times it ends")


def test_beyond_the_forecast_a_job_that_comes_back_is_not_told_its_old_story() -> None:
    config = model.Config(forecast_depth=0)
    snapshot = world(running("r", 4), job("a", 4), job("b", 3))
    snapshot = publish(snapshot, decide.decide(snapshot, NOW, config))
    later = dataclasses.replace(snapshot.jobs[1], deadline=NOW + 80 * HOUR)
    jobs = (snapshot.jobs[0], later, snapshot.jobs[2])
    told = update(decide.decide(dataclasses.replace(snapshot, jobs=jobs), NOW, config), "a")
    assert told.band is DEADLINE
    assert told.verdict is not None
    assert told.verdict.level is model.Level.UNKNOWN
    assert told.verdict.reason == "More jobs are ahead of it than a forecast follows."


def flips(weight: int) -> int:
    """Times a band changes while a third job's estimate moves by a tenth up and down around the edge."""
    config = model.Config(shed_weight=weight)
    snapshot = world(job("a", 1), job("b", 2, value=9), running("r", 3, value=9))
    seen: dict[str, model.Band | None] = {}
    flipped = 0
    for number in range(60):
        hours = 3.0 + (0.4 if number % 2 else 0.0)  # with a and b 6.0 or 6.4 hours; 6.17 may be asked for
        moved = dataclasses.replace(
            snapshot.jobs[2], estimate=model.Estimate(HOUR, int(hours * HOUR), int(hours * HOUR)), since=NOW
        )
        snapshot = dataclasses.replace(snapshot, jobs=(*snapshot.jobs[:2], moved))
        snapshot = publish(snapshot, decide.decide(snapshot, NOW, config))
        for one in snapshot.jobs:
            flipped += seen.get(one.uid, one.published.band) is not one.published.band
            seen[one.uid] = one.published.band
    return flipped


def test_a_load_that_hovers_at_the_edge_changes_bands_once() -> None:
    assert flips(2) == 1
    assert flips(1) > 50  # what counting double is for


def test_an_overload_is_looked_at_every_step_and_its_absence_when_it_could_begin() -> None:
    _, plan = settle(world(running("r", 8), job("b", 3)))
    assert plan.wake_at == NOW + 5 * MINUTE
    again = decide.decide(world(running("r", 8), job("b", 3)), NOW + 7 * MINUTE)
    assert again.wake_at == NOW + 10 * MINUTE
    # 5 h of work are too much once η(h) h falls below that: 7.8 h before the deadline, less a step.
    jobs = [job("a", 2, not_before=NOW + 90 * HOUR), job("b", 3, not_before=NOW + 90 * HOUR)]
    quiet, plan = settle(world(*jobs))
    wakes = [plan.wake_at]
    while (at := wakes[-1]) is not None and at < NOW + 3 * HOUR:
        _, plan = settle(quiet, at)
        wakes.append(plan.wake_at)
    bands = [{one.band for one in decide.decide(quiet, NOW + m * MINUTE).updates} for m in range(0, 180, 5)]
    first = next(index for index, found in enumerate(bands) if SHED in found)
    assert NOW + first * 5 * MINUTE in wakes
    assert len(wakes) < 30


def test_a_lone_job_wakes_nobody_for_an_overload() -> None:
    snapshot, plan = settle(world(running("r", 8)))
    assert plan.wake_at == NOW + 7 * HOUR + 1  # when its estimate is outrun
    assert snapshot.jobs[0].published.band is DEADLINE
