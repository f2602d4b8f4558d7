"""A DeadlineJob as the operator keeps it: what its spec asks for and where its status says it stands.

Frozen projections; the status is read leniently, since only the operator writes it, and an object whose spec
cannot be read is kept with its problem instead of being dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lstqueue.api import conditions, deadlinejob_status, names, times
from lstqueue.engine import model
from lstqueue.jobs import inline, likeness, views
from lstqueue.operator import lenient, places, specs
from lstqueue.operator.specs import JobRef as JobRef
from lstqueue.operator.specs import Spec as Spec
from lstqueue.topology import slowdown

Object = Mapping[str, Any]


Phase = deadlinejob_status.Phase
"""The only state machine, driven by `lifecycle`."""
FINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.REJECTED})
GANG_FAILED = "GangFailed"
GANG_DISRUPTED = "GangDisrupted"
DELETED = "Deleted"
VANISHED = "JobVanished"
"""Why a job ended whose existing object was deleted: nobody missed a deadline then."""
FAILED_START = "FailedStart"
PREEMPTED = "Preempted"
RECLAIMED = "Reclaimed"
INACTIVE = "Inactive"
NODE_LOST = "NodeLost"
RANK_MOVED = "RankMoved"
"""What a user is told of a replacement that goes to another node than the pod before it had."""
NOT_READY = "NotReady"


@dataclass(frozen=True, slots=True)
class GroupAdmission:
    """Where the ranks of one group go: (node, ascending global ranks), in rank order."""

    name: str
    pool: str
    nodes: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """The committed decision. `at` is ms since the epoch; `shape` the hash it was decided for.

    `job_uid` is the UID of the object it was decided for, "" for inline gangs. `topology` says how good the
    place is, `slowdown` (ppm) what it makes of run times on the best, `domain` the one that holds it.
    """

    at: int
    queue: str
    shape: str
    groups: tuple[GroupAdmission, ...]
    job_uid: str = ""
    topology: str = ""
    slowdown: int = slowdown.PPM
    domain: str = ""

    def places(self) -> dict[int, tuple[str, str]]:
        """Return (pool, node) of every global rank that it places."""
        return {
            rank: (group.pool, node) for group in self.groups for node, ranks in group.nodes for rank in ranks
        }

    def groups_by_rank(self) -> dict[int, str]:
        """Return the group of every global rank that it places."""
        return {rank: group.name for group in self.groups for _, ranks in group.nodes for rank in ranks}

    def moved(self, rank: int, node: str) -> Admission:
        """Return the same with one rank on another node, of the same pool."""
        groups = []
        for group in self.groups:
            places = {one: name for name, ranks in group.nodes for one in ranks}
            by_node: dict[str, tuple[int, ...]] = {}
            for one in sorted(places):
                name = node if one == rank else places[one]
                by_node[name] = (*by_node.get(name, ()), one)
            groups.append(replace(group, nodes=tuple(by_node.items())))
        return replace(self, groups=tuple(groups))

    @property
    def width(self) -> int:
        """One more than the highest rank that it places."""
        return 1 + max(self.places(), default=-1)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Return (group, places), where the ranks of each group begin after the last of those before it."""
        found, start = [], 0
        for group in self.groups:
            end = 1 + max((rank for _, ranks in group.nodes for rank in ranks), default=start - 1)
            found.append((group.name, max(0, end - start)))
            start = max(start, end)
        return tuple(found)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node it names, sorted."""
        return tuple(sorted({node for group in self.groups for node, _ in group.nodes}))

    def names(self, node: str) -> bool:
        """Whether it places anything on a node."""
        return any(node == name for group in self.groups for name, _ in group.nodes)


@dataclass(frozen=True, slots=True)
class BackOff:
    """After a failed start: no admission before `until`, `count` starts failed in a row, nodes to avoid.

    `avoid_until` is when those may be tried again (ms since the epoch), 0 where that was not written.
    """

    until: int = 0
    count: int = 0
    avoid: tuple[str, ...] = ()
    avoid_until: int = 0


NO_BACK_OFF = BackOff()
NOTHING_SAID = model.Published()


@dataclass(frozen=True, slots=True)
class Status:
    """What the operator wrote last. `published` is the part the engine compares with.

    `held` is the code of a reason outside the engine (a refused pod, an unreadable spec). `suspended_for` is
    the UID of the job that a suspension makes room for, `displaced_by` of those it was made for since its
    last run of full length, `preempted_at` the times (ms) of such suspensions. `reclaimed` is when
    (ms) it last claimed what its queue had lent. `saved` is the run time (ms) that suspensions did not lose,
    `wasted` how many in a row saved nothing. `queue` is the one it was in when
    this was written, `claim_queue` that in which `claim` was decided. `best_effort`: its deadline was found
    impossible and given up; `spare`: its sweep has enough without it. `like` is the key of its history, ""
    for none. `unit` is the UID of the object that `Spec.ref` names, `slow` what was told last of pods of its
    own that are late.
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
    queue: str = ""
    gang: str = ""
    claim: model.Claim | None = None
    claim_queue: str = ""
    reservation: model.Reservation | None = None
    slot: model.Slot | None = None
    suspended_for: str = ""
    displaced_by: tuple[str, ...] = ()
    preempted_at: tuple[int, ...] = ()
    saved: int = 0
    wasted: int = 0
    best_effort: bool = False
    spare: bool = False
    like: str = ""
    unit: str = ""
    slow: tuple[str, str] = lenient.NOT_SLOW


