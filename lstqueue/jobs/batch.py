"""batch/v1 Jobs as existing jobs: how one is read, and the patches that let it go and suspend it.

A Job whose pods all run at once (completions = parallelism, or one) is a gang; any other is a bag. A Job is
read as its API server shows it, defaults included. See `kinds.Adapter` for what each name here is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lstqueue.api import names, times
from lstqueue.jobs import existing, likeness, owners, views
from lstqueue.kube import port

Object = dict[str, Any]

RESOURCE = port.JOBS
SUSPENDED_BY = "spec.suspend"
SIZED_BY = "spec.parallelism"

_BUILT_IN = "kubernetes.io/job-controller"
_GENERATED = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
"""Labels that the API server puts on every Job's template; without them equal templates are equal."""


def unit(raw: Mapping[str, Any]) -> existing.UnitView:
    """Project a Job."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = meta.get("labels") or {}
    ended = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    failure = ended.get("Failed") or ended.get("FailureTarget") or {}
    width, total = spec.get("parallelism", 1), spec.get("completions")
    indexed = spec.get("completionMode") == "Indexed"
    template = spec.get("template") or {}
    gates = existing.gates_of(template)
    return existing.UnitView(
        api_version=RESOURCE.api_version,
        kind=RESOURCE.kind,
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        created=times.parse(meta["creationTimestamp"]),
        queue=labels.get(names.LABEL_QUEUE),
        annotations=existing.annotations_of(meta),
        owner=owners.controller(meta),
        manager=existing.manager(labels, spec, at="spec", usual=_BUILT_IN),
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
        stamp=existing.labels_of(template).get(names.LABEL_JOB, "") if names.GATE in gates else "",
        gates=(gates,),
        patient=spec.get("podReplacementPolicy") == "Failed",
        kept_by=existing.kept_by(meta),
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
    canonical = json.dumps(
        [
            spec.get("parallelism", 1),
            spec.get("completions"),
            spec.get("completionMode") or "NonIndexed",
            *existing.likeness_of_template(spec.get("template") or {}, generated=_GENERATED),
        ],
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def templates(raw: Mapping[str, Any]) -> dict[str, Object]:
    """Return the pod template by the name of its group."""
    return {existing.GROUP: raw["spec"]["template"]}


def template_path(_: str) -> str:
    """Return where the template is, for messages."""
    return "spec.template"


def probe_pod(template: Mapping[str, Any], _: str) -> Object:
    """Build a pod for a dry run."""
    return existing.probe(template, without=_GENERATED)


def release(view: existing.UnitView, *, job: str, attempt: int) -> Object:
    """Build the one merge patch that lets a suspended Job go, gated, under an admission."""
    spec: Object = {"suspend": False}
    if not existing.stamped(view, job):
        spec["template"] = existing.stamp(view.gates[0], job=job, group=existing.GROUP)
    return {"metadata": existing.released(view, job=job, attempt=attempt), "spec": spec}


def pod_names(_: existing.UnitView) -> frozenset[str]:
    """Return none: the API server generates the names of a Job's pods."""
    return frozenset()


def end_pods(_: existing.UnitView) -> Object | None:
    """Return None: a Job is not over before its pods are."""
    return None


def forget_start(view: existing.UnitView) -> Object:
    """Build the patch of a suspended Job's status that lets its template be changed before Kubernetes 1.36.

    A Job that is suspended has no use for its start time: the controller sets it anew when it is resumed.
    """
    return {"metadata": {"resourceVersion": view.version}, "status": {"startTime": None}}


def suspend(view: existing.UnitView, *, ended: str = "") -> Object:
    """Build the conditional patch that suspends a Job; `ended` says why that is for good."""
    return {"metadata": existing.stopped(view, ended), "spec": {"suspend": True}}


def _switched(status: Mapping[str, Any]) -> tuple[bool, int] | None:
    for item in status.get("conditions") or []:
        if item["type"] == "Suspended" and item.get("lastTransitionTime"):
            return item["status"] == "True", times.parse(item["lastTransitionTime"])
    return None


def _done(status: Mapping[str, Any], total: int | None) -> frozenset[int]:
    below = min(total or 0, views.RANKS)
    done = views.indexes(status.get("completedIndexes") or "", below=below)
    return done | views.indexes(status.get("failedIndexes") or "", below=below)
