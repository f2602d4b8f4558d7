"""What the auditor takes from raw objects: nodes, queues, gangs and pods, as the API shows them.

Read from JSON with the words of the API and nothing of the operator, so that an error in how the operator
reads objects cannot hide from the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstqueue.api import durations, names, quantities
from lstqueue.embedded import pod_types
from lstqueue.embedded.controllers import jobpods, pods
from lstqueue.kube import port

BIND_TIMEOUT = "2m"
READY_TIMEOUT = "30m"

OWNING = frozenset({"Admitted", "Running"})
"""Phases that own capacity. Suspending does too while the gang is to be started again under the same hold."""
RESTARTING = frozenset({"GangFailed", "GangDisrupted"})
FINAL = frozenset({"Succeeded", "Failed", "Rejected"})

Place = tuple[str, str]
"""(node, pool)."""


@dataclass(slots=True)
class Pod:
    """A pod; `gang` is empty for those that are not ours, `rank` -1 where it cannot be told.

    `job` is the kind and name of what controls it; at `admitted_at` (ms) that was written which lets it use
    its quota.
    """

    uid: str
    namespace: str
    name: str
    requests: pods.Amounts
    gang: str
    group: str
    index: int
    restart: int
    job: tuple[str, str] = ("", "")
    rank: int = -1
    attempt: int = -1
    node: str = ""
    gated: bool = False
    deleting: bool = False
    phase: str = "Pending"
    charge: tuple[str, str] | None = None
    charged: bool = False
    admitted_at: int = 0

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def holds(self) -> bool:
        """Whether it is bound and has not ended: it uses what it asks for."""
        return bool(self.node) and not self.finished

    def learn(self, raw: port.Object) -> None:
        """Take over what can change."""
        labels = raw["metadata"].get("labels") or {}
        self.attempt = _number(labels.get(names.LABEL_ATTEMPT))
        self.node = pods.node_of(raw)
        self.gated = any(gate["name"] == names.GATE for gate in raw["spec"].get("schedulingGates") or ())
        self.deleting = pods.deleting(raw)
        self.phase = pods.phase(raw)


def pod(raw: port.Object) -> Pod:
    """Read a pod for the first time."""
    meta = raw["metadata"]
    labels = meta.get("labels") or {}
    index = jobpods.index_of(raw)
    found = Pod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        requests=pods.requests(raw["spec"]),
        gang=labels.get(names.LABEL_JOB, ""),
        group=labels.get(names.LABEL_GROUP, ""),
        index=-1 if index is None else index,
        job=_controller(raw),
        restart=_number(labels.get(names.LABEL_RESTART)),
    )
    found.learn(raw)
    return found


def _controller(raw: port.Object) -> tuple[str, str]:
    for kind in (port.JOBS.kind, port.PYTORCH_JOBS.kind):
        owner = pods.controller_of(raw, kind)
        if owner is not None:
            return kind, str(owner["name"])
    return "", ""


def gang_of(raw: port.Object) -> str:
    """Return the UID of the DeadlineJob that a pod is labelled with, "" for none."""
    return str((raw["metadata"].get("labels") or {}).get(names.LABEL_JOB, ""))


def stamped_rank(raw: port.Object) -> str:
    """Return the rank that the operator wrote on a pod."""
    return str((raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_RANK, ""))


@dataclass(frozen=True, slots=True)
class Claim:
    """Room that a job owns while others leave it: its whole placement, and who is to leave.

    `places` are (group, node, pool, count), `victims` (uid, attempt).
    """

    places: tuple[tuple[str, str, str, int], ...]
    victims: frozenset[tuple[str, int]]

    def matches(self, placement: Mapping[int, Place]) -> bool:
        """Whether an admission places as many members on each node and in each pool."""
        claimed: Counter[Place] = Counter()
        for _, node, pool, count in self.places:
            claimed[node, pool] += count
        return claimed == Counter(placement.values())


@dataclass(frozen=True, slots=True)
class Standing:
    """What a DeadlineJob's status says of its admission or claim; `made_for` is whom it is suspended for."""

    phase: str = ""
    reason: str = ""
    attempt: int = 0
    restarts: int = 0
    queue: str = ""
    placement: Mapping[int, Place] | None = None
    claim: Claim | None = None
    made_for: str = ""

    @property
    def owns(self) -> bool:
        """Whether its admission reserves capacity."""
        if self.placement is None:
            return False
        return self.phase in OWNING or (self.phase == "Suspending" and self.reason in RESTARTING)


