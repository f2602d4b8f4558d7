"""Step 7: what a job is told about its deadline, and when it is told."""

from __future__ import annotations

import dataclasses

from lstqueue.engine import decide, model
from lstqueue.topology.model import Node, PodShape, resources

PLAIN = model.Config(promising=False)  # what a forecast says, without a promise
GPU = "nvidia.com/gpu"
NOW = 1_800_000_000_000
MINUTE, HOUR = model.MINUTE, model.HOUR
QUEUE = model.Queue("q", pools=(model.Pool("p", nominal=((GPU, 64),)),))
RUN = model.Estimate(HOUR, 4 * HOUR, 6 * HOUR)
BUSY = (model.Assigned(0, "p", "n0", 0, 1),)


def job(uid: str, **more: object) -> model.Job:
    base: dict[str, object] = {
        "uid": uid, "namespace": "ns", "name": uid, "queue": "q", "submit": NOW, "estimate": RUN,
        "groups": (model.Group("g", 1, PodShape(resources({GPU: 8, "pods": 1}))),),
    }  # fmt: skip
    return model.Job(**(base | more))


def running(uid: str = "r", **more: object) -> model.Job:
    return job(uid, **({"state": model.State.RUNNING, "since": NOW, "assigned": BUSY} | more))


def world(*jobs: model.Job, **more: object) -> model.Snapshot:
    return model.Snapshot((Node("n0", resources({GPU: 8, "pods": 9})),), (QUEUE,), jobs, **more)


def told(plan: model.Plan, uid: str) -> model.Verdict:
    verdict = next(update for update in plan.updates if update.uid == uid).verdict
    assert verdict is not None
    return verdict


def publish(snapshot: model.Snapshot, plan: model.Plan, **more: object) -> model.Snapshot:
    updates = {update.uid: update for update in plan.updates}
    jobs: list[model.Job] = []
    for one in snapshot.jobs:
        if (u := updates.get(one.uid)) is not None:
            one = dataclasses.replace(one, published=model.Published(u.band, u.code, u.verdict, u.slack))
        jobs.append(one)
    base: dict[str, object] = {"jobs": tuple(jobs), "forecast_at": plan.now, "changed": False}
    return dataclasses.replace(snapshot, **(base | more))


def hours(*numbers: float) -> tuple[int, ...]:
    return tuple(NOW + int(number * HOUR) for number in numbers)


def test_levels_follow_the_forecast_of_what_runs_and_what_is_ahead() -> None:
    # The node is free after 1, 4 or 6 hours; the job then needs as long again.
    for deadline, level in ((13, "LIKELY"), (11, "AT_RISK"), (7, "UNLIKELY"), (0.5, "IMPOSSIBLE")):
        verdict = told(
            decide.decide(world(running(), job("a", deadline=hours(deadline)[0])), NOW, PLAIN), "a"
        )
        assert verdict.level is model.Level[level]
        assert verdict.start == hours(1, 6)
        assert verdict.finish == hours(2, 12)
        assert verdict.earliest_feasible == hours(12)[0]
    assert verdict.reason == (
        "Even started now and at its fastest it would end 30m after its deadline;"
        " ask for at least 11h30m more to be LIKELY."
    )


def test_a_job_that_starts_now_is_judged_by_its_own_run_time() -> None:
    plan = decide.decide(world(job("a", deadline=NOW + 5 * HOUR, overhead=MINUTE)), NOW, PLAIN)
    assert [admission.uid for admission in plan.admit] == ["a"]
    verdict = told(plan, "a")
    assert verdict.level is model.Level.AT_RISK
    assert verdict.reason == (
        "With pessimistic run times it ends 1h1m after its deadline; ask for at least 1h1m more to be LIKELY."
    )
    assert verdict.start == (NOW, NOW)
    assert verdict.finish == (NOW + HOUR + MINUTE, NOW + 6 * HOUR + MINUTE)


def test_without_a_deadline_or_an_estimate_the_level_is_unknown_but_the_start_is_forecast() -> None:
    plan = decide.decide(world(running(), job("a"), job("b", estimate=None, deadline=NOW + HOUR)), NOW, PLAIN)
    assert told(plan, "a").level is model.Level.UNKNOWN
    assert told(plan, "a").reason == "It has no deadline to judge."
    assert told(plan, "a").finish == hours(2, 12)
    assert told(plan, "b").level is model.Level.UNKNOWN
    assert told(plan, "b").reason == "It has no estimate; set spec.estimatedDuration."
    assert told(plan, "b").start == hours(2, 12)
    assert told(plan, "b").finish is None


