"""What becomes of one DeadlineJob in a recorded trace, and the file that only grows."""

import json
import pathlib
from typing import Any

import pytest

from cases import objects
from lstqueue.api import durations, times
from lstqueue.evaluate import traces, workload
from lstqueue.operator import queues
from lstqueue.record import book, rows

NOTHING = rows.Asked({})
CREATED = times.parse("2026-03-02T00:00:00Z")


def at(minutes: int) -> str:
    return times.format(CREATED + minutes * durations.MINUTE)


def run(start: int, end: int, lost: str | None = None) -> dict[str, Any]:
    found = {"start": at(start), "end": at(end), "nodes": 1, "reason": "Preempted"}
    return {**found, "lost": lost} if lost else found


def done(*runs: dict[str, Any], uid: str = "u-1", status: dict[str, Any] | None = None, **spec: Any) -> Any:
    """A DeadlineJob that succeeded at the end of its last run."""
    said = {"phase": "Succeeded", "runs": [*runs], "queue": "research", **(status or {})}
    if runs:
        said.setdefault("completionTime", runs[-1]["end"])
    raw = objects.job("train", status=said, **spec)
    raw["metadata"] |= {"uid": uid, "creationTimestamp": at(0)}
    return raw


def test_a_job_is_its_gang_its_times_and_what_its_user_said(tmp_path: pathlib.Path) -> None:
    container = {
        "name": "main",
        "image": "t",
        "resources": {"requests": {"cpu": "4", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "8"}},
    }
    groups = [
        objects.group("leader", replicas=1),
        objects.group("worker", replicas=3, template=objects.template(containers=[container])),
    ]
    raw = done(run(10, 70), groups=groups, deadlineIn="5h", estimatedDuration="2h", value=3, importance=-1)
    path = tmp_path / "spür.jsonl"
    with book.Book(path) as into:
        into.add(rows.row(raw, NOTHING))
    (work,) = traces.read(f"lstqueue:{path}").works
    assert work.key == "default/train/u-1"
    assert (work.user, work.gpus, work.value, work.importance) == ("default", 32, 3, -1)
    assert (work.submit, work.duration) == (CREATED, durations.HOUR)
    assert (work.deadline, work.requested) == (CREATED + 5 * durations.HOUR, 2 * durations.HOUR)
    assert [pods.count for pods in work.pods] == [1, 3]
    assert dict(work.pods[1].requests) == {"cpu": 4000, "memory": 1 << 30, "nvidia.com/gpu": 8, "pods": 1}


def test_a_replay_takes_nodes_to_have_enough_of_what_is_asked_for_beside_gpus(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trace.jsonl"
    container = {"name": "main", "image": "t", "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4"}}}
    with book.Book(path) as into:
        group = objects.group(template=objects.template(containers=[container]))
        into.add(rows.row(done(run(0, 60), groups=[group]), NOTHING))
        into.add(rows.row(done(run(0, 60), uid="u-2"), NOTHING))
    load = traces.read(f"lstqueue:{path}").gpus_alone()
    assert [dict(pods.requests) for work in load.works for pods in work.pods] == [
        {"nvidia.com/gpu": 8, "pods": 1}
    ] * 2
    assert load.completed == ((workload.GPUS_ALONE, 1),)


def test_lost_work_and_the_reading_of_saved_work_are_no_run_time() -> None:
    checkpoint = {"interval": "30m", "restartOverhead": "2m"}
    runs = (run(0, 40, "10m"), run(100, 105, "5m"), run(200, 232))
    assert rows.row(done(*runs, checkpoint=checkpoint), NOTHING)["duration_ms"] == 60 * durations.MINUTE


def test_what_only_the_queue_says_of_checkpoints_counts_too() -> None:
    defaults = rows.Asked({"research": queues.Defaults(restart_overhead=2 * durations.MINUTE)})
    raw = done(run(0, 40, "40m"), run(100, 162))
    assert rows.row(raw, NOTHING)["duration_ms"] == 62 * durations.MINUTE
    assert rows.row(raw, defaults)["duration_ms"] == 60 * durations.MINUTE


def test_of_more_than_ten_runs_counts_what_the_earlier_ones_saved() -> None:
    runs = [run(100 * number, 100 * number + 30) for number in range(10)]
    # Two runs more, of half an hour each, are no longer in the history; the last one's checkpoint is.
    raw = done(*runs, status={"saved": "6h"}, checkpoint={"interval": "30m"})
    assert rows.row(raw, NOTHING)["duration_ms"] == 6 * durations.HOUR


