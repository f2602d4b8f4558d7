"""A pass that nobody keeps is freed at once: nothing in it holds it in a circle."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from cases import rivals
from cases.rivals import CONFIG, HOUR, MINUTE, NOW, runs, waits
from lstqueue.engine import decide, invariants, kept, memory, model

FULL = [runs(f"v{i}", f"n{i}", mid=(3 + i) * HOUR, ago=HOUR) for i in range(4)]
WIDE = waits("wide", count=2, slack=24 * HOUR)
PRESSING = waits("pressing", count=1, slack=30 * MINUTE)
SMALL = waits("small", count=1, slack=20 * HOUR)


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("jobs", [(), (WIDE,), (WIDE, SMALL), (WIDE, PRESSING, SMALL)])
def test_a_pass_is_freed_with_its_plan(jobs: tuple[model.Job, ...]) -> None:
    known = memory.Memory()
    snapshot, before = rivals.world(*FULL, *jobs, nodes=4), _passes()
    for _ in range(3):  # with reservations and claims written
        plan = decide.decide(snapshot, NOW, CONFIG, known)
        assert isinstance(plan.kept, kept.Kept)
        snapshot = invariants.after(snapshot, plan)
    del plan
    assert _passes() == before


def _passes() -> int:
    return sum(isinstance(one, kept.Kept) for one in gc.get_objects())