def test_what_never_ends_as_far_as_anybody_knows_leaves_no_start() -> None:
    verdict = told(
        decide.decide(world(running(estimate=None), job("a", deadline=NOW + 99 * HOUR)), NOW, PLAIN), "a"
    )
    assert verdict.level is model.Level.UNLIKELY
    assert verdict.start is None
    assert verdict.reason.startswith("No start can be foreseen")


def test_what_can_never_fit_is_impossible_with_the_reason() -> None:
    wide = (model.Group("g", 2, PodShape(resources({GPU: 8, "pods": 1}))),)
    plan = decide.decide(
        world(job("a", groups=wide, deadline=NOW + 99 * HOUR), job("b", groups=wide)), NOW, PLAIN
    )
    assert told(plan, "a").level is model.Level.IMPOSSIBLE
    assert "could hold 1 of them even when empty" in told(plan, "a").reason
    assert told(plan, "b").level is model.Level.UNKNOWN


def test_an_estimate_that_runs_out_changes_the_verdict_of_a_running_job() -> None:
    snapshot = world(running(deadline=NOW + 7 * HOUR))
    first = decide.decide(snapshot, NOW, PLAIN)
    assert told(first, "r").level is model.Level.LIKELY
    settled = publish(snapshot, first)
    # Outrun after 4 h, the expected run time becomes 6 h and after that 9 h; lo grows to 5 h 4 min and 7.6 h.
    assert decide.decide(settled, NOW + 4 * HOUR + 1, PLAIN).updates == ()  # its latest end is what it was
    late = told(decide.decide(settled, NOW + 6 * HOUR + 1, PLAIN), "r")
    assert late.level is model.Level.IMPOSSIBLE
    assert late.finish == (NOW + int(1.5**5 * HOUR), NOW + 9 * HOUR)


def test_time_alone_makes_a_waiting_job_late_and_impossible_and_the_plan_wakes_for_it() -> None:
    busy = running(estimate=None, preemptible=False)
    snapshot = world(busy, job("a", deadline=NOW + 2 * HOUR, overhead=5 * MINUTE))
    settled = publish(snapshot, decide.decide(snapshot, NOW, PLAIN))
    edge = NOW + 55 * MINUTE + 1
    assert decide.decide(settled, NOW, PLAIN).wake_at == edge
    assert decide.decide(settled, edge - 1, PLAIN).updates == ()
    (update,) = decide.decide(settled, edge, PLAIN).updates
    assert update.band is model.Band.REST
    assert update.slack == "<0"
    assert update.verdict is not None
    assert update.verdict.level is model.Level.IMPOSSIBLE


