"""What a replay comes to: hand-made lives and small replays whose figures can be worked out by hand."""

import pytest

from cases import replays
from cases.replays import EPOCH, HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import figures, lives, mishaps, policies, replay, world

SHAPE = world.Shape(2, 8)


def _life(key: str, *, completed: int | None, **more: object) -> lives.Life:
    own = ("lost", "restoring", "preempted", "first_level", "first_finish")
    fields = {name: more.pop(name) for name in own if name in more}
    made = lives.Life(key, work(key, **more), (), None)
    made.completed = None if completed is None else EPOCH + completed
    made.first_start = made.work.submit
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _of(*some: lives.Life) -> figures.Figures:
    outcome = replay.Outcome(
        list(some), EPOCH, EPOCH + 10 * HOUR, EPOCH + 2 * HOUR, 1, 16 * HOUR, 4 * HOUR, False
    )
    return figures.of(outcome, SHAPE)


def test_deadlines_are_counted_by_jobs_by_gpu_hours_and_by_width() -> None:
    seen = _of(
        _life("met", gpus=1, due=2 * HOUR, completed=2 * HOUR),
        _life("late", gpus=16, due=2 * HOUR, completed=2 * HOUR + 1),
        _life("never", gpus=2, due=2 * HOUR, completed=None),
        _life("hopeless", gpus=1, due=HOUR - 1, completed=HOUR),
        _life("free", gpus=8, completed=3 * HOUR),
    )
    assert (seen.jobs, seen.completed, seen.deadline_jobs, seen.met) == (5, 4, 4, 1)
    assert seen.deadline_ratio == 1 / 4
    assert (seen.feasible_jobs, seen.feasible_ratio) == (3, 1 / 3)
    assert seen.gpu_hour_ratio == 1 / 20
    assert (seen.wide_jobs, seen.wide_met) == (1, 0)
    assert seen.best_effort_jct_mean_s == 3 * 3600
    assert seen.tardiness_s.most == pytest.approx(0.001)


def test_losses_are_shares_of_the_useful_gpu_time() -> None:
    seen = _of(
        _life("a", gpus=8, completed=5 * HOUR, lost=30 * MINUTE, restoring=6 * MINUTE, preempted=2),
        _life("b", gpus=2, completed=HOUR),
    )
    assert seen.rollback_gpu_share == pytest.approx(4 / 10)
    assert seen.restart_gpu_share == pytest.approx(0.8 / 10)
    assert seen.lost_gpu_share == pytest.approx(4.8 / 10)
    assert (seen.preemptions, seen.preemptions_per_job) == (2, 1.0)


def test_use_of_the_gpus_is_counted_while_jobs_are_submitted() -> None:
    seen = _of(_life("a", completed=HOUR))
    assert seen.gpu_allocation == 16 / 32
    assert seen.idle_wanted_share == 4 / 32


def test_first_verdicts_are_held_against_what_happened() -> None:
    seen = _of(
        _life("a", due=2 * HOUR, completed=HOUR, first_level=model.Level.LIKELY),
        _life("b", due=2 * HOUR, completed=3 * HOUR, first_level=model.Level.LIKELY),
        _life("c", due=2 * HOUR, completed=3 * HOUR, first_level=model.Level.UNLIKELY),
        _life("d", completed=3 * HOUR, first_level=model.Level.UNKNOWN),
    )
    assert seen.verdicts == {"LIKELY": {"met": 1, "missed": 1}, "UNLIKELY": {"met": 0, "missed": 1}}


def test_of_nothing_there_is_nothing_to_say() -> None:
    seen = _of()
    assert seen.deadline_ratio is None
    assert seen.wait_s == figures.Spread()


def test_quantiles_are_values_that_occurred() -> None:
    seen = figures.spread([float(i) for i in range(1, 101)])
    assert (seen.p50, seen.p95, seen.p99, seen.most, seen.mean) == (50, 95, 99, 100, 50.5)


def test_waiting_is_idle_only_while_somebody_waits() -> None:
    # "wide" needs both nodes and waits for "a" with one of them empty; then nobody waits.
    works = [work("a", runs=2 * HOUR), work("wide", gpus=16, at=HOUR, runs=HOUR), work("last", at=4 * HOUR)]
    ran = replays.run(works, nodes=2, queue=model.Queue("q", preemption=model.Preemption.NEVER))
    seen = figures.of(ran.outcome, SHAPE)
    assert seen.idle_wanted_share == pytest.approx(8 / 64, abs=0.001)
    assert seen.gpu_allocation == pytest.approx(32 / 64, abs=0.001)
    assert (seen.idle_kept_share, seen.idle_out_share) == (0, 0)
    assert seen.idle_fragment_share == seen.idle_wanted_share


