"""What the readers make of traces: which rows become jobs, which do not and why."""

from __future__ import annotations

import collections
import pathlib

import pytest

from cases import trace_files as files
from lstqueue.evaluate import traces, workload
from lstqueue.topology import model as topology

EPOCH, SECOND, MINUTE = files.EPOCH, files.SECOND, files.MINUTE


def test_elasticflow_rows_become_gangs_in_the_order_of_submission(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "elasticflow", files.ELASTICFLOW)

    assert [work.key for work in trace.works] == ["b", "c", "a"]
    b, c, a = trace.works
    assert (a.submit, a.duration, a.deadline) == (EPOCH + 100_000, 200_000, EPOCH + 400_000)
    assert (a.row, b.row, c.row) == (0, 1, 2)
    assert c.duration == 1500
    assert (trace.rows, trace.dropped, trace.name) == (3, (), "elasticflow:trace")


def test_a_gang_fills_whole_nodes_and_one_pod_takes_the_rest(tmp_path: pathlib.Path) -> None:
    pods = {work.key: work.pods for work in files.read(tmp_path, "elasticflow", files.ELASTICFLOW).works}
    one, rest, full = (topology.resources({workload.GPU: gpus, "pods": 1}) for gpus in (1, 4, 8))

    assert pods["a"] == (workload.Pods(1, one),)
    assert pods["b"] == (workload.Pods(2, full), workload.Pods(1, rest))
    assert pods["c"] == (workload.Pods(1, full),)
    [wide] = [
        w
        for w in files.read(tmp_path, "elasticflow", files.ELASTICFLOW, gpus_per_node=10).works
        if w.key == "b"
    ]
    assert [group.count for group in wide.pods] == [2]


def test_chronus_counts_in_minutes_and_knows_who_is_best_effort(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "chronus", files.CHRONUS)
    best, soft, strict = trace.works

    assert (strict.key, strict.user, strict.submit) == ("0", "ann", EPOCH + 30 * MINUTE)
    assert (strict.duration, strict.deadline) == (20 * MINUTE, EPOCH + 70 * MINUTE)
    assert (best.deadline, best.undated) == (None, True)
    assert (soft.deadline, soft.value) == (EPOCH + 82 * MINUTE, 9)
    assert trace.dropped == (("width zero or negative", 1),)
    assert trace.completed == (("first of several soft deadlines taken", 1),)


def test_a_chronus_job_without_a_value_counts_as_one_and_is_named(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "chronus", files.CHRONUS.replace(",40,10,", ",40,,"))

    assert [work.value for work in trace.works] == [1, 9, 1]
    assert dict(trace.completed)["value unknown or below 1 taken as 1"] == 1


def test_philly_keeps_the_hour_of_the_week(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "philly", files.PHILLY)
    tuesday = EPOCH + 24 * files.HOUR

    assert [(work.key, work.submit, work.duration) for work in trace.works] == [
        ("row-000002", tuesday + 12 * files.HOUR, 7250),
        ("row-000000", tuesday + 24 * files.HOUR + 5 * SECOND, 60_000),
    ]
    assert trace.works[0].user == "v2"
    assert trace.dropped == (("run time zero or negative", 1),)


def test_openb_leaves_out_what_has_no_known_run_and_says_why(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "openb", files.OPENB)

    assert [(work.key, work.duration, work.undated) for work in trace.works] == [
        ("p0", 50_000, False),
        ("p1", 39_000, True),
        ("p5", 75_000, False),
    ]
    assert dict(trace.dropped) == {
        "asks for no GPU": 1,
        "never scheduled": 1,
        "still ran when the trace ended": 1,
    }
    assert trace.completed == (("share of a GPU taken as a whole one", 1),)


def test_swf_takes_a_width_from_the_request_unless_the_job_was_cancelled(tmp_path: pathlib.Path) -> None:
    trace = files.read(tmp_path, "swf", files.SWF)

    assert [(work.key, work.gpus, work.requested, work.user) for work in trace.works] == [
        ("1", 16, 600_000, "7"),
        ("3", 24, None, ""),
        ("7", 8, 600_000, "8"),
    ]
    assert trace.works[2].duration == 70_500
    assert dict(trace.dropped) == {
        "run time unknown": 1,
        "width unknown": 1,
        "partial execution": 1,
        "run time zero or negative": 1,
    }
    assert trace.completed == (("width taken from the request", 1),)
    assert trace.rows == 7


