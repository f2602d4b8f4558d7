"""A GPUQueue: who may use how much where, and in which order.

`parse` reads the spec from a raw object, unknown fields ignored. Quotas come out in the units of
`api.quantities`; the rules between fields are in `gpuqueue_rules`.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any

import pydantic

from lstqueue.api import (
    base,
    crons,
    deadlinejob,
    deadlinejob_status,
    gpuqueue_rules,
    quantities,
    reading,
    zones,
)
from lstqueue.api.conditions import Conditions

_RESOURCE_NAME = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


class Order(enum.StrEnum):
    """In which order a queue's jobs go."""

    LST = "lst"
    EDF = "edf"
    FIFO = "fifo"


class Effect(enum.StrEnum):
    """The effect of a taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Operator(enum.StrEnum):
    """How a toleration compares."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class WithinQueue(enum.StrEnum):
    """Whom a job at its last moment may have suspended within its own queue."""

    NEVER = "Never"
    NO_HARM = "NoHarm"
    TIER = "Tier"


class Reclaim(enum.StrEnum):
    """Whether a queue takes back from others what they borrow."""

    NEVER = "Never"
    ANY = "Any"


class StopPolicy(enum.StrEnum):
    """Whether a queue stands still."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class Mode(enum.StrEnum):
    """Whether a queue acts on what it decides."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class Comparison(enum.StrEnum):
    """How a label selector compares."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Toleration(base.Model):
    """A taint that the pods placed in a pool tolerate."""

    key: Annotated[pydantic.StrictStr, pydantic.Field(max_length=317)] | None = None
    """Key of the taint; absent for every key."""
    operator: Operator = Operator.EQUAL
    """Equal compares the value, Exists does not."""
    value: Annotated[pydantic.StrictStr, pydantic.Field(max_length=63)] | None = None
    """Value of the taint."""
    effect: Effect | None = None
    """Effect of the taint; absent for every effect."""


_QUANTITY_SCHEMA = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": quantities.MAX_LENGTH,
}


class Resource(base.Model):
    """The quota of one resource."""

    name: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=317, pattern=_RESOURCE_NAME)]
    """Name of the resource, as in a container's requests."""
    nominal: Annotated[int, pydantic.WithJsonSchema(_QUANTITY_SCHEMA)]
    """How much of it the jobs of this queue may hold at once; what they do not use is lent within its
    cohort, and taken back when they need it."""
    borrowing_limit: Annotated[int, pydantic.WithJsonSchema(_QUANTITY_SCHEMA)] | None = None
    """How much more of it they may borrow from other queues of the cohort; absent: as much as those lend."""

    @pydantic.field_validator("nominal", "borrowing_limit", mode="before")
    @classmethod
    def _read_quantity(cls, value: Any, info: pydantic.ValidationInfo) -> int:
        # Without a readable name there is a problem already; the unit is then beside the point.
        return quantities.parse(info.data.get("name", "memory"), value)


_LabelValue = Annotated[pydantic.StrictStr, pydantic.Field(max_length=63)]


class Pool(base.Model):
    """A share of the nodes, and the quota there."""

    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ]
    """Name of the pool."""
    node_selector: Annotated[dict[str, _LabelValue], pydantic.Field(max_length=16)] = pydantic.Field(
        default_factory=dict
    )
    """Labels of its nodes; absent for every node."""
    tolerations: Annotated[tuple[Toleration, ...], pydantic.Field(max_length=16)] = pydantic.Field(
        default_factory=tuple
    )
    """Added to the pods that are placed here."""
    resources: Annotated[tuple[Resource, ...], base.list_map(16), base.unique("name")] = pydantic.Field(
        default_factory=tuple
    )
    """Quotas. cpu, memory, ephemeral-storage and pods that are not listed are limited by the nodes alone;
    any other resource that is not listed is refused."""
    spot: base.Flag = False
    """Whether its nodes may be taken away at any time, as spot instances are: jobs run there, and no deadline
    is promised on them."""


class Requirement(base.Model):
    """One demand on the labels of a namespace."""

    key: Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=317)]
    """Key of the label."""
    operator: Comparison
    """In and NotIn compare with values; Exists and DoesNotExist look at the key alone."""
    values: Annotated[tuple[_LabelValue, ...], pydantic.Field(max_length=64)] = pydantic.Field(
        default_factory=tuple
    )
    """What In and NotIn compare with."""


