"""Moves: what is ruled out without a search is what no search would find."""

from __future__ import annotations

import random

import pytest

from cases import rivals
from cases.rivals import HOUR, MINUTE, runs, slack_of, waits
from lstqueue.engine import decide, model, moves


def crowded(draw: random.Random) -> model.Snapshot:
    """Up to six nodes of eight GPUs, part of each held by small jobs, and wide gangs for which some move."""
    nodes = draw.randint(2, 6)
    jobs: list[model.Job] = []
    for node in range(nodes):
        left = 8
        while left > 0 and draw.random() < 0.8:
            gpus = min(left, draw.choice([1, 1, 2, 3, 4]))
            left -= gpus
            slack = draw.choice([15 * MINUTE, HOUR, 5 * HOUR, 40 * HOUR])
            due = slack_of(slack, ago=20 * MINUTE, mid=10 * HOUR)
            uid = f"r{len(jobs)}"
            jobs.append(runs(uid, f"n{node}", gpus=gpus, deadline=due, ago=20 * MINUTE, mid=10 * HOUR))
    for number in range(draw.randint(1, 3)):
        gang = {"count": draw.randint(1, 3), "gpus": draw.choice([3, 4, 8]), "mid": 13 * HOUR}
        jobs.append(waits(f"w{number}", slack=draw.choice([0, 5 * MINUTE, HOUR]), **gang))
    return rivals.world(*jobs, nodes=nodes)


def test_ruling_moves_out_from_below_changes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    moved, ruled = 0, 0
    cheap = moves._is_cheap
    for seed in range(300):
        snapshot = crowded(random.Random(seed))
        plan = decide.decide(snapshot, rivals.NOW, rivals.CONFIG)
        found: list[bool] = []

        def always(*asked: object, found: list[bool] = found) -> bool:
            found.append(cheap(*asked))  # type: ignore[arg-type] # as it was called
            return True

        monkeypatch.setattr(moves, "_is_cheap", always)
        searched = decide.decide(snapshot, rivals.NOW, rivals.CONFIG)
        monkeypatch.setattr(moves, "_is_cheap", cheap)
        assert searched == plan, seed
        moved += bool(plan.claim)
        ruled += found.count(False)
    assert moved >= 20
    assert ruled >= 10