SPOKEN = ("late", "pending", "deadline", "latestStartTime", "estimate")
"""Fields of a status that say in words or figures what a Status does not hold."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One DeadlineJob. `spec` is None when it cannot be read; `problem` then says why.

    `spoken` holds the fields of `SPOKEN` as the API has them, so that a patch changes only what differs. One
    `work` is what it is like; of an existing Job it is known once that was seen. One
    that we made for a labelled job has that job's UID in `unit_uid`, its raw spec in `written`, and in
    `from_annotations` the fields of that which the job's annotations ask for.
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
    work: likeness.Work = likeness.UNKNOWN
    progress: str = ""
    unit_uid: str = ""
    written: Object = field(default_factory=dict)
    from_annotations: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """namespace/name, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def final(self) -> bool:
        """Whether it will never be admitted again."""
        return self.status.phase in FINAL

    @property
    def may_claim(self) -> bool:
        """Whether it wants to run, so that others may be asked to make room for it."""
        return not self.deleting and self.spec is not None and self.spec.active

    @property
    def met(self) -> bool | None:
        """Whether a job that is over met its deadline; None without one, or if it was not for want of it.

        So it is of one that was rejected, has vanished, or was spare.
        """
        if self.spec is None or self.spec.deadline is None or self.status.phase is Phase.REJECTED:
            return None
        if self.status.spare:
            return None
        told = conditions.get(self.status.conditions, conditions.Type.DEADLINE_MISSED)
        if told is not None and told.reason in lenient.GONE:
            return None
        return self.status.phase is Phase.SUCCEEDED and self.status.completed <= self.spec.deadline

    def gang(self) -> inline.Gang:
        """Return the identity its children are made from. Raises ValueError without a readable spec."""
        if self.spec is None:
            raise ValueError(f"DeadlineJob {self.key} has no readable spec: {self.problem}")
        return inline.Gang(self.uid, self.namespace, self.name, self.spec.groups)

    def with_unit(
        self, groups: tuple[tuple[str, int], ...], shape: str, work: likeness.Work = likeness.UNKNOWN
    ) -> Ledger:
        """Return it with the groups, the shape hash and the likeness of the object that its `ref` names.

        Raises:
            ValueError: without a readable spec, or of one that has groups of its own.
        """
        if self.spec is None or self.spec.ref is None:
            raise ValueError(f"DeadlineJob {self.key} refers to no object")
        return replace(self, spec=replace(self.spec, groups=groups, shape=shape), work=work)


def read(raw: Object, known: Ledger | None = None) -> Ledger:
    """Project a DeadlineJob; never raises for what a user wrote.

    `known` is an older projection of it: the spec is read again only where its generation says it changed.
    """
    meta, status = raw["metadata"], raw.get("status") or {}
    created = times.parse(meta["creationTimestamp"])
    if known is not None and known.generation == meta.get("generation", 0):
        spec, problem, work = known.spec, known.problem, known.work
    else:
        work = likeness.of_groups(raw)
        spec, problem = specs.judged(raw, created)
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
        status=_status(status, meta.get("generation", 0)),
        spoken={key: status[key] for key in SPOKEN if status.get(key) is not None},
        work=likeness.labelled(work, meta),
        progress=likeness.progress(meta),
        unit_uid=(meta.get("labels") or {}).get(names.LABEL_UNIT_UID, ""),
        written=raw["spec"] if (meta.get("labels") or {}).get(names.LABEL_LEDGER) == "true" else {},
        from_annotations=tuple(
            item
            for item in (meta.get("annotations") or {}).get(names.ANNOTATION_FIELDS, "").split(",")
            if item
        ),
    )


def unread(raw: Object, known: Ledger | None = None) -> Ledger:
    """Stand for a DeadlineJob that `read` failed on: as it was known before, or without anything known.

    Its generation is none there is, so that its spec is read as soon as that goes.
    """
    meta = raw["metadata"]
    version, deleting = int(meta["resourceVersion"]), "deletionTimestamp" in meta
    if known is not None:
        return replace(known, version=version, deleting=deleting)
    return Ledger(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=version,
        generation=0,
        created=times.parse(meta["creationTimestamp"]),
        deleting=deleting,
        spec=None,
        problem="it cannot be read",
        status=Status(),
    )


