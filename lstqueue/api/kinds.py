"""The kinds of lstqueue.dev/v1alpha1 as rows: names, models, rules, and what `kubectl get` shows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lstqueue.api import base, cel, deadlinejob, deadlinejob_status, gpuqueue, interconnect, rules


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`, a `wide` one with `-o wide` only.

    `type` is string, integer or date (shown as an age).
    """

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. `selectable` are the fields a field selector may name."""

    kind: str
    plural: str
    short: str
    namespaced: bool
    description: str
    spec: type[base.Model]
    status: type[base.Model]
    rules: cel.RuleSet
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

_ROWS = (
    Kind(
        kind="DeadlineJob",
        plural="deadlinejobs",
        short="dj",
        namespaced=True,
        description="A gang of pods that runs as a whole or not at all, and the deadline it has to meet.",
        spec=deadlinejob.Spec,
        status=deadlinejob_status.Status,
        rules=rules.RULES["DeadlineJob"],
        columns=(
            Column("Queue", ".status.queue"),
            Column("Phase", ".status.phase"),
            Column("Gang", ".status.gang"),
            Column("Deadline", ".status.deadline"),
            Column("Slack", ".status.slack"),
            Column("Verdict", ".status.verdict.level"),
            Column("Forecast", ".status.verdict.forecastFinish.latest"),
            _AGE,
            Column("Why", ".status.pending.message", wide=True),
            Column("Ended", '.status.conditions[?(@.type=="Finished")].reason', wide=True),
        ),
        selectable=(".spec.queue",),
    ),
    Kind(
        kind="GPUQueue",
        plural="gpuqueues",
        short="gq",
        namespaced=False,
        description="A queue of DeadlineJobs: which nodes they may use, how much there, and in which order.",
        spec=gpuqueue.Spec,
        status=gpuqueue.Status,
        rules=rules.RULES["GPUQueue"],
        columns=(
            Column("Order", ".spec.order"),
            Column("Mode", ".spec.mode"),
            Column("Stop", ".spec.stopPolicy"),
            Column("Pending", ".status.pending", "integer"),
            Column("Admitted", ".status.admitted", "integer"),
            Column("Running", ".status.running", "integer"),
            Column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
            Column("Conflict", '.status.conditions[?(@.type=="Conflict")].status'),
            _AGE,
        ),
    ),
    Kind(
        kind="Interconnect",
        plural="interconnects",
        short="ic",
        namespaced=False,
        description="Which nodes are near each other: where that is told, and which domains it makes.",
        spec=interconnect.Spec,
        status=interconnect.Status,
        rules=rules.RULES["Interconnect"],
        columns=(
            Column("Nodes", ".status.nodes", "integer"),
            Column("Domains", ".status.summary"),
            Column("Left out", ".status.leftOutCount", "integer"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Stale", '.status.conditions[?(@.type=="Stale")].status'),
            _AGE,
            Column("Why", '.status.conditions[?(@.type=="SourcesRead")].message', wide=True),
        ),
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({row.kind: row for row in _ROWS})
"""Every kind by name."""
