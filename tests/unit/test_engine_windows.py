"""Windows: what a queue keeps free while one lasts, and who may begin before one."""

from __future__ import annotations

import dataclasses

import pytest

from cases import rivals
from cases.rivals import GPU, HOUR, MINUTE, NOW, POOL, judged, runs, waits
from lstqueue.engine import decide, explain, invariants, model

DAY = 24 * HOUR


def queue(*windows: tuple[int, int, int], nominal: int = 32, **more: object) -> model.Queue:
    """A queue of 32 GPUs whose windows are (begins in, ends in, percent kept free)."""
    pool = dataclasses.replace(POOL, nominal=((GPU, nominal),))
    kept = tuple(model.Window(NOW + start, NOW + end, part * 10_000) for start, end, part in windows)
    return dataclasses.replace(rivals.QUEUE, pools=(pool,), windows=kept, best_effort_share=0, **more)


def world(*jobs: model.Job, of: model.Queue) -> model.Snapshot:
    return rivals.world(*jobs, nodes=4, queue=of)


def started(plan: model.Plan) -> set[str]:
    return {admission.uid for admission in plan.admit}


def codes(plan: model.Plan) -> dict[str, model.Code | None]:
    return {update.uid: update.code for update in plan.updates}


def test_while_it_lasts_its_share_is_not_used() -> None:
    jobs = [waits(f"j{i}", slack=DAY, mid=HOUR) for i in range(4)]
    plan = judged(world(*jobs, of=queue((-HOUR, 2 * HOUR, 40))))
    assert started(plan) == {"j0", "j1"}  # 12.8 of 32 GPUs are kept, so 19 are left, two nodes
    assert codes(plan)["j2"] is model.Code.QUOTA_EXCEEDED
    assert plan.wake_at is not None
    assert plan.wake_at <= NOW + 2 * HOUR


def test_while_it_lasts_those_who_wait_for_quota_are_told_of_it() -> None:
    snapshot = world(runs("v", "n0", ago=HOUR, mid=2 * HOUR), waits("j", count=3, slack=DAY, mid=HOUR),
                     of=queue((-HOUR, 2 * HOUR, 40)))  # fmt: skip
    plan = judged(snapshot)
    assert codes(plan)["j"] is model.Code.QUOTA_EXCEEDED
    told = explain.explain(snapshot, plan, "j")
    assert "since a window keeps 13 free" in told.message
    assert "or when the window ends in 2h" in told.message
    assert "wait for the end of the window" in told.change


def test_where_windows_never_leave_enough_no_start_is_foreseen() -> None:
    always = tuple((hour * HOUR, (hour + 1) * HOUR, 40) for hour in range(-1, 40))
    plan = judged(world(waits("j", count=3, slack=10 * DAY, mid=HOUR), of=queue(*always)))
    (update,) = plan.updates
    assert update.verdict is not None
    assert (update.verdict.level, update.verdict.start) == (model.Level.UNLIKELY, None)
    assert "the windows of its queue leave too little for it" in update.verdict.reason


def test_a_job_that_is_over_by_then_may_begin_before_it() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 100))
    plan = judged(
        world(waits("short", mid=3 * HOUR, slack=DAY), waits("long", mid=4 * HOUR, slack=DAY), of=of)
    )
    assert started(plan) == {"short"}
    assert codes(plan)["long"] is model.Code.WINDOW


def test_what_is_left_in_it_may_be_used_by_those_who_stay() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 50))
    jobs = [waits(f"j{i}", mid=5 * HOUR, slack=DAY) for i in range(4)]
    plan = judged(world(*jobs, of=of))
    assert started(plan) == {"j0", "j1"}


def test_those_who_run_and_will_be_there_count() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 50))
    there = runs("v", "n0", ago=HOUR, mid=10 * HOUR)
    jobs = [waits(f"j{i}", mid=5 * HOUR, slack=DAY) for i in range(3)]
    assert started(judged(world(there, *jobs, of=of))) == {"j0"}


def test_a_job_of_unknown_length_would_meet_every_window() -> None:
    of = queue((20 * HOUR, 30 * HOUR, 100))
    plan = judged(world(waits("who-knows", estimate=None, deadline=None), of=of))
    assert started(plan) == set()
    assert codes(plan)["who-knows"] is model.Code.WINDOW


def test_it_starts_when_the_window_is_over_and_is_told_so() -> None:
    of = queue((-HOUR, 2 * HOUR, 100), (26 * HOUR, 29 * HOUR, 100))
    job = waits("j", mid=5 * HOUR, slack=2 * DAY)
    plan = judged(world(job, of=of))
    assert plan.wake_at == NOW + 2 * HOUR
    (update,) = plan.updates
    assert update.verdict is not None
    assert update.verdict.start == (NOW + 2 * HOUR, NOW + 2 * HOUR)
    assert update.verdict.level is model.Level.FEASIBLE
    later = NOW + 2 * HOUR
    assert started(decide.decide(world(job, of=of), later, rivals.CONFIG)) == {"j"}


