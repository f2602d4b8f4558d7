"""Existing batch/v1 Jobs as queued units: what the operator keeps of one, and the patches that steer it.

A Job whose pods all run at once (completions = parallelism, or one) is a gang; any other is a bag: its pods
are independent, its unit of capacity is a slot, and a finished pod's slot serves the next (see `slots`).
A Job is read as its API server shows it, defaults included. Nothing here talks to an API or decides anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import names, times
from lstqueue.jobs import likeness, owners, views

Object = dict[str, Any]

API_VERSION = "batch/v1"
KIND = "Job"
GROUP = "pods"
"""The one group of a referenced Job, in its DeadlineJob's status and on its pods."""
WIDEST = 4096
"""The most pods at once that an admission can list."""

BUILT_IN = "kubernetes.io/job-controller"
KUEUE = "kueue.x-k8s.io/queue-name"

_COLLECTOR = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers with which the garbage collector does away with what an object owns before it goes."""
_GENERATED = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
"""Labels that the API server puts on every Job's template; without them equal templates are equal."""
_OURS = (names.LABEL_JOB, names.LABEL_GROUP, names.LABEL_RESTART)


@dataclass(frozen=True, slots=True)
class UnitView:
    """A batch Job that is not a child of ours.

    `queue` is its label, None without one. `annotations` are those that begin with our prefix, sorted.
    `manager` names whoever else decides over it, "" for nobody. `width` is how many pods it wants at once
    while enough is left to do, `total` how many have to succeed (None: its pods decide themselves).
    `done` are indexes that need no pod any more, failed for good or succeeded, and `succeeded` counts.
    `begun` says that its status has a start time: before Kubernetes 1.36 its template is frozen then.
    `job` and `attempt` are what the last release wrote on it, `stamp` what its template carries of ours:
    the DeadlineJob its pods will belong to, "" while there is no gate of ours in it. A `patient` one replaces
    no pod before it has ended. `kept_by` is the finalizer that keeps it while it is deleted, "" for none, and
    with it its pods: its controller does nothing more for it, so that not even a suspension stops them.
    `work` is what it is like, and `progress` what it says of its own, "" for nothing.
    `active` counts its pods as its controller does, and `switched` says whether that has it as suspended, and
    since when (ms); None before it has said so.
    """

    uid: str
    namespace: str
    name: str
    version: str
    created: int
    queue: str | None
    annotations: tuple[tuple[str, str], ...]
    owner: owners.Owner | None
    manager: str
    width: int
    total: int | None
    indexed: bool
    shape: str
    suspended: bool
    deleting: bool
    complete: bool
    failed: bool
    reason: str
    message: str
    succeeded: int
    done: frozenset[int]
    completion_time: int | None
    begun: bool
    job: str
    attempt: int
    stamp: str
    gates: tuple[str, ...] = ()
    patient: bool = False
    kept_by: str = ""
    active: int = 0
    switched: tuple[bool, int] | None = None
    work: likeness.Work = likeness.UNKNOWN
    progress: str = ""

    @property
    def key(self) -> str:
        """namespace/name, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def gang(self) -> bool:
        """Whether its pods all run at once and need each other."""
        return self.total is not None and self.total <= self.width

    @property
    def ranked(self) -> bool:
        """Whether a pod's completion index is its rank; otherwise pods take slots in creation order."""
        return self.gang and self.indexed

    @property
    def cron_job(self) -> owners.Owner | None:
        """The CronJob that made it, None where none did."""
        made = self.owner is not None and (self.owner.group, self.owner.kind) == ("batch", "CronJob")
        return self.owner if made else None

    @property
    def stays(self) -> bool:
        """Whether nobody can have its pods leave: it is deleted, and kept."""
        return bool(self.kept_by)

    @property
    def over(self) -> bool:
        """Whether it has ended or is about to."""
        return self.complete or self.failed

    @property
    def finished(self) -> int:
        """How many completions need no pod any more; those that failed for good count."""
        return max(self.succeeded, len(self.done))

    @property
    def wanted(self) -> int:
        """How many pods it wants at once now."""
        return self.width if self.total is None else max(0, min(self.width, self.total - self.finished))

    @property
    def size(self) -> int:
        """How many places its next admission needs: all ranks of a gang, the slots still useful of a bag."""
        return min(self.width, self.total or 0) if self.gang else self.wanted

    def annotation(self, name: str) -> str:
        """Return an annotation of ours by its short name, "" when there is none."""
        return dict(self.annotations).get(f"{names.GROUP}/{name}", "")


