"""Nodes that fail, lose a GPU or are drained, and what becomes of the gangs on them."""

import itertools

import pytest

from cases import replays
from cases.replays import EPOCH, FREE, HOUR, MINUTE, work
from lstqueue.evaluate import lives, mishaps, world

DAY = 24 * HOUR


class Script(mishaps.Wear):
    """Mishaps that a test names: (at, until) in ms after the trace's zero, node, kind, draw."""

    def __init__(self, *told):
        super().__init__(mishaps.Rates(), 0, seed=0, since=0)
        made = [mishaps.Mishap(EPOCH + at, EPOCH + until, *rest) for at, until, *rest in told]
        made.append(mishaps.Mishap(1 << 60, 1 << 60, 0, mishaps.Kind.DRAIN, 0.0))
        self._draw(iter([*made, made[-1], made[-1]]))


def failing(at, *, kind=mishaps.Kind.FAILURE, node=0, draw=0.0, lasts=HOUR):
    return Script((at, at + lasts, node, kind, draw))


def test_a_failed_node_ends_the_runs_on_it_and_is_used_again_when_it_is_repaired():
    ran = replays.run([work("a", runs=3 * HOUR)], wear=failing(70 * MINUTE))
    life = ran.life("a")
    assert ran.times("a", "struck") == [70 * MINUTE]
    assert (life.saved, life.lost, life.struck, life.preempted) == (HOUR, 10 * MINUTE, 1, 0)
    assert ran.times("a", "admitted") == [0, 130 * MINUTE]
    assert ran.done("a") == 130 * MINUTE + 2 * MINUTE + 2 * HOUR


def test_a_gang_of_two_nodes_goes_elsewhere_when_one_of_them_fails():
    ran = replays.run([work("a", gpus=16, runs=3 * HOUR)], nodes=3, wear=failing(HOUR, node=1))
    assert ran.times("a", "admitted") == [0, HOUR]
    assert ran.done("a") == HOUR + 2 * MINUTE + 2 * HOUR


def test_a_lost_gpu_ends_only_the_run_that_has_it():
    works = [work("a", gpus=4, runs=3 * HOUR), work("b", gpus=4, runs=3 * HOUR)]
    ran = replays.run(works, wear=failing(HOUR, kind=mishaps.Kind.GPU, draw=0.6))
    assert ran.times("a", "struck") == []
    assert ran.times("b", "struck") == [HOUR]
    assert ran.times("b", "admitted") == [0, 2 * HOUR]  # four of seven are taken
    idle = replays.run(works[:1], wear=failing(HOUR, kind=mishaps.Kind.GPU, draw=0.6))
    assert idle.times("a", "struck") == []


def test_a_drained_node_lets_jobs_save_that_can_and_takes_no_others():
    saving = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0, saves_on_suspend=True)
    for costs, saved in ((saving, 70 * MINUTE), (FREE, HOUR)):
        ran = replays.run(
            [work("a", runs=3 * HOUR)], costs=costs, wear=failing(70 * MINUTE, kind=mishaps.Kind.DRAIN)
        )
        assert ran.life("a").saved == saved
        assert ran.times("a", "admitted") == [0, 130 * MINUTE]


def test_a_failure_saves_nothing_though_the_job_would_when_asked():
    saving = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0, saves_on_suspend=True, checkpoint=0)
    ran = replays.run([work("a", runs=3 * HOUR)], costs=saving, wear=failing(HOUR))
    assert (ran.life("a").saved, ran.life("a").lost) == (0, HOUR)


def test_pods_that_were_leaving_a_node_are_gone_when_it_fails():
    costs = lives.Costs(launch=0, bind=0, lag=0, grace=10 * MINUTE, termination=10 * MINUTE)
    works = [work("long", runs=10 * HOUR), work("hurried", at=50 * MINUTE, runs=HOUR, due=90 * MINUTE)]
    (suspended,) = replays.run(works, costs=costs).times("long", "suspended")
    ran = replays.run(works, costs=costs, wear=failing(suspended + MINUTE, lasts=2 * MINUTE))
    assert ran.times("long", "waits")[0] == suspended + MINUTE
    assert ran.outcome.stuck is False