class NamespaceSelector(base.Model):
    """Which namespaces, by their labels: those that meet every demand, so that none means all."""

    match_labels: Annotated[dict[str, _LabelValue], pydantic.Field(max_length=16)] = pydantic.Field(
        default_factory=dict
    )
    """Labels that the namespace has."""
    match_expressions: Annotated[tuple[Requirement, ...], pydantic.Field(max_length=16)] = pydantic.Field(
        default_factory=tuple
    )
    """Further demands on its labels."""


class Preemption(base.Model):
    """When jobs may be suspended to make room for others."""

    within_queue: WithinQueue = WithinQueue.NO_HARM
    """Whom a job at its last moment may have suspended. Never: nobody, and no job of this queue leaves for a
    promised one of any other. NoHarm: jobs that rank behind for want
    of a deadline that can hold, and jobs whose deadline holds all the same. Tier: also any job of a lower
    importance."""
    reclaim_within_cohort: Reclaim = Reclaim.ANY
    """Whether a job that its queue's nominal quota would hold may have jobs of other queues of the cohort
    suspended that run on borrowed quota. Never: it waits until they leave."""
    reclaim_grace: base.DurationOrZero = pydantic.Field(default="15m", validate_default=True)
    """How long at most its minimum run time protects a borrower from that, and how much time is between two
    occasions on which the queue takes back."""
    min_run_time: base.DurationOrZero = pydantic.Field(default="15m", validate_default=True)
    """How long a job runs at least before it may be suspended for another, unless it says otherwise."""
    max_per_job_per_day: Annotated[
        pydantic.StrictInt, pydantic.Field(ge=0, le=deadlinejob_status.SUSPENSIONS)
    ] = 4
    """How many times in 24 hours a job may be suspended for others."""


class Overload(base.Model):
    """What to do when not all deadlines can be met."""

    shedding: base.Flag = True
    """Whether some jobs are set back for as long as that lets the deadlines of the others hold."""
    best_effort_share: base.Percent = pydantic.Field(default="5%", validate_default=True)
    """The share of the queue that is kept for jobs without a deadline, so that they get on however many
    deadlines there are: the oldest of them start in turn, and are not suspended for others. 0% keeps none."""
    promise_budget: base.Percent = pydantic.Field(default="0%", validate_default=True)
    """The share of the queue that may be promised although some jobs are set back, or were in the last week:
    until any time no more is owed to promised jobs than this share comes to. 0%: only jobs that ask for
    little are promised their deadlines then."""


class Defaults(base.Model):
    """What jobs of the queue get that do not say otherwise."""

    estimated_duration: base.Duration | None = None
    """How long a gang is expected to run."""
    checkpoint: deadlinejob.Checkpoint | None = None
    """What of their work outlives a suspension."""


class Window(base.Model):
    """A time that recurs, in which part of the quotas is kept free."""

    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ]
    """Name of the window, for people."""
    schedule: Annotated[
        pydantic.StrictStr, pydantic.Field(max_length=crons.MAX_LENGTH), pydantic.AfterValidator(crons.parse)
    ]
    """When it begins: minute, hour, day of month, month and day of week as in a CronJob, such as
    0 8 * * 1-5."""
    zone: Annotated[
        pydantic.StrictStr, pydantic.Field(max_length=zones.NAME_LENGTH), pydantic.AfterValidator(zones.name)
    ]
    """IANA name of the time zone, such as Europe/Berlin."""
    duration: base.Duration
    """How long it lasts."""
    keep_free: base.Percent = pydantic.Field(default="100%", validate_default=True)
    """The share of every quota of the queue that its jobs do not use in that time. Nobody is suspended for
    it: a job is only admitted if it is expected to have left by then, or to fit in what remains."""