def unit(raw: Mapping[str, Any]) -> UnitView:
    """Project a Job."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    ended = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    failure = ended.get("Failed") or ended.get("FailureTarget") or {}
    width, total = spec.get("parallelism", 1), spec.get("completions")
    indexed = spec.get("completionMode") == "Indexed"
    template = spec.get("template") or {}
    gates = _gates(template)
    return UnitView(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        created=times.parse(meta["creationTimestamp"]),
        queue=labels.get(names.LABEL_QUEUE),
        annotations=tuple(
            sorted(
                (key, value)
                for key, value in annotations.items()
                if key.startswith(f"{names.GROUP}/") and key != names.ANNOTATION_PROGRESS
            )
        ),
        owner=owners.controller(meta),
        manager=_manager(labels, spec),
        width=width,
        total=total,
        indexed=indexed,
        shape=shape(spec),
        suspended=bool(spec.get("suspend")),
        deleting="deletionTimestamp" in meta,
        # Success is certain before pods on dead nodes let the controller say that it is complete.
        complete="Complete" in ended or "SuccessCriteriaMet" in ended,
        failed=bool(failure),
        reason=failure.get("reason") or "",
        message=failure.get("message") or "",
        succeeded=status.get("succeeded") or 0,
        done=_done(status, total) if indexed else frozenset(),
        completion_time=times.parse(status["completionTime"]) if status.get("completionTime") else None,
        begun=bool(status.get("startTime")),
        job=labels.get(names.LABEL_JOB, ""),
        attempt=views.counter(labels.get(names.LABEL_ATTEMPT), -1),
        stamp=_labels(template).get(names.LABEL_JOB, "") if names.GATE in gates else "",
        gates=gates,
        patient=spec.get("podReplacementPolicy") == "Failed",
        kept_by=_kept_by(meta),
        active=status.get("active") or 0,
        switched=_switched(status),
        work=likeness.of_job(raw),
        progress=likeness.progress(meta),
    )


def shape(spec: Mapping[str, Any]) -> str:
    """Return 16 hex digits over what an admission of a Job is decided for.

    That is how many pods there are, how they are counted, and their template, without what we put into it
    and without the labels by which the API server tells one Job from another.
    """
    template = spec.get("template") or {}
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    labels = {key: value for key, value in _labels(template).items() if key not in (*_GENERATED, *_OURS)}
    gates = [gate for gate in _gates(template) if gate != names.GATE]
    canonical = json.dumps(
        [
            spec.get("parallelism", 1),
            spec.get("completions"),
            spec.get("completionMode") or "NonIndexed",
            labels,
            metadata.get("annotations") or {},
            {key: value for key, value in pod.items() if key != "schedulingGates"},
            gates,
        ],
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def child(view: UnitView, job: str, *, parallelism: int, done: frozenset[int]) -> views.ChildView:
    """Return a unit as the Job of the one group of a DeadlineJob, in the terms of an inline gang.

    `done` are the ranks, or slots, that need no pod any more.
    """
    return views.ChildView(
        uid=view.uid,
        namespace=view.namespace,
        name=view.name,
        version=view.version,
        job=job,
        group=GROUP,
        restart=0,
        parallelism=parallelism,
        suspended=view.suspended,
        deleting=view.deleting,
        complete=view.complete,
        failed=view.failed,
        reason=view.reason,
        message=view.message,
        done=done,
        completion_time=view.completion_time,
    )


# Patches


def stamped(view: UnitView, job: str) -> bool:
    """Whether the template carries our gate, and its pods will carry the labels of this DeadlineJob."""
    return view.stamp == job


def release(view: UnitView, *, job: str, attempt: int) -> Object:
    """Build the one merge patch that lets a suspended Job go, gated, under an admission."""
    spec: Object = {"suspend": False}
    if not stamped(view, job):
        spec["template"] = _stamp(view, job)
    metadata: Object = {
        "resourceVersion": view.version,
        "labels": {names.LABEL_JOB: job, names.LABEL_ATTEMPT: str(attempt)},
    }
    if view.annotation("ended"):
        metadata["annotations"] = {names.ANNOTATION_ENDED: None}
    return {"metadata": metadata, "spec": spec}


def forget_start(view: UnitView) -> Object:
    """Build the patch of a suspended Job's status that lets its template be changed before Kubernetes 1.36.

    A Job that is suspended has no use for its start time: the controller sets it anew when it is resumed.
    """
    return {"metadata": {"resourceVersion": view.version}, "status": {"startTime": None}}


def mark(view: UnitView, ended: str) -> Object:
    """Build the conditional patch that notes on a Job why it has ended for good, and changes nothing else."""
    annotations = {names.ANNOTATION_ENDED: ended}
    return {"metadata": {"resourceVersion": view.version, "annotations": annotations}}


def suspend(view: UnitView, *, ended: str = "") -> Object:
    """Build the conditional patch that suspends a Job; `ended` says why that is for good."""
    metadata: Object = {"resourceVersion": view.version}
    if ended:
        metadata["annotations"] = {names.ANNOTATION_ENDED: ended}
    return {"metadata": metadata, "spec": {"suspend": True}}


def adopt(view: UnitView, *, job: str, attempt: int) -> Object:
    """Build the patch that marks a running Job as admitted where it is; it changes nothing that runs."""
    return {
        "metadata": {
            "resourceVersion": view.version,
            "labels": {names.LABEL_JOB: job, names.LABEL_ATTEMPT: str(attempt)},
        }
    }


def adopt_pod(pod: views.PodView, *, job: str, attempt: int, slot: int, charge: str) -> Object:
    """Build the patch that makes a bound pod of an adopted Job a member, where it is."""
    return {
        "metadata": {
            "resourceVersion": pod.version,
            "labels": {**_pod_labels(job), names.LABEL_ATTEMPT: str(attempt)},
            "annotations": {names.ANNOTATION_RANK: str(slot), names.ANNOTATION_CHARGE: charge},
        }
    }


def relabel_pod(pod: views.PodView, *, job: str) -> Object:
    """Build the patch that gives a gated pod the labels of the DeadlineJob that speaks for its Job now."""
    return {"metadata": {"resourceVersion": pod.version, "labels": _pod_labels(job)}}


def let_go_pod(pod: views.PodView) -> Object:
    """Build the patch that hands a gated pod to the scheduler as if we had never had it: no gate, no pin.

    Without our labels it is a foreign pod from then on, and counts as that. Raises ValueError for a pod that
    is not gated.
    """
    if pod.pinning is None:
        raise ValueError(f"pod {pod.namespace}/{pod.name} is not gated")
    gates = [{"name": gate} for gate in pod.pinning.gates if gate != names.GATE]
    return {
        "metadata": {"resourceVersion": pod.version, "labels": dict.fromkeys(_OURS)},
        "spec": {"schedulingGates": gates or None},
    }


def probe_pod(template: Mapping[str, Any]) -> Object:
    """Build a pod of a Job for a dry run: the server then says what it would make of it."""
    labels = {key: value for key, value in _labels(template).items() if key not in _GENERATED}
    metadata: Object = {"generateName": names.PROBE, "labels": labels}
    annotations = (template.get("metadata") or {}).get("annotations")
    if annotations:
        metadata["annotations"] = annotations
    gates = [{"name": gate} for gate in _gates(template) if gate != names.GATE]
    spec = {**template["spec"], "schedulingGates": [*gates, {"name": names.GATE}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _stamp(view: UnitView, job: str) -> Object:
    gates = [gate for gate in view.gates if gate != names.GATE]
    return {
        "metadata": {"labels": _pod_labels(job)},
        "spec": {"schedulingGates": [{"name": gate} for gate in (*gates, names.GATE)]},
    }


def _pod_labels(job: str) -> dict[str, str]:
    return {names.LABEL_JOB: job, names.LABEL_GROUP: GROUP, names.LABEL_RESTART: "0"}


def _manager(labels: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return who else decides when a Job runs, in words, "" for nobody."""
    if labels.get(KUEUE) is not None:
        return f"Kueue (label {KUEUE})"
    managed = spec.get("managedBy") or BUILT_IN
    return "" if managed == BUILT_IN else f"{managed} (spec.managedBy)"


def _kept_by(meta: Mapping[str, Any]) -> str:
    """Return the finalizer that keeps an object which is deleted; those of the collector see to its pods."""
    finalizers = meta.get("finalizers") or ()
    if "deletionTimestamp" not in meta or _COLLECTOR.intersection(finalizers):
        return ""
    return str(next(iter(finalizers), ""))


def _switched(status: Mapping[str, Any]) -> tuple[bool, int] | None:
    for item in status.get("conditions") or []:
        if item["type"] == "Suspended" and item.get("lastTransitionTime"):
            return item["status"] == "True", times.parse(item["lastTransitionTime"])
    return None


def _done(status: Mapping[str, Any], total: int | None) -> frozenset[int]:
    below = min(total or 0, views.RANKS)
    done = views.indexes(status.get("completedIndexes") or "", below=below)
    return done | views.indexes(status.get("failedIndexes") or "", below=below)


def _labels(template: Mapping[str, Any]) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _gates(template: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(gate["name"] for gate in (template.get("spec") or {}).get("schedulingGates") or ())