def test_an_existing_job_is_known_by_what_its_status_says_of_the_gang() -> None:
    raw = done(run(0, 60), status={"gang": "4×8 nvidia.com/gpu"})
    raw["spec"] = {"jobRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}}
    assert rows.row(raw, NOTHING)["pods"] == [{"count": 4, "requests": {"nvidia.com/gpu": 8}}]


def test_a_labelled_job_is_the_same_one_though_its_deadline_job_was_written_anew() -> None:
    raw = done(run(0, 60), uid="the-second")
    raw["metadata"]["labels"] = {"lstqueue.dev/unit-uid": "the-job"}
    assert rows.uid_of(rows.row(raw, NOTHING)["key"]) == rows.uid(raw["metadata"]) == "the-job"


def test_best_effort_stays_so_and_a_label_may_name_the_user() -> None:
    raw = done(run(0, 60))
    raw["metadata"]["labels"] = {"team": "vision"}
    row = rows.row(raw, rows.Asked({}, "team"))
    assert row["user"] == "vision"
    assert row["deadline_ms"] is None
    assert "requested_ms" not in row


@pytest.mark.parametrize(
    ("raw", "reason", "later"),
    [
        (objects.job(status=objects.WAITING), rows.NOT_ENDED, True),
        (objects.job(), rows.NOT_ENDED, True),
        (objects.job(status={"phase": "Failed"}), rows.NOT_SUCCEEDED, False),
        (objects.job(status={"phase": "Rejected"}), rows.NOT_SUCCEEDED, False),
        (done(), rows.NOT_SEEN, False),
        (done(run(0, 60), status={"completionTime": at(90)}), rows.NOT_SEEN, False),
        (done(run(0, 0)), rows.NO_TIME, False),
        (objects.job(groups=[], status={"phase": "Succeeded"}), rows.UNREADABLE, False),
        (done(run(0, 60), status={"phase": "Odd"}), rows.UNREADABLE, False),
    ],
)
def test_what_is_no_line_is_left_out_for_a_reason(raw: Any, reason: str, later: bool) -> None:
    raw["metadata"] |= {"uid": "u", "creationTimestamp": at(0)}
    with pytest.raises(rows.LeftOutError) as caught:
        rows.row(raw, NOTHING)
    assert (caught.value.reason, caught.value.later) == (reason, later)


def test_gangs_without_a_gpu_and_jobs_from_before_the_zero_of_traces_are_left_out() -> None:
    template = objects.template(containers=[{"name": "main", "image": "t"}])
    with pytest.raises(rows.LeftOutError, match=rows.NO_GPU):
        rows.row(done(run(0, 60), groups=[objects.group(template=template)]), NOTHING)
    raw = done(run(0, 60))
    raw["metadata"]["creationTimestamp"] = times.format(workload.EPOCH - 1000)
    with pytest.raises(rows.LeftOutError, match=rows.TOO_OLD):
        rows.row(raw, NOTHING)


def test_a_recorder_that_was_killed_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trace.jsonl"
    with book.Book(path) as into:
        for uid in ("u-1", "u-2"):
            into.add(rows.row(done(run(0, 60), uid=uid), NOTHING))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key":"default/train/u-3","us')
    with book.Book(path) as into:
        assert (into.before, into.written) == (2, 0)
        assert "u-2" in into
        assert "u-3" not in into
        into.add(rows.row(done(run(0, 60), uid="u-3"), NOTHING))
    lines = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert lines == ["default/train/u-1", "default/train/u-2", "default/train/u-3"]


def test_a_file_of_somebody_else_or_in_use_or_in_no_folder_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "notes.txt"
    for text in ("mine\n", "[" * 100_000 + "\n"):
        path.write_text(text)
        with pytest.raises(book.BookError, match="line 1: is nothing that `lstqueue record` wrote"):
            book.Book(path)
        assert path.read_text() == text
    with book.Book(tmp_path / "trace.jsonl"), pytest.raises(book.BookError, match="another process"):
        book.Book(tmp_path / "trace.jsonl")
    with pytest.raises(book.BookError, match="No such file or directory"):
        book.Book(tmp_path / "missing" / "trace.jsonl")
