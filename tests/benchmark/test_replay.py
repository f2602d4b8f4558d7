"""How fast a trace is replayed, in jobs per CPU second: two days, at times asking for more than there is.

Prints; asserts only a floor so wide that it is a defect. With the environment variable `LSTQUEUE_DATA` (the
folder of docs/traces.md) a slice of chronus SLO is replayed as well.
"""

from __future__ import annotations

import math
import random
import time

import pytest

from cases import replays, trace_files
from lstqueue.engine import model
from lstqueue.evaluate import check, deadlines, digest, estimates, lives, replay, traces, workload, world

pytestmark = pytest.mark.benchmark

JOBS = 1_500
SHAPE = world.Shape(nodes=64, gpus_per_node=8)
FLOOR = 10
"""Jobs per CPU second."""


def overload(seed: int = 1) -> workload.Workload:
    """Half of the time more is asked for than there is; four of five jobs have deadlines."""
    rng = random.Random(seed)
    works, clock = [], 0
    for number in range(JOBS):
        gpus = rng.choices((1, 2, 4, 8, 16, 32, 64), (40, 15, 15, 15, 9, 5, 1))[0]
        runs = min(max(int(rng.lognormvariate(8.0, 1.4)), 60), 86_400) * 1000
        crowded = clock // (12 * model.HOUR) % 2
        clock += int(rng.expovariate(1) * (85_000 if crowded else 130_000))
        due = int(runs * rng.uniform(1.1, 3.0)) if rng.random() < 0.8 else None
        works.append(replays.work(f"job-{number}", gpus=gpus, at=clock, runs=runs, due=due))
    return workload.Workload("overload", tuple(works))


def timed(name: str, load: workload.Workload, shape: world.Shape, *, books: bool) -> float:
    """Replay without verdicts, passes a minute apart; return jobs per CPU second."""
    witness = check.Books(shape, replays.FREE) if books else None
    log, config = digest.Log(), model.Config(forecast_depth=0)
    place = world.World(
        shape,
        replays.FREE,
        model.Queue(lives.QUEUE),
        log=log,
        witnesses=() if witness is None else (witness,),
    )
    estimator = estimates.parse("exact", seed=1, config=config)
    again = replay.Replay(load, place, estimator, config=config, pass_every=model.MINUTE)

    def decided(snapshot: model.Snapshot, plan: model.Plan) -> None:
        if witness is not None:
            witness.planned(snapshot, plan)

    yardsticks = [yardstick()]
    began = time.process_time()
    outcome = again.run(decided=decided)
    took = time.process_time() - began
    yardsticks.append(yardstick())
    assert witness is None or not witness.broken, witness.violations
    speed = len(load.works) / took
    met = sum(
        1 for one in outcome.lives if one.work.deadline and (one.completed or math.inf) <= one.work.deadline
    )
    print(
        f"{name}, invariants {'on' if books else 'off'}: {len(load.works):,} jobs, {outcome.passes:,} passes,"
        f" {took:.1f} s of CPU, {speed:.0f} jobs/s, {met:,} deadlines met, digest {log.digest()[:12]} "
        f"(yardstick {sum(yardsticks) / 2:.2f} ms)"
    )
    return speed


def yardstick() -> float:
    """A fixed piece of work, in ms of CPU: the best of three."""
    found = []
    for _ in range(3):
        began, total = time.process_time(), 0
        for number in range(10_000):
            total += number * number % 7
        found.append((time.process_time() - began) * 1000)
    return min(found)


def test_an_overload_is_replayed() -> None:
    load = overload()
    speeds = [timed("overload", load, SHAPE, books=books) for books in (False, True)]
    assert min(speeds) > FLOOR


def test_a_slice_of_chronus_slo_is_replayed() -> None:
    trace = trace_files.real("chronus-philly/trace_job_Philly_SLO.csv.gz")
    load = deadlines.apply(
        traces.read(f"chronus:{trace}", gpus_per_node=8), deadlines.parse("file"), seed=1, best_effort=0.0
    )
    load = load.first(5_000)
    assert timed("chronus SLO", load, world.Shape(nodes=100, gpus_per_node=8), books=False) > FLOOR
