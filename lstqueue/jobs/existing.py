"""Existing jobs of any kind as queued units: what the operator keeps of one, and the patches all kinds share.

What differs between kinds is behind `kinds.Adapter`. A job whose pods all run at once is a gang; any other is
a bag: its pods are independent, its unit of capacity is a slot, and a finished pod's slot serves the next
(see `slots`). Nothing here talks to an API or decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.api import names
from lstqueue.jobs import likeness, owners, views

Object = dict[str, Any]

GROUP = "pods"
"""The one group of a job whose pods are all alike, in its DeadlineJob's status and on its pods."""
WIDEST = 4096
"""The most pods at once that an admission can list."""

KUEUE = "kueue.x-k8s.io/queue-name"

_COLLECTOR = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers with which the garbage collector does away with what an object owns before it goes."""
OURS = (names.LABEL_JOB, names.LABEL_GROUP, names.LABEL_RESTART)
"""Labels of ours on a pod, by which it is a member."""


@dataclass(frozen=True, slots=True)
class UnitView:
    """A job of a user's own, of any kind.

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
    `roles` are the groups of a gang whose pods are not all alike, (name, pods) in the order of the ranks.
    One that is `by_pods` counts on what has become of its pods, and replaces those that are gone; `leads`
    says that the success of its first rank is that of all. What it `clears` has been asked of its controller:
    to end the pods that still run when it is over. `unfit` says why it cannot be queued as it is.
    `active` counts its pods as its controller does, and `switched` says whether that has it as suspended, and
    since when (ms); None before it has said so. `gates` are those of its pod templates, group by group.
    """

    api_version: str
    kind: str
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
    gates: tuple[tuple[str, ...], ...] = ()
    patient: bool = False
    kept_by: str = ""
    active: int = 0
    switched: tuple[bool, int] | None = None
    work: likeness.Work = likeness.UNKNOWN
    progress: str = ""
    roles: tuple[tuple[str, int], ...] = ()
    by_pods: bool = False
    leads: bool = False
    clears: bool = False
    unfit: str = ""

    @property
    def named(self) -> str:
        """Its kind and name, for sentences about it."""
        return f"{self.kind} {self.key}"

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

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The groups that its next admission places, (name, places) in the order of the ranks."""
        return self.roles or ((GROUP, self.size),)

    @property
    def deciding(self) -> frozenset[int]:
        """The ranks of a gang whose success is the success of all."""
        return frozenset({0} if self.leads else range(min(self.total or 0, views.RANKS)))

    def offset(self, group: str) -> int:
        """Return the rank of the first pod of a group, -1 where there is no such group."""
        total = 0
        for name, count in self.groups:
            if name == group:
                return total
            total += count
        return -1


