"""The status of a DeadlineJob: what lstqueue promised, where the gang stands, and what it tells its user.

All admission state lives here, written before it is acted on. Times and durations are given in ms and written
as text; `Status(...).dump()` is the JSON to write. What a status says is decided elsewhere.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any

import pydantic

from lstqueue.api import base, reading
from lstqueue.api.conditions import Conditions

RUNS = 10
"""How many runs a status remembers."""
NODES = 4096
"""How many nodes a list in a status may name."""
VICTIMS = 4096
"""How many victims a claim may have."""
SUSPENSIONS = 50
"""How many suspensions for others a status remembers: the most that a queue may allow a job in 24 hours."""
DISPLACED_BY = SUSPENSIONS
"""How many jobs a status remembers that this one was suspended for; with so many it is suspended no more."""


class Phase(enum.StrEnum):
    """Where a DeadlineJob stands."""

    PENDING = "Pending"
    CLAIMING = "Claiming"
    ADMITTED = "Admitted"
    RUNNING = "Running"
    SUSPENDING = "Suspending"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REJECTED = "Rejected"


class EstimateSource(enum.StrEnum):
    """Where the estimated duration comes from."""

    PROGRESS = "Progress"
    HISTORY = "History"
    USER = "User"
    QUEUE_DEFAULT = "QueueDefault"


class NodeRanks(base.Model):
    """The ranks of a group on one node."""

    node: base.Text
    """Name of the node."""
    ranks: Annotated[pydantic.StrictStr, pydantic.Field(max_length=16384, pattern="^[0-9]+([-,][0-9]+)*$")]
    """Global ranks as ranges, such as 0-7,9."""


class GroupAdmission(base.Model):
    """Where a group was placed."""

    name: base.Text
    """Name of the group."""
    pool: base.Text
    """The pool of the queue it is charged to."""
    nodes: Annotated[tuple[NodeRanks, ...], base.list_map(NODES, "node")] = ()
    """The nodes in rank order."""


class Admission(base.Model):
    """The capacity that is committed to the whole gang."""

    at: base.StatusTime
    """When it was committed."""
    queue: base.Text
    """The queue whose quota it uses."""
    shape_hash: base.Text
    """Digest of the gang it was decided for."""
    groups: Annotated[tuple[GroupAdmission, ...], base.list_map(8)] = ()
    """The placement of each group."""
    job_uid: base.Text = ""
    """UID of the object that jobRef names, for which it was decided."""
    topology: base.Message = ""
    """How good the place is on the interconnect: the domain that holds it, hops between its nodes, what a
    ring over them gets, and domains used of the fewest possible."""
    domain: base.Text = ""
    """Full path of the innermost domain that holds the place."""
    slowdown_permille: Annotated[pydantic.StrictInt, pydantic.Field(ge=1000, le=4000)] | None = None
    """What the run is predicted to take here, in thousandths of that in the best place; absent: as long."""


class NodeCount(base.Model):
    """How many pods of a group are to go to one node."""

    node: base.Text
    """Name of the node."""
    count: Annotated[pydantic.StrictInt, pydantic.Field(ge=1)]
    """How many pods."""


class GroupClaim(base.Model):
    """Where a group is to be placed."""

    name: base.Text
    """Name of the group."""
    pool: base.Text
    """The pool of the queue it is charged to."""
    nodes: Annotated[tuple[NodeCount, ...], base.list_map(NODES, "node")] = ()
    """The nodes in rank order."""


class Victim(base.Model):
    """A job that is suspended for a claim."""

    uid: base.Text
    """UID of its DeadlineJob."""
    attempt: base.Count
    """The one admission of it that is ended."""


class Claim(base.Model):
    """The capacity that the whole gang takes as soon as others have left it."""

    expires: base.StatusTime
    """When it is given up if they have not left by then."""
    queue: base.Text = ""
    """The queue whose quota it will use."""
    groups: Annotated[tuple[GroupClaim, ...], base.list_map(8)] = ()
    """The placement of each group, in the order of the groups."""
    victims: Annotated[tuple[Victim, ...], base.list_map(VICTIMS, "uid")] = ()
    """The jobs that are suspended for it."""


class Reservation(base.Model):
    """Room that is kept for the whole gang while it waits for others to leave it."""

    start: base.StatusTime
    """When it is expected to be free."""
    groups: Annotated[tuple[GroupClaim, ...], base.list_map(8)] = ()
    """The placement of each group, in the order of the groups."""
    slips: base.Count = 0
    """How many times it was put off."""


class Slot(base.Model):
    """Room that the whole gang has at the latest, so that it ends by its deadline."""

    start: base.StatusTime
    """When others have left it."""
    finish: base.StatusTime
    """When it has ended, by the deadline."""
    run_time: base.StatusDuration
    """The longest run time that is promised for."""
    groups: Annotated[tuple[GroupClaim, ...], base.list_map(8)] = ()
    """The placement of each group, in the order of the groups."""


class Suspension(base.Model):
    """Why the gang gives its capacity back."""

    reason: base.Text
    """In one word for programs."""
    since: base.StatusTime
    """When it was decided."""
    for_uid: base.Text = pydantic.Field(default="", alias="for")
    """UID of the DeadlineJob that gets the capacity."""


class Backoff(base.Model):
    """What a failed start costs, or breaking soon and not for the first time."""

    until: base.StatusTime
    """Not admitted again before this."""
    count: base.Count
    """Starts that failed in a row; 0 for a gang that started, and broke."""
    avoid: Annotated[tuple[base.Text, ...], pydantic.Field(max_length=NODES)] = ()
    """Nodes that failed it."""
    avoid_until: base.StatusTime | None = None
    """When those nodes may be tried again."""


class Window(base.Model):
    """A forecast: a point in time that is expected between two others."""

    earliest: base.StatusTime
    """From the short estimate."""
    latest: base.StatusTime
    """From the long estimate."""


class Verdict(base.Model):
    """Whether the deadline will hold."""

    level: Annotated[pydantic.StrictStr, pydantic.Field(max_length=32)]
    """FEASIBLE (promised), LIKELY, AT_RISK, UNLIKELY, IMPOSSIBLE or UNKNOWN."""
    reason: base.Message = ""
    """Why, in one sentence."""
    earliest_feasible_deadline: base.StatusTime | None = None
    """The earliest deadline that would be likely to hold."""
    earliest_promised_deadline: base.StatusTime | None = None
    """The earliest deadline that would have been promised (FEASIBLE) when that was last looked for."""
    forecast_start: Window | None = None
    """When the gang is expected to start."""
    forecast_finish: Window | None = None
    """When it is expected to finish."""


class Estimate(base.Model):
    """How long the whole gang is expected to run, in three quantiles."""

    lo: base.StatusDuration
    """If all goes well."""
    mid: base.StatusDuration
    """As expected."""
    hi: base.StatusDuration
    """If it takes long."""
    source: EstimateSource
    """Progress: what it says of itself. History: earlier runs. User: the spec. QueueDefault: the queue."""


class Pending(base.Model):
    """Why the job waits."""

    code: Annotated[pydantic.StrictStr, pydantic.Field(max_length=63)]
    """In one word for programs."""
    message: base.Message = ""
    """In one sentence with the numbers."""


class Run(base.Model):
    """One run of the gang."""

    start: base.StatusTime
    """When every member ran, or when it was admitted if that never happened."""
    end: base.StatusTime | None = None
    """When it ended."""
    reason: base.Text = ""
    """Why it ended."""
    message: base.Text = ""
    """The same in one sentence, where there is more to say."""
    nodes: base.Count = 0
    """On how many nodes it ran."""
    domain: base.Text = ""
    """Full path of the innermost domain of the interconnect that held it; the next start tries that first."""
    lost: base.StatusDuration | None = None
    """How much of its work was lost with it."""


def _newest(jobs: Any) -> Any:
    return jobs[-DISPLACED_BY:] if isinstance(jobs, list | tuple) else jobs


def _latest(suspensions: Any) -> Any:
    return suspensions[-SUSPENSIONS:] if isinstance(suspensions, list | tuple) else suspensions


def _last(runs: Any) -> Any:
    return runs[-RUNS:] if isinstance(runs, list | tuple) else runs


class Status(base.Model):
    """Where the job stands. Written by lstqueue alone."""

    observed_generation: base.Count | None = None
    """The generation of the spec that this status speaks of."""
    phase: Phase | None = None
    """Where the job stands."""
    conditions: Conditions = ()
    """The same for tools that wait."""
    deadline: base.StatusTime | None = None
    """The deadline as a point in time."""
    queue: base.Text = ""
    """The queue it is in: the one it names, or else its namespace's."""
    gang: base.Text = ""
    """The size of the gang in short."""
    job_uid: base.Text = ""
    """UID of the object that jobRef names, once it was seen."""
    attempt: base.Count = 0
    """Number of the latest admission; never resets."""
    restarts: base.Count = 0
    """How many times the whole gang got new Jobs, disruptions included; part of their names."""
    disruptions: base.Count = 0
    """How many times it was started again because of a node, which backoffLimit does not count."""
    admission: Admission | None = None
    """The capacity that is committed to it."""
    claim: Claim | None = None
    """The capacity that it takes as soon as others have left it."""
    slot: Slot | None = None
    """What its deadline is promised by; it mostly starts earlier, and anywhere."""
    reservation: Reservation | None = None
    """Room that is kept for it, while it waits; nothing is suspended for that."""
    suspension: Suspension | None = None
    """Why it is giving its capacity back."""
    displaced_by: Annotated[
        tuple[base.Text, ...], pydantic.Field(max_length=DISPLACED_BY), pydantic.BeforeValidator(_newest)
    ] = ()
    """UIDs of the DeadlineJobs it was suspended for since its last run of some length, the oldest first."""
    preempted_at: Annotated[
        tuple[base.StatusTime, ...],
        pydantic.Field(max_length=SUSPENSIONS),
        pydantic.BeforeValidator(_latest),
    ] = ()
    """When it was suspended for others in the 24 hours before the last time, the oldest first."""
    saved: base.StatusDuration | None = None
    """How much run time its suspensions left it."""
    wasted: base.Count | None = None
    """How many suspensions in a row saved nothing."""
    backoff: Backoff | None = None
    """Why it is not admitted yet after a failed start, or before a restart."""
    late: bool | None = None
    """Whether it ranks behind, since its deadline cannot hold any more, or three starts in a row have failed;
    absent without a deadline."""
    shed: bool | None = None
    """Whether it ranks behind for now because not all deadlines can be met; absent when it does not."""
    best_effort: bool | None = None
    """Whether its deadline was given up as impossible; absent when it was not."""
    spare: bool | None = None
    """Whether its sweep has enough without it, so that it runs when others leave room; absent when not."""
    verdict: Verdict | None = None
    """Whether the deadline will hold."""
    slack: base.Text = ""
    """How much time is left before it has to start, coarsely."""
    latest_start_time: base.StatusTime | None = None
    """The latest start that meets the deadline."""
    estimate: Estimate | None = None
    """How long it is expected to run."""
    history_key: base.Text = ""
    """Under which entry of the ConfigMap lstqueue-history its run time is kept."""
    pending: Pending | None = None
    """Why it waits."""
    runs: Annotated[tuple[Run, ...], pydantic.Field(max_length=RUNS), pydantic.BeforeValidator(_last)] = ()
    """Its latest runs, the oldest first."""
    start_time: base.StatusTime | None = None
    """When its latest run was complete: every member ran."""
    completion_time: base.StatusTime | None = None
    """When it succeeded or failed for good."""


def parse(obj: object) -> Status:
    """Read the status of a raw DeadlineJob; an object without one has an empty status.

    Raises:
        InvalidSpecError: somebody else wrote something that makes no sense.
    """
    if isinstance(obj, dict) and obj.get("status") is None:
        return Status()
    return reading.read(Status, obj, part="status")
