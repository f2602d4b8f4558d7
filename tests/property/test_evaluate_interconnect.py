"""Random floods on an interconnect: gangs run longer where they are spread, and promises still hold."""

from __future__ import annotations

import random

import pytest

from cases import effort, replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import figures, interconnects, lives, policies, workload

COSTS = lives.Costs(launch=0, grace=30_000, termination=10_000, bind=0, lag=0)


def flood(rng: random.Random) -> list[workload.Work]:
    found: list[workload.Work] = []
    at = 0
    for number in range(rng.randint(15, 40)):
        at += rng.randint(0, 40) * MINUTE
        runs = rng.randint(5, 300) * MINUTE
        due = rng.choice([None, int(runs * rng.uniform(1.0, 4.0)) + rng.randint(0, 60) * MINUTE])
        found.append(
            work(f"w{number}", gpus=rng.choice([4, 8, 8, 16, 16, 24, 32]), at=at, runs=runs, due=due)
        )
    return found


@pytest.mark.parametrize("seed", range(effort.examples(5)))
def test_a_promise_holds_wherever_its_owner_runs(seed: int) -> None:
    rng = random.Random(seed)
    wishes = interconnects.Wishes(
        communication=rng.choice([150_000, 300_000, 600_000]),
        preferred=rng.choice(["", "leafgroup"]),
        max_wait=rng.choice([None, HOUR]),
    )
    config = model.Config(promising=True, promise_area=10.0, launch_margin=0)
    ran = replays.run(
        flood(rng),
        nodes=8,
        topology=rng.choice(["clos:2:2:2", "clos:4:2:4", "clos:2:4:1"]),
        wishes=wishes,
        costs=COSTS,
        config=config,
        policy=policies.named("lst-promises"),
    )
    promised = [life for life in ran.outcome.lives if life.promised]
    assert [life.work.key for life in promised if life.broken or not figures.in_time(life)] == []
    assert not ran.outcome.stuck
