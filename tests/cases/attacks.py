"""Adversaries: crowds on two nodes of eight GPUs that are made to have the engine suspend without end."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

from cases.replays import FREE, HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import estimates, lives, workload

GPUS = 16
DAY = 24 * HOUR
CONFIG = model.Config(forecast_depth=0, promising=False)  # what is foretold moves nothing; slots ignore caps
SAVES = dataclasses.replace(FREE, restore=0, saves_on_suspend=True)
"""A suspension costs nothing at all, so nothing but rules keeps the engine from making one."""


@dataclasses.dataclass(frozen=True)
class Attack:
    """A crowd, and the world and queue it finds."""

    works: list[workload.Work]
    costs: lives.Costs = FREE
    queue: model.Queue = dataclasses.field(default_factory=lambda: model.Queue("q"))
    estimator: estimates.Estimator = dataclasses.field(default_factory=estimates.Exact)


class Wrong(estimates.Exact):
    """Says a tenth of the run time, or ten times as much."""

    def __init__(self, *factors: float) -> None:
        self._factors = factors

    def ask(self, work: workload.Work) -> model.Estimate | None:
        factor = self._factors[sum(work.key.encode()) % len(self._factors)]
        mid = max(1, int(work.duration * factor))
        return model.Estimate(mid // 4, mid, mid * 3 // 2)


def crowd(rng: random.Random, *, load: float, count: int = 24) -> list[workload.Work]:
    """Jobs that ask for `load` times what there is, most with a deadline, some with hardly any slack."""
    works: list[workload.Work] = []
    asked = 0
    for number in range(count):
        runs, gpus = rng.choice([20, 40, 60, 90, 180]) * MINUTE, rng.choice([1, 2, 4, 8, 8, 16])
        due = None if rng.random() < 0.1 else int(runs * rng.uniform(1.02, 4))
        at = int(asked / (load * GPUS))
        works.append(
            work(f"j{number}", gpus=gpus, at=at, runs=runs, due=due, importance=rng.choice([0, 0, 0, 1]))
        )
        asked += gpus * runs
    return works


def overload(rng: random.Random) -> Attack:
    """Three times what there is."""
    return Attack(crowd(rng, load=3.0))


def equal_slacks(rng: random.Random) -> Attack:
    """Whole-cluster jobs of one length and slack: whoever runs has just as much as whoever waits."""
    slack = rng.choice([0, 30, 90, 620]) * MINUTE
    works = [work(f"e{i}", gpus=GPUS, runs=2 * HOUR, due=2 * HOUR + slack) for i in range(8)]
    return Attack(works, costs=rng.choice([FREE, SAVES]))


def lossless(rng: random.Random) -> Attack:
    """Nobody loses anything by being suspended, so every suspension looks free."""
    return Attack(crowd(rng, load=1.5), costs=SAVES)


def eager(rng: random.Random) -> Attack:
    """No minimum run at all; beginning takes ten minutes, so that runs are cut before they work."""
    costs = dataclasses.replace(SAVES, launch=10 * MINUTE, restore=10 * MINUTE)
    return Attack(crowd(rng, load=1.5), costs=costs, queue=model.Queue("q", min_run=0))


def never_saved(rng: random.Random) -> Attack:
    """The minimum run ends before the first checkpoint, so that a run may be cut before it saves anything."""
    queue = model.Queue("q", min_run=5 * MINUTE)
    return Attack(crowd(rng, load=1.5), dataclasses.replace(FREE, checkpoint=HOUR), queue=queue)


def far_too_short(rng: random.Random) -> Attack:
    """Estimates of a tenth, which each job outruns again and again."""
    return Attack(crowd(rng, load=1.5), estimator=Wrong(0.1))


def far_too_long(rng: random.Random) -> Attack:
    """Estimates of ten times: everybody seems late, or gives up before anything is lost."""
    return Attack(crowd(rng, load=1.5), estimator=Wrong(10.0))


def anyhow(rng: random.Random) -> Attack:
    """Estimates off by ten times either way, side by side."""
    return Attack(crowd(rng, load=1.5), estimator=Wrong(0.1, 10.0, 1.0))


def chasing(rng: random.Random) -> Attack:
    """Newcomers that have just less slack than whoever runs, each at the end of a minimum run."""
    works = [work("long", gpus=GPUS, runs=10 * HOUR, due=40 * HOUR)]
    for number in range(40):
        due = 20 * MINUTE + rng.choice([1, 5, 20]) * MINUTE
        works.append(work(f"c{number}", gpus=GPUS, at=(16 + number * 37) * MINUTE, runs=20 * MINUTE, due=due))
    return Attack(works, costs=rng.choice([FREE, SAVES]))


ATTACKS: list[Callable[[random.Random], Attack]] = [
    overload,
    equal_slacks,
    lossless,
    eager,
    never_saved,
    far_too_short,
    far_too_long,
    anyhow,
    chasing,
]


def most(work: workload.Work, costs: lives.Costs, min_run: int) -> float:
    """How often a job may be suspended in its whole life, whatever its cap; infinite for no bound."""
    if costs.saves_on_suspend:
        return work.duration / min_run if min_run else float("inf")
    if not costs.checkpoint:
        return CONFIG.wasted_most
    return CONFIG.wasted_most + (CONFIG.wasted_most + 1) * (work.duration // costs.checkpoint)
