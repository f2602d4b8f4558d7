"""A DeadlineJob as the operator keeps it: what its spec asks for and where its status says it stands.

Frozen projections; the status is read leniently, since only the operator writes it, and an object whose spec
cannot be read is kept with its problem instead of being dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import conditions, deadlinejob, deadlinejob_status, errors, times
from lstqueue.engine import model
from lstqueue.jobs import inline, views

Object = Mapping[str, Any]


Phase = deadlinejob_status.Phase
"""The only state machine, driven by `lifecycle`."""
FINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.REJECTED})
GANG_FAILED = "GangFailed"
GANG_DISRUPTED = "GangDisrupted"
DELETED = "Deleted"
FAILED_START = "FailedStart"


@dataclass(frozen=True, slots=True)
class GroupAdmission:
    """Where the ranks of one group go: (node, ascending global ranks), in rank order."""

    name: str
    pool: str
    nodes: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """The committed decision. `at` is ms since the epoch; `shape` the hash it was decided for."""

    at: int
    queue: str
    shape: str
    groups: tuple[GroupAdmission, ...]

    def places(self) -> dict[int, tuple[str, str]]:
        """Return (pool, node) of every global rank that it places."""
        return {
            rank: (group.pool, node) for group in self.groups for node, ranks in group.nodes for rank in ranks
        }

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node it names, sorted."""
        return tuple(sorted({node for group in self.groups for node, _ in group.nodes}))

    def names(self, node: str) -> bool:
        """Whether it places anything on a node."""
        return any(node == name for group in self.groups for name, _ in group.nodes)


@dataclass(frozen=True, slots=True)
class BackOff:
    """After a failed start: no admission before `until`, `count` starts failed in a row, nodes to avoid."""

    until: int = 0
    count: int = 0
    avoid: tuple[str, ...] = ()


NO_BACK_OFF = BackOff()
NOTHING_SAID = model.Published()


@dataclass(frozen=True, slots=True)
class JobRef:
    """The existing object that a DeadlineJob speaks for, in its own namespace."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What the user asked for; durations and times in ms.

    With a `ref`, `groups` and `shape` are those of the object it names: empty until that was seen. `queue` is
    "" for the namespace's default. `checkpoint` is the interval between two, 0 for none.
    """

    queue: str
    groups: tuple[tuple[str, int], ...]
    shape: str
    deadline: int | None = None
    estimate: int | None = None
    importance: int = 0
    leader_decides: bool = False
    backoff_limit: int = 3
    ref: JobRef | None = None
    value: int = 1
    preemptible: bool = True
    min_run: int | None = None
    max_run: int | None = None
    checkpoint: int = 0
    saves_on_suspend: bool = False
    restart_overhead: int = 0
    active: bool = True
    on_missed: str = "Demote"
    on_infeasible: str = "Queue"
    ttl: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What the operator wrote last. `published` is the part the engine compares with.

    `held` is the code of a reason outside the engine (a refused pod, an unreadable spec). `suspended_for` is
    the UID of the job that a suspension makes room for, `displaced_by` of those it was made for since its
    last run of full length. `saved` is the run time (ms) that suspensions did not lose, `wasted` how many in
    a row saved nothing. `best_effort`: its deadline was found impossible and given up. `unit` is the UID of
    the object that `Spec.ref` names.
    """

    phase: Phase = Phase.PENDING
    observed: int = 0
    attempt: int = 0
    restarts: int = 0
    disruptions: int = 0
    admission: Admission | None = None
    suspension: str = ""
    since: int = 0
    back_off: BackOff = NO_BACK_OFF
    started: int = 0
    completed: int = 0
    published: model.Published = NOTHING_SAID
    held: str = ""
    conditions: tuple[conditions.Condition, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    gang: str = ""
    claim: model.Claim | None = None
    suspended_for: str = ""
    displaced_by: tuple[str, ...] = ()
    saved: int = 0
    wasted: int = 0
    best_effort: bool = False
    unit: str = ""


SPOKEN = ("late", "pending", "deadline", "latestStartTime", "estimate")
"""Fields of a status that say in words or figures what a Status does not hold."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One DeadlineJob. `spec` is None when it cannot be read; `problem` then says why.

    `spoken` holds the fields of `SPOKEN` as the API has them, so that a patch changes only what differs.
    """

    uid: str
    namespace: str
    name: str
    version: int
    generation: int
    created: int
    deleting: bool
    spec: Spec | None
    problem: str
    status: Status
    spoken: Object = field(default_factory=dict)

    @property
    def key(self) -> str:
        """namespace/name, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def final(self) -> bool:
        """Whether it will never be admitted again."""
        return self.status.phase in FINAL

    def gang(self) -> inline.Gang:
        """Return the identity its children are made from. Raises ValueError without a readable spec."""
        if self.spec is None:
            raise ValueError(f"DeadlineJob {self.key} has no readable spec: {self.problem}")
        return inline.Gang(self.uid, self.namespace, self.name, self.spec.groups)