class Spec(base.Model):
    """Who may use how much where, and in which order."""

    pools: Annotated[tuple[Pool, ...], base.list_map(16, least=1), base.unique("name")]
    """The shares of nodes that jobs of this queue may use, the preferred ones first."""
    cohort: (
        Annotated[
            pydantic.StrictStr,
            pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        ]
        | None
    ) = None
    """Queues of one cohort lend each other quota. A pool name means the same nodes in all of them, and
    queues outside of it use other nodes; a queue that contradicts an older one there admits nobody, and its
    condition Conflict says so."""
    order: Order = Order.LST
    """lst: least slack first. edf: earliest deadline first. fifo: in the order of creation. In a cohort that
    of its oldest queue holds."""
    defaults: Defaults | None = None
    """What jobs get that do not say otherwise."""
    namespace_selector: NamespaceSelector | None = None
    """The namespaces whose jobs it takes; absent: all of them."""
    priority_classes: Annotated[
        tuple[Annotated[pydantic.StrictStr, pydantic.Field(min_length=1, max_length=253)], ...],
        pydantic.Field(max_length=16),
    ] = pydantic.Field(default_factory=tuple)
    """Priority classes that pods of referenced jobs may have beside the cluster's default."""
    preemption: Preemption = pydantic.Field(default={}, validate_default=True)
    """When jobs may be suspended to make room for others."""
    promises: pydantic.StrictBool = False
    """Whether deadlines of its jobs are promised (FEASIBLE): for each a slot is kept, which guests leave when
    its time comes, whatever protects them otherwise."""
    overload: Overload = pydantic.Field(default={}, validate_default=True)
    """What to do when not all deadlines can be met."""
    stop_policy: StopPolicy = StopPolicy.NONE
    """Hold: nobody is admitted, what runs goes on. HoldAndDrain: moreover, what runs is suspended, unless
    mode is Observe."""
    mode: Mode = Mode.ENFORCE
    """Observe: only forecasts are made; nobody is admitted or suspended, whatever stopPolicy says."""
    windows: Annotated[tuple[Window, ...], base.list_map(16), base.unique("name")] = pydantic.Field(
        default_factory=tuple
    )
    """Times in which part of the quotas is kept free, for serving by day, say. Where several meet, the one
    holds that keeps the most."""
    max_importance: Annotated[pydantic.StrictInt, pydantic.Field(ge=-10, le=10)] | None = None
    """Jobs of a higher importance are not admitted."""
    bind_timeout: base.Duration = pydantic.Field(default="2m", validate_default=True)
    """How long the pods of an admitted gang may take to be bound to their nodes."""
    gang_ready_timeout: base.Duration = pydantic.Field(default="30m", validate_default=True)
    """How long an admitted gang may take until every pod is ready."""


class Usage(base.Model):
    """How much of a quota is held."""

    pool: base.Text
    """Name of the pool."""
    name: base.Text
    """Name of the resource."""
    used: Annotated[pydantic.StrictStr, pydantic.Field(max_length=quantities.MAX_LENGTH)]
    """What admitted jobs hold."""
    nominal: Annotated[pydantic.StrictStr, pydantic.Field(max_length=quantities.MAX_LENGTH)]
    """The quota."""
    borrowed: Annotated[pydantic.StrictStr, pydantic.Field(max_length=quantities.MAX_LENGTH)] | None = None
    """What of `used` is beyond the quota; only in a cohort."""


class Status(base.Model):
    """How the queue stands. Written by lstqueue alone."""

    observed_generation: base.Count | None = None
    """The generation of the spec that this status speaks of."""
    pending: base.Count = 0
    """Jobs that wait."""
    admitted: base.Count = 0
    """Jobs that were admitted and are starting."""
    running: base.Count = 0
    """Jobs that run."""
    usage: Annotated[tuple[Usage, ...], base.list_map(256, "pool", "name")] = ()
    """What is held of each quota."""
    met: base.Count = 0
    """Jobs that finished by their deadline."""
    missed: base.Count = 0
    """Jobs that did not."""
    reclaimed_at: base.StatusTime | None = None
    """When its jobs last claimed the room of others that ran on quota it had lent."""
    conditions: Conditions = ()
    """What is wrong with the queue, if anything."""


def parse(obj: object) -> Spec:
    """Read the spec of a raw GPUQueue.

    Raises:
        InvalidSpecError: with every problem by field.
    """
    return reading.read(Spec, obj, part="spec", rules=gpuqueue_rules.RULES)
