"""What a tenant with many tight deadlines costs another in the same queue, and what padding pays it.

`.venv/bin/pytest -s -m slow tests/property/test_engine_flood.py` prints the shares of deadlines met that
docs/engine.md reports ("Why it does not loop"). Quota protects tenants from each other, the order does not.
"""

from __future__ import annotations

import dataclasses
import random

import pytest

from cases import replays
from cases.replays import MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import estimates, teams, workload

GPUS = 16
SEEDS = 2
CONFIG = model.Config(forecast_depth=0)  # what is foretold moves nothing


class Padded(estimates.Exact):
    """The flooding tenant says so many times its run times."""

    def __init__(self, factor: int) -> None:
        self._factor = factor

    def ask(self, work: workload.Work) -> model.Estimate | None:
        if self._factor == 1 or not work.key.startswith("flood"):
            return super().ask(work)
        mid = work.duration * self._factor
        return model.Estimate(mid // 4, mid, mid * 3 // 2)


def tenant(
    rng: random.Random, name: str, *, load: float, until: int, runs: list[int], slack: tuple[float, float]
) -> list[workload.Work]:
    """Jobs of one tenant that ask for `load` times what there is until a time; slack is in run times."""
    works: list[workload.Work] = []
    at = asked = 0
    while at < until:
        lasts, gpus = rng.choice(runs) * MINUTE, rng.choice([1, 2, 4, 8])
        due = int(lasts * rng.uniform(*slack))
        made = work(f"{name}{len(works)}", gpus=gpus, at=at, runs=lasts, due=due)
        works.append(dataclasses.replace(made, user=name))
        asked += gpus * lasts
        at = int(asked / (load * GPUS))
    return works


HALVES = (teams.Team("honest", 8, users=("honest",)), teams.Team("flood", 8))
APART, COHORT = teams.Teams(HALVES), teams.Teams(HALVES, "ml")
"""A queue for each, with half of the GPUs."""


def met(
    seed: int,
    *,
    load: float,
    padding: int = 1,
    several: teams.Teams | None = None,
    config: model.Config = CONFIG,
) -> dict[str, float]:
    """The share of deadlines met by each tenant where the flood asks for `load` times what there is."""
    until = 12 * replays.HOUR
    works = tenant(
        random.Random(seed), "honest", load=0.4, until=until, runs=[60, 120, 180], slack=(1.5, 4.0)
    )
    if load:
        rng = random.Random(1000 + seed)
        works += tenant(rng, "flood", load=load, until=until, runs=[10, 20, 30], slack=(1.1, 1.5))
    ran = replays.run(
        works,
        nodes=2,
        config=config,
        pass_every=MINUTE,
        audit=False,
        estimator=Padded(padding),
        several=several,
    )
    found: dict[str, list[bool]] = {}
    for life in ran.outcome.lives:
        assert life.completed is not None, life.work.key
        assert life.broken in (None, model.Cause.STUCK if several is COHORT else None), life.work.key
        in_time = life.completed <= (life.work.deadline or 0)
        found.setdefault(life.work.key.rstrip("0123456789"), []).append(in_time)
    return {name: sum(one) / len(one) for name, one in found.items()}


@pytest.mark.slow
def test_a_flood_costs_its_neighbours_deadlines_and_padding_pays_it_nothing() -> None:
    shares: dict[tuple[float, int], dict[str, float]] = {}
    for load, padding in ((0, 1), (1, 1), (3, 1), (3, 10)):
        each = [met(seed, load=load, padding=padding) for seed in range(SEEDS)]
        shares[load, padding] = {name: sum(one[name] for one in each) / SEEDS for name in each[0]}
        print(f"flood of {load}, estimates times {padding}: {shares[load, padding]}")
    assert shares[0, 1]["honest"] >= 0.95
    assert shares[3, 10]["flood"] <= shares[3, 1]["flood"]
    assert shares[3, 10]["honest"] >= shares[3, 1]["honest"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("promising", [False, True])
def test_a_queue_of_its_own_protects_a_tenant_from_a_flood(promising: bool) -> None:
    config = dataclasses.replace(CONFIG, promising=promising)
    shares: dict[tuple[str, float, int], float] = {}
    for name, several in (("one queue", None), ("apart", APART), ("a cohort", COHORT)):
        for load, padding in ((0, 1), (3, 1), (3, 10)):
            each = [
                met(seed, load=load, padding=padding, several=several, config=config) for seed in range(SEEDS)
            ]
            shares[name, load, padding] = sum(one["honest"] for one in each) / SEEDS
            print(f"{name}, promises {promising}, flood of {load} × {padding}: {shares[name, load, padding]}")
    for padding in (1, 10):
        assert shares["apart", 3, padding] >= shares["apart", 0, 1] - 0.05
    assert shares["a cohort", 0, 1] >= shares["apart", 0, 1]  # what the other does not use is lent
    assert shares["one queue", 3, 1] - 0.05 <= shares["a cohort", 3, 1] <= shares["apart", 3, 1]