def read(raw: Object, known: Ledger | None = None) -> Ledger:
    """Project a DeadlineJob; never raises for what a user wrote.

    `known` is an older projection of it: the spec is read again only where its generation says it changed.
    """
    meta, status = raw["metadata"], raw.get("status") or {}
    created = times.parse(meta["creationTimestamp"])
    if known is not None and known.generation == meta.get("generation", 0):
        spec, problem = known.spec, known.problem
    else:
        spec, problem = _judged_spec(raw, created)
        if spec is None and known is not None and status.get("admission"):
            # What holds capacity is led to its end by the spec that it was admitted for.
            spec = known.spec
    return Ledger(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=int(meta["resourceVersion"]),
        generation=meta.get("generation", 0),
        created=created,
        deleting="deletionTimestamp" in meta,
        spec=spec,
        problem=problem,
        status=_status(status),
        spoken={key: status[key] for key in SPOKEN if status.get(key) is not None},
    )


def _judged_spec(raw: Object, created: int) -> tuple[Spec | None, str]:
    """Return the spec, or why it cannot be read."""
    try:
        return _spec(raw, created), ""
    except errors.InvalidSpecError as error:
        return None, str(error)


def _spec(raw: Object, created: int) -> Spec:
    parsed = deadlinejob.parse(raw)
    return Spec(
        queue=parsed.queue,
        groups=tuple((group.name, group.replicas) for group in parsed.groups),
        shape=inline.shape_hash(raw["spec"]["groups"]),
        deadline=parsed.resolved_deadline(created),
        estimate=parsed.estimated_duration,
        importance=parsed.importance,
        leader_decides=parsed.success_policy == "Leader",
        backoff_limit=parsed.backoff_limit,
    )


def _status(raw: Object) -> Status:
    suspension, back_off = raw.get("suspension") or {}, raw.get("backoff") or {}
    return Status(
        phase=_PHASES.get(raw.get("phase", ""), Phase.PENDING),
        observed=raw.get("observedGeneration", 0),
        attempt=raw.get("attempt", 0),
        restarts=raw.get("restarts", 0),
        disruptions=raw.get("disruptions", 0),
        admission=_admission(raw["admission"]) if raw.get("admission") else None,
        suspension=suspension.get("reason", ""),
        since=_time(suspension.get("since")),
        back_off=BackOff(
            until=_time(back_off.get("until")),
            count=back_off.get("count", 0),
            avoid=tuple(back_off.get("avoid") or ()),
        ),
        started=_time(raw.get("startTime")),
        completed=_time(raw.get("completionTime")),
        published=_published(raw),
        held=_held(raw.get("pending") or {}),
        conditions=tuple(conditions.Condition.model_validate(item) for item in raw.get("conditions") or ()),
        runs=tuple(raw.get("runs") or ()),
        gang=raw.get("gang") or "",
    )


def _admission(raw: Object) -> Admission:
    return Admission(
        at=times.parse(raw["at"]),
        queue=raw.get("queue", ""),
        shape=raw.get("shapeHash", ""),
        groups=tuple(
            GroupAdmission(
                name=group["name"],
                pool=group["pool"],
                nodes=tuple(
                    (item["node"], tuple(sorted(views.indexes(item["ranks"])))) for item in group["nodes"]
                ),
            )
            for group in raw["groups"]
        ),
    )


def _published(raw: Object) -> model.Published:
    verdict, pending = raw.get("verdict"), raw.get("pending") or {}
    late, code = raw.get("late"), pending.get("code")
    return model.Published(
        band=_band(late, judged=verdict is not None),
        code=(model.Code(code) if code in _CODES else model.Code.HELD_BACK) if code else None,
        verdict=_verdict(verdict) if verdict and verdict["level"] in _LEVELS else None,
        slack=raw.get("slack") or "",
    )


_PHASES = {phase.value: phase for phase in Phase}
"""A phase of another version reads as Pending: whatever runs is then suspended and queued again."""


def _held(pending: Object) -> str:
    code = pending.get("code") or ""
    return "" if code in _CODES else code


_CODES = frozenset(code.value for code in model.Code)
_LEVELS = frozenset(level.value for level in model.Level)
"""What this version knows; a status may have been written by a newer one."""


def _band(late: bool | None, *, judged: bool) -> model.Band | None:
    """`late` is written for jobs with a deadline only; a judged job without it has none."""
    if late is None:
        return model.Band.REST if judged else None
    return model.Band.REST if late else model.Band.DEADLINE


def _verdict(raw: Object) -> model.Verdict:
    return model.Verdict(
        level=model.Level(raw["level"]),
        reason=raw.get("reason", ""),
        start=_range(raw.get("forecastStart")),
        finish=_range(raw.get("forecastFinish")),
        earliest_feasible=_time(raw.get("earliestFeasibleDeadline")) or None,
    )


def _range(raw: Object | None) -> tuple[int, int] | None:
    return (times.parse(raw["earliest"]), times.parse(raw["latest"])) if raw else None


def _time(text: str | None) -> int:
    return times.parse(text) if text else 0
