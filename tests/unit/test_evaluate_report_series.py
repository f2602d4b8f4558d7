"""The curves of a report: they add up to the figures, and small replays give what one works out by hand."""

import numpy as np
import pytest

from cases import replays, reports
from cases.replays import EPOCH, HOUR, MINUTE, work
from lstqueue.engine import model
from lstqueue.evaluate import figures, lives, mishaps, world
from lstqueue.evaluate.report import curves, gantt, series

COSTS = lives.Costs(launch=MINUTE, restore=5 * MINUTE, checkpoint=30 * MINUTE, termination=5_000)


def _crowd() -> series.Recorded:
    """Two nodes with more to do than they can, and urgent gangs that have others suspended."""
    works = [
        work(f"long-{index}", gpus=8, at=index * MINUTE, runs=9 * HOUR, due=40 * HOUR) for index in range(4)
    ]
    works += [
        work(f"soon-{index}", at=(2 + 3 * index) * HOUR, runs=HOUR, due=2 * HOUR, gpus=8)
        for index in range(3)
    ]
    works += [work("wide", gpus=16, at=7 * HOUR, runs=HOUR, due=3 * HOUR), work("free", gpus=2, at=HOUR)]
    return reports.recorded(works, nodes=2, costs=COSTS)


def test_a_curve_is_the_mean_over_each_bin() -> None:
    edges = np.array([0.0, 10.0, 20.0, 30.0])
    assert series.means([(5, 15, 4), (0, 10, 1)], edges).tolist() == [3.0, 2.0, 0.0]
    assert series.means([], edges).tolist() == [0.0, 0.0, 0.0]


def test_gpus_in_use_add_up_to_what_gangs_held() -> None:
    seen = reports.recorded([work("a", runs=HOUR, due=9 * HOUR), work("b", gpus=4, at=2 * HOUR, runs=HOUR)])
    assert seen.length == 3 * 3600
    assert series.in_use(seen, seen.edges(3)).tolist() == [8.0, 0.0, 4.0]
    assert seen.gpus == 8


def test_who_waits_asks_for_gpus_until_it_starts() -> None:
    seen = reports.recorded(
        [work("a", runs=2 * HOUR, due=9 * HOUR), work("b", gpus=8, at=HOUR, runs=HOUR, due=9 * HOUR)]
    )
    assert series.asked_for(seen, seen.edges(3)).tolist() == [0.0, 8.0, 0.0]


def test_slack_shrinks_while_a_job_waits() -> None:
    first = work("first", runs=6 * HOUR, due=6 * HOUR)
    patient = model.Queue("q", preemption=model.Preemption.NEVER)
    second = work("second", runs=HOUR, due=6 * HOUR, at=1)
    seen = reports.recorded([first, second], queue=patient)
    # Its slack is 5 h at first; the last hour of its wait it is beyond hope.
    by_hour = [curve.round(2).tolist() for curve in series.slacks(seen, np.arange(8) * 3600.0)]
    late, tight, near, far, free = by_hour
    assert far == [1.0, 0, 0, 0, 0, 0, 0]
    assert near == [0, 1.0, 1.0, 1.0, 0, 0, 0]
    assert tight == [0, 0, 0, 0, 1.0, 0, 0]
    assert late == [0, 0, 0, 0, 0, 1.0, 0]
    assert free == [0] * 7


def test_losses_add_up_to_the_figures() -> None:
    seen = _crowd()
    found = figures.of(seen.outcome, world.Shape(2, 8))
    lost = series.losses(seen, seen.edges(7))
    assert found.preemptions > 0
    assert lost.suspensions.sum() == found.preemptions
    useful = sum(life.work.gpus * life.work.duration for life in seen.outcome.lives) / HOUR
    assert lost.again.sum() / useful == pytest.approx(found.rollback_gpu_share)
    assert lost.restarts.sum() / useful == pytest.approx(found.restart_gpu_share)


