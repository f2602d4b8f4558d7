"""The spec of a DeadlineJob: what a user asks for.

`parse` reads it from a raw object, unknown fields ignored, so that a newer CRD does not break an older
operator. The status is in `deadlinejob_status`, the rules between fields in `deadlinejob_rules`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pydantic

from lstqueue.api import base, deadlinejob_rules, errors, podtemplate, reading, zones

NAME = "DeadlineJob"


class SuccessPolicy(enum.StrEnum):
    """When a gang has succeeded."""

    ALL = "All"
    LEADER = "Leader"


class OnInfeasible(enum.StrEnum):
    """What becomes of a job whose deadline cannot be met from the start."""

    QUEUE = "Queue"
    BEST_EFFORT = "BestEffort"
    REJECT = "Reject"


class OnMissed(enum.StrEnum):
    """What becomes of a job whose deadline has passed."""

    DEMOTE = "Demote"
    CONTINUE = "Continue"
    CANCEL = "Cancel"


def _template(value: Any) -> Any:
    """Accept a pod template with at least one container; the API server judges the rest of it."""
    spec = value.get("spec") if isinstance(value, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    usable = isinstance(containers, list) and containers and all(isinstance(c, Mapping) for c in containers)
    if not usable:
        raise errors.BadValueError("a pod template needs containers", "list at least one in spec.containers")
    return value


class Group(base.Model):
    """Equal pods of a gang."""

    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=20, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$"),
    ]
    """Name of the group, part of its pods' names."""
    replicas: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=4096)] = 1
    """How many pods it has."""
    template: Annotated[
        dict[str, Any], pydantic.BeforeValidator(_template), pydantic.WithJsonSchema(podtemplate.SCHEMA)
    ]
    """The pod template, as in a Job."""


class JobRef(base.Model):
    """An existing object in the same namespace that is queued instead of groups."""

    api_version: Annotated[pydantic.StrictStr, pydantic.Field(max_length=317)]
    """Its group and version; batch/v1 or kubeflow.org/v1."""
    kind: Annotated[pydantic.StrictStr, pydantic.Field(max_length=63)]
    """Its kind; Job or PyTorchJob."""
    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=253, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ]
    """Its name."""


def _checked(check: Callable[[object], object]) -> pydantic.BeforeValidator:
    """Refuse what `check` refuses, and leave the value as it is."""

    def accept(value: object) -> object:
        check(value)
        return value

    return pydantic.BeforeValidator(accept)


class DeadlineAt(base.Model):
    """A time of day in a time zone, the next one after the creation of the job."""

    time: Annotated[pydantic.StrictStr, pydantic.Field(max_length=8), _checked(zones.clock)]
    """Time of day as HH:MM or HH:MM:SS, such as 06:00. One that clocks skip is the first moment after the
    gap, of one that comes twice the first counts."""
    zone: Annotated[pydantic.StrictStr, pydantic.Field(max_length=zones.NAME_LENGTH), _checked(zones.name)]
    """IANA name of the time zone, such as Europe/Berlin."""


class Checkpoint(base.Model):
    """What a suspension leaves of a run. Without it every suspension starts the work anew."""

    interval: base.Duration | None = None
    """How often the job saves its work while it runs; absent: never by itself."""
    on_suspend: base.Flag | None = None
    """Whether it also saves its work when it is suspended, within the termination grace period of its pods;
    absent: it does not."""
    restart_overhead: base.Duration | None = None
    """How long a start from saved work takes before new work is done."""


LevelName = Annotated[
    pydantic.StrictStr,
    pydantic.Field(min_length=1, max_length=63, pattern="^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
]
"""The name of a level of the interconnect, as `lstqueue topology show` prints it."""


class Topology(base.Model):
    """Which domains of the interconnect its pods are to share. It counts for starts to come."""

    required: LevelName | None = None
    """The level of which one domain holds the whole gang, such as leafgroup; it waits for one that does."""
    slice_size: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=4096)] | None = None
    """So many pods of each group with more than one, in rank order, share a domain of sliceLevel."""
    slice_level: LevelName | None = None
    """The level of those domains; absent: the innermost one."""
    min_bandwidth: base.Bandwidth | None = None
    """What a ring over its nodes in rank order needs, one way, such as 40GB/s."""
    preferred: LevelName | None = None
    """A level of which one domain is worth waiting for, as long as the deadline allows it; needs maxWait or
    communicationShare to have anybody wait."""
    max_wait: base.DurationOrZero | None = None
    """How long after its creation it waits at most for a domain of the preferred level."""
    communication_share: base.Percent | None = None
    """The part of a training step that communicates on the best place, such as 15%: what tells how much
    slower others make it. Absent: no place is taken to make it slower."""


