"""Objects of our kinds to write tests with: complete, applicable, and as small as they can be."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

ABSENT = object()
"""As a value: the field is left out."""


def template(**pod: Any) -> Object:
    container = {"name": "main", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {"spec": _without_absent({"containers": [container], "restartPolicy": "Never", **pod})}


def group(name: str = "worker", **fields: Any) -> Object:
    return _without_absent({"name": name, "replicas": 4, "template": template(), **fields})


def job(name: str = "case", *, status: Object | None = None, **spec: Any) -> Object:
    full = _without_absent({"queue": "research", "groups": [group()], **spec})
    return bare("DeadlineJob", {"name": name, "namespace": "default"}, full, status)


def reference(name: str = "case", *, status: Object | None = None, **spec: Any) -> Object:
    """Return a DeadlineJob that refers to a Job."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
    full = _without_absent({"jobRef": reference, **spec})
    return bare("DeadlineJob", {"name": name, "namespace": "default"}, full, status)


def pool(name: str = "a100", **fields: Any) -> Object:
    quota = [{"name": "nvidia.com/gpu", "nominal": 64}]
    return _without_absent({"name": name, "resources": quota, **fields})


def queue(name: str = "case", *, status: Object | None = None, **spec: Any) -> Object:
    return bare("GPUQueue", {"name": name}, _without_absent({"pools": [pool()], **spec}), status)


def bare(kind: str, metadata: Object, spec: Object, status: Object | None) -> Object:
    made = {"apiVersion": "lstqueue.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    return made if status is None else {**made, "status": status}


def _without_absent(fields: Object) -> Object:
    return {key: value for key, value in fields.items() if value is not ABSENT}


def toleration(**fields: Any) -> Object:
    return queue(pools=[pool(tolerations=[fields])])


def quota(nominal: Any, name: str = "nvidia.com/gpu") -> Object:
    return queue(pools=[pool(resources=[{"name": name, "nominal": nominal}])])


WAITING: Object = {"phase": "Pending", "attempt": 0}
ADMITTED: Object = {
    "phase": "Admitted",
    "attempt": 1,
    "admission": {
        "at": "2026-03-01T18:00:00Z",
        "queue": "research",
        "shapeHash": "0a1b",
        "jobUid": "uid-unit",
        "groups": [
            {"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "ranks": "0-2,3"}]},
        ],
    },
}
CLAIMING: Object = {
    "phase": "Claiming",
    "attempt": 0,
    "claim": {
        "expires": "2026-03-01T18:10:00Z",
        "groups": [{"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "count": 4}]}],
        "victims": [{"uid": "uid-other", "attempt": 1}],
    },
}
FULL: Object = {
    **ADMITTED,
    "reservation": {
        "start": "2026-03-01T18:10:00Z",
        "groups": [{"name": "worker", "pool": "a100", "nodes": [{"node": "gpu-1", "count": 4}]}],
        "slips": 1,
    },
    "observedGeneration": 2,
    "queue": "research",
    "phase": "Running",
    "conditions": [
        {
            "type": "Admitted",
            "status": "True",
            "reason": "Admitted",
            "message": "4 pods were placed on 1 node",
            "lastTransitionTime": "2026-03-01T18:00:00Z",
            "observedGeneration": 2,
        }
    ],
    "deadline": "2026-03-02T06:00:00.250Z",
    "gang": "4×8 nvidia.com/gpu",
    "jobUid": "uid-unit",
    "restarts": 1,
    "disruptions": 1,
    "claim": CLAIMING["claim"],
    "slot": {
        "start": "2026-03-01T20:00:00Z",
        "finish": "2026-03-02T05:30:00Z",
        "runTime": "9h",
        "groups": CLAIMING["claim"]["groups"],
    },
    "suspension": {"reason": "Preempted", "since": "2026-03-01T19:00:00Z", "for": "uid-urgent"},
    "preemptedAt": ["2026-03-01T17:00:00Z", "2026-03-01T18:30:00Z"],
    "displacedBy": ["uid-first", "uid-urgent"],
    "saved": "1h30m500ms",
    "wasted": 1,
    "shed": True,
    "bestEffort": True,
    "spare": True,
    "backoff": {
        "until": "2026-03-01T19:01:00Z",
        "count": 1,
        "avoid": ["gpu-2"],
        "avoidUntil": "2026-03-01T19:06:00Z",
    },
    "late": False,
    "verdict": {
        "level": "AT_RISK",
        "reason": "the long estimate ends after the deadline",
        "earliestFeasibleDeadline": "2026-03-02T08:00:00Z",
        "earliestPromisedDeadline": "2026-03-02T10:00:00Z",
        "forecastStart": {"earliest": "2026-03-01T18:00:00Z", "latest": "2026-03-01T19:00:00Z"},
        "forecastFinish": {"earliest": "2026-03-02T01:00:00Z", "latest": "2026-03-02T08:00:00Z"},
    },
    "slack": "1h",
    "latestStartTime": "2026-03-01T20:00:00Z",
    "historyKey": "0123456789abcdef",
    "estimate": {"lo": "2h30m", "mid": "10h", "hi": "15h", "source": "User"},
    "pending": {"code": "NoRoom", "message": "needs 4 × 8 nvidia.com/gpu"},
    "runs": [
        {
            "start": "2026-03-01T18:00:00Z",
            "end": "2026-03-01T19:00:00Z",
            "reason": "Failed",
            "nodes": 1,
            "lost": "59m",
        }
    ],
    "startTime": "2026-03-01T18:01:00Z",
    "completionTime": "2026-03-02T01:00:00Z",
}
QUEUE_STATUS: Object = {
    "observedGeneration": 1,
    "pending": 2,
    "admitted": 1,
    "running": 3,
    "usage": [
        {"pool": "a100", "name": "nvidia.com/gpu", "used": "32", "nominal": "64"},
        {"pool": "h100", "name": "nvidia.com/gpu", "used": "0", "nominal": "64"},
    ],
    "met": 7,
    "missed": 0,
    "reclaimedAt": "2026-03-01T17:30:00Z",
    "conditions": FULL["conditions"],
}