def test_mishaps_alone_do_not_keep_a_replay_from_ending():
    wear = mishaps.Wear(mishaps.Rates(failures=10.0), 1, seed=1, since=EPOCH)
    ran = replays.run([work("wide", gpus=16), work("a")], wear=wear)
    assert ran.outcome.stuck
    assert ran.done("a") is not None


def test_as_many_happen_as_the_rate_says_and_they_last_as_long_in_the_median():
    rates = mishaps.Rates(failures=50.0, repair=2 * HOUR)
    wear = mishaps.Wear(rates, 200, seed=7, since=0)
    begun = [mishap for mishap, begins in wear.take(100 * DAY) if begins]
    assert 900 < len(begun) < 1100  # of 20,000 node-days, 50 in 1,000
    spans = sorted(mishap.until - mishap.at for mishap in begun)
    assert 1.7 * HOUR < spans[len(spans) // 2] < 2.3 * HOUR


def test_one_rate_moves_no_other_kind_and_seeds_are_different_histories():
    def times(kind, seed, **rates):
        wear = mishaps.Wear(mishaps.Rates(**rates), 50, seed=seed, since=0)
        return [mishap.at for mishap, begins in wear.take(50 * DAY) if begins and mishap.kind is kind]

    alone = times(mishaps.Kind.GPU, 1, gpu_failures=20.0)
    assert alone
    assert times(mishaps.Kind.GPU, 1, gpu_failures=20.0, failures=20.0, drains=9.0) == alone
    assert times(mishaps.Kind.GPU, 2, gpu_failures=20.0) != alone


def test_what_ends_and_begins_comes_in_order_and_nothing_twice():
    wear = mishaps.Wear(mishaps.Rates(failures=500.0, repair=DAY), 3, seed=3, since=0)
    for at in itertools.count(HOUR, HOUR):
        if at > 60 * DAY:
            break
        for mishap, begins in wear.take(at):
            assert (mishap.at if begins else mishap.until) <= at
        assert len(wear.down) <= 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"failures": -1.0}, "rates.failures is -1.0; it must be 0 to 10000"),
        ({"drains": 1e9}, "rates.drains is"),
        ({"repair": 0}, "rates.repair is 0 ms; it must be 1 or more"),
        ({"spread": 9.0}, "rates.spread is 9.0; it must be 0 to 5"),
    ],
)
def test_rates_that_cannot_be_are_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        mishaps.Rates(**changed)


def test_a_world_without_rates_has_no_mishaps():
    ran = replays.run([work("a")])
    assert ran.place.next_mishap is None
    assert ran.place.shape == world.Shape(1, 8)


def test_maintenance_takes_its_turn_with_the_nodes():
    windows = mishaps.Windows(10 * HOUR, 2 * HOUR, 0.5)
    wear = mishaps.Wear(mishaps.Rates(), 4, seed=1, since=EPOCH, windows=windows)
    begun = [(one.at - EPOCH, one.node) for one, begins in wear.take(EPOCH + 41 * HOUR) if begins]
    assert begun == [(hour * HOUR, node) for hour, nodes in
                     ((10, (0, 1)), (20, (2, 3)), (30, (0, 1)), (40, (2, 3))) for node in nodes]  # fmt: skip


def test_maintenance_asks_gangs_to_leave_and_takes_no_others():
    saving = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0, saves_on_suspend=True)
    windows = mishaps.Windows(70 * MINUTE, HOUR)
    wear = mishaps.Wear(mishaps.Rates(), 1, seed=1, since=EPOCH, windows=windows)
    ran = replays.run([work("a", runs=75 * MINUTE)], costs=saving, wear=wear)
    assert ran.times("a", "struck") == [70 * MINUTE]
    assert ran.times("a", "admitted") == [0, 130 * MINUTE]
    assert ran.done("a") == (130 + 2 + 5) * MINUTE


@pytest.mark.parametrize(
    ("told", "words"),
    [((HOUR, HOUR), "windows.length is 3600000 ms"), ((HOUR, MINUTE, 0.0), "windows.share is 0.0")],
)
def test_windows_that_cannot_be_are_refused(told, words):
    with pytest.raises(ValueError, match=words):
        mishaps.Windows(*told)
