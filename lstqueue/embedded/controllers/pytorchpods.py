"""The pods and Services of a PyTorchJob as the training operator writes them, and what its stored spec means.

Their names are fixed, and so are the labels that say which replica a pod is. World size and ranks are in the
environment from the start.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lstqueue.kube import port

ROLES = ("Master", "Worker")
JOB_NAME = "training.kubeflow.org/job-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"

_CONTAINER = "pytorch"
_PORT = {"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}
_INIT = {
    "name": "init-pytorch",
    "image": "alpine:3.10",
    "imagePullPolicy": "IfNotPresent",
    "resources": {
        "limits": {"cpu": "100m", "memory": "20Mi"},
        "requests": {"cpu": "50m", "memory": "10Mi"},
    },
}


def replicas(job: port.Object) -> dict[str, Mapping[str, Any]]:
    """Return the replica specs by role, the master's first; other spellings of a role are the same role."""
    given = job["spec"]["pytorchReplicaSpecs"]
    by_role = {name.capitalize(): spec for name, spec in given.items()}
    return {role: by_role[role] for role in ROLES if role in by_role}


def count(spec: Mapping[str, Any]) -> int:
    """Return how many replicas there are; one where nothing is said."""
    said = spec.get("replicas")
    return 1 if said is None else int(said)


def restarts(spec: Mapping[str, Any]) -> str:
    """Return the restart policy of a role."""
    return str(spec.get("restartPolicy") or "OnFailure")


def name(job: port.Object, role: str, index: int) -> str:
    """Return the name of a pod, and of its Service."""
    return f"{job['metadata']['name']}-{role.lower()}-{index}"


def exit_code(pod: port.Object) -> int:
    """Return with what the main container of a pod has ended, 0xbeef where that is not known."""
    for item in pod.get("status", {}).get("containerStatuses") or ():
        ended = (item.get("state") or {}).get("terminated")
        if item.get("name") == _CONTAINER and ended:
            return int(ended["exitCode"])
    return 0xBEEF


def place(pod: port.Object) -> tuple[str, int]:
    """Return the role and the index of a pod, ("", -1) where its labels do not say."""
    labels = pod["metadata"].get("labels") or {}
    index = str(labels.get(REPLICA_INDEX, ""))
    role = str(labels.get(REPLICA_TYPE, "")).capitalize()
    return (role, int(index)) if index.isascii() and index.isdigit() else ("", -1)


def build(job: port.Object, role: str, index: int) -> port.Object:
    """Return the pod of a replica."""
    roles = replicas(job)
    spec, template = roles[role], roles[role].get("template") or {}
    given, pod = template.get("metadata") or {}, copy.deepcopy(dict(template.get("spec") or {}))
    policy = restarts(spec)
    pod["restartPolicy"] = "Never" if policy == "ExitCode" else policy
    size = sum(count(item) for item in roles.values())
    rank = index + (1 if role == "Worker" and "Master" in roles else 0)
    main = [item for item in pod["containers"] if item.get("name") == _CONTAINER] or pod["containers"]
    if not any(item.get("name") == _PORT["name"] for item in main[0].get("ports") or ()):
        main[0]["ports"] = [*(main[0].get("ports") or ()), dict(_PORT)]
    for container in pod["containers"]:
        container["env"] = [*(container.get("env") or ()), *_environment(job, roles, rank, size)]
    if role == "Worker" and "Master" in roles:
        pod["initContainers"] = [*(pod.get("initContainers") or ()), copy.deepcopy(_INIT)]
    return {
        "metadata": {
            "name": name(job, role, index),
            "namespace": job["metadata"]["namespace"],
            "labels": {**(given.get("labels") or {}), **_labels(job, role, index)},
            "annotations": dict(given.get("annotations") or {}),
            "ownerReferences": [_owner(job)],
        },
        "spec": pod,
    }


def service(job: port.Object, role: str, index: int) -> port.Object:
    """Return the Service of a replica."""
    labels = _labels(job, role, index)
    return {
        "metadata": {
            "name": name(job, role, index),
            "namespace": job["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [_owner(job)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": [{"name": _PORT["name"], "port": _PORT["containerPort"]}],
        },
    }


def _labels(job: port.Object, role: str, index: int) -> dict[str, str]:
    leads = role == "Master" or ("Master" not in replicas(job) and index == 0)
    return {
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        JOB_NAME: job["metadata"]["name"],
        REPLICA_TYPE: role.lower(),
        REPLICA_INDEX: str(index),
        **({"training.kubeflow.org/job-role": "master"} if leads else {}),
    }


def _environment(
    job: port.Object, roles: Mapping[str, Mapping[str, Any]], rank: int, size: int
) -> list[dict[str, str]]:
    said = {"PYTHONUNBUFFERED": "1", "PET_NNODES": str(size)}
    if "Master" in roles:
        said |= {
            "MASTER_ADDR": name(job, "Master", 0),
            "MASTER_PORT": str(_PORT["containerPort"]),
            "WORLD_SIZE": str(size),
            "RANK": str(rank),
            "PET_NODE_RANK": str(rank),
        }
    return [{"name": key, "value": value} for key, value in said.items()]


def _owner(job: port.Object) -> dict[str, Any]:
    return {
        "apiVersion": port.PYTORCH_JOBS.api_version,
        "kind": port.PYTORCH_JOBS.kind,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
