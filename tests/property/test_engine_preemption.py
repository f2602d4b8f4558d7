"""Random histories in which jobs suspend each other; after every event the invariants are checked."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings

from cases import effort
from cases.fray import NODES, Preemptions


@pytest.mark.parametrize("seed", effort.sample(range(3), quick=1))
def test_long_histories(seed: int) -> None:
    """Events drawn evenly: what shrinks well draws too few of those in which jobs meet."""
    rng, world = random.Random(seed), Preemptions()
    world.a_full_cluster(rng)
    for _ in range(80):
        event = rng.randrange(12)
        if event < 3:
            world.jobs_arrive(rng)
        elif event < 6:
            world.pods_leave(rng)
        elif event < 8:
            world.pods_bind(rng)
        elif event < 9:
            world.a_gang_ends(rng, fails=rng.random() < 0.3)
            world.a_finalizer_keeps_or_lets_go(rng)
        elif event < 10 and rng.random() < 0.3:
            world.a_node_breaks_or_returns(rng.choice(NODES))
            world.an_administrator_acts(
                rng.choice("qt"), rng.choice(["", "", "", "held", "drained", "observed", "observed drained"])
            )
        world.time_passes(rng.choice([1, 1, 2, 5, 20]))
        world.state_is_sound()
        world.nobody_is_suspended_too_often()
    world.teardown()


Preemptions.TestCase.settings = settings(
    max_examples=effort.examples(5),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_preemptions = Preemptions.TestCase