def standing(raw: port.Object) -> Standing:
    """Read the status of a DeadlineJob."""
    status = raw.get("status") or {}
    admission, suspension = status.get("admission"), status.get("suspension") or {}
    return Standing(
        phase=status.get("phase") or "",
        reason=suspension.get("reason") or "",
        attempt=status.get("attempt") or 0,
        restarts=status.get("restarts") or 0,
        queue="" if admission is None else admission.get("queue") or "",
        placement=None if admission is None else _placement(admission),
        claim=_claim(status["claim"]) if status.get("claim") else None,
        made_for=suspension.get("for") or "",
    )


def _claim(raw: Mapping[str, Any]) -> Claim:
    return Claim(
        places=tuple(
            (group["name"], item["node"], group.get("pool", ""), int(item["count"]))
            for group in raw.get("groups") or ()
            for item in group.get("nodes") or ()
        ),
        victims=frozenset((victim["uid"], victim["attempt"]) for victim in raw.get("victims") or ()),
    )


@dataclass(slots=True)
class Gang:
    """A DeadlineJob: its members by global rank, its status, and what the audit keeps about it.

    `admissions` holds (queue, placement) of each attempt, `placed_at` when it was written, `done` the
    (restart, rank) pairs that have succeeded, `released` the (attempt, restart) pairs of which a pod was
    ungated, `held` the (node, pool, queue) where the capacity of a rank is reserved now, `covered` the ranks
    that are bound or have succeeded,
    `staying` the pods that use capacity and are not asked to leave. `claimed` is its latest claim, which
    ended at `unclaimed_at` if it did; `queue` is the one whose quota it claims. At `begun_at`
    the first pod of its present attempt and restart was let go. Times are in ms. One that is
    `referenced` speaks for a user's own job, `job` by kind and name: it has no members of its own, its pods
    have the ranks they are stamped with, and what is reserved for those that are not there is what it claims.
    """

    uid: str
    key: str
    members: tuple[tuple[str, pods.Amounts], ...]
    offsets: Mapping[str, int]
    job: tuple[str, str] = ("", "")
    now: Standing = Standing()
    admissions: dict[int, tuple[str, Mapping[int, Place]]] = field(default_factory=dict)
    pods: dict[int, dict[str, Pod]] = field(default_factory=dict)
    done: set[tuple[int, int]] = field(default_factory=set)
    placed_at: dict[int, int] = field(default_factory=dict)
    released: set[tuple[int, int]] = field(default_factory=set)
    held: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)
    staying: set[str] = field(default_factory=set)
    admitted_at: int = 0
    ungated_at: int | None = None
    begun_at: int = 0
    since: dict[str, int] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    queue: str = ""
    claimed: Claim | None = None
    unclaimed_at: int = 0

    @property
    def namespace(self) -> str:
        """Of the DeadlineJob, and of the Job it speaks for."""
        return self.key.partition("/")[0]

    @property
    def referenced(self) -> bool:
        """Whether it speaks for a user's own Job."""
        return bool(self.job[1])

    @property
    def may_leave_pods(self) -> bool:
        """Whether its controller may leave pods running when it has ended, which nobody else may end."""
        return self.job[0] == port.PYTORCH_JOBS.kind and self.now.phase in ("Succeeded", "Failed")

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.members)

    def present(self) -> Iterator[Pod]:
        """Yield its pods."""
        for by_uid in self.pods.values():
            yield from by_uid.values()

    def covers(self, rank: int) -> bool:
        """Whether a rank of the present run is bound or has succeeded."""
        attempt, restarts = self.now.attempt, self.now.restarts
        if (restarts, rank) in self.done:
            return True
        return any(
            pod.holds and pod.restart == restarts and pod.attempt == attempt
            for pod in self.pods.get(rank, {}).values()
        )

    def rank_of(self, pod: Pod) -> int:
        """Return the global rank of a pod by its group and index, -1 when it has none here."""
        offset = self.offsets.get(pod.group)
        if offset is None or pod.index < 0:
            return -1
        rank = offset + pod.index
        return rank if rank < self.size and self.members[rank][0] == pod.group else -1


