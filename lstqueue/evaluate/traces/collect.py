"""Which rows of a trace become jobs: one set of rules for every format, each counted by its reason.

A row is dropped where its job id, submission, run time or width is unknown, zero or negative as far as that
means nothing, where the trace says that the run was cut off by the end of the trace, and where its id has
been seen. A row of which a format fills in something by its own stated rule counts as completed. A user's
request of zero or less is unknown, and costs the row nothing. Nothing else is left out: a deadline that
cannot be met stays, since leaving it out would flatter every policy.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass

from lstqueue.evaluate import workload

NO_KEY = "no job id"
SEEN = "job id seen before"
NO_SUBMIT = "submission time unknown"
EARLY = "submitted before the trace began"
NO_DURATION = "run time unknown"
NOT_RUN = "run time zero or negative"
NO_WIDTH = "width unknown"
NOT_WIDE = "width zero or negative"


@dataclass(frozen=True, slots=True)
class Draft:
    """A row as read: times in ms since the trace's zero, None for what is unknown.

    `pods` is given where the trace knows the gang's groups; else the width says them. `completed` is the
    reason for which something of it was filled in.
    """

    key: str
    submit: int | None
    duration: int | None
    gpus: int | None
    user: str = ""
    deadline: int | None = None
    requested: int | None = None
    value: int = 1
    importance: int = 0
    undated: bool = False
    pods: tuple[workload.Pods, ...] = ()
    completed: str = ""


class Collector:
    """Takes the rows of one file in their order; `per_node` is how many GPUs a node of the cluster has."""

    def __init__(self, per_node: int) -> None:
        self._per_node = per_node
        self._works: list[workload.Work] = []
        self._keys: set[str] = set()
        self._dropped: collections.Counter[str] = collections.Counter()
        self._completed: collections.Counter[str] = collections.Counter()
        self._row = 0

    @property
    def row(self) -> int:
        """How many rows were taken or dropped."""
        return self._row

    def drop(self, reason: str) -> None:
        """Leave a row out."""
        self._dropped[reason] += 1
        self._row += 1

    def add(self, draft: Draft) -> None:
        """Take a row, unless a rule drops it."""
        if reason := self._wrong(draft):
            self.drop(reason)
            return
        if draft.submit is None or draft.duration is None or draft.gpus is None:
            raise AssertionError("a row with unknown times or width is dropped above")
        self._keys.add(draft.key)
        if draft.completed:
            self._completed[draft.completed] += 1
        requested = draft.requested if draft.requested is not None and draft.requested > 0 else None
        work = workload.Work(
            key=draft.key,
            user=draft.user,
            submit=workload.EPOCH + draft.submit,
            duration=draft.duration,
            pods=draft.pods or workload.gang(draft.gpus, self._per_node),
            gpus=draft.gpus,
            deadline=None if draft.deadline is None else workload.EPOCH + draft.deadline,
            requested=requested,
            value=draft.value,
            importance=draft.importance,
            row=self._row,
            undated=draft.undated,
        )
        self._works.append(work)
        self._row += 1

    def finish(self, name: str) -> workload.Workload:
        """Return what was taken."""
        return workload.Workload(
            name=name,
            works=workload.ordered(self._works),
            dropped=tuple(sorted(self._dropped.items())),
            completed=tuple(sorted(self._completed.items())),
            rows=self._row,
        )

    def _wrong(self, draft: Draft) -> str:
        """Why the row is to be dropped; empty: it is not."""
        if not draft.key:
            return NO_KEY
        if draft.key in self._keys:
            return SEEN
        if draft.submit is None or draft.submit < 0:
            return NO_SUBMIT if draft.submit is None else EARLY
        if draft.duration is None or draft.duration <= 0:
            return NO_DURATION if draft.duration is None else NOT_RUN
        if not draft.pods and (draft.gpus is None or draft.gpus <= 0):
            return NO_WIDTH if draft.gpus is None else NOT_WIDE
        return ""
