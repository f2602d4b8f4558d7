"""Raw objects around one inline gang, as an API server has them, for whatever projects them."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from cases import objects
from lstqueue.api import names, times
from lstqueue.jobs import inline, views
from lstqueue.operator import ledger

Object = dict[str, Any]

NOW = times.parse("2026-03-01T18:00:00Z")
MINUTE = 60_000
HOUR = 60 * MINUTE
GPU = "nvidia.com/gpu"
UID = "uid-train"

_versions = itertools.count(100)


def version() -> str:
    """Return a resourceVersion above all before it."""
    return str(next(_versions))


def deadline_job(
    name: str = "train", *, groups: dict[str, int] | None = None, status: Object | None = None, **spec: Any
) -> Object:
    """Return a DeadlineJob; `groups` are replicas by name, the leader's first."""
    listed = [objects.group(group, replicas=count) for group, count in (groups or {"worker": 2}).items()]
    made = objects.job(name, groups=listed, **spec)
    made["metadata"] |= {
        "uid": f"uid-{name}",
        "resourceVersion": version(),
        "generation": 1,
        "creationTimestamp": times.format(NOW),
    }
    made["status"] = status or {}
    return made


def touched(raw: Object, **changes: Any) -> Object:
    """Return a newer version of an object with parts of it replaced."""
    newer = {**copy.deepcopy(raw), **changes}
    newer["metadata"]["resourceVersion"] = version()
    return newer


def admission(gang: inline.Gang, shape: str, nodes: dict[str, int], *, at: int = NOW) -> ledger.Admission:
    """Return an admission that fills nodes in order: how many ranks each takes, group after group."""
    free = [node for node, count in nodes.items() for _ in range(count)]
    groups = []
    rank = 0
    for group, replicas in gang.groups:
        placed: dict[str, list[int]] = {}
        for rank_here in range(rank, rank + replicas):
            placed.setdefault(free[rank_here], []).append(rank_here)
        rank += replicas
        pairs = tuple((node, tuple(ranks)) for node, ranks in placed.items())
        groups.append(ledger.GroupAdmission(group, "a100", pairs))
    return ledger.Admission(at=at, queue="research", shape=shape, groups=tuple(groups))


def child(job: Object, group: str = "", *, restart: int = 0, suspend: bool = False, **status: Any) -> Object:
    """Return a child Job of a DeadlineJob as the operator makes it."""
    seen = ledger.read(job)
    group = group or job["spec"]["groups"][0]["name"]
    template = next(item["template"] for item in job["spec"]["groups"] if item["name"] == group)
    made = inline.job(seen.gang(), group, restart, template)
    made["metadata"] |= {"uid": f"uid-{made['metadata']['name']}", "resourceVersion": version()}
    made["spec"]["suspend"] = suspend
    made["status"] = status
    return made


def suspended(job: Object, value: bool = True) -> Object:
    """Return a Job after somebody suspended or resumed it."""
    return touched(job, spec={**job["spec"], "suspend": value})


def ended(kind: str, reason: str = "", **more: Any) -> Object:
    """Return the status of a Job that is Complete or Failed."""
    return {"conditions": [{"type": kind, "status": "True", "reason": reason}], **more}


def pod(job: Object, index: int = 0, *, suffix: str = "aaaaa", **status: Any) -> Object:
    """Return a pod of a child Job, gated as it comes."""
    owner, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
    meta: Object = {
        "name": f"{owner['name']}-{index}-{suffix}",
        "namespace": owner["namespace"],
        "uid": f"uid-{owner['name']}-{index}-{suffix}",
        "resourceVersion": version(),
        "labels": {**template["metadata"]["labels"], views.INDEX: str(index)},
        "annotations": {**template["metadata"].get("annotations", {}), views.INDEX: str(index)},
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": owner["name"],
                "uid": owner["uid"],
                "controller": True,
            }
        ],
    }
    return {"metadata": meta, "spec": template["spec"], "status": {"phase": "Pending", **status}}


def ungated(
    raw: Object,
    *,
    attempt: int = 1,
    aim: str = "",
    node: str = "",
    phase: str = "Pending",
    ready: bool = False,
    **status: Any,
) -> Object:
    """Return a pod after our gate was lifted: pinned to `aim` and bound to `node`, if they are given."""
    made = touched(raw)
    made["spec"]["schedulingGates"] = []
    made["metadata"]["labels"][names.LABEL_ATTEMPT] = str(attempt)
    made["metadata"]["annotations"][names.ANNOTATION_CHARGE] = "research/a100"
    if aim:
        made["spec"]["affinity"] = pinned(aim)
    if node:
        made["spec"]["nodeName"] = node
    made["status"] = {"phase": phase, **status}
    if ready:
        made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return made


def pinned(node: str) -> Object:
    """Return an affinity that leaves a pod one node."""
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = [{"matchFields": [pin]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def leaving(raw: Object) -> Object:
    """Return an object that is being deleted."""
    made = touched(raw)
    made["metadata"]["deletionTimestamp"] = times.format(NOW)
    return made


def evicted(raw: Object) -> Object:
    """Return a pod that is evicted from its node."""
    made = leaving(raw)
    made["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    return made


def foreign_pod(name: str = "other", *, node: str = "", gpus: int = 1, phase: str = "Running") -> Object:
    """Return a pod of somebody else."""
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus)}}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version()}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def node(name: str = "gpu-1", *, gpus: int = 8, ready: bool = True, **spec: Any) -> Object:
    """Return a node."""
    conditions = [{"type": "Ready", "status": str(ready), "lastHeartbeatTime": version()}]
    status = {"allocatable": {"cpu": "64", "pods": "110", GPU: str(gpus)}, "conditions": conditions}
    return {"metadata": {"name": name, "labels": {"pool": "a100"}}, "spec": spec, "status": status}


def queue(name: str = "research", **spec: Any) -> Object:
    """Return a GPUQueue."""
    made = objects.queue(name, **spec)
    made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": version(), "generation": 1}
    return made