def test_a_forecast_lets_nobody_begin_who_would_not_be_through() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 100), (27 * HOUR, 36 * HOUR, 100))
    plan = judged(world(waits("long", mid=4 * HOUR, slack=DAY), of=of))
    (update,) = plan.updates
    assert update.verdict is not None
    assert update.verdict.start == (NOW + 12 * HOUR, NOW + 12 * HOUR)
    assert update.verdict.earliest_feasible == NOW + 16 * HOUR


def test_one_that_fits_between_no_two_windows_is_told_what_stands_in_its_way() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 100))
    snapshot = world(waits("long", mid=4 * HOUR, slack=DAY), of=of)
    plan = judged(snapshot)
    (update,) = plan.updates
    assert "in 3h a window of queue" in update.message
    told = explain.explain(snapshot, plan, "long")
    assert "windows" in told.change


def test_nobody_is_suspended_for_it_or_has_others_suspended_to_stay_in_it() -> None:
    of = queue((1, 12 * HOUR, 100))
    victims = [runs(f"v{i}", f"n{i}", mid=10 * HOUR) for i in range(4)]
    pressed = waits("j", mid=HOUR, slack=10 * MINUTE)
    plan = judged(world(*victims, pressed, of=of))
    assert (plan.suspend, plan.claim) == ((), ())
    assert codes(plan)["j"] is model.Code.WINDOW
    begun = decide.decide(world(*victims, pressed, of=of), NOW + 1, rivals.CONFIG)
    assert begun.suspend == ()


def test_a_strict_queue_waits_for_whoever_is_at_its_head() -> None:
    of = queue((3 * HOUR, 12 * HOUR, 100), order=model.Order.FIFO)
    jobs = (
        waits("a", mid=4 * HOUR, slack=DAY, submit=NOW - 2),
        waits("b", mid=HOUR, slack=DAY, submit=NOW - 1),
    )
    plan = judged(world(*jobs, of=of))
    assert started(plan) == set()
    assert codes(plan) == {"a": model.Code.WINDOW, "b": model.Code.HEAD_OF_LINE}


def test_it_is_no_limit_to_what_could_ever_run() -> None:
    of = queue((-HOUR, 12 * HOUR, 100))
    plan = judged(world(waits("all", count=4, mid=HOUR, slack=DAY), of=of))
    assert codes(plan)["all"] is model.Code.QUOTA_EXCEEDED


@pytest.mark.parametrize("nominal", [1, 7, 31])
def test_a_share_that_is_no_whole_number_keeps_one_more(nominal: int) -> None:
    job = waits("one", gpus=1, count=nominal, mid=HOUR, slack=DAY)
    plan = judged(world(job, of=queue((-HOUR, HOUR, 1), nominal=nominal)))
    assert started(plan) == set()


def test_what_a_lender_will_keep_free_is_not_borrowed_for_longer() -> None:
    lender = dataclasses.replace(queue((3 * HOUR, 12 * HOUR, 100), nominal=16), name="lender", cohort="c")
    borrower = dataclasses.replace(queue(nominal=16), cohort="c")
    jobs = [waits(f"long{i}", mid=5 * HOUR, slack=DAY) for i in range(3)]
    short = waits("short", mid=2 * HOUR, slack=DAY)
    snapshot = dataclasses.replace(world(*jobs, short, of=borrower), queues=(lender, borrower))
    plan = judged(snapshot)
    assert started(plan) == {"long0", "long1", "short"}
    assert codes(plan)["long2"] is model.Code.WINDOW


def test_room_is_kept_once_though_windows_are_to_come() -> None:
    of = queue(
        (10 * MINUTE, 65 * MINUTE, 40), (302 * MINUTE, 372 * MINUTE, 100), (433 * MINUTE, 434 * MINUTE, 100)
    )
    of = dataclasses.replace(of, pools=queue(nominal=28).pools)
    there = [
        runs("u0", "n0", gpus=4, mid=119 * MINUTE, ago=46 * MINUTE),
        runs("u1", "n1", mid=485 * MINUTE, ago=18 * MINUTE),
        runs("u2", "n2", mid=156 * MINUTE, ago=40 * MINUTE),
        runs("u3", "n3", gpus=4, mid=741 * MINUTE, ago=55 * MINUTE),
    ]
    snapshot = world(*there, waits("j", mid=6 * MINUTE, slack=DAY), of=of)
    for _ in range(3):
        plan = judged(snapshot)
        snapshot = invariants.after(snapshot, plan)
    assert plan.reserve == ()


def test_what_two_lenders_keep_free_at_the_same_time_adds_up() -> None:
    lenders = [
        dataclasses.replace(queue((3 * HOUR, 12 * HOUR, 100), nominal=8), name=name, cohort="c")
        for name in ("one", "two")
    ]
    borrower = dataclasses.replace(queue(nominal=16), cohort="c")
    jobs = [waits(f"long{i}", mid=5 * HOUR, slack=DAY) for i in range(4)]
    snapshot = dataclasses.replace(world(*jobs, of=borrower), queues=(*lenders, borrower))
    assert started(judged(snapshot)) == {"long0", "long1"}
