"""Existing batch Jobs and their pods as an API server has them, for whatever projects them."""

from __future__ import annotations

import copy
from typing import Any

from cases import raw
from lstqueue.api import names, times
from lstqueue.jobs import views

Object = dict[str, Any]


def job(
    name: str = "sweep",
    *,
    parallelism: int = 4,
    completions: int | None = 4,
    indexed: bool = True,
    suspend: bool = True,
    queue: str | None = "research",
    status: Object | None = None,
    owner: Object | None = None,
    template: Object | None = None,
    annotations: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a Job, labelled and suspended."""
    meta: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": raw.version(),
        "creationTimestamp": times.format(raw.NOW),
        "labels": {} if queue is None else {names.LABEL_QUEUE: queue},
        "annotations": annotations or {},
    }
    if owner:
        meta["ownerReferences"] = [owner]
    container = {"name": "main", "resources": {"requests": {raw.GPU: "8"}}}
    body = template or {
        "metadata": {"labels": {"job-name": name, "batch.kubernetes.io/controller-uid": meta["uid"]}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {
            "parallelism": parallelism,
            "completions": completions,
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "suspend": suspend,
            "template": body,
            **spec,
        },
        "status": status or {},
    }


def owned_by(kind: str, name: str = "above", *, api_version: str = "batch/v1") -> Object:
    """Return a controller reference."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def pod(
    of: Object,
    suffix: str,
    *,
    index: int = -1,
    gated: bool = True,
    slot: int = -1,
    node: str = "",
    phase: str = "Pending",
    age: int = 0,
    attempt: int = 1,
) -> views.PodView:
    """Return a pod of a released Job as it is projected; `age` in seconds puts creations in order."""
    meta: Object = {
        "name": f"{of['metadata']['name']}-{suffix}",
        "namespace": "default",
        "uid": f"uid-pod-{suffix}",
        "resourceVersion": raw.version(),
        "creationTimestamp": times.format(raw.NOW - age * 1000),
        "labels": {names.LABEL_JOB: "uid-ledger", names.LABEL_GROUP: "pods", names.LABEL_RESTART: "0"},
        "annotations": {},
        "ownerReferences": [owned_by("Job", of["metadata"]["name"]) | {"uid": of["metadata"]["uid"]}],
    }
    spec = copy.deepcopy(of["spec"]["template"]["spec"])
    if index >= 0:
        meta["labels"][views.INDEX] = str(index)
    if gated:
        spec["schedulingGates"] = [{"name": names.GATE}]
    else:
        meta["labels"][names.LABEL_ATTEMPT] = str(attempt)
        meta["annotations"][names.ANNOTATION_RANK] = str(slot if slot >= 0 else index)
    if node:
        spec["nodeName"] = node
    return views.pod({"metadata": meta, "spec": spec, "status": {"phase": phase}})