def test_widths_and_margins_count_every_job_once() -> None:
    seen = _crowd()
    found = figures.of(seen.outcome, world.Shape(2, 8))
    rows = series.widths(seen)
    assert [row.name for row in rows] == ["2–3", "8–15", "16–31"]
    assert sum(row.jobs for row in rows) == found.jobs
    assert sum(row.dated for row in rows) == found.deadline_jobs
    assert sum(row.met for row in rows) == found.met
    margins = series.margins(seen)
    assert sum(row.jobs for row in margins) == found.deadline_jobs
    assert sum(row.jobs for row in margins if row.met) == found.met


def test_a_margin_is_named_by_how_early_or_late_the_job_ended() -> None:
    works = [
        work("early", gpus=1, runs=HOUR, due=3 * HOUR),
        work("just", gpus=1, runs=HOUR, due=HOUR),
        work("late", gpus=1, runs=2 * HOUR, due=HOUR),
    ]
    counts = {row.name: row.jobs for row in series.margins(reports.recorded(works)) if row.jobs}
    assert counts == {"1 to 4 h early": 1, "below 1 h early": 1, "1 to 4 h late": 1}


def test_gangs_are_drawn_whole_and_on_gpus_of_their_own() -> None:
    seen = _crowd()
    names = list(seen.record.nodes)
    drawn = gantt._lanes(gantt.window(seen).stays, names, 8)
    for stay in seen.record.stays:
        assert sum(count for other, _, _, count in drawn if other is stay) == stay.life.work.gpus
    taken = [(stay, node, gpu) for stay, node, first, count in drawn for gpu in range(first, first + count)]
    for index, (stay, node, gpu) in enumerate(taken):
        for other, *place in taken[:index]:
            if place == [node, gpu]:
                assert other.until <= stay.since or stay.until <= other.since


def test_too_many_gangs_are_cut_to_the_time_of_the_longest_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt, "GANGS", 20)
    calm = [work(f"calm-{index}", gpus=1, at=index * 6 * HOUR, due=9 * HOUR) for index in range(40)]
    rush = [work(f"rush-{index}", at=120 * HOUR, due=99 * HOUR) for index in range(8)]
    seen = reports.recorded([*calm, *rush])
    chosen = gantt.window(seen)
    assert len(chosen.stays) <= 20
    assert chosen.begin <= 121 * 3600 <= chosen.end
    shown = gantt.gangs(seen)
    assert "A part: around the time at which most GPUs were waited for" in shown.note


def test_many_nodes_share_rows_of_the_map() -> None:
    seen = reports.recorded([work("a", gpus=800, runs=HOUR, due=9 * HOUR)], nodes=100)
    full = gantt.Map(seen)
    assert full.size == 3
    assert len(full.names) == 34
    assert [row.tolist() for row in full.shares(1)] == [[1.0]] * 34
    assert "up to 3 nodes a row" in gantt.fullness(seen).note


def test_a_record_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    works = [work(f"job-{index}", gpus=4, at=index * MINUTE, runs=HOUR, due=3 * HOUR) for index in range(6)]
    without = replays.run(works).outcome
    with_it = reports.recorded(works).outcome
    assert [life.completed for life in without.lives] == [life.completed for life in with_it.lives]
    assert without.passes == with_it.passes


def test_what_is_out_of_service_is_drawn_and_no_capacity() -> None:
    rates = mishaps.Rates(failures=3000.0, gpu_failures=3000.0, repair=HOUR)
    wear = mishaps.Wear(rates, 2, seed=1, since=EPOCH)
    seen = reports.recorded([work("a", gpus=4, runs=20 * HOUR)], nodes=2, wear=wear)
    kinds = {outage.gpus for outage in seen.record.outages}
    assert kinds >= {1, 8}
    assert all(outage.until > outage.since for outage in seen.record.outages)
    lost = sum(outage.gpus * (outage.until - outage.since) for outage in seen.record.outages)
    (mean,) = series.in_service(seen, seen.edges(1))
    assert mean == pytest.approx(16 - lost / (seen.length * 1000))
    for shown in (gantt.fullness(seen), gantt.gangs(seen)):
        assert shown.draw(900.0).findall(".//*[@class='out']")
    assert "out of service on average" in curves.gpus(seen).said