class Sweep(base.Model):
    """Jobs of one namespace of which so many have to succeed, whichever they are."""

    name: Annotated[
        pydantic.StrictStr,
        pydantic.Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ]
    """Name of the sweep, the same in all of its jobs."""
    need: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=10_000)]
    """How many of its jobs have to succeed; where they differ, the largest counts."""


class Spec(base.Model):
    """A gang and the deadline it has to meet."""

    queue: base.QueueName | None = None
    """The GPUQueue it waits in; absent: the one that the label lstqueue.dev/default-queue of the namespace
    names. Frozen while the job holds or claims room."""
    deadline: base.Time | None = None
    """When it has to be finished. Without this, deadlineIn and deadlineAt it runs when others leave room."""
    deadline_in: base.Duration | None = None
    """The deadline as a duration from the creation of this object, such as 1d12h."""
    deadline_at: DeadlineAt | None = None
    """The deadline as a time of day in a time zone: the next one after the creation of this object."""
    estimated_duration: base.Duration | None = None
    """How long the whole gang is expected to run on a good placement."""
    importance: Annotated[pydantic.StrictInt, pydantic.Field(ge=-10, le=10)] = 0
    """Tier above the deadline: all jobs of a higher one go first."""
    value: Annotated[pydantic.StrictInt, pydantic.Field(ge=1, le=1_000_000)] = 1
    """What meeting the deadline is worth beside other jobs, where not all deadlines can be met."""
    sweep: Sweep | None = None
    """The sweep it is part of: once enough of it have succeeded, or go to, the others give up their deadlines
    and run when room is left. In an overload a sweep is set back whole."""
    topology: Topology | None = None
    """What it asks of the interconnect; absent: the fewest domains that have room, whichever they are."""
    checkpoint: Checkpoint | None = None
    """What of its work outlives a suspension; absent: what the queue's defaults say, else nothing."""
    preemptible: base.Flag = True
    """Whether it may be suspended to make room for another job's deadline."""
    min_run_time: base.DurationOrZero | None = None
    """How long it runs at least before it may be suspended for another; absent: what the queue says."""
    max_run_time: base.Duration | None = None
    """The longest that one run may take; after that the job fails."""
    success_policy: SuccessPolicy = SuccessPolicy.ALL
    """All: every pod succeeds. Leader: the first group does, then the rest is ended."""
    backoff_limit: Annotated[pydantic.StrictInt, pydantic.Field(ge=0, le=100)] = 3
    """How many times the whole gang is started again after one of its pods failed."""
    on_infeasible: OnInfeasible = OnInfeasible.QUEUE
    """If the deadline cannot be met whatever happens: Queue keeps the job in its place and says so,
    BestEffort gives the deadline up, Reject ends the job."""
    on_missed: OnMissed = OnMissed.DEMOTE
    """Once the deadline has passed: Demote ranks the job behind all that can still be in time, Continue keeps
    its rank, Cancel ends it."""
    active: base.Flag = True
    """False pauses the job: it is suspended, and waits until this is true again."""
    ttl_seconds_after_finished: Annotated[pydantic.StrictInt, pydantic.Field(ge=0, le=2**31 - 1)] | None = (
        None
    )
    """Seconds after its end at which this object is deleted; absent: never."""
    job_ref: JobRef | None = None
    """The existing object that is queued, in place of groups. It never changes."""
    groups: Annotated[tuple[Group, ...], base.list_map(8, least=1), base.unique("name")] = pydantic.Field(
        default_factory=tuple
    )
    """The groups of the gang, the leader's first, in place of jobRef. They never change."""

    def resolved_deadline(self, created: int) -> int | None:
        """Return the deadline of an object created at `created`, both in ms since the epoch, or None."""
        if self.deadline_in is not None:
            return created + self.deadline_in
        coming = self._coming(created)
        return self.deadline if coming is None else coming.at

    def deadline_note(self, created: int) -> str:
        """Say in words how `deadlineAt` was taken where clocks change; "" where there is nothing to say."""
        coming = self._coming(created)
        return coming.note if coming else ""

    def _coming(self, created: int) -> zones.Occurrence | None:
        # Always derived anew from what does not change, never read back: the same creation, time and zone
        # give the same deadline.
        if self.deadline_at is None:
            return None
        return zones.following(self.deadline_at.time, self.deadline_at.zone, created)


def parse(obj: object) -> Spec:
    """Read the spec of a raw DeadlineJob.

    Raises:
        InvalidSpecError: with every problem by field.
    """
    return reading.read(Spec, obj, part="spec", rules=deadlinejob_rules.RULES)
