"""One word for the state of a pod, one text for an age, one value for a column."""

from typing import Any

import pytest

from lstqueue.embedded import ages, jsonpaths
from lstqueue.embedded import columns_workloads as workloads

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-2 * SECOND, "<invalid>"),
        (-1_500, "0s"),
        (0, "0s"),
        (119_999, "119s"),
        (2 * MINUTE, "2m"),
        (9 * MINUTE + 59 * SECOND, "9m59s"),
        (10 * MINUTE + 1 * SECOND, "10m"),
        (2 * HOUR + 59 * MINUTE, "179m"),
        (3 * HOUR + 1 * MINUTE, "3h1m"),
        (8 * HOUR + 1 * MINUTE, "8h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_an_age(ms: int, text: str) -> None:
    assert ages.human(ms) == text


@pytest.mark.parametrize(("stamp", "text"), [(None, "<unknown>"), ("", "<unknown>"), ("noon", "<invalid>")])
def test_an_age_that_is_not_known(stamp: object, text: str) -> None:
    assert ages.since(stamp, 0) == text


def pod(*containers: dict[str, Any], phase: str = "Running", **more: Any) -> dict[str, Any]:
    status = {"phase": phase, "containerStatuses": list(containers), **more.pop("status", {})}
    spec = {"containers": [{"name": f"c{number}"} for number in range(max(1, len(containers)))], **more}
    return {"metadata": {"name": "one"}, "spec": spec, "status": status}


def running(*, ready: bool = True) -> dict[str, Any]:
    return {"name": "c0", "ready": ready, "state": {"running": {}}}


def ended(**state: Any) -> dict[str, Any]:
    return {"name": "c1", "ready": False, "state": {"terminated": state}}


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "c1", "ready": False, "state": {"waiting": {"reason": reason}}}


def init(*statuses: dict[str, Any], restart: str | None = None) -> dict[str, Any]:
    named = [{**item, "name": f"i{number}"} for number, item in enumerate(statuses)]
    containers = [{"name": item["name"], **({"restartPolicy": restart} if restart else {})} for item in named]
    return {"initContainers": containers, "status": {"initContainerStatuses": named}}


GATED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}

WORDS: list[tuple[str, dict[str, Any], str]] = [
    ("new", pod(phase="Pending"), "Pending"),
    ("gated", pod(phase="Pending", status=GATED), "SchedulingGated"),
    ("running", pod(running()), "Running"),
    ("pulling", pod(waiting("ImagePullBackOff"), phase="Pending"), "ImagePullBackOff"),
    ("succeeded", pod(ended(reason="Completed", exitCode=0), phase="Succeeded"), "Completed"),
    ("failed", pod(ended(reason="Error", exitCode=1), phase="Failed"), "Error"),
    ("by code", pod(ended(exitCode=7), phase="Failed"), "ExitCode:7"),
    ("by signal", pod(ended(signal=9), phase="Failed"), "Signal:9"),
    ("refused", pod(phase="Failed", status={"reason": "OutOfcpu"}), "OutOfcpu"),
    ("half done", pod(running(), ended(reason="Completed", exitCode=0), status=READY), "Running"),
    ("half done, not ready", pod(running(), ended(reason="Completed", exitCode=0)), "NotReady"),
    ("initialising", pod(phase="Pending", **init(running())), "Init:0/1"),
    (
        "second init",
        pod(phase="Pending", **init(ended(exitCode=0), waiting("PodInitializing"))),
        "Init:1/2",
    ),
    ("init failed", pod(phase="Pending", **init(ended(exitCode=3))), "Init:ExitCode:3"),
    ("init pulls", pod(phase="Pending", **init(waiting("ErrImagePull"))), "Init:ErrImagePull"),
    ("sidecar", pod(running(), **init({**running(), "started": True}, restart="Always")), "Running"),
]


@pytest.mark.parametrize(("found", "word"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_the_word_for_a_pod(found: dict[str, Any], word: str) -> None:
    assert workloads.pod_word(found) == word


@pytest.mark.parametrize(
    ("phase", "reason", "word"),
    [("Running", "", "Terminating"), ("Running", "NodeLost", "Unknown"), ("Succeeded", "", "Succeeded")],
)
def test_deletion_has_the_last_word_until_a_pod_has_ended(phase: str, reason: str, word: str) -> None:
    found = pod(phase=phase, status={"reason": reason})
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert workloads.pod_word(found) == word


def test_sidecars_count_as_containers() -> None:
    found = pod(running(), **init({**running(), "started": True}, restart="Always"))
    assert workloads.pod_cells(found, 0)[1] == "2/2"


def test_restarts_tell_when_the_last_one_was() -> None:
    last = {"terminated": {"finishedAt": "1970-01-01T00:01:00Z"}}
    found = pod({**running(), "restartCount": 3, "lastState": last})
    assert workloads.pod_cells(found, 5 * MINUTE)[3] == "3 (4m ago)"


JOBS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, str, str]]] = [
    ({"completions": 2}, {}, ("Running", "0/2", "")),
    ({"parallelism": 3}, {"succeeded": 1}, ("Running", "1/1 of 3", "")),
    ({"parallelism": 1}, {}, ("Running", "0/1", "")),
    (
        {"completions": 1},
        {"conditions": [{"type": "Suspended", "status": "True"}]},
        ("Suspended", "0/1", ""),
    ),
    (
        {"completions": 1},
        {
            "succeeded": 1,
            "startTime": "1970-01-01T00:00:00Z",
            "completionTime": "1970-01-01T00:01:30Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
        ("Complete", "1/1", "90s"),
    ),
]


@pytest.mark.parametrize(("spec", "status", "cells"), JOBS)
def test_a_job(spec: dict[str, Any], status: dict[str, Any], cells: tuple[str, str, str]) -> None:
    found = {"metadata": {"name": "one"}, "spec": spec, "status": status}
    assert tuple(workloads.job_cells(found, HOUR)[1:4]) == cells


DOCUMENT = {"a": {"b": [{"type": "X", "v": 1}, {"type": "Y", "v": 2}]}, "n": None}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b[0].v", [1]),
        (".a.b[7].v", []),
        (".a.b[*].v", [1, 2]),
        ('.a.b[?(@.type=="Y")].v', [2]),
        ('.a.b[?(@.type=="Z")].v', []),
        (".a.c.d", []),
        (".a.b.c", []),
        (".n", [None]),
    ],
)
def test_a_json_path(path: str, found: list[Any]) -> None:
    assert jsonpaths.parse(path)(DOCUMENT) == found


@pytest.mark.parametrize("path", ["a.b", ".a[?(@.v>1)]", "..a", ".a["])
def test_a_json_path_beyond_us_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not supported in a printer column"):
        jsonpaths.parse(path)
