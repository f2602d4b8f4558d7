"""The values that go into a decision and come out of it.

All times are integer milliseconds since the Unix epoch, all durations integer milliseconds, all resources
integers as in `topology.model`. Everything is frozen; a pass never changes its input.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lstqueue.engine.config import HOUR as HOUR
from lstqueue.engine.config import MINUTE as MINUTE
from lstqueue.engine.config import Config as Config
from lstqueue.engine.config import Order as Order
from lstqueue.engine.locality import ANYWHERE as ANYWHERE
from lstqueue.engine.locality import Locality as Locality
from lstqueue.engine.places import Cause as Cause
from lstqueue.engine.places import Claim as Claim
from lstqueue.engine.places import GroupPlacement as GroupPlacement
from lstqueue.engine.places import Promise as Promise
from lstqueue.engine.places import Reservation as Reservation
from lstqueue.engine.places import Reserve as Reserve
from lstqueue.engine.places import Revoke as Revoke
from lstqueue.engine.places import Round as Round
from lstqueue.engine.places import Slot as Slot
from lstqueue.engine.places import Unreserve as Unreserve
from lstqueue.engine.places import Victim as Victim
from lstqueue.engine.queues import Pool as Pool
from lstqueue.engine.queues import Preemption as Preemption
from lstqueue.engine.queues import Queue as Queue
from lstqueue.engine.queues import Window as Window
from lstqueue.topology.domains import Domains as Domains
from lstqueue.topology.model import Node, PodShape, Resources


class State(enum.Enum):
    """Where a job stands for the engine."""

    __hash__ = object.__hash__  # see Code

    WAITING = "waiting"  # may be admitted
    HELD_BACK = "held-back"  # waits, but may not be admitted: `Job.held_back` says why
    CLAIMING = "claiming"  # owns the capacity of `Job.claim` and waits until its victims have left it
    ADMITTED = "admitted"  # owns its capacity, not all members run yet
    RUNNING = "running"  # every member runs or has succeeded
    ENDING = "ending"  # finished or suspended; its pods still leave


class Band(enum.IntEnum):
    """Coarse class of a job in the order, the lower first."""

    DEADLINE = 0
    SHED = 1  # given up for now so that the others of an overload hold
    REST = 2  # late, or without a deadline


class Level(enum.Enum):
    """How likely a deadline is to hold. UNKNOWN: no estimate, or no deadline to judge. FEASIBLE: promised."""

    IMPOSSIBLE = "IMPOSSIBLE"
    UNLIKELY = "UNLIKELY"
    AT_RISK = "AT_RISK"
    LIKELY = "LIKELY"
    FEASIBLE = "FEASIBLE"
    UNKNOWN = "UNKNOWN"


class Code(enum.Enum):
    """Why a job waits; the machine-readable half of every explanation.

    A member is only equal to itself, so its address is a fine hash; that of `Enum` is of the name, and
    written in Python: 0.2 µs, asked ten times a job and pass.
    """

    __hash__ = object.__hash__

    QUEUE_NOT_FOUND = "QueueNotFound"
    RESOURCE_NOT_IN_QUEUE = "ResourceNotInQueue"  # an extended resource that no pool of the queue lists
    IMPORTANCE_TOO_HIGH = "ImportanceTooHigh"
    NO_MATCHING_NODES = (
        "NoMatchingNodes"  # selectors, affinity, taints or size: no set of nodes could ever hold it
    )
    QUOTA_TOO_SMALL = "QuotaTooSmall"  # larger than the whole nominal quota
    QUOTA_EXCEEDED = "QuotaExceeded"  # fits the quota once others leave
    NO_ROOM = "NoRoom"  # fits the nodes once others leave
    WINDOW = "Window"  # would still run, with too much of the quota, when a window of its queue begins
    RESERVED = "Reserved"  # would fit on room that is kept for another, and would not leave it in time
    HEAD_OF_LINE = "HeadOfLine"  # its fifo queue waits for the job at its head
    BACKING_OFF = "BackingOff"
    HELD_BACK = "HeldBack"
    QUEUE_HELD = "QueueHeld"  # its queue admits nobody for now
    QUEUE_CONFLICT = "QueueConflict"  # its queue contradicts an older one, and admits nobody
    OBSERVING = "Observing"  # its queue only watches: forecasts, but no admissions
    TOPOLOGY = "Topology"  # would fit, and waits for a better domain as long as its slack allows
    CLAIMING = "Claiming"  # owns its place, and waits until those suspended for it have left


@dataclass(frozen=True, slots=True)
class Estimate:
    """Run time of the full gang, in ms, as quantiles lo <= mid <= hi, counted from its start."""

    lo: int
    mid: int
    hi: int


@dataclass(frozen=True, slots=True)
class Group:
    """`count` equal pods of a gang."""

    name: str
    count: int
    shape: PodShape


@dataclass(frozen=True, slots=True)
class Assigned:
    """What a job is charged on one node for one of its groups.

    `bound` pods are there (bound, not Succeeded or Failed; already part of `Node.used`); `held` are expected
    and not bound yet (not part of `Node.used`). Members that have finished are in neither.
    """

    group: int
    pool: str
    node: str
    bound: int
    held: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a job was told about its deadline.

    The forecast pairs are (earliest, latest) in ms since the epoch, from the lo and hi quantiles; None where
    no start can be foreseen. `earliest_feasible` is the earliest deadline that would be LIKELY now,
    `earliest_promised` the one that would have been FEASIBLE when that was looked for last.
    """

    level: Level
    reason: str = ""
    start: tuple[int, int] | None = None
    finish: tuple[int, int] | None = None
    earliest_feasible: int | None = None
    earliest_promised: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What a job's status says already; an update is planned only where the pass would say something else.

    `slack` is the name of a bucket of `engine.slack.BUCKETS`, never a number, so that time alone seldom
    changes it.
    """

    band: Band | None = None
    code: Code | None = None
    verdict: Verdict | None = None
    slack: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One queued unit: a gang, what it promised to whom, and where it stands.

    `overhead` is the launch cost o of its next start in ms (launch, or restore once it ran), `restore` what
    a start after a suspension costs. `since` is when the gang began to work (RUNNING: it ran in full and was
    through with that start; may lie ahead) or was admitted (ADMITTED); 0 otherwise. `not_before` ends a
    back-off; `avoid` names nodes that failed it; `failed_starts` counts those in a row. `words` is what
    `status.pending.message` says; it counts only for jobs in `Snapshot.restate`. `served` is the run time of
    earlier runs with what was lost of it (ms), for the order `service` alone. A job that has a `slot` is
    promised its deadline, `slot_before` is the one that it moves from as long as that is not known to be
    written; one that is `bereft` was promised it, and lost that by nothing of its own.

    For preemption: `attempt` numbers its admissions. `min_run` is its own, None for its queue's. `saved` is
    the run time (ms) whose result outlives a suspension: estimates count from the first start, so what is
    left is estimate - saved. While it runs it saves every `checkpoint` ms (0: never), and `saves_on_suspend`
    says that it also does within its `grace` (ms, the longest termination grace of its pods). `suspensions`
    are when it was suspended for others in the last 24 h, `wasted` counts those in a row that saved nothing;
    that it `stays` means that nobody can have it leave. `displaced_by` are the jobs (uids) it was suspended
    for and of which it may not make victims yet. `value` weighs it. `keeps_band`: late, it keeps its rank.

    `locality` is what it asks of the interconnect, `slowdown` by how much (ppm) its present place makes it
    slower than the best would: estimates, and what is saved, are of the best. `home` is the full path of the
    domain of its last place, which is tried first.

    Jobs of one `sweep` ("" for none) are given up together in an overload, and promised together once there
    are `sweep_needs` of them, as many as have to succeed still.

    For words: `spare` says that its sweep has enough without it, so that it has no deadline here; `labelled`
    that its user wrote labels and annotations on a Job instead of a spec, `expired` that its deadline was
    past when it was submitted.
    """

    uid: str
    namespace: str
    name: str
    queue: str
    groups: tuple[Group, ...]
    submit: int
    deadline: int | None = None
    estimate: Estimate | None = None
    importance: int = 0
    overhead: int = 0
    state: State = State.WAITING
    since: int = 0
    assigned: tuple[Assigned, ...] = ()
    not_before: int = 0
    avoid: tuple[str, ...] = ()
    held_back: str = ""
    published: Published = Published()
    words: str = ""
    attempt: int = 0
    claim: Claim | None = None
    reservation: Reservation | None = None
    slot: Slot | None = None
    slot_before: Slot | None = None
    bereft: bool = False
    failed_starts: int = 0
    preemptible: bool = True
    stays: bool = False
    min_run: int | None = None
    value: int = 1
    saved: int = 0
    checkpoint: int = 0
    saves_on_suspend: bool = False
    restore: int = 0
    grace: int = 30_000
    suspensions: tuple[int, ...] = ()
    wasted: int = 0
    displaced_by: tuple[str, ...] = ()
    keeps_band: bool = False
    served: int = 0
    sweep: str = ""
    sweep_needs: int = 0
    spare: bool = False
    labelled: bool = False
    expired: bool = False
    locality: Locality = ANYWHERE
    slowdown: int = 1_000_000
    home: str = ""

    @property
    def movable(self) -> bool:
        """Whether it may be suspended for another."""
        return self.preemptible and not self.stays


