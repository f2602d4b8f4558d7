"""The values that go into a decision and come out of it.

All times are integer milliseconds since the Unix epoch, all durations integer milliseconds, all resources
integers as in `topology.model`. Everything is frozen; a pass never changes its input.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lstqueue.topology.model import Node, PodShape, Resources, Toleration

MINUTE = 60_000
HOUR = 60 * MINUTE


class Order(enum.Enum):
    """How a queue orders its jobs (docs/engine.md, step 3)."""

    LST = "lst"
    EDF = "edf"
    FIFO = "fifo"


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
    """How likely a deadline is to hold. UNKNOWN: no estimate, or no deadline to judge."""

    IMPOSSIBLE = "IMPOSSIBLE"
    UNLIKELY = "UNLIKELY"
    AT_RISK = "AT_RISK"
    LIKELY = "LIKELY"
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
    HEAD_OF_LINE = "HeadOfLine"  # its fifo queue waits for the job at its head
    BACKING_OFF = "BackingOff"
    HELD_BACK = "HeldBack"
    QUEUE_HELD = "QueueHeld"  # its queue admits nobody for now
    OBSERVING = "Observing"  # its queue only watches: forecasts, but no admissions
    CLAIMING = "Claiming"  # owns its place, and waits until those suspended for it have left


class Preemption(enum.Enum):
    """Whom a job at its last moment may have suspended within its own queue."""

    NEVER = "Never"
    NO_HARM = "NoHarm"  # those of a lower band, and those whose deadline holds all the same
    TIER = "Tier"  # beside these, any job of a lower tier


@dataclass(frozen=True, slots=True)
class Estimate:
    """Run time of the full gang, in ms, as quantiles lo <= mid <= hi, counted from its start."""

    lo: int
    mid: int
    hi: int


@dataclass(frozen=True, slots=True)
class Pool:
    """A share of the nodes a queue may use: those that match `selector`; `nominal` is its quota there.

    cpu, memory, ephemeral-storage and pods that are not listed are limited by the nodes alone; an extended
    resource that is not listed is refused. `tolerations` are added to the pods placed here.
    """

    name: str
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    nominal: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A GPUQueue as the engine sees it.

    `min_run` (ms) and `cap` (suspensions for others in 24 h) protect its jobs from preemption. `held`: nobody
    is admitted; `drained`: moreover, everybody is suspended; `observed`: forecasts only.
    """

    name: str
    order: Order = Order.LST
    pools: tuple[Pool, ...] = ()
    max_importance: int | None = None
    preemption: Preemption = Preemption.NO_HARM
    min_run: int = 15 * MINUTE
    cap: int = 4
    shedding: bool = True
    held: bool = False
    drained: bool = False
    observed: bool = False


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
    no start can be foreseen. `earliest_feasible` is the earliest deadline that would be LIKELY now.
    """

    level: Level
    reason: str = ""
    start: tuple[int, int] | None = None
    finish: tuple[int, int] | None = None
    earliest_feasible: int | None = None


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
class GroupPlacement:
    """Where the pods of one group go: one pool, and (node, count) pairs in rank order."""

    pool: str
    nodes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Victim:
    """A job to be suspended for another, in that one attempt (`Job.attempt`) and no later one."""

    uid: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Capacity that a job owns while its victims leave: its whole placement, parallel to its groups.

    It is charged, per node and in its queue's usage, only beyond what its own victims still hold there.
    `expires` is in ms since the epoch. Victims are suspended only once the claim is `committed`: written.
    """

    groups: tuple[GroupPlacement, ...]
    victims: tuple[Victim, ...]
    expires: int
    committed: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """One queued unit: a gang, what it promised to whom, and where it stands.

    `overhead` is the launch cost o of its next start in ms (launch, or restore once it ran), `restore` what
    a start after a suspension costs. `since` is when the gang ran in full (RUNNING) or was admitted
    (ADMITTED); 0 otherwise. `not_before` ends a back-off; `avoid` names nodes that failed it;
    `failed_starts` counts those in a row. `words` is what `status.pending.message` says; it counts only for
    jobs in `Snapshot.restate`.

    For preemption: `attempt` numbers its admissions. `min_run` is its own, None for its queue's. `saved` is
    the run time (ms) whose result outlives a suspension: estimates count from the first start, so what is
    left is estimate - saved. While it runs it saves every `checkpoint` ms (0: never), and `saves_on_suspend`
    says that it also does within its `grace` (ms, the longest termination grace of its pods). `suspensions`
    are when it was suspended for others in the last 24 h, `wasted` counts those in a row that saved nothing;
    that it `stays` means that nobody can have it leave. `displaced_by` are the jobs (uids) it was suspended
    for and of which it may not make victims yet. `value` weighs it. `keeps_band`: late, it keeps its rank.

    For words: `labelled` says that its user wrote labels and annotations on a Job instead of a spec,
    `expired` that its deadline was past when it was submitted.
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
    labelled: bool = False
    expired: bool = False

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
    names the foreign pods by node, only to say who is in the way: nothing is decided by it.
    """

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    jobs: tuple[Job, ...] = ()
    forecast_at: int = 0
    changed: bool = True
    restate: frozenset[str] = frozenset()
    foreign: Mapping[str, Sequence[Foreign]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Config:
    """Every figure a pass depends on, in ms where it is a time. docs/engine.md says where each comes from.

    `order` overrides the queues' own order when set (a policy for evaluations).
    """

    order: Order | None = None
    overhead_share: float = 0.25  # a in the static key
    quantum: int = 5 * MINUTE  # Q in the static key
    late_hysteresis: int = 10 * MINUTE
    lo_factor: float = 0.25
    hi_factor: float = 1.5
    outrun_factor: float = 1.5
    forecast_interval: int = MINUTE
    forecast_tolerance: int = 5 * MINUTE  # smaller moves of a forecast are not published
    forecast_share: float = 0.1  # nor are those below this part of the time until what was told
    forecast_depth: int = 1000  # waiting jobs a forecast follows, in order; 0 makes none
    shedding: bool = True  # whether step 2 gives up jobs of an overload at all
    shed_floor: float = 0.4  # of what there is until a far deadline, this part may be asked for
    shed_extra: float = 0.5  # and for a near one this part more
    shed_decay: int = 12 * HOUR  # over which the second part falls to 1/e
    shed_weight: int = 2  # how often a job counts that was given up; 1 lets bands flap
    shed_step: int = 5 * MINUTE  # in which time moves for step 2
    trigger_least: int = HOUR  # slack at which a job may have others suspended, besides a share of mid
    trigger_share: float = 0.4
    trigger_margin: int = 2_000  # two passes
    harm_least: int = 10 * MINUTE  # a suspension is taken to cost a victim's slack no less
    harm_margin: int = 10 * MINUTE  # by which a victim's slack must stay above the other's
    unsaved_most: int = 10 * MINUTE  # run time a victim may lose while the other can wait for its checkpoint
    pressing: int = 15 * MINUTE  # slack at which the other waits no more, nor for room that is leaving
    wasted_most: int = 2  # suspensions in a row that saved nothing; then only past the next checkpoint
    cap_window: int = 24 * HOUR  # in which Queue.cap counts
    failed_starts_most: int = 3  # in a row; then it ranks with the rest, and nobody leaves for it
    claim_margin: int = 2 * MINUTE  # beyond the victims' grace: writes, controllers and kubelets at work
    avoid_graces: int = 2  # for how many graces nodes that did not come free in time are avoided

    def __post_init__(self) -> None:
        """Refuse figures with which a pass would not end or not mean anything.

        Raises:
            ValueError: Names the field and the range it must be in.
        """
        ranges = (
            ("overhead_share", self.overhead_share, 0 <= self.overhead_share <= 1, "0 to 1"),
            ("quantum", self.quantum, self.quantum >= 1, "1 ms or more"),
            ("late_hysteresis", self.late_hysteresis, self.late_hysteresis >= 0, "0 ms or more"),
            ("lo_factor", self.lo_factor, 0 < self.lo_factor <= 1, "above 0, at most 1"),
            ("hi_factor", self.hi_factor, 1 <= self.hi_factor <= 100, "1 to 100"),
            ("outrun_factor", self.outrun_factor, 1.01 <= self.outrun_factor <= 100, "1.01 to 100"),
            ("forecast_interval", self.forecast_interval, self.forecast_interval >= 1, "1 ms or more"),
            ("forecast_tolerance", self.forecast_tolerance, self.forecast_tolerance >= 1, "1 ms or more"),
            ("forecast_share", self.forecast_share, 0 <= self.forecast_share < 1, "0 to below 1"),
            ("forecast_depth", self.forecast_depth, self.forecast_depth >= 0, "0 or more"),
            ("shed_floor", self.shed_floor, 0 < self.shed_floor <= 100, "above 0, at most 100"),
            # Up to there what may be asked for until a deadline falls as time passes, whatever the decay.
            ("shed_extra", self.shed_extra, 0 <= self.shed_extra <= 7 * self.shed_floor, "0 to 7 shed_floor"),
            ("shed_decay", self.shed_decay, self.shed_decay >= 1, "1 ms or more"),
            ("shed_weight", self.shed_weight, 1 <= self.shed_weight <= 100, "1 to 100"),
            ("shed_step", self.shed_step, self.shed_step >= 1, "1 ms or more"),
            ("trigger_share", self.trigger_share, 0 <= self.trigger_share <= 10, "0 to 10"),
            ("harm_least", self.harm_least, self.harm_least >= 1, "1 ms or more"),
            ("claim_margin", self.claim_margin, self.claim_margin >= 1, "1 ms or more"),
            ("cap_window", self.cap_window, self.cap_window >= 1, "1 ms or more"),
            ("wasted_most", self.wasted_most, self.wasted_most >= 1, "1 or more"),
            ("failed_starts_most", self.failed_starts_most, self.failed_starts_most >= 1, "1 or more"),
            ("avoid_graces", self.avoid_graces, self.avoid_graces >= 1, "1 or more"),
        )
        for name, value, fine, allowed in ranges:
            if not fine:
                raise ValueError(f"config.{name} is {value}; it must be {allowed}")


@dataclass(frozen=True, slots=True)
class Admission:
    """A whole gang admitted by a pass; `groups` runs parallel to the job's groups."""

    uid: str
    queue: str
    groups: tuple[GroupPlacement, ...]


class Why(enum.Enum):
    """Why a job is suspended."""

    PREEMPTED = "Preempted"
    QUEUE_DRAINED = "QueueDrained"


@dataclass(frozen=True, slots=True)
class Claiming:
    """A job that may take its place once its victims have left; they are suspended when this is written."""

    uid: str
    queue: str
    claim: Claim


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
    `explain` needs; it is no part of equality.
    """

    now: int
    admit: tuple[Admission, ...] = ()
    claim: tuple[Claiming, ...] = ()
    suspend: tuple[Suspend, ...] = ()
    drop: tuple[Drop, ...] = ()
    updates: tuple[Update, ...] = ()
    wake_at: int | None = None
    forecast: bool = False
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
