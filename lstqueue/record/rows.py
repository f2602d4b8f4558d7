"""One DeadlineJob as a line of a trace: the gang, when it came, how long it really ran, by when it was due.

Only jobs that have succeeded have a run time. It is what the work took without what suspensions lost and
without what later starts spent on reading saved work, as the status tells it: exact to a second for each run.
The history of a status has the last ten runs; of earlier ones counts what they saved.

There is no user in a DeadlineJob: its namespace stands for one, or a label of the cluster's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import deadlinejob_status, errors, names, times
from lstqueue.evaluate import workload
from lstqueue.jobs import podspec
from lstqueue.kube import port
from lstqueue.operator import queues, runs, specs
from lstqueue.topology import model as topology

NAME_LENGTH = 80
"""Characters of a job's name in the key, which has its namespace and UID too."""

NOT_ENDED = "has not ended"
NOT_SUCCEEDED = "did not succeed"
NOT_SEEN = "its last run was not seen by an operator"
NO_TIME = "ran for no time"
NO_GPU = f"asks for no {workload.GPU}"
TOO_OLD = "was created before 2024"
UNREADABLE = "cannot be read"

_GROUP = re.compile(rf"(\d{{1,6}})×(\d{{1,6}}) {re.escape(workload.GPU)}", re.ASCII)
_Phase = deadlinejob_status.Phase


class LeftOutError(Exception):
    """A job that is no line, and why; `later` says that it may become one."""

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.later = later


@dataclass(frozen=True, slots=True)
class Asked:
    """What lines depend on beside the job: defaults by queue, and the label that names users, "" for none."""

    defaults: Mapping[str, queues.Defaults]
    user_label: str = ""


def uid(meta: Mapping[str, Any]) -> str:
    """Return the UID by which a job is known: of the labelled Job where the operator wrote the DeadlineJob.

    Such a DeadlineJob is written anew when it is deleted, and its Job is still the same one.
    """
    unit: str = (meta.get("labels") or {}).get(names.LABEL_UNIT_UID) or meta["uid"]
    return unit


def uid_of(key: str) -> str:
    """Return the UID in a key that `row` has made."""
    return key.rpartition("/")[2]


def row(raw: port.Object, asked: Asked) -> dict[str, Any]:
    """Return the line, as the fields of the trace format.

    Raises:
        LeftOutError: There is none.
    """
    meta = raw["metadata"]
    created = times.parse(meta["creationTimestamp"])
    spec, _ = specs.judged(raw, created)
    try:
        status = deadlinejob_status.parse(raw)
    except errors.InvalidSpecError as error:
        raise LeftOutError(UNREADABLE) from error
    if spec is None:
        raise LeftOutError(UNREADABLE)
    if status.phase is not _Phase.SUCCEEDED:
        over = status.phase in (_Phase.FAILED, _Phase.REJECTED)
        raise LeftOutError(NOT_SUCCEEDED if over else NOT_ENDED, later=not over)
    submit = specs.counted_from(meta, created)
    if submit < workload.EPOCH:
        raise LeftOutError(TOO_OLD)
    defaults = asked.defaults.get(status.queue, queues.NOTHING_ELSE)
    found: dict[str, Any] = {
        "key": f"{meta['namespace']}/{meta['name'][:NAME_LENGTH]}/{uid(meta)}",
        "user": (meta.get("labels") or {}).get(asked.user_label) or meta["namespace"],
        "submit_ms": submit - workload.EPOCH,
        "duration_ms": _worked(status, defaults.fill(spec)),
        "pods": _pods(raw, status),
        # Without one the job says so, or every rule for deadlines would give it one.
        "deadline_ms": None if spec.deadline is None else spec.deadline - workload.EPOCH,
    }
    if spec.estimate is not None:
        found["requested_ms"] = spec.estimate
    if spec.value != 1:
        found["value"] = spec.value
    if spec.importance:
        found["importance"] = spec.importance
    return found


def _worked(status: deadlinejob_status.Status, spec: specs.Spec) -> int:
    """Ms that the whole gang took for its work."""
    ended = [(run, run.end - run.start) for run in status.runs if run.end is not None]
    if not ended or ended[-1][0].end != status.completion_time:
        raise LeftOutError(NOT_SEEN)
    last = ended[-1][1]
    done = sum(max(0, ran - (run.lost or 0)) for run, ran in ended[:-1])
    if len(status.runs) == deadlinejob_status.RUNS:
        # Of older runs only the sum is left of what they saved.
        kept = runs.kept(spec, last, restored=True, asked=False)
        done = max(done, (status.saved or 0) - kept)
    worked = done + max(0, last - runs.restoring(spec, restored=len(status.runs) > 1))
    if worked <= 0:
        raise LeftOutError(NO_TIME)
    return worked


def _pods(raw: port.Object, status: deadlinejob_status.Status) -> list[dict[str, Any]]:
    """The groups of the gang; of an existing Job only the GPUs are known, from the status."""
    groups = raw["spec"].get("groups")
    try:
        found = [_group(group) for group in groups] if groups else _told(status.gang)
    except errors.BadValueError as error:
        raise LeftOutError(UNREADABLE) from error
    if not any(group["requests"].get(workload.GPU) for group in found):
        raise LeftOutError(NO_GPU)
    return found


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    asked = dict(podspec.requests(group["template"]["spec"]))
    requests = {name: amount for name, amount in asked.items() if amount and name != topology.PODS}
    return {"count": group.get("replicas", 1), "requests": requests}


def _told(gang: str) -> list[dict[str, Any]]:
    return [
        {"count": int(match[1]), "requests": {workload.GPU: int(match[2])}} for match in _GROUP.finditer(gang)
    ]