def _status(raw: Object, generation: int) -> Status:
    suspension, back_off = lenient.mapping(raw.get("suspension")), lenient.mapping(raw.get("backoff"))
    return Status(
        phase=_PHASES.get(lenient.text(raw.get("phase")), Phase.PENDING),
        observed=_observed(raw.get("observedGeneration"), generation),
        attempt=lenient.count(raw.get("attempt")),
        restarts=lenient.count(raw.get("restarts")),
        disruptions=lenient.count(raw.get("disruptions")),
        admission=_admission(raw.get("admission")),
        suspension=lenient.text(suspension.get("reason")),
        since=lenient.time(suspension.get("since")),
        back_off=BackOff(
            until=lenient.time(back_off.get("until")),
            count=lenient.count(back_off.get("count")),
            avoid=lenient.texts(back_off.get("avoid")),
            avoid_until=lenient.time(back_off.get("avoidUntil")),
        ),
        started=lenient.time(raw.get("startTime")),
        completed=lenient.time(raw.get("completionTime")),
        published=_published(raw),
        held=_held(lenient.mapping(raw.get("pending"))),
        conditions=lenient.condition_list(raw.get("conditions")),
        runs=lenient.objects(raw.get("runs")),
        queue=lenient.text(raw.get("queue")),
        gang=lenient.text(raw.get("gang")),
        claim=places.claim(lenient.mapping(raw.get("claim"))),
        reservation=places.reservation(lenient.mapping(raw.get("reservation"))),
        slot=places.slot(lenient.mapping(raw.get("slot"))),
        claim_queue=lenient.text(lenient.mapping(raw.get("claim")).get("queue")),
        suspended_for=lenient.text(suspension.get("for")),
        displaced_by=lenient.texts(raw.get("displacedBy")),
        preempted_at=lenient.moments(raw.get("preemptedAt")),
        saved=lenient.duration(raw.get("saved")),
        wasted=lenient.count(raw.get("wasted")),
        best_effort=bool(raw.get("bestEffort")),
        spare=raw.get("spare") is True,
        like=lenient.text(raw.get("historyKey")),
        unit=lenient.text(raw.get("jobUid")),
        slow=lenient.slow(lenient.mapping(raw.get("pending"))),
    )


def _observed(raw: object, generation: int) -> int:
    """Return which spec a status speaks of; one that is yet to come was never seen, so this one is judged."""
    seen = lenient.count(raw)
    return seen if seen <= generation else max(generation - 1, 0)


def _admission(raw: object) -> Admission | None:
    """Return an admission. It holds room whatever is wrong with its time, which then is put right."""
    if not isinstance(raw, Mapping) or not raw:
        return None
    return Admission(
        at=lenient.time(raw.get("at")),
        queue=lenient.text(raw.get("queue")),
        shape=lenient.text(raw.get("shapeHash")),
        groups=tuple(
            GroupAdmission(
                name=lenient.text(group.get("name")),
                pool=lenient.text(group.get("pool")),
                nodes=tuple(
                    (
                        lenient.text(item.get("node")),
                        tuple(sorted(views.indexes(lenient.text(item.get("ranks"))))),
                    )
                    for item in lenient.objects(group.get("nodes"))
                ),
            )
            for group in lenient.objects(raw.get("groups"))
        ),
        job_uid=lenient.text(raw.get("jobUid")),
        topology=lenient.text(raw.get("topology")),
        slowdown=_slowdown(raw.get("slowdownPermille")),
        domain=lenient.text(raw.get("domain")),
    )


def _slowdown(raw: object) -> int:
    """Return a slowdown in ppm; nobody predicts one of more than the most, or below one."""
    told = lenient.count(raw) * (slowdown.PPM // 1000)
    return min(max(told, slowdown.PPM), slowdown.MOST)


def _published(raw: Object) -> model.Published:
    verdict, pending = lenient.mapping(raw.get("verdict")), lenient.mapping(raw.get("pending"))
    late, code = raw.get("late"), "" if lenient.slow(pending)[0] else lenient.text(pending.get("code"))
    return model.Published(
        band=model.Band.SHED if raw.get("shed") else _band(late, judged=bool(verdict)),
        code=(model.Code(code) if code in _CODES else model.Code.HELD_BACK) if code else None,
        verdict=_verdict(verdict) if verdict.get("level") in _LEVELS else None,
        slack=lenient.text(raw.get("slack")),
    )


_PHASES = {phase.value: phase for phase in Phase}
"""A phase of another version reads as Pending: whatever runs is then suspended and queued again."""


def _held(pending: Object) -> str:
    code = lenient.text(pending.get("code"))
    return "" if code in _CODES or lenient.slow(pending)[0] else code


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
        reason=lenient.text(raw.get("reason")),
        start=_range(raw.get("forecastStart")),
        finish=_range(raw.get("forecastFinish")),
        earliest_feasible=lenient.time(raw.get("earliestFeasibleDeadline")) or None,
        earliest_promised=lenient.time(raw.get("earliestPromisedDeadline")) or None,
    )


def _range(raw: object) -> tuple[int, int] | None:
    both = lenient.mapping(raw)
    first, last = lenient.moment(both.get("earliest")), lenient.moment(both.get("latest"))
    return (first, last) if first is not None and last is not None else None
