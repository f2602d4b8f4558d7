"""Promises hold, whatever arrives later, as long as nothing runs longer than it was thought to at most."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, replays
from cases.replays import MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import lives, workload

SECOND = 1000
CONFIG = model.Config(promising=True, promise_area=100.0, forecast_depth=0)
COSTS = st.builds(
    lives.Costs,
    launch=st.sampled_from([0, 30 * SECOND, CONFIG.launch_margin]),
    restore=st.sampled_from([0, 120 * SECOND]),
    checkpoint=st.sampled_from([0, 10 * MINUTE, 30 * MINUTE]),
    saves_on_suspend=st.booleans(),
    grace=st.just(60 * SECOND),
    termination=st.sampled_from([0, 5 * SECOND, 60 * SECOND]),
    bind=st.sampled_from([0, 2 * SECOND]),
    lag=st.sampled_from([0, 200]),
)
TIERED = model.Queue("q", preemption=model.Preemption.TIER)
"""A queue in which a higher tier may have any lower one suspended; no tier takes a slot."""
GRACES = st.sampled_from([3 * MINUTE, 3 * MINUTE, 30 * SECOND])
"""With the last nobody can leave a slot in time, so slots are only where nobody else is."""


@st.composite
def traces(draw: st.DrawFn) -> list[workload.Work]:
    """A flood: jobs with little or much slack that come within a few hours, more than there is room for."""
    works = []
    for index in range(draw(st.integers(2, 24))):
        runs = draw(st.integers(1, 240)) * MINUTE
        due = draw(st.none() | st.integers(105, 400).map(lambda share, runs=runs: runs * share // 100))
        at = draw(st.integers(0, 300)) * MINUTE
        gpus = draw(st.sampled_from([1, 2, 3, 8, 12, 16]))
        tier = draw(st.sampled_from([0, 0, 0, 1, 3, -1]))
        works.append(work(f"j{index:02}", gpus=gpus, at=at, runs=runs, due=due, importance=tier))
    return sorted(works, key=lambda one: one.submit)


@st.composite
def queues(draw: st.DrawFn) -> model.Queue:
    """A queue with windows, some of which keep all of its quota free."""
    spans, at = [], workload.EPOCH
    for _ in range(draw(st.integers(1, 3))):
        begins = at + draw(st.integers(0, 300)) * MINUTE
        at = begins + draw(st.integers(1, 300)) * MINUTE
        spans.append(model.Window(begins, at, draw(st.sampled_from([250_000, 500_000, 1_000_000]))))
    return dataclasses.replace(TIERED, windows=tuple(spans))


def keep(
    works: list[workload.Work],
    costs: lives.Costs,
    pass_every: int,
    grace: int,
    queue: model.Queue = TIERED,
) -> None:
    """Replay with whatever fits promised: who was promised a deadline meets it, of whatever tier."""
    config = dataclasses.replace(CONFIG, slot_grace=grace)
    ran = replays.run(works, nodes=2, costs=costs, pass_every=pass_every, config=config, queue=queue)
    promised = [life for life in ran.outcome.lives if life.promised]
    for life in promised:
        assert life.broken is None, (life.work.key, life.broken, ran.log)
        assert life.completed is not None
        assert life.work.deadline is not None
        assert life.completed <= life.work.deadline, (life.work.key, ran.log)


@settings(max_examples=effort.examples(5), deadline=None)
@given(traces(), COSTS, GRACES)
def test_what_was_promised_is_kept_whatever_arrives_later(
    works: list[workload.Work], costs: lives.Costs, grace: int
) -> None:
    keep(works, costs, SECOND, grace)


@pytest.mark.slow
@settings(max_examples=effort.examples(30), deadline=None)
@pytest.mark.timeout(3600)
@given(traces(), COSTS, st.sampled_from([1, SECOND, 20 * SECOND]), GRACES)
def test_what_was_promised_is_kept_of_many_floods(
    works: list[workload.Work], costs: lives.Costs, pass_every: int, grace: int
) -> None:
    keep(works, costs, pass_every, grace)


@pytest.mark.slow
@settings(max_examples=effort.examples(15), deadline=None)
@pytest.mark.timeout(3600)
@given(traces(), COSTS, st.sampled_from([1, SECOND, 20 * SECOND]), GRACES, queues())
def test_what_was_promised_is_kept_beside_windows(
    works: list[workload.Work], costs: lives.Costs, pass_every: int, grace: int, queue: model.Queue
) -> None:
    keep(works, costs, pass_every, grace, queue)


@pytest.mark.slow
@settings(max_examples=effort.examples(15), deadline=None)
@pytest.mark.timeout(3600)
@given(traces(), COSTS, st.sampled_from([0, 100_000, 400_000]), st.sampled_from([0.1, 0.5]))
def test_no_more_is_promised_in_an_overload_than_a_budget_allows(
    works: list[workload.Work], costs: lives.Costs, budget: int, area: float
) -> None:
    """What is promised is looked at in every pass (`pledges`)."""
    config = dataclasses.replace(CONFIG, promise_area=area)
    queue = dataclasses.replace(TIERED, promise_budget=budget)
    ran = replays.run(works, nodes=2, costs=costs, pass_every=20 * SECOND, config=config, queue=queue)
    assert [life.work.key for life in ran.outcome.lives if life.broken is not None] == []
