"""Slotted projections of pods and child Jobs: all that the operator keeps of them.

A raw pod costs 20 KB in memory, a projection a few hundred bytes; equality of projections is also how the
operator tells a meaningful change from noise. Raw affinity, tolerations and gates are kept only while a pod
is gated, for that is when they are patched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, names, quantities, times
from lstqueue.jobs import likeness, podspec
from lstqueue.topology import model

Object = Mapping[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
_REPLICATED, _REPLICATED_BY = "PyTorchJob", "kubeflow.org/"
"""The kind whose controller labels its pods with their roles."""


@dataclass(frozen=True, slots=True)
class Pinning:
    """The parts of a gated pod that its ungating patch must keep."""

    affinity: Mapping[str, Any]
    tolerations: tuple[Mapping[str, Any], ...]
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod. `job` is the UID of the DeadlineJob it belongs to, empty for pods that are not ours.

    `owner` is the UID of its controller. `index` is its completion index, -1 when it has none. `attempt` is
    -1 until it is ungated. `aim` is the node it was pinned to when it was ungated, `slot` the rank it was
    given and `charge` "queue/pool" as stamped then. `refused` says that a kubelet would not have it.
    `created` (ms) is kept while it is gated, and `maker`, the kind and name of what controls it, then or for
    a PyTorchJob's. `grace` are the seconds it was given to leave when it was deleted. `replica`
    is its index in its group where that is a role of a job, -1 else. `bound` is when it was given its node
    (ms, 0 where nobody says).
    """

    uid: str
    namespace: str
    name: str
    version: str
    requests: model.Resources
    node: str
    phase: str
    ready: bool
    deleting: bool
    job: str = ""
    owner: str = ""
    group: str = ""
    restart: int = 0
    attempt: int = -1
    index: int = -1
    aim: str = ""
    charge: str = ""
    reason: str = ""
    message: str = ""
    refused: bool = False
    disrupted: bool = False
    pinning: Pinning | None = None
    created: int = 0
    slot: int = -1
    maker: tuple[str, str] = ("", "")
    replica: int = -1
    bound: int = 0
    grace: int = 0

    @property
    def gone(self) -> bool:
        """Whether it has given its resources back without being deleted."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def succeeded(self) -> bool:
        """Whether it did its work: one that ends well only because it was told to leave did not."""
        return self.phase == "Succeeded" and not self.deleting

    @property
    def words(self) -> str:
        """What keeps, or kept, it from running, "" where nobody says."""
        return ": ".join(part for part in (self.reason, self.message) if part)

    @property
    def gated(self) -> bool:
        """Whether our gate is still on it."""
        return self.pinning is not None


@dataclass(frozen=True, slots=True)
class ChildView:
    """A child Job of an inline gang. `job` is the UID of the DeadlineJob that controls it, empty for others.

    `done` holds the completion indexes that succeeded, `progress` what it says of its own, "" for nothing.
    """

    uid: str
    namespace: str
    name: str
    version: str
    job: str
    group: str
    restart: int
    parallelism: int
    suspended: bool
    deleting: bool
    complete: bool
    failed: bool
    reason: str
    message: str
    done: frozenset[int]
    completion_time: int | None
    progress: str = ""


RANKS = 8 * 4096
"""The most pods a gang can have."""
REFUSALS = (
    "UnexpectedAdmissionError",
    "OutOf",
    "NodeAffinity",
    "NodeName",
    "NodeShutdown",
    "TopologyAffinityError",
)
"""How the reasons of a kubelet begin that would not admit a pod after it was bound."""
REJECTED = "Pod was rejected"
"""How its message begins, whatever the reason (Evicted may be one): the pod never ran there."""


def pod(raw: Object) -> PodView:
    """Project a pod, whatever its owner wrote into it."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or []}
    ours = labels.get(names.LABEL_JOB, "")
    phase = status.get("phase") or "Pending"
    reason, message = _why(status, conditions)
    pinning = _pinning(spec) if ours else None
    let_go = bool(ours) and pinning is None
    maker = _maker(meta)
    replicated = maker[0] == _REPLICATED and bool(_controller(meta, group=_REPLICATED_BY))
    replica = number(labels.get(REPLICA_INDEX), -1) if replicated else -1
    return PodView(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        requests=_requests(spec),
        node=spec.get("nodeName") or "",
        phase=phase,
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        deleting="deletionTimestamp" in meta,
        job=ours,
        owner=_controller(meta),
        # Its controller has the word on its role: users may write the label of ours into a template.
        group=labels.get(REPLICA_TYPE if replica >= 0 else names.LABEL_GROUP, ""),
        restart=counter(labels.get(names.LABEL_RESTART), 0),
        attempt=counter(labels.get(names.LABEL_ATTEMPT), -1) if let_go else -1,
        index=number(labels.get(INDEX) or annotations.get(INDEX), -1),
        aim=_aim(spec) if let_go else "",
        charge=annotations.get(names.ANNOTATION_CHARGE, ""),
        reason=reason,
        message=message,
        refused=phase == "Failed" and (reason.startswith(REFUSALS) or message.startswith(REJECTED)),
        disrupted=(conditions.get("DisruptionTarget") or {}).get("status") == "True",
        pinning=pinning,
        created=times.parse(meta["creationTimestamp"]) if pinning and meta.get("creationTimestamp") else 0,
        slot=number(annotations.get(names.ANNOTATION_RANK), -1) if let_go else -1,
        maker=maker if pinning or replicated else ("", ""),
        replica=replica,
        bound=_bound(conditions) if ours and spec.get("nodeName") else 0,
        grace=int(meta.get("deletionGracePeriodSeconds") or 0),
    )


