"""The engine against what is provably best: on small crowds it never does better, and by so much worse.

`.venv/bin/pytest -s -m slow -k mean_gap tests/property/test_evaluate_oracles.py` prints the gaps that
docs/evaluation.md reports.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from cases import replays
from cases.replays import MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import bounds, bounds_exact, policies, workload

pytest.importorskip("scipy", reason="the extra `evaluate` brings the solvers")
pytest.importorskip("ortools", reason="the extra `evaluate` brings the solvers")

NODES = 2
GPUS = 8 * NODES
CASES = 200
QUICK = (1, 2)
EFFORT = 1.0
"""Of CP-SAT, in its own deterministic time; without a closed proof its bound is valid all the same."""
SEARCH = 500
"""Nodes of the search of HiGHS."""
CONFIG = model.Config(forecast_depth=0, promising=False)  # what is foretold moves nothing


@dataclass(frozen=True)
class Found:
    """Deadlines met in one case, and bounds of what could be: staying put, and suspending at no cost."""

    jobs: int
    staying: int
    rigid: bounds_exact.Proof
    suspending: int
    preemptive: bounds_exact.Proof
    fluid: float


def crowd(seed: int) -> list[workload.Work]:
    """30 to 50 jobs that ask for between 0.8 and 1.6 times what two nodes have."""
    rng = random.Random(seed)
    load = rng.uniform(0.8, 1.6)
    works: list[workload.Work] = []
    asked = 0
    for number in range(rng.randint(30, 50)):
        runs, gpus = rng.randint(2, 24) * 5 * MINUTE, rng.choice([1, 1, 2, 4, 8, 8, 16])
        due = int(runs * rng.uniform(1.1, 3.0))
        works.append(work(f"j{number}", gpus=gpus, at=int(asked / load / GPUS), runs=runs, due=due))
        asked += gpus * runs
    return works


def met(works: list[workload.Work], policy: str) -> int:
    ran = replays.run(
        works, nodes=NODES, config=CONFIG, pass_every=MINUTE, audit=False, policy=policies.named(policy)
    )
    return sum(
        life.completed is not None and life.completed <= (life.work.deadline or 0)
        for life in ran.outcome.lives
    )


def found(seed: int) -> Found:
    """Replay a case with and without preemption, and bound both; asserts that nobody beats a bound."""
    works = crowd(seed)
    case = Found(
        jobs=len(works),
        staying=met(works, "lst-no-preempt"),
        rigid=bounds_exact.rigid(works, GPUS, effort=EFFORT),
        suspending=met(works, "lst"),
        preemptive=bounds_exact.preemptive(works, GPUS, nodes=SEARCH),
        fluid=bounds.fluid(works, GPUS, bin_ms=5 * MINUTE).met,
    )
    assert case.staying <= case.rigid.bound, seed
    assert case.rigid.met <= case.preemptive.bound, seed
    assert case.suspending <= case.preemptive.bound, seed
    assert case.preemptive.bound <= case.fluid + 1e-6, seed
    return case


@pytest.mark.parametrize("seed", QUICK)
def test_no_replay_meets_more_than_the_optimum(seed: int) -> None:
    case = found(seed)
    assert case.suspending >= case.jobs // 3


@pytest.mark.slow
def test_the_mean_gap_to_the_optimum_is_small() -> None:
    cases = [found(seed) for seed in range(CASES)]
    jobs = sum(case.jobs for case in cases)
    gaps = []
    for name, met, proofs in (
        ("without preemption", [case.staying for case in cases], [case.rigid for case in cases]),
        ("with preemption", [case.suspending for case in cases], [case.preemptive for case in cases]),
    ):
        most, closed = sum(proof.bound for proof in proofs), sum(proof.closed for proof in proofs)
        gaps.append((most - sum(met)) / jobs)
        print(
            f"\n{name}: {jobs} jobs, met {sum(met) / jobs:.3f} of {most / jobs:.3f}, {closed} proofs closed"
        )
    assert max(gaps) <= 0.16
