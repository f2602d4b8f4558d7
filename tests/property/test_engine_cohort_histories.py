"""Random histories of queues that lend each other quota: who is suspended for whom, and never in circles."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from cases import fray
from cases.fray_units import Unit
from lstqueue.engine import model


def team(name: str, nominal: int, **more: object) -> model.Queue:
    pool = model.Pool("p", nominal=((fray.GPU, nominal),))
    return dataclasses.replace(fray.QUEUES[name], pools=(pool,), cohort="ml", **more)


class Teams(fray.Preemptions):
    """The fray among two teams of a cohort, which own 12 GPUs each, on nodes that have 24."""

    QUEUES = {"q": team("q", 12), "t": team("t", 12, created=1)}  # noqa: RUF012 - nobody writes to it

    def __init__(self) -> None:
        super().__init__()
        self.reclaims: dict[str, list[int]] = {}
        self.used: dict[str, int] = {}

    def apply(self, plan: model.Plan) -> None:
        self.used = {name: self.use(name) for name in self.queues}
        for claiming in plan.claim:
            if claiming.reclaims:
                self.reclaims.setdefault(claiming.queue, []).append(self.now)
        super().apply(plan)

    def snapshot(self) -> model.Snapshot:
        last = {queue: times[-1] for queue, times in self.reclaims.items()}
        return dataclasses.replace(super().snapshot(), reclaimed=last)

    def use(self, queue: str) -> int:
        """GPUs that jobs of a queue own or claim."""
        used = 0
        for unit in self.units.values():
            if unit.job.queue == queue and unit.job.state is not model.State.ENDING:
                gpus = dict(unit.job.groups[0].shape.requests)[fray.GPU]
                claimed = unit.job.groups[0].count if unit.job.claim is not None else 0
                used += gpus * (claimed + sum(part.bound + part.held for part in unit.parts))
        return used

    def is_fair(self, victim: Unit, owner: Unit, why: model.Why) -> None:
        """Across queues only what is borrowed; a queue within its nominal quota loses nothing to another."""
        across = victim.job.queue != owner.job.queue
        assert why is (model.Why.RECLAIMED if across else model.Why.PREEMPTED)
        if not across:
            super().is_fair(victim, owner, why)
            return
        nominal = dict(self.queues[victim.job.queue].pools[0].nominal)[fray.GPU]
        assert self.used[victim.job.queue] > nominal, "its queue is within its nominal quota"

    def nobody_is_suspended_too_often(self) -> None:
        """Caps are for one's own queue; across queues the grace bounds it."""
        for queue, times in self.reclaims.items():
            grace = self.queues[queue].reclaim_grace
            occasions = sorted(set(times))
            gaps = [later - sooner for sooner, later in itertools.pairwise(occasions)]
            assert min(gaps, default=grace) >= grace


def play(rng: random.Random, world: Teams, events: int) -> None:
    """Let things happen; whatever it is, passes follow, and all that they must keep is checked."""
    world.a_full_cluster(rng)
    for _ in range(events):
        event = rng.randrange(12)
        if event < 3:
            world.jobs_arrive(rng)
        elif event < 6:
            world.pods_leave(rng)
        elif event < 8:
            world.pods_bind(rng)
        elif event < 9:
            world.a_gang_ends(rng, fails=rng.random() < 0.3)
        elif event < 10 and rng.random() < 0.3:
            world.a_node_breaks_or_returns(rng.choice(fray.NODES))
            world.an_administrator_acts(rng.choice("qt"), rng.choice(["", "", "held", "drained", "observed"]))
        world.time_passes(rng.choice([1, 1, 2, 5, 20]))
        world.state_is_sound()
        world.nobody_is_suspended_too_often()


def test_a_short_history_of_teams() -> None:
    world = Teams()
    play(random.Random(0), world, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_long_histories_of_teams_end_with_everybody_running(seed: int) -> None:
    world = Teams()
    play(random.Random(seed), world, 120)
    world.teardown()
