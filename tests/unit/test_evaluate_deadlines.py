"""By when jobs are due: each rule, and that a draw depends on the seed and the row alone."""

from __future__ import annotations

import dataclasses
import pathlib
import random

import pytest

from cases import trace_files as files
from lstqueue.evaluate import deadlines, traces, workload

EPOCH, HOUR = files.EPOCH, files.HOUR


def trace(*works: workload.Work) -> workload.Workload:
    numbered = [dataclasses.replace(work, row=row) for row, work in enumerate(works)]
    return workload.Workload("t", workload.ordered(numbered), rows=len(works))


def due(made: workload.Workload) -> dict[str, int | None]:
    return {work.key: None if work.deadline is None else work.deadline - EPOCH for work in made.works}


def apply(
    made: workload.Workload, rule: str, *, seed: int = 1, best_effort: float = 0.0
) -> workload.Workload:
    return deadlines.apply(made, deadlines.parse(rule), seed=seed, best_effort=best_effort)


def test_uniform_draws_once_for_each_row_in_the_order_of_the_file() -> None:
    draw = random.Random(7)
    first, second = (draw.uniform(1.1, 3.0) for _ in range(2))
    made = trace(files.work("late", submit=HOUR), files.work("early", submit=0))

    assert due(apply(made, "uniform:1.1:3.0", seed=7)) == {
        "late": HOUR + int(first * HOUR),
        "early": int(second * HOUR),
    }


def test_dropped_rows_and_a_cut_move_nobody_elses_draw(tmp_path: pathlib.Path) -> None:
    head = "job_id,submission_time,deadline,num_gpu,duration\n"
    whole = files.read(tmp_path, "elasticflow", head + "a,1,2,1,60\nb,2,3,1,60\nc,3,4,1,60\nd,4,5,1,60\n")
    holed = files.read(tmp_path, "elasticflow", head + "a,1,2,1,60\nb,2,3,0,60\nc,3,4,1,60\nd,4,5,1,\n")
    all_four = due(apply(whole, "uniform:1:2"))

    assert due(apply(holed, "uniform:1:2")) == {key: all_four[key] for key in "ac"}
    assert due(apply(whole.first(2), "uniform:1:2")) == {key: all_four[key] for key in "ab"}


def test_factor_and_sdsc_give_what_they_say() -> None:
    made = trace(files.work("long", duration=10 * HOUR), files.work("short", duration=1000))

    assert due(apply(made, "factor:2")) == {"long": 20 * HOUR, "short": 2000}
    by_rule = due(apply(made, "sdsc", seed=3))
    assert by_rule["short"] == 1000 + 900_000
    assert by_rule["long"] == int(random.Random(3).uniform(1.1, 3.0) * 10 * HOUR)


def test_file_keeps_and_none_takes_every_deadline() -> None:
    made = trace(files.work("a", due=2 * HOUR), files.work("b"))

    assert due(apply(made, "file")) == {"a": 2 * HOUR, "b": None}
    assert due(apply(made, "none")) == {"a": None, "b": None}


def test_best_effort_of_the_trace_itself_stays_so() -> None:
    made = trace(files.work("a", undated=True), files.work("b"))

    assert due(apply(made, "factor:3")) == {"a": None, "b": 3 * HOUR}
    only = trace(files.work("a", undated=True))
    assert due(apply(only, "file")) == {"a": None}


def test_a_best_effort_share_takes_deadlines_and_moves_none() -> None:
    made = trace(*(files.work(str(number)) for number in range(1000)))
    whole, part = due(apply(made, "uniform:1:2")), due(apply(made, "uniform:1:2", best_effort=0.3))
    kept = {key: at for key, at in part.items() if at is not None}

    assert 650 < len(kept) < 750
    assert kept.items() <= whole.items()
    assert due(apply(made, "factor:2", best_effort=1.0)) == dict.fromkeys(whole)
    assert part != due(apply(made, "uniform:1:2", best_effort=0.3, seed=2))


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("", "must be file, uniform:A:B, factor:X, sdsc or none"),
        ("uniform", "is no rule"),
        ("uniform:1", "is no rule"),
        ("file:1", "is no rule"),
        ("uniform:3:1", "write the smaller factor first"),
        ("uniform:1:x", "'x' as a factor; it must be above 0, at most 1000"),
        ("factor:nan", "'nan' as a factor"),
        ("factor:inf", "'inf' as a factor"),
        ("factor:-1", "'-1' as a factor"),
    ],
)
def test_a_rule_that_cannot_be_read_says_what_to_write(rule: str, says: str) -> None:
    with pytest.raises(deadlines.DeadlineError) as caught:
        deadlines.parse(rule)
    assert says in str(caught.value)


def test_file_is_refused_where_the_trace_has_none() -> None:
    with pytest.raises(deadlines.DeadlineError, match="t has no deadlines of its own; give a rule that sets"):
        apply(trace(files.work("a")), "file")
    with pytest.raises(deadlines.DeadlineError, match=r"share is 1\.5; it must be 0 to 1"):
        apply(trace(files.work("a")), "none", best_effort=1.5)


def test_the_redrawn_deadlines_of_cluster03_are_those_of_the_published_rule() -> None:
    made = traces.read(f"elasticflow:{files.real('elasticflow-itp/cluster03.csv.gz')}")
    factors = random.Random(1)
    drawn = apply(made, "uniform:1.1:3.0").works

    # This file is in the order of its submissions, so rows and jobs agree.
    assert [work.deadline for work in drawn] == [
        work.submit + int(factors.uniform(1.1, 3.0) * work.duration) for work in drawn
    ]