def child(view: UnitView, job: str, group: str, *, parallelism: int, done: frozenset[int]) -> views.ChildView:
    """Return a unit as the Job of a group of its DeadlineJob, in the terms of an inline gang.

    `done` are the places, of all groups, that need no pod any more.
    """
    return views.ChildView(
        uid=view.uid,
        namespace=view.namespace,
        name=view.name,
        version=view.version,
        job=job,
        group=group,
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
    """Whether its templates carry our gate, and its pods will carry the labels of this DeadlineJob."""
    return view.stamp == job


def stamp(gates: Iterable[str], *, job: str, group: str) -> Object:
    """Build the patch of a pod template that has these gates: ours is added, and the labels of a member."""
    kept = [gate for gate in gates if gate != names.GATE]
    return {
        "metadata": {"labels": pod_labels(job, group)},
        "spec": {"schedulingGates": [{"name": gate} for gate in (*kept, names.GATE)]},
    }


def released(view: UnitView, *, job: str, attempt: int) -> Object:
    """Build the metadata of the patch that lets a suspended job go under an admission."""
    metadata: Object = {
        "resourceVersion": view.version,
        "labels": {names.LABEL_JOB: job, names.LABEL_ATTEMPT: str(attempt)},
    }
    if view.annotation("ended"):
        metadata["annotations"] = {names.ANNOTATION_ENDED: None}
    return metadata


def stopped(view: UnitView, ended: str) -> Object:
    """Build the metadata of the patch that suspends a job; `ended` says why that is for good, "" if not."""
    metadata: Object = {"resourceVersion": view.version}
    if ended:
        metadata["annotations"] = {names.ANNOTATION_ENDED: ended}
    return metadata


def mark(view: UnitView, ended: str) -> Object:
    """Build the conditional patch that notes on a job why it has ended for good, and changes nothing else."""
    return {"metadata": stopped(view, ended)}


def adopt(view: UnitView, *, job: str, attempt: int) -> Object:
    """Build the patch that marks a running job as admitted where it is; it changes nothing that runs."""
    return {
        "metadata": {
            "resourceVersion": view.version,
            "labels": {names.LABEL_JOB: job, names.LABEL_ATTEMPT: str(attempt)},
        }
    }


def adopt_pod(pod: views.PodView, *, job: str, group: str, attempt: int, slot: int, charge: str) -> Object:
    """Build the patch that makes a bound pod of an adopted job a member, where it is."""
    return {
        "metadata": {
            "resourceVersion": pod.version,
            "labels": {**pod_labels(job, group), names.LABEL_ATTEMPT: str(attempt)},
            "annotations": {names.ANNOTATION_RANK: str(slot), names.ANNOTATION_CHARGE: charge},
        }
    }


def relabel_pod(pod: views.PodView, *, job: str, group: str) -> Object:
    """Build the patch that gives a gated pod the labels of the DeadlineJob that speaks for its job now."""
    return {"metadata": {"resourceVersion": pod.version, "labels": pod_labels(job, group)}}


def let_go_pod(pod: views.PodView) -> Object:
    """Build the patch that hands a gated pod to the scheduler as if we had never had it: no gate, no pin.

    Without our labels it is a foreign pod from then on, and counts as that. Raises ValueError for a pod that
    is not gated.
    """
    if pod.pinning is None:
        raise ValueError(f"pod {pod.namespace}/{pod.name} is not gated")
    gates = [{"name": gate} for gate in pod.pinning.gates if gate != names.GATE]
    return {
        "metadata": {"resourceVersion": pod.version, "labels": dict.fromkeys(OURS)},
        "spec": {"schedulingGates": gates or None},
    }


def probe(template: Mapping[str, Any], *, without: Iterable[str] = ()) -> Object:
    """Build a pod of a template for a dry run: the server then says what it would make of it."""
    labels = {key: value for key, value in labels_of(template).items() if key not in without}
    metadata: Object = {"generateName": names.PROBE, "labels": labels}
    annotations = (template.get("metadata") or {}).get("annotations")
    if annotations:
        metadata["annotations"] = annotations
    gates = [{"name": gate} for gate in gates_of(template) if gate != names.GATE]
    spec = {**template["spec"], "schedulingGates": [*gates, {"name": names.GATE}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pod_labels(job: str, group: str) -> dict[str, str]:
    """Return the labels of a member."""
    return {names.LABEL_JOB: job, names.LABEL_GROUP: group, names.LABEL_RESTART: "0"}


# What all kinds have in common


def annotations_of(meta: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the annotations that are for us, sorted, but for what a job says of its progress."""
    return tuple(
        sorted(
            (key, value)
            for key, value in (meta.get("annotations") or {}).items()
            if key.startswith(f"{names.GROUP}/") and key != names.ANNOTATION_PROGRESS
        )
    )


def manager(labels: Mapping[str, Any], holder: Mapping[str, Any], *, at: str, usual: str) -> str:
    """Return who else decides when a job runs, in words, "" for nobody.

    `holder` is what has the field `managedBy`, below `at`; `usual` is who is meant without it.
    """
    if labels.get(KUEUE) is not None:
        return f"Kueue (label {KUEUE})"
    managed = holder.get("managedBy") or usual
    return "" if managed == usual else f"{managed} ({at}.managedBy)"


def kept_by(meta: Mapping[str, Any]) -> str:
    """Return the finalizer that keeps an object which is deleted; those of the collector see to its pods."""
    finalizers = meta.get("finalizers") or ()
    if "deletionTimestamp" not in meta or _COLLECTOR.intersection(finalizers):
        return ""
    return str(next(iter(finalizers), ""))


def labels_of(template: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of a pod template."""
    return (template.get("metadata") or {}).get("labels") or {}


def gates_of(template: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scheduling gates of a pod template."""
    return tuple(gate["name"] for gate in (template.get("spec") or {}).get("schedulingGates") or ())


def likeness_of_template(template: Mapping[str, Any], *, generated: Iterable[str] = ()) -> list[Any]:
    """Return what counts when pod templates are compared: not what we put into one, nor `generated`."""
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    hidden = {*generated, *OURS}
    return [
        {key: value for key, value in labels_of(template).items() if key not in hidden},
        metadata.get("annotations") or {},
        {key: value for key, value in pod.items() if key != "schedulingGates"},
        [gate for gate in gates_of(template) if gate != names.GATE],
    ]
