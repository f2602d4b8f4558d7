"""`wake_at`: between a settled pass and the time it names, time alone changes nothing."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, moments
from cases.moments import GPU, MINUTE, NOW, apply, snapshots
from lstqueue.engine import decide, invariants, justice, keeping, model

PASSES = 8
PLAIN = model.Config()
PROMISES = dataclasses.replace(PLAIN, promising=True)
CONFIGS = st.sampled_from([PLAIN, PROMISES, dataclasses.replace(PROMISES, promise_most=1, promise_again=1)])


def changes(plan: model.Plan) -> bool:
    return bool(moments.acts(plan) or plan.updates or plan.forecast)


def settle(
    snapshot: model.Snapshot, now: int, config: model.Config = PLAIN
) -> tuple[model.Snapshot, model.Plan]:
    for _ in range(PASSES):
        plan = decide.decide(snapshot, now, config)
        assert justice.of_plan(snapshot, plan, config) == ()
        assert keeping.of_plan(snapshot, plan, config) == ()
        if not changes(plan):
            return snapshot, plan
        snapshot = apply(snapshot, plan)
    raise AssertionError(f"still changing after {PASSES} passes: {plan}")


@settings(max_examples=effort.examples(28), deadline=None)
@given(snapshots(), CONFIGS, st.data())
def test_a_pass_before_wake_at_changes_nothing(
    snapshot: model.Snapshot, config: model.Config, data: st.DataObject
) -> None:
    now = NOW
    for _ in range(6):
        snapshot, plan = settle(snapshot, now, config)
        if plan.wake_at is None:
            assert not changes(decide.decide(snapshot, now + 1000 * 24 * model.HOUR, config))
            return
        assert plan.wake_at > now
        between = data.draw(st.integers(now, plan.wake_at - 1))
        for moment in (plan.wake_at - 1, between):
            again = decide.decide(snapshot, moment, config)
            assert not changes(again)
            # One that looks in between may want to look sooner, at a victim that is none for a while, or
            # later, at an overload that work done meanwhile has put off.
            assert again.wake_at is None or moment < again.wake_at
            if again.wake_at is None or again.wake_at > plan.wake_at:
                assert not changes(decide.decide(snapshot, plan.wake_at, config))
        now = plan.wake_at


@settings(max_examples=effort.examples(8), deadline=None)
@given(snapshots(), CONFIGS)
def test_a_settled_world_wakes_up_seldom(snapshot: model.Snapshot, config: model.Config) -> None:
    snapshot, plan = settle(snapshot, NOW, config)
    wakes = 0
    while plan.wake_at is not None and plan.wake_at < NOW + 24 * model.HOUR and wakes < 1000:
        wakes += 1
        snapshot, plan = settle(snapshot, plan.wake_at, config)
    # Per job: seven slack buckets, the end of a back-off, lateness, and for each quantile the steps of an
    # estimate that grows by half each time, from a millisecond to a day. In an overload every five minutes.
    assert wakes <= 2 * len(snapshot.jobs) * (9 + 3 * 46) + 24 * 12


@settings(max_examples=effort.examples(20), deadline=None)
@given(snapshots(), st.integers(0, 100), st.integers(1, 40))
def test_words_said_anew_are_said_once_and_change_nothing_else(
    snapshot: model.Snapshot, minutes: int, nominal: int
) -> None:
    snapshot, _ = settle(snapshot, NOW)
    pools = (model.Pool("all", nominal=((GPU, nominal),)),)
    queues = tuple(dataclasses.replace(queue, pools=pools) for queue in snapshot.queues)
    now = NOW + minutes * MINUTE
    quiet, plain = settle(dataclasses.replace(snapshot, queues=queues), now)
    everybody = frozenset(job.uid for job in quiet.jobs)
    asked = dataclasses.replace(quiet, restate=everybody)
    again = decide.decide(asked, now)
    assert invariants.of_plan(asked, again) == ()
    assert (again.admit, again.wake_at) == (plain.admit, plain.wake_at)
    assert again.forecast >= plain.forecast  # who is told anew is forecast, and that may be all of them
    for update in again.updates:
        told = next(job.published for job in quiet.jobs if job.uid == update.uid)
        assert (update.band, update.code, update.slack) == (told.band, told.code, told.slack)
        assert told.verdict is not None
        assert update.verdict is not None
        assert update.verdict.level is told.verdict.level
    third = decide.decide(apply(asked, again), now)
    assert not moments.acts(third)
    assert not third.updates