@dataclass(frozen=True, slots=True)
class Foreign:
    """A bound pod that is no job's, by name; its requests are in `Node.used` already."""

    namespace: str
    name: str
    requests: Resources


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a pass may look at. Order of the tuples does not matter: the pass sorts.

    `forecast_at` is when waiting jobs were last forecast (`Plan.forecast`; 0: never); `changed` says that
    something moved since, admissions of a plan included, so that their forecasts are worth making anew.
    Outrun estimates need not be reported: a pass sees them itself. `restate` are the jobs (uids) whose words
    are old enough to be said anew, should they read differently now; the caller bounds how often. `foreign`
    names the foreign pods by node, only to say who is in the way: nothing is decided by it. `shed_at` is when
    somebody was last given up (`Plan.sheds`; 0: never, or not known). `reclaimed` is when each queue last
    took back what it had lent (`Claiming.reclaims`; none: never); jobs end, and are moved. `round` is what
    the last plan said of it. `domains` are those of the interconnect of the nodes, None where nothing is
    known of one; a caller with a memory gives the same object until they change.
    """

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    jobs: tuple[Job, ...] = ()
    forecast_at: int = 0
    changed: bool = True
    restate: frozenset[str] = frozenset()
    shed_at: int = 0
    foreign: Mapping[str, Sequence[Foreign]] = field(default_factory=dict, compare=False)
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    round: Round | None = None
    domains: Domains | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Admission:
    """A whole gang admitted by a pass; `groups` runs parallel to the job's groups.

    `topology` says how good that is on the interconnect, in words; empty where nothing is known of one.
    `slowdown` is what it makes of the job's run time, in ppm, `domain` the full path of the innermost domain
    that holds it.
    """

    uid: str
    queue: str
    groups: tuple[GroupPlacement, ...]
    topology: str = ""
    slowdown: int = 1_000_000
    domain: str = ""


class Why(enum.Enum):
    """Why a job is suspended."""

    PREEMPTED = "Preempted"
    PROMISED = "Promised"  # to run in its own slot instead, or it would not end by its deadline
    RECLAIMED = "Reclaimed"  # it ran on quota that others of the cohort lent, for a job of another queue
    QUEUE_DRAINED = "QueueDrained"


@dataclass(frozen=True, slots=True)
class Claiming:
    """A job that may take its place once its victims have left; they are suspended when this is written.

    That it `reclaims`, by the right of its queue to its nominal quota, is to be remembered of the queue
    (`Snapshot.reclaimed`).
    """

    uid: str
    queue: str
    claim: Claim
    reclaims: bool = False


@dataclass(frozen=True, slots=True)
class Suspend:
    """A job to suspend in this very attempt, for the job `for_uid` ("" for nobody)."""

    uid: str
    attempt: int
    why: Why
    for_uid: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """A claim to give up, in words `why`; `avoid` are nodes that did not come free in time.

    They are to be kept out of the job's next placement until `avoid_until` (ms since the epoch).
    """

    uid: str
    why: str
    avoid: tuple[str, ...] = ()
    avoid_until: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """What a job's status should say now; planned only where it differs from `Job.published`."""

    uid: str
    band: Band
    code: Code | None
    message: str
    verdict: Verdict | None
    slack: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass decided: a delta, never a line for each unfinished job.

    `wake_at` is the next time at which time alone can change a decision, None when there is none.
    `forecast` says that all waiting jobs were forecast, as many as `Config.forecast_depth` allows. `counts`
    are figures for metrics and the log (waiting, admitting, running, fits tried, ...). `kept` is what
    `explain` needs; it is no part of equality. A new promise and the verdict FEASIBLE are
    of the same plan, to be written together; it binds from the pass on that sees the slot. `sheds` says that
    somebody is given up. `round` is whom later passes look at again for promises, None when they need not.
    """

    now: int
    admit: tuple[Admission, ...] = ()
    claim: tuple[Claiming, ...] = ()
    suspend: tuple[Suspend, ...] = ()
    drop: tuple[Drop, ...] = ()
    reserve: tuple[Reserve, ...] = ()
    unreserve: tuple[Unreserve, ...] = ()
    promise: tuple[Promise, ...] = ()
    revoke: tuple[Revoke, ...] = ()
    updates: tuple[Update, ...] = ()
    wake_at: int | None = None
    forecast: bool = False
    sheds: bool = False
    round: Round | None = None
    counts: tuple[tuple[str, int], ...] = ()
    kept: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Who stands before a job, and how: `ahead` in the order, or `holding` the room it needs.

    Of a pod that is no job's, `uid` is empty and `node` is where it is.
    """

    uid: str
    namespace: str
    name: str
    how: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job waits, with numbers.

    `needed` and `free` are per resource over the nodes it may use; `largest` is how many of its pods fit
    there now. `change` is the smallest change that would let it start sooner, in words; `preemption` says
    what keeps it from having others suspended, or for whom it is suspended itself.
    """

    uid: str
    code: Code | None
    message: str
    needed: Resources = ()
    free: Resources = ()
    largest: int = 0
    blockers: tuple[Blocker, ...] = ()
    start: tuple[int, int] | None = None
    change: str = ""
    preemption: str = ""