def test_what_is_idle_is_kept_by_an_order_in_which_nobody_passes() -> None:
    works = [work("a", runs=2 * HOUR), work("wide", gpus=16, at=HOUR, runs=HOUR)]
    works += [work("small", gpus=1, at=HOUR + MINUTE, runs=HOUR), work("last", at=4 * HOUR)]
    ran = replays.run(works, nodes=2, policy=policies.named("fifo"))
    seen = figures.of(ran.outcome, SHAPE)
    assert seen.idle_kept_share == pytest.approx(8 * 59 / 60 / 64, abs=0.001)
    assert seen.idle_wanted_share == pytest.approx(seen.idle_kept_share + seen.idle_fragment_share)


def test_what_is_out_of_service_is_no_fragment() -> None:
    wear = mishaps.Wear(mishaps.Rates(), 1, seed=1, since=EPOCH, windows=mishaps.Windows(2 * HOUR, HOUR))
    works = [work("a", runs=HOUR), work("b", at=130 * MINUTE), work("last", at=4 * HOUR)]
    seen = figures.of(replays.run(works, wear=wear).outcome, world.Shape(1, 8))
    assert seen.idle_out_share == pytest.approx(50 / 240, abs=0.001)
    assert seen.idle_wanted_share == pytest.approx(seen.idle_out_share, abs=0.001)


def test_jobs_that_all_come_at_once_make_no_load() -> None:
    seen = figures.of(replays.run([work("a"), work("b")]).outcome, world.Shape(1, 8))
    assert (seen.load, seen.gpu_allocation, seen.idle_wanted_share) == (None, None, None)


def test_jobs_outside_of_the_time_that_counts_are_in_no_figure() -> None:
    works = [
        work("early", runs=HOUR, due=2 * HOUR),
        work("counts", at=2 * HOUR, runs=HOUR, due=2 * HOUR),
        work("late", at=9 * HOUR, runs=2 * HOUR, due=HOUR),
    ]
    ran = replays.run(works, nodes=1, counted=(replays.EPOCH + HOUR, works[-1].submit - HOUR))
    seen = figures.of(ran.outcome, world.Shape(1, 8))
    assert (seen.jobs, seen.jobs_not_counted, seen.deadline_ratio) == (1, 2, 1.0)
    assert seen.gpu_allocation == pytest.approx(1 / 7, abs=0.001)  # an hour of the seven from 1 to 8
    assert seen.load == pytest.approx(1 / 7)
    assert seen.useful_gpu_share == pytest.approx(1.0, abs=0.001)


def test_deadlines_are_counted_by_width_and_tightness() -> None:
    seen = _of(
        _life("a", gpus=1, due=2 * HOUR, completed=HOUR),
        _life("b", gpus=3, due=80 * MINUTE, completed=2 * HOUR),
        _life("c", gpus=130, due=30 * MINUTE, completed=2 * HOUR),
        _life("d", gpus=2, due=80 * MINUTE, completed=HOUR),
    )
    assert seen.by_width == {
        "1": figures.Class(1, 1, 1.0), "2-3": figures.Class(2, 1, 0.5), "128+": figures.Class(1, 0, 0.0)
    }  # fmt: skip
    assert seen.by_tightness == {
        "below 1": figures.Class(1, 0, 0.0),
        "1.25-1.5": figures.Class(2, 1, 0.5),
        "2-3": figures.Class(1, 1, 1.0),
    }


def test_ends_are_held_against_the_first_forecast() -> None:
    told = (EPOCH + HOUR, EPOCH + 2 * HOUR)
    seen = _of(
        _life("within", completed=125 * MINUTE, first_finish=told),
        _life("early", completed=50 * MINUTE, first_finish=told),
        _life("late", completed=150 * MINUTE, first_finish=told),
        _life("never-told", completed=150 * MINUTE),
    )
    assert seen.forecast_kept_share == pytest.approx(1 / 3)
    assert seen.forecast_error_s.mean == 20 * 60
    assert seen.forecast_error_s.most == 30 * 60
