"""The evaluator's cluster: what starting, stopping and knowing cost, and what a suspension leaves behind."""

import pytest

from cases import replays
from cases.replays import FREE, HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import digest, lives, workload, world

SECOND = 1000


def test_a_gang_alone_runs_at_once_and_for_as_long_as_it_takes() -> None:
    ran = replays.run([work("a", gpus=12, runs=3 * HOUR)], nodes=2)
    assert ran.times("a", "admitted") == ran.times("a", "works") == [0]
    assert ran.done("a") == 3 * HOUR
    assert ran.life("a").preempted == ran.life("a").lost == 0


def test_starting_costs_binding_and_launching_and_is_known_later() -> None:
    costs = lives.Costs(launch=30 * SECOND, bind=5 * SECOND, lag=SECOND, grace=0, termination=0)
    ran = replays.run([work("a")], costs=costs)
    assert ran.times("a", "submitted") == ran.times("a", "admitted") == [SECOND]
    assert ran.times("a", "works") == [37 * SECOND]
    assert ran.done("a") == 36 * SECOND + HOUR
    assert ran.times("a", "completed") == [37 * SECOND + HOUR]


def test_room_is_given_again_only_once_its_end_is_known() -> None:
    costs = lives.Costs(launch=0, bind=0, lag=2 * SECOND, grace=0, termination=0)
    ran = replays.run([work("a"), work("b", at=1)], costs=costs)
    assert ran.done("a") == 2 * SECOND + HOUR
    assert ran.times("b", "admitted") == [4 * SECOND + HOUR]


def _rivals(**second: int) -> list[workload.Work]:
    """A long job without a deadline that runs for 50 minutes when one comes that cannot wait."""
    given = {"at": 50 * MINUTE, "runs": HOUR, "due": 90 * MINUTE} | second
    return [work("long", runs=10 * HOUR), work("hurried", **given)]


def test_a_suspended_gang_loses_what_it_did_since_its_checkpoint_and_pays_for_its_restart() -> None:
    ran = replays.run(_rivals())
    (suspended,) = ran.times("long", "suspended")
    assert 50 * MINUTE <= suspended < 51 * MINUTE
    life, hurried = ran.life("long"), ran.done("hurried")
    assert hurried is not None
    assert hurried <= 140 * MINUTE
    assert (life.saved, life.lost) == (30 * MINUTE, suspended - 30 * MINUTE)
    assert ran.done("long") == hurried + 2 * MINUTE + 10 * HOUR - 30 * MINUTE
    assert life.restoring == 2 * MINUTE
    assert life.preempted == 1


def test_a_gang_that_saves_when_told_loses_nothing() -> None:
    costs = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0, saves_on_suspend=True)
    ran = replays.run(_rivals(), costs=costs)
    life = ran.life("long")
    assert life.lost == 0
    assert life.saved == ran.times("long", "suspended")[0]


def test_who_is_suspended_for_whom_is_remembered_until_a_full_run() -> None:
    ran = replays.run(_rivals(at=5 * MINUTE + 15 * MINUTE, runs=20 * MINUTE, due=25 * MINUTE))
    life = ran.life("long")
    assert life.displaced_by == (ran.life("hurried").uid,)
    assert life.wasted == 1
    assert [at - replays.EPOCH for at in life.suspensions] == ran.times("long", "suspended")


def test_room_of_a_suspended_gang_is_free_when_its_pods_are_gone() -> None:
    costs = lives.Costs(launch=0, bind=0, lag=0, grace=60 * SECOND, termination=20 * SECOND)
    ran = replays.run(_rivals(), costs=costs)
    (suspended,) = ran.times("long", "suspended")
    assert ran.times("long", "waits") == [suspended + 20 * SECOND]
    assert ran.times("hurried", "admitted") == [suspended + 20 * SECOND]


def test_a_victim_that_is_through_when_it_is_told_to_stop_has_completed() -> None:
    costs = lives.Costs(launch=0, bind=0, lag=10 * SECOND, grace=0, termination=0)
    place = world.World(world.Shape(1, 8), costs, model.Queue("q"), log=digest.Log())
    life = place.arrive("0", work("a"), None, replays.EPOCH)
    groups = (model.GroupPlacement("all", (("node-0", 1),)),)
    admission = model.Admission("0", "all", groups)
    place.apply(model.Plan(replays.EPOCH, admit=(admission,)), replays.EPOCH)
    through = replays.EPOCH + HOUR
    assert place.pass_time(through)
    told = model.Suspend("0", 1, model.Why.PREEMPTED, "other")
    place.apply(model.Plan(through, suspend=(told,)), through)
    assert life.preempted == 0
    assert place.pass_time(through + 10 * SECOND)
    assert life.completed == through
    assert place.take_completed() == [life]
    assert not place.waiting


def test_nobody_is_suspended_in_a_queue_that_never_does() -> None:
    ran = replays.run(_rivals(), queue=model.Queue("q", preemption=model.Preemption.NEVER))
    assert ran.times("long", "suspended") == []
    assert ran.done("long") == 10 * HOUR


def test_a_gang_too_wide_waits_and_the_replay_ends_all_the_same() -> None:
    ran = replays.run([work("wide", gpus=16, due=2 * HOUR), work("a")])
    assert ran.outcome.stuck
    assert ran.done("wide") is None
    assert ran.done("a") == HOUR


def test_nothing_is_another_object_unless_it_is_another() -> None:
    ran = replays.run([work("a", gpus=16), work("b", gpus=16)], nodes=2)
    before = ran.place.snapshot(forecast_at=0, changed=False)
    after = ran.place.snapshot(forecast_at=0, changed=False)
    assert all(one is other for one, other in zip(before.nodes, after.nodes, strict=True))
    assert {node.used for node in after.nodes} == {()}


@pytest.mark.parametrize("name", ["launch", "restore", "checkpoint", "bind", "lag"])
def test_costs_below_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"costs.{name} is -1 ms; it must be 0 or more"):
        lives.Costs(**{name: -1})


def test_pods_cannot_take_longer_to_leave_than_they_are_given() -> None:
    with pytest.raises(ValueError, match=r"costs.termination is 5000 ms; it must be at most the grace, 0 ms"):
        lives.Costs(grace=0)
    assert FREE.termination == 0
