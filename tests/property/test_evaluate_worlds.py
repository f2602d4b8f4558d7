"""Random traces through the evaluator: work is conserved, gangs are whole, and plans are only what may be."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, replays
from cases.replays import MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import lives, mishaps, policies, workload

SECOND = 1000
COSTS = st.builds(
    lives.Costs,
    launch=st.sampled_from([0, 30 * SECOND]),
    restore=st.sampled_from([0, 120 * SECOND]),
    checkpoint=st.sampled_from([0, 10 * MINUTE, 30 * MINUTE]),
    saves_on_suspend=st.booleans(),
    grace=st.just(60 * SECOND),
    termination=st.sampled_from([0, 5 * SECOND, 60 * SECOND]),
    bind=st.sampled_from([0, 2 * SECOND]),
    lag=st.sampled_from([0, 200, 5 * SECOND]),
)


@st.composite
def traces(draw: st.DrawFn) -> list[workload.Work]:
    count = draw(st.integers(1, 14))
    works = []
    for index in range(count):
        runs = draw(st.integers(1, 240)) * MINUTE
        due = draw(st.none() | st.integers(105, 300).map(lambda share, runs=runs: runs * share // 100))
        at = draw(st.integers(0, 180)) * MINUTE
        works.append(
            work(f"j{index}", gpus=draw(st.sampled_from([1, 3, 8, 12, 16])), at=at, runs=runs, due=due)
        )
    return works


@settings(max_examples=effort.examples(8), deadline=None)
@given(traces(), COSTS, st.sampled_from([1, SECOND, MINUTE]), st.sampled_from(list(model.Order)))
def test_everybody_does_all_of_its_work_and_nothing_breaks(
    works: list[workload.Work], costs: lives.Costs, pass_every: int, order: model.Order
) -> None:
    config = model.Config(order=order)
    ran = replays.run(works, nodes=2, costs=costs, pass_every=pass_every, config=config)
    for life in ran.outcome.lives:
        assert life.completed is not None
        assert life.first_start is not None
        assert life.first_start >= life.work.submit + costs.bind + costs.launch
        assert life.completed >= life.first_start + life.work.duration
    assert ran.place.busy == 0
    assert all(not node.used for node in ran.place.snapshot(forecast_at=0, changed=False).nodes)


RATES = st.builds(
    mishaps.Rates,
    failures=st.sampled_from([0.0, 2000.0]),
    gpu_failures=st.sampled_from([0.0, 2000.0]),
    drains=st.sampled_from([0.0, 2000.0]),
    repair=st.just(40 * MINUTE),
)


@settings(max_examples=effort.examples(8), deadline=None)
@given(traces(), COSTS, RATES, st.sampled_from(policies.ALL), st.integers(0, 9))
def test_under_every_policy_and_any_mishaps_nothing_breaks_and_everything_is_the_same_again(
    works: list[workload.Work], costs: lives.Costs, rates: mishaps.Rates, policy: policies.Policy, seed: int
) -> None:
    def once() -> replays.Ran:
        return replays.run(
            works,
            nodes=2,
            costs=costs,
            policy=policy,
            pass_every=MINUTE,
            wear=mishaps.Wear(rates, 2, seed=seed, since=works[0].submit),
        )

    ran = once()
    assert ran.digest == once().digest
    for life in ran.outcome.lives:
        if life.completed is not None:
            assert life.saved <= life.work.duration
            assert life.completed >= life.work.submit + life.work.duration + costs.bind
    if ran.outcome.stuck:  # nodes may be down, but never for good
        assert policy.name == "kube-scheduler", "gangs get stuck only where pods are placed one by one"