def gang(raw: port.Object) -> Gang:
    """Read a DeadlineJob for the first time; its groups never change."""
    meta, spec = raw["metadata"], raw["spec"]
    ref = spec.get("jobRef") or {}
    members: list[tuple[str, pods.Amounts]] = []
    offsets: dict[str, int] = {}
    for group in spec.get("groups") or ():
        offsets[group["name"]] = len(members)
        pod = (group.get("template") or {}).get("spec") or {}
        # Nothing judges templates before the pods of one are created, and of one without sense none is.
        requests = {} if pod_types.problem(pod) else pods.requests(pod)
        members += [(group["name"], requests)] * group.get("replicas", 1)
    return Gang(
        uid=meta["uid"],
        key=f"{meta['namespace']}/{meta['name']}",
        members=tuple(members),
        offsets=offsets,
        job=(ref.get("kind", ""), ref.get("name", "")),
    )


def _placement(admission: Mapping[str, Any]) -> dict[int, Place]:
    places: dict[int, Place] = {}
    for group in admission.get("groups") or ():
        for item in group.get("nodes") or ():
            for rank in _ranks(item["ranks"]):
                places[rank] = (item["node"], group.get("pool", ""))
    return places


def ranks_listed(raw: port.Object) -> list[int]:
    """Return every rank that the admission names, as often as it names it."""
    admission = (raw.get("status") or {}).get("admission") or {}
    return [
        rank
        for group in admission.get("groups") or ()
        for item in group.get("nodes") or ()
        for rank in _ranks(item["ranks"])
    ]


def _ranks(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


@dataclass(slots=True)
class Queue:
    """A GPUQueue: its timeouts in ms and its quotas by pool; `most` it may hold, borrowed included."""

    bind_timeout: int
    ready_timeout: int
    nominal: Mapping[str, pods.Amounts]
    most: Mapping[str, pods.Amounts]
    cohort: str


def queue(raw: port.Object) -> Queue:
    """Read a GPUQueue."""
    spec = raw["spec"]
    cohort = spec.get("cohort") or ""
    nominal: dict[str, pods.Amounts] = {}
    most: dict[str, pods.Amounts] = {}
    for pool in spec.get("pools") or ():
        has, may = nominal.setdefault(pool["name"], {}), most.setdefault(pool["name"], {})
        for item in pool.get("resources") or ():
            name, limit = item["name"], item.get("borrowingLimit")
            has[name] = quantities.parse(name, item["nominal"])
            if not cohort or limit is not None:
                may[name] = has[name] + (quantities.parse(name, limit) if cohort else 0)
    return Queue(
        bind_timeout=durations.parse(spec.get("bindTimeout") or BIND_TIMEOUT),
        ready_timeout=durations.parse(spec.get("gangReadyTimeout") or READY_TIMEOUT),
        nominal=nominal,
        most=most,
        cohort=cohort,
    )


def lent(cohort: str, queues: Iterable[Queue]) -> dict[tuple[str, str], pods.Amounts]:
    """Return what the queues of a cohort may hold together: the sum of what they have, by pool."""
    found: dict[tuple[str, str], pods.Amounts] = {}
    for one in queues:
        for pool, amounts in one.nominal.items():
            sums = found.setdefault((f"cohort/{cohort}", pool), {})
            for name, amount in amounts.items():
                sums[name] = sums.get(name, 0) + amount
    return found


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else -1
