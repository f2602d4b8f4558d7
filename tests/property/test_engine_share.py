"""However many deadlines there are, best-effort work starts within the bound of its share and gets done."""

from __future__ import annotations

import dataclasses
import random

import pytest

from cases import effort, replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import workload

GPUS = 16
SHARE = 250_000  # ppm: four of the sixteen
QUEUE = model.Queue("q", best_effort_share=SHARE)
LONGEST = 2 * HOUR
RESTART = 2 * MINUTE
FLOOD = 12 * HOUR
CONFIG = model.Config(forecast_depth=0, promising=False)  # what is foretold moves nothing; slots come first


def flood(rng: random.Random) -> list[workload.Work]:
    """Deadline jobs that ask for three times what there is, for as long as the test looks, some tight."""
    works: list[workload.Work] = []
    at = asked = 0
    while at < FLOOD:
        runs, gpus = rng.choice([HOUR, LONGEST]), rng.choice([1, 2, 4, 8, 8, 16])
        due = runs + rng.choice([MINUTE, 30 * MINUTE, 3 * HOUR, 12 * HOUR])
        key, important = f"d{len(works)}", rng.choice([0, 0, 1])
        works.append(work(key, gpus=gpus, at=at, runs=runs, due=due, importance=important))
        asked += gpus * runs
        at = asked // (3 * GPUS)
    return works


def modest(rng: random.Random) -> list[workload.Work]:
    """Best-effort jobs; together they ask for less than would take the share until the flood ends."""
    works: list[workload.Work] = []
    for number in range(rng.randint(1, 3)):
        gpus = rng.choice([1, 2, 4, 8, 16])
        runs = rng.choice([20 * MINUTE, HOUR]) if gpus <= 4 else 20 * MINUTE
        works.append(work(f"b{number}", gpus=gpus, at=rng.randint(0, 120) * MINUTE, runs=runs))
    return works


@pytest.mark.parametrize("seed", effort.sample(range(20), quick=2))
def test_best_effort_work_starts_within_its_bound(seed: int) -> None:
    """Work ahead over the share, and one longest run for each start ahead: for what it has to wait to end."""
    rng = random.Random(seed)
    works, rest = flood(rng), modest(rng)
    works += rest
    ran = replays.run(works, nodes=2, queue=QUEUE, config=CONFIG, pass_every=MINUTE, audit=False)
    for one in rest:
        # Who of the flood has missed a deadline has no part in the share.
        elders = [elder for elder in rest if elder.submit <= one.submit]
        elders = [elder for elder in elders if (ran.done(elder.key) or 0) > one.submit - workload.EPOCH]
        at = one.submit - workload.EPOCH
        ahead = sum(elder.gpus * elder.duration for elder in elders)
        starts = [time for elder in elders for time in ran.times(elder.key, "admitted") if time >= at]
        first = ran.times(one.key, "admitted")[0]
        drains = sum(time <= first for time in starts)
        # A run of a job may be interrupted, and then lasts longer; the flood's are over within this.
        longest = LONGEST + RESTART
        bound = ahead * 1_000_000 // (SHARE * GPUS) + drains * (longest + MINUTE)
        assert first - at <= bound, (one.key, first - at, bound)
        assert ran.done(one.key) is not None


def test_without_the_share_the_same_flood_starves_it() -> None:
    """So the bound above says something: a wide job without a deadline waits until the flood is over."""
    deadlines = [work(f"d{i}", gpus=4, at=i * 5 * MINUTE, runs=HOUR, due=90 * MINUTE) for i in range(100)]
    wide = work("b", gpus=16, at=2 * HOUR, runs=20 * MINUTE)
    over = 100 * 5 * MINUTE
    first = []
    for config in (CONFIG, dataclasses.replace(CONFIG, sharing=False)):
        ran = replays.run(
            [*deadlines, wide], nodes=2, queue=QUEUE, config=config, pass_every=MINUTE, audit=False
        )
        first.append(ran.times("b", "admitted")[0])
    assert first[0] <= 2 * HOUR + 80 * MINUTE + HOUR + RESTART
    assert first[1] >= over
