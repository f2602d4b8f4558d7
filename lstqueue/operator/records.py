"""One DeadlineJob as this process knows it: what the API shows of it, and what is under way for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lstqueue.api import conditions
from lstqueue.engine import model, progress
from lstqueue.jobs import existing, quotas, slots, views
from lstqueue.operator import ledger as ledgers

Object = Mapping[str, Any]


CAUSES: Mapping[model.Cause, str] = {
    model.Cause.RAN_PAST_HI: "RanPastHi",
    model.Cause.CAPACITY: "CapacityLost",
    model.Cause.STUCK: "StuckTermination",
    model.Cause.EDIT: "Edited",
}
"""Why a promise is taken back, in one word for programs."""


@dataclass(frozen=True, slots=True)
class Promised:
    """What a job is promised from now on: a slot, or none any more, because of `why`."""

    slot: model.Slot | None
    cause: str = ""
    why: str = ""


@dataclass(slots=True)
class Record:
    """One DeadlineJob and what this process has under way for it.

    `unit` is the existing Job it refers to, as it was when the record was last fitted to it (`fitting`).
    `priority_class` is one that its pods have and that its queue has to allow, "" for none such,
    and `hindered` why that Job cannot be admitted for now, as a code and in words. `charges` are what a pod
    of each group counts against ResourceQuotas, () until intake is done, and `short` says which of those does
    not take all of them.

    `returning` is the status with which it is about to be queued again, told apart from it until written.
    `assumed` is an admission that was decided and not confirmed yet: its room is charged at once; `claiming`
    is the same for a claim, and `slotted` for what it is promised. `unready_since` (ms) is when a running
    gang was first seen incomplete. `said` is what the newest status write on its way will publish. `shapes`
    come from intake; None until it is done, and it is asked again at `ask_at`. `lost` holds children that the
    watch said are gone; they may only have lost our label. `told_at` (ms) is when its user was last told why
    it waits; 0 calls for telling it anew. `held_back` tells the engine not to admit, and the user why.
    `retry_at` (ms) delays the next write after `failures` in a row did not go through; `doubtful` says that
    it must be read before that, since what it looks like now is not known. `templates` are kept while they
    may be needed, `evicted` are pods that had to leave and did: their Job shows only that a pod is gone,
    which would be the gang's own fault. `books` keep how the pods of an existing Job stand to its places.
    `unreadable` says why nothing can be done with it as it is, and `odd` what kept us from its last step,
    until that is tried again; "" as a rule. `spare` says that its sweep has enough without it, `counts` that
    its success is still wanted there, `wanted` how many have to succeed there still. `source` says where its
    estimate comes from, `predicted` what that was, `track` what was made of its reports of progress, and
    `misread` is the last of those that could not be
    read. `untimely` says why time alone ends nothing of it until `untimely_until` (ms), after
    `untimely_tries`.
    """

    ledger: ledgers.Ledger
    templates: Mapping[str, Object] = field(default_factory=dict)
    children: dict[str, views.ChildView] = field(default_factory=dict)
    pods: dict[str, views.PodView] = field(default_factory=dict)
    evicted: dict[str, views.PodView] = field(default_factory=dict)
    returning: ledgers.Status | None = None
    assumed: ledgers.Admission | None = None
    claiming: model.Claim | None = None
    slotted: Promised | None = None
    said: model.Published | None = None
    shapes: tuple[model.Group, ...] | None = None
    held_back: str = ""
    held_code: str = ""
    ungated_at: int = 0
    unready_since: int = 0
    retry_at: int = 0
    ask_at: int = 0
    failures: int = 0
    doubtful: bool = False
    lost: dict[str, views.ChildView] = field(default_factory=dict)
    told_at: int = 0
    engine_job: model.Job | None = None
    unit: existing.UnitView | None = None
    priority_class: str = ""
    hindered: tuple[str, str] = ("", "")
    charges: tuple[tuple[str, quotas.Charge], ...] = ()
    short: str = ""
    unreadable: str = ""
    odd: str = ""
    spare: bool = False
    counts: bool = False
    wanted: int = 0
    source: str = ""
    predicted: model.Estimate | None = None
    track: progress.Track = progress.NONE
    misread: str = ""
    untimely: str = ""
    untimely_until: int = 0
    untimely_tries: int = 0
    books: slots.Books = field(default_factory=slots.Books)


@dataclass(frozen=True, slots=True)
class Assumed:
    """What counts as done while a status write is under way: what it will publish, and what it gives."""

    said: model.Published
    admission: ledgers.Admission | None = None
    claim: model.Claim | None = None
    promised: Promised | None = None

    def put(self, record: Record) -> None:
        """Have it count."""
        record.said, record.engine_job = self.said, None
        record.assumed = self.admission or record.assumed
        record.claiming = self.claim or record.claiming
        record.slotted = self.promised or record.slotted

    def take_back(self, record: Record) -> None:
        """Have it count no more; what another write assumes that was submitted since is that one's own."""
        if record.said is self.said:
            record.said = None
        if self.admission is not None and record.assumed is self.admission:
            record.assumed = None
        if self.claim is not None and record.claiming is self.claim:
            record.claiming = None
        if self.promised is not None and record.slotted is self.promised:
            record.slotted = None
        record.engine_job = None


def carried(record: Record, promised: Promised | None) -> Promised | None:
    """What a write has to promise: what is new, or else what a write promises that it may replace.

    What is told rests on that. It is an object of its own, so that the end of the other write takes nothing
    back of what this one assumes.
    """
    if promised is not None or record.slotted is None:
        return promised
    return replace(record.slotted)


def bereft(status: ledgers.Status) -> bool:
    """Whether a job lost a promise by what happened to the cluster, not to itself."""
    promised = conditions.get(status.conditions, conditions.Type.DEADLINE_PROMISED)
    if promised is None or promised.status is not conditions.Truth.FALSE:
        return False
    return promised.reason in (CAUSES[model.Cause.CAPACITY], CAUSES[model.Cause.STUCK])


def of_earlier_run(record: Record, pod: views.PodView) -> bool:
    """Whether a pod is of a run that is over, and its Job makes another without waiting for its end."""
    status = record.ledger.status
    if record.unit is None:
        return pod.restart < status.restarts
    return not record.unit.patient and (status.admission is None or pod.attempt != status.attempt)


def replaces(record: Record) -> bool:
    """Whether its user's own Job replaces what is evicted, at its own discretion, as often as it may be."""
    spec = record.ledger.spec
    return record.unit is not None or (spec is not None and spec.ref is not None)


def maker(record: Record, pod: views.PodView) -> bool:
    """Whether a pod was made by what its DeadlineJob leads: labels may be copied to whatever Job."""
    return pod.owner in record.children or (record.unit is not None and record.unit.uid == pod.owner)
