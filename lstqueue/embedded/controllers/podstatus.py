"""The statuses that kubelets and node controllers write, as merge patches of a pod's `status`."""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import metadata
from lstqueue.embedded.controllers import pods
from lstqueue.kube import port

Status = dict[str, Any]

EVICTED = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
ORPHANED = ("DeletionByPodGC", "PodGC: node no longer exists")


def running(pod: port.Object, now_ms: int, *, pod_ip: str, host_ip: str) -> Status:
    """All containers run and are ready; init containers have completed."""
    at = metadata.timestamp(now_ms)
    spec = pod["spec"]
    ready = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]
    status: Status = {
        "phase": "Running",
        "startTime": at,
        "hostIP": host_ip,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": pods.with_conditions(pod, now_ms, *ready),
        "containerStatuses": [
            {**_container(item), "ready": True, "started": True, "state": {"running": {"startedAt": at}}}
            for item in spec["containers"]
        ],
    }
    if spec.get("initContainers"):
        done = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
        status["initContainerStatuses"] = [
            {**_container(item), "ready": True, "state": {"terminated": done}}
            for item in spec["initContainers"]
        ]
    return status


def ended(pod: port.Object, now_ms: int, *, exit_code: int) -> Status:
    """All containers have ended with the same code; zero is success."""
    at = metadata.timestamp(now_ms)
    state = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": pod.get("status", {}).get("startTime", at),
        "finishedAt": at,
    }
    reason = "PodFailed" if exit_code else "PodCompleted"
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": _unready(pod, now_ms, reason),
        "containerStatuses": [
            {**_container(item), "ready": False, "started": False, "state": {"terminated": state}}
            for item in pod["spec"]["containers"]
        ],
    }


def refused(pod: port.Object, now_ms: int, *, reason: str, message: str) -> Status:
    """The kubelet does not run the pod at all."""
    at = metadata.timestamp(now_ms)
    conditions = _unready(pod, now_ms, "PodFailed")
    return {
        "phase": "Failed",
        "startTime": at,
        "reason": reason,
        "message": message,
        "conditions": conditions,
    }


def ready(pod: port.Object, now_ms: int, *, ready: bool) -> Status:
    """The pod's readiness follows that of its node; its containers are as they were."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    if not ready:
        condition["reason"] = "NodeNotReady"
    return {"conditions": pods.with_conditions(pod, now_ms, condition)}


def disrupted(pod: port.Object, now_ms: int, why: tuple[str, str]) -> Status:
    """The pod goes for a reason that is not its own."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": why[0], "message": why[1]}
    return {"conditions": pods.with_conditions(pod, now_ms, condition)}


def _unready(pod: port.Object, now_ms: int, reason: str) -> list[dict[str, Any]]:
    changed = [{"type": kind, "status": "False", "reason": reason} for kind in ("Ready", "ContainersReady")]
    return pods.with_conditions(pod, now_ms, *changed)


def _container(container: dict[str, Any]) -> Status:
    return {"name": container["name"], "image": container.get("image", ""), "restartCount": 0}
