"""Pods of Alibaba's GPU cluster of 2023 (Weng et al., ATC 2023): openb_pod_list_*.csv.

Columns used: name, num_gpu, gpu_milli, qos, pod_phase, creation_time, deletion_time, scheduled_time (s).
There are no gangs: every pod is a job, and runs from scheduled_time to deletion_time. BE pods have no
deadline by their class; the others get one from a rule, since the file has none.

Dropped: pods that were never scheduled (their run time is unknown), that still ran when the last deletion was
recorded (their end is), and that ask for no GPU (nodes have GPUs and nothing else here; cpu, memory and GPU
models are not looked at). Completed: a share of a GPU counts as a whole one.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

from lstqueue.evaluate.traces import collect, tables

REQUIRED = (
    "name",
    "num_gpu",
    "gpu_milli",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
SECOND = 1000
WHOLE = 1000
NEVER_SCHEDULED = "never scheduled"
CENSORED = "still ran when the trace ended"
NO_GPU = "asks for no GPU"
SHARED = "share of a GPU taken as a whole one"


@dataclass(frozen=True, slots=True)
class _Pod:
    draft: collect.Draft
    scheduled: int | None
    deleted: int | None
    running: bool


def read(path: pathlib.Path, rows: collect.Collector) -> None:
    """Hand the rows of the file to `rows`."""
    pods = [_pod(row) for row in tables.rows(path, REQUIRED)]
    end = max((pod.deleted for pod in pods if pod.deleted is not None), default=0)
    for pod in pods:
        if pod.draft.gpus == 0:
            rows.drop(NO_GPU)
        elif pod.scheduled is None:
            rows.drop(NEVER_SCHEDULED)
        elif pod.running and pod.deleted == end:
            rows.drop(CENSORED)
        else:
            rows.add(pod.draft)


def _pod(row: tables.Row) -> _Pod:
    scheduled, deleted = row.ms("scheduled_time", SECOND), row.ms("deletion_time", SECOND)
    gpus, share = row.count("num_gpu"), row.count("gpu_milli")
    draft = collect.Draft(
        key=row.name("name"),
        submit=row.ms("creation_time", SECOND),
        duration=None if scheduled is None or deleted is None else deleted - scheduled,
        gpus=gpus,
        undated=row.text("qos") == "BE",
        completed=SHARED if gpus == 1 and share is not None and share < WHOLE else "",
    )
    return _Pod(draft, scheduled, deleted, row.text("pod_phase") == "Running")
