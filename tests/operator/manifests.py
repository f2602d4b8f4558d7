"""Manifests as users write them, as small as they can be."""

from __future__ import annotations

from typing import Any

from lstqueue.api import names

Object = dict[str, Any]

GPU = "nvidia.com/gpu"


def own(kind: str, name: str, spec: Object, *, alike: bool = False) -> Object:
    """An object of ours; DeadlineJobs learn nothing of equal templates unless they are to be `alike`."""
    meta: Object = {"name": name}
    if kind == "DeadlineJob" and not alike:
        meta["labels"] = {names.LABEL_HISTORY: ""}
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def pool(name: str, *, gpus: int = 1000, resource: str = GPU, **fields: Any) -> Object:
    return {"name": name, "resources": [{"name": resource, "nominal": gpus}], **fields}


def pod_spec(gpus: int = 8, **fields: Any) -> Object:
    resources = {"limits": {GPU: gpus}} if gpus else {}
    return {"containers": [{"name": "main", "image": "trainer:1", "resources": resources}], **fields}


def group(
    name: str = "worker", replicas: int = 1, *, gpus: int = 8, pod: Object | None = None, **simulation: str
) -> Object:
    """A worker group; keywords are the `sim/` annotations of its pods, with underscores for dashes."""
    annotations = {f"sim/{key.replace('_', '-')}": value for key, value in simulation.items()}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"annotations": annotations}, "spec": pod_spec(gpus, **(pod or {}))},
    }
