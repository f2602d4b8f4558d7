"""Whatever tenants do, suspensions stay within the bounds of docs/engine.md, "Why it does not loop".

Each adversary is a random crowd on two nodes of eight GPUs. Every pass is looked at by the engine's
invariants too; here it is what a user could count: how often, how far apart and for what jobs are suspended,
and that each of them ends.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from cases import attacks, effort, replays
from cases.replays import MINUTE
from lstqueue.evaluate import lives


@pytest.mark.parametrize("seed", effort.sample(range(25), quick=1))
@pytest.mark.parametrize("attack", attacks.ATTACKS)
def test_suspensions_are_bounded_and_every_job_ends(attack: Callable[..., attacks.Attack], seed: int) -> None:
    made = attack(random.Random(seed))
    ran = replays.run(
        made.works,
        nodes=2,
        costs=made.costs,
        queue=made.queue,
        config=attacks.CONFIG,
        pass_every=MINUTE,
        audit=seed % 5 == 0,
        estimator=made.estimator,
    )
    assert not ran.outcome.stuck
    for life in ran.outcome.lives:
        within_bounds(life, ran.times(life.work.key, "suspended"), made)
    assert_each_suspension_makes_room(ran, made)


def within_bounds(life: lives.Life, suspended: list[int], made: attacks.Attack) -> None:
    """Assert what one job may be put through."""
    queue, key = made.queue, life.work.key
    assert life.completed is not None, key
    for first, last in zip(suspended, suspended[queue.cap :], strict=False):
        assert last - first >= attacks.DAY, f"{key} is suspended more than {queue.cap} times within a day"
    for first, last in itertools.pairwise(suspended):
        assert last - first >= queue.min_run, f"{key} is suspended again before a run of full length"
    assert len(suspended) <= attacks.most(life.work, made.costs, queue.min_run), key
    assert life.fruitless <= attacks.CONFIG.wasted_most, key


def assert_each_suspension_makes_room(ran: replays.Ran, made: attacks.Attack) -> None:
    """So suspensions come no oftener than starts do, one for each job and one for each suspension."""
    suspended = [at for at, what, _ in ran.log if what == "suspended"]
    admitted = [at for at, what, _ in ran.log if what == "admitted"]
    assert len(admitted) == len(made.works) + len(suspended)
    for at in suspended:
        assert any(at <= then <= at + made.costs.grace + attacks.CONFIG.claim_margin for then in admitted), at