def test_a_verdict_is_renewed_when_what_made_it_impossible_is_gone() -> None:
    snapshot = world(running(), job("a", deadline=NOW + HOUR // 2))
    settled = publish(snapshot, decide.decide(snapshot, NOW, PLAIN))
    extended = tuple(dataclasses.replace(one, deadline=NOW + 20 * HOUR) for one in settled.jobs)
    plan = decide.decide(dataclasses.replace(settled, jobs=extended), NOW, PLAIN)
    assert told(plan, "a").level is model.Level.LIKELY


def test_a_new_job_is_forecast_at_once_and_others_not_before_the_interval() -> None:
    snapshot = world(running(), job("a", deadline=NOW + 13 * HOUR))
    settled = publish(snapshot, decide.decide(snapshot, NOW, PLAIN), changed=True)
    moved = tuple(one for one in settled.jobs if one.uid != "r")
    shorter = running(estimate=model.Estimate(HOUR, HOUR, HOUR), published=settled.jobs[0].published)
    more = dataclasses.replace(settled, jobs=(*moved, shorter, job("b", deadline=NOW + 50 * HOUR)))
    early = decide.decide(more, NOW + 1000, PLAIN)
    assert {update.uid for update in early.updates} == {"r", "b"}
    assert told(early, "b").start == hours(2, 7)
    behind = dataclasses.replace(settled, jobs=(*moved, shorter))
    quiet = decide.decide(behind, NOW + 1000, PLAIN)
    assert {update.uid for update in quiet.updates} == {"r"}
    assert quiet.forecast is False
    assert quiet.wake_at == NOW + MINUTE
    due = decide.decide(behind, NOW + MINUTE, PLAIN)
    assert due.forecast is True
    assert told(due, "a").finish == hours(2, 7)


def test_small_moves_of_a_forecast_are_not_published() -> None:
    snapshot = world(running(), job("a", deadline=NOW + 13 * HOUR))
    settled = publish(snapshot, decide.decide(snapshot, NOW, PLAIN), changed=True)
    for move, expected in ((30 * MINUTE, set[str]()), (36 * MINUTE, {"r", "a"})):
        jobs = tuple(
            dataclasses.replace(one, since=one.since + move) if one.uid == "r" else one
            for one in settled.jobs
        )
        plan = decide.decide(dataclasses.replace(settled, jobs=jobs), NOW + HOUR // 2, PLAIN)
        assert {update.uid for update in plan.updates if update.uid != "x"} - {"z"} == expected
        assert plan.forecast is True


def test_the_forecast_follows_no_more_jobs_than_its_depth() -> None:
    jobs = [job(f"u{i}", deadline=NOW + (20 + i) * HOUR) for i in range(5)]
    plan = decide.decide(
        world(running(), *jobs), NOW, dataclasses.replace(PLAIN, forecast_depth=2, shedding=False)
    )
    assert [told(plan, f"u{i}").start is None for i in range(5)] == [False, False, True, True, True]
    assert told(plan, "u4").reason == "More jobs are ahead of it than a forecast follows."
    none = decide.decide(
        world(running(), *jobs), NOW, dataclasses.replace(PLAIN, forecast_depth=0, shedding=False)
    )
    assert {told(none, one.uid).level for one in jobs} == {model.Level.UNKNOWN}
    assert none.forecast is False


def test_a_back_off_delays_the_forecast_start() -> None:
    verdict = told(
        decide.decide(world(job("a", deadline=NOW + 99 * HOUR, not_before=NOW + HOUR)), NOW, PLAIN), "a"
    )
    assert verdict.start == (NOW + HOUR, NOW + HOUR)


def test_a_late_job_is_offered_a_deadline_as_if_it_were_on_time_again() -> None:
    patient = [job(f"b{i}", estimate=model.Estimate(HOUR, HOUR, HOUR)) for i in range(3)]
    late = job("late", deadline=NOW, estimate=model.Estimate(2 * HOUR, 2 * HOUR, 2 * HOUR))
    exact = running(estimate=model.Estimate(HOUR, HOUR, HOUR))
    verdict = told(
        decide.decide(world(exact, late, *patient), NOW, dataclasses.replace(PLAIN, sharing=False)), "late"
    )
    assert verdict.level is model.Level.IMPOSSIBLE
    assert verdict.start == hours(4, 4)  # behind everybody shorter
    assert verdict.earliest_feasible == hours(3)[0]  # ahead of them, with a deadline that holds


def test_a_plan_says_only_what_differs_from_what_was_published() -> None:
    snapshot = world(running(), job("a", deadline=NOW + 13 * HOUR), job("b"))
    first = decide.decide(snapshot, NOW, PLAIN)
    assert len(first.updates) == 3
    assert decide.decide(publish(snapshot, first), NOW, PLAIN).updates == ()


def test_a_running_job_that_will_not_make_it_is_told_by_how_much() -> None:
    snapshot = world(running(deadline=NOW + 3 * HOUR))
    first = decide.decide(snapshot, NOW, PLAIN)
    assert told(first, "r").level is model.Level.UNLIKELY
    later = told(decide.decide(publish(snapshot, first), NOW + 4 * HOUR + 1, PLAIN), "r")
    assert later.level is model.Level.IMPOSSIBLE
    again = publish(snapshot, decide.decide(publish(snapshot, first), NOW + 4 * HOUR + 1, PLAIN))
    # Its latest end is what it was, and by how much it misses is not.
    worse = told(decide.decide(again, NOW + int(1.5**4 * HOUR) + 1, PLAIN), "r")
    assert worse.reason.startswith("At its fastest it ends 3h after its deadline")