def test_ones_own_format_reads_alike_as_csv_and_as_json(tmp_path: pathlib.Path) -> None:
    table = (
        "key,submit_ms,duration_ms,gpus,pods,user,deadline_ms,requested_ms,value,importance\n"
        "a,1500,60000,12,,ann,90000,120000,3,-1\n"
        "b,0,60000,,4x8+1x3,,,,,\n"
    )
    records = (
        '{"key": "a", "submit_ms": 1500, "duration_ms": 60000, "gpus": 12, "user": "ann",'
        ' "deadline_ms": 90000, "requested_ms": 120000, "value": 3, "importance": -1}\n\n'
        '{"key": "b", "submit_ms": 0, "duration_ms": 6e4, "pods": "4x8+1x3", "deadline_ms": null}\n'
    )
    trace = files.read(tmp_path, "lstqueue", table)

    assert trace == files.read(tmp_path, "lstqueue", records)
    b, a = trace.works
    assert (a.gpus, a.deadline, a.requested, a.value, a.importance) == (12, EPOCH + 90_000, 120_000, 3, -1)
    assert (b.gpus, [group.count for group in b.pods], b.undated) == (35, [4, 1], True)


def test_ones_own_json_can_ask_for_any_resource(tmp_path: pathlib.Path) -> None:
    record = (
        '{"key": "a", "submit_ms": 0, "duration_ms": 1, "pods": '
        '[{"count": 2, "requests": {"nvidia.com/gpu": 8, "cpu": 4000}},'
        ' {"count": 1, "requests": {"cpu": 500}}]}'
    )
    [work] = files.read(tmp_path, "lstqueue", record).works

    assert work.gpus == 16
    assert work.pods[1] == workload.Pods(1, (("cpu", 500), ("pods", 1)))
    assert work.undated is False


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (",100,400,1,200", "no job id"),
        ("a,,400,1,200", "submission time unknown"),
        ("a,-1,400,1,200", "submitted before the trace began"),
        ("a,100,400,1,NaN", "run time unknown"),
        ("a,100,400,1,0", "run time zero or negative"),
        ("a,100,400,1,-5", "run time zero or negative"),
        ("a,100,400,null,200", "width unknown"),
        ("a,100,400,-8,200", "width zero or negative"),
        ("z,100,400,1,200", "job id seen before"),
    ],
)
def test_rows_that_mean_nothing_are_left_out_and_counted(
    tmp_path: pathlib.Path, row: str, reason: str
) -> None:
    head = "job_id,submission_time,deadline,num_gpu,duration\nz,5,9,1,3\n"
    trace = files.read(tmp_path, "elasticflow", f"{head}{row}\n")

    assert [work.key for work in trace.works] == ["z"]
    assert trace.dropped == ((reason, 1),)
    assert trace.rows == 2


def test_a_run_time_below_a_millisecond_is_one(tmp_path: pathlib.Path) -> None:
    text = "job_id,submission_time,deadline,num_gpu,duration\na,1.0005,2,1,1e-4\n"
    [work] = files.read(tmp_path, "elasticflow", text).works

    assert (work.submit, work.duration) == (EPOCH + 1000, 1)


def test_a_job_that_cannot_meet_its_deadline_stays(tmp_path: pathlib.Path) -> None:
    text = "job_id,submission_time,deadline,num_gpu,duration\na,100,40,1,200\nb,100,nan,1,200\n"
    past, without = files.read(tmp_path, "elasticflow", text).works

    assert past.deadline == EPOCH + 40_000
    assert (without.deadline, without.undated) == (None, False)


REAL = [
    ("elasticflow:elasticflow-itp/cluster03.csv.gz", 3011, {}, {1: 1014, 8: 1777, 16: 94, 32: 24, 64: 17}),
    ("elasticflow:elasticflow-itp/cluster04.csv.gz", 15802, {}, {1: 11924, 16: 182, 32: 254, 64: 6}),
    ("chronus:chronus-philly/trace_job_Philly_SLO.csv.gz", 30735, {"width zero or negative": 205}, {16: 105}),
    ("chronus:chronus-philly/trace_job_Philly_MIX1.csv.gz", 30756, {"width zero or negative": 184}, {32: 14}),
    ("philly:philly-jobs/philly.csv.gz", 82247, {}, {1: 76627, 128: 3}),
    (
        "openb:alibaba-openb-2023/openb_pod_list_default.csv.gz",
        6171,
        {"asks for no GPU": 1088, "never scheduled": 861, "still ran when the trace ended": 32},
        {8: 43, 4: 15},
    ),
    (
        "swf:pwa-sdsc-blue/SDSC-BLUE-2000-4.2-cln.w28-31.swf.gz",
        23672,
        {"run time unknown": 90, "width unknown": 67},
        {},
    ),
]


@pytest.mark.parametrize(("spec", "jobs", "dropped", "widths"), REAL, ids=[case[0] for case in REAL])
def test_published_traces_are_read_in_full(
    spec: str, jobs: int, dropped: dict[str, int], widths: dict[int, int]
) -> None:
    form, _, name = spec.partition(":")
    trace = traces.read(f"{form}:{files.real(name)}")
    seen = collections.Counter(work.gpus for work in trace.works)

    assert len(trace.works) == jobs
    assert dict(trace.dropped) == dropped
    assert trace.rows == jobs + sum(dropped.values())
    assert {width: seen[width] for width in widths} == widths
    assert len({work.key for work in trace.works}) == jobs
