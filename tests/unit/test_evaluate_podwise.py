"""Policies without gangs: pods one by one, and what that does to gangs."""

import pytest

from cases import replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.evaluate import mishaps, policies

EMULATIONS = ("kube-scheduler", "kueue-strict-fifo", "kueue-best-effort-fifo")


def run(name, works, **more):
    return replays.run(works, policy=policies.named(name), **more)


def deadlock():
    """`a` gets one of two nodes, `b` half of the other; each waits for what the other holds."""
    return [
        work("half", gpus=4, runs=HOUR),
        work("a", at=MINUTE, gpus=16, runs=HOUR),
        work("b", at=2 * MINUTE, gpus=12, runs=HOUR),
        work("last", at=6 * HOUR, gpus=1, runs=HOUR),
    ]


def test_gangs_wait_for_each_other_for_ever_where_pods_are_placed_one_by_one():
    ran = run("kube-scheduler", deadlock(), nodes=2)
    assert ran.outcome.stuck
    assert (ran.done("a"), ran.done("b")) == (None, None)
    assert ran.done("half") == HOUR
    assert ran.done("last") is not None  # what is narrow goes on
    # `a` holds 8 GPUs from its submission on, `b` 4.
    held = 8 * (6 * HOUR - MINUTE) + 4 * (6 * HOUR - 2 * MINUTE)
    assert ran.outcome.partial_loaded == held
    assert ran.place.busy == ran.place.partial == 12


def test_whole_gangs_do_not():
    ran = replays.run(deadlock(), nodes=2)
    assert not ran.outcome.stuck
    assert ran.outcome.partial_loaded == ran.place.partial == 0


@pytest.mark.parametrize("name", EMULATIONS[1:])
def test_a_gate_sends_back_who_is_not_complete_in_time_and_lets_it_in_again(name):
    works = [
        work("x", gpus=5, runs=40 * MINUTE),
        work("y", gpus=5, runs=5 * HOUR),
        work("wide", at=MINUTE, gpus=6, runs=HOUR),
    ]
    ran = run(name, works, nodes=2)  # by the count 6 of 16 are left, on no node more than 3
    assert ran.times("wide", "waits") == [31 * MINUTE]
    assert ran.times("wide", "works") == [40 * MINUTE]
    assert not ran.outcome.stuck


def test_a_strict_gate_lets_nobody_pass_and_the_other_does():
    works = [
        work("running", gpus=12, runs=HOUR),
        work("wide", at=MINUTE, gpus=8),
        work("small", at=2 * MINUTE, gpus=2),
    ]
    strict, other = [run(name, works, nodes=2) for name in EMULATIONS[1:]]
    assert strict.times("small", "works") == [HOUR]
    assert other.times("small", "works") == [2 * MINUTE]


@pytest.mark.parametrize("name", EMULATIONS)
def test_a_failed_node_takes_the_pods_of_an_incomplete_gang_with_it(name):
    works = [work("half", gpus=4, runs=10 * MINUTE), work("a", at=1, gpus=16, runs=HOUR)]
    rates = mishaps.Rates(failures=9000.0, repair=MINUTE)
    ran = run(name, works, nodes=2, wear=mishaps.Wear(rates, 2, seed=1, since=works[0].submit))
    assert ran.done("a") is not None
    assert ran.place.busy == ran.place.partial == 0
    assert all(not node.used for node in ran.place.snapshot(forecast_at=0, changed=False).nodes)