def child(raw: Object) -> ChildView:
    """Project a child Job."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = meta.get("labels") or {}
    ended = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    failure = ended.get("Failed") or ended.get("FailureTarget") or {}
    return ChildView(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        job=_controller(meta, f"{names.GROUP}/"),
        group=labels.get(names.LABEL_GROUP, ""),
        restart=counter(labels.get(names.LABEL_RESTART), 0),
        parallelism=spec.get("parallelism", 1),
        suspended=bool(spec.get("suspend")),
        deleting="deletionTimestamp" in meta,
        complete="Complete" in ended,
        failed=bool(failure),
        reason=failure.get("reason") or "",
        message=failure.get("message") or "",
        done=indexes(status.get("completedIndexes") or "", below=min(spec.get("completions") or 0, RANKS)),
        completion_time=times.parse(status["completionTime"]) if status.get("completionTime") else None,
        progress=likeness.progress(meta),
    )


def indexes(text: str, below: int = RANKS) -> frozenset[int]:
    """Read "0,2-4" as a set; what a Job's `completedIndexes` and our own `ranks` look like.

    Anybody may write a Job's status: what is no number, or not `below` the number there can be, is left out.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = number(first, below), number(last or first, -1)
        found.update(range(start, min(end, below - 1) + 1))
    return frozenset(found)


def ranges(numbers: tuple[int, ...]) -> str:
    """Write ascending numbers as "0,2-4"; the inverse of `indexes`."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def number(text: str | None, default: int, *, digits: int = 9) -> int:
    """Read a label that ought to be a number; one that somebody spoilt reads as `default`.

    Numbers of more than `digits` are no index of ours; Python even refuses to read very long ones.
    """
    return int(text) if text and len(text) <= digits and text.isascii() and text.isdigit() else default


def counter(text: str | None, default: int) -> int:
    """Read a label that holds a counter of a status, which may be as long as `COUNTED` is."""
    return number(text, default, digits=len(str(COUNTED)))


COUNTED = 2**53
"""Counters stay below this, the largest number that every reader of JSON takes for what it is."""


def _controller(meta: Object, group: str = "") -> str:
    """Return the UID of the object that controls this one, if its kind is of that API group, else ""."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller") and str(reference["apiVersion"]).startswith(group):
            return str(reference["uid"])
    return ""


def _maker(meta: Object) -> tuple[str, str]:
    """Return the kind and the name of what controls an object, ("", "") where nothing does."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference["kind"]), str(reference["name"])
    return "", ""


def _requests(spec: Object) -> model.Resources:
    """Return what a pod asks for; absurd amounts, which API servers store, count as the largest there is."""
    try:
        return podspec.requests(spec)
    except errors.BadValueError:
        return model.resources({**dict.fromkeys(podspec.asked(spec), quantities.LARGEST), model.PODS: 1})


def _pinning(spec: Object) -> Pinning | None:
    gates = tuple(gate["name"] for gate in spec.get("schedulingGates") or [])
    if names.GATE not in gates:
        return None
    return Pinning(
        affinity=spec.get("affinity") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
        gates=gates,
    )


def _aim(spec: Object) -> str:
    """Return the node that an ungated pod of ours is pinned to; the pin is the last field of every term."""
    terms = podspec.raw_terms(spec)
    fields = terms[0].get("matchFields") if terms else None
    pin: Object = fields[-1] if fields else {}
    values = pin.get("values") or []
    return str(values[0]) if pin.get("operator") == "In" and len(values) == 1 else ""


def _bound(conditions: Mapping[str, Object]) -> int:
    """When a pod was given its node, by the API server's clock."""
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") != "True":
        return 0
    try:
        return times.parse(scheduled.get("lastTransitionTime") or "")
    except errors.BadValueError:
        return 0


def _why(status: Object, conditions: Mapping[str, Object]) -> tuple[str, str]:
    """Return the reason and words of whatever keeps a pod from running, the kubelet's or the scheduler's."""
    if status.get("reason"):
        return status["reason"], status.get("message") or ""
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return scheduled.get("reason") or "", scheduled.get("message") or ""
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state") or {}
        held = state.get("waiting") or {}
        ended = state.get("terminated") or {}
        if held.get("reason"):
            return held["reason"], held.get("message") or ""
        if ended and ended.get("exitCode") != 0:
            return ended.get("reason") or "", _ending(container, ended)
    return "", ""


def _ending(container: Object, ended: Object) -> str:
    """Say how a container failed: the code is from the program, and the words, where it left any, too."""
    code = f"exit code {ended['exitCode']}" if "exitCode" in ended else "failed"
    told = str(ended.get("message") or "").strip()
    named = f"container {container['name']}, {code}" if container.get("name") else code
    return f"{named}, {told}" if told else named
