"""Kubeflow PyTorchJobs (kubeflow.org/v1) as existing jobs: how one is read, let go and suspended.

Master and Workers are one gang: rank 0 is the master's, the workers follow in the order of their indexes. Its
controller makes pods of fixed names and replaces every one that is gone, counts on nothing but the pods that
are there, and calls the job successful when the master is (without one: when all workers are). Defaults are
in the controller's memory only, so that a stored PyTorchJob may lack what a Job always has. See
`kinds.Adapter` for what each name here is asked.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lstqueue.api import names, times
from lstqueue.jobs import existing, likeness, owners, views
from lstqueue.kube import port

Object = dict[str, Any]

RESOURCE = port.PYTORCH_JOBS
SUSPENDED_BY = "spec.runPolicy.suspend"
SIZED_BY = "spec.pytorchReplicaSpecs"
ROLES = ("Master", "Worker")
"""The kinds of replicas there are, in the order of their ranks."""

_TRAINING_OPERATOR = "kubeflow.org/training-operator"
_CONTAINER = "pytorch"
"""The container that gets the port of the rendezvous; where none is called so, the first."""
_PORT: Mapping[str, Any] = {"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}
_WAITS_FOR_MASTER: Mapping[str, Any] = {
    "name": "init-pytorch",
    "image": "alpine:3.10",
    "resources": {
        "limits": {"cpu": "100m", "memory": "20Mi"},
        "requests": {"cpu": "50m", "memory": "10Mi"},
    },
}
"""What the controller has a worker run first, by default, where there is a master."""


def unit(raw: Mapping[str, Any]) -> existing.UnitView:
    """Project a PyTorchJob."""
    meta, spec, status = raw["metadata"], _mapping(raw.get("spec")), _mapping(raw.get("status"))
    labels, policy = meta.get("labels") or {}, _mapping(spec.get("runPolicy"))
    ended = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    failure = ended.get("Failed") or {}
    made_of, roles = templates(raw), _roles(spec)
    total = sum(count for _, count in roles)
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
        manager=existing.manager(labels, policy, at="spec.runPolicy", usual=_TRAINING_OPERATOR),
        width=total,
        total=total,
        indexed=True,
        shape=_shape(spec),
        suspended=bool(policy.get("suspend")),
        deleting="deletionTimestamp" in meta,
        complete="Succeeded" in ended,
        failed=bool(failure),
        reason=failure.get("reason") or "",
        message=failure.get("message") or "",
        succeeded=0,
        done=frozenset(),
        completion_time=times.parse(status["completionTime"]) if status.get("completionTime") else None,
        begun=False,
        job=labels.get(names.LABEL_JOB, ""),
        attempt=views.counter(labels.get(names.LABEL_ATTEMPT), -1),
        stamp=_stamp(made_of),
        gates=tuple(existing.gates_of(template) for template in made_of.values()),
        # The next pod of a rank has the name of the last.
        patient=True,
        kept_by=existing.kept_by(meta),
        work=likeness.of_roles(made_of, roles, policy, meta),
        progress=likeness.progress(meta),
        roles=roles,
        by_pods=True,
        leads=bool(roles) and roles[0][0] == _group("Master"),
        clears=policy.get("cleanPodPolicy") in ("Running", "All"),
        unfit=_unfit(spec),
    )


def templates(raw: Mapping[str, Any]) -> dict[str, Object]:
    """Return the pod templates by the names of their groups, in the order of the ranks."""
    spec = _mapping(raw.get("spec"))
    replicas = _replicas(spec)
    return {group: dict(_mapping(replicas[group.capitalize()].get("template"))) for group, _ in _roles(spec)}


def template_path(group: str) -> str:
    """Return where the template of a group is, for messages."""
    return f"{SIZED_BY}.{group.capitalize()}.template"


def probe_pod(template: Mapping[str, Any], group: str) -> Object:
    """Build a pod of a group for a dry run, with what the controller adds that takes room.

    Its port becomes one of the node's where the pods share that network. Every worker is taken for one that
    waits for its master, which takes next to nothing.
    """
    pod = existing.probe(template)
    spec = pod["spec"] = copy.deepcopy(pod["spec"])
    spec["restartPolicy"] = "Never"
    containers = spec.get("containers") or []
    main = next((item for item in containers if item.get("name") == _CONTAINER), next(iter(containers), None))
    ports = [item.get("name") for item in (main or {}).get("ports") or ()]
    if main is not None and _PORT["name"] not in ports:
        main["ports"] = [*(main.get("ports") or ()), dict(_PORT)]
    if group != _group("Master"):
        spec["initContainers"] = [*(spec.get("initContainers") or ()), copy.deepcopy(dict(_WAITS_FOR_MASTER))]
    return pod


def release(view: existing.UnitView, *, job: str, attempt: int) -> Object:
    """Build the one merge patch that lets a suspended PyTorchJob go, gated, under an admission."""
    spec: Object = {"runPolicy": {"suspend": False}}
    if not existing.stamped(view, job):
        groups = [group for group, _ in view.roles]
        spec["pytorchReplicaSpecs"] = {
            group.capitalize(): {"template": existing.stamp(gates, job=job, group=group)}
            for group, gates in zip(groups, view.gates, strict=True)
        }
    return {"metadata": existing.released(view, job=job, attempt=attempt), "spec": spec}


def pod_names(view: existing.UnitView) -> frozenset[str]:
    """Return the names of its pods."""
    return frozenset(f"{view.name}-{group}-{index}" for group, count in view.roles for index in range(count))


def end_pods(view: existing.UnitView) -> Object | None:
    """Build the conditional patch that has the pods ended which a PyTorchJob that is over has left running.

    Without a policy its controller leaves them; pods that have ended stay, with their logs.
    """
    if view.clears:
        return None
    return {
        "metadata": {"resourceVersion": view.version},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running"}},
    }


def suspend(view: existing.UnitView, *, ended: str = "") -> Object:
    """Build the conditional patch that suspends a PyTorchJob; `ended` says why that is for good."""
    return {"metadata": existing.stopped(view, ended), "spec": {"runPolicy": {"suspend": True}}}


def _group(role: str) -> str:
    """Return the group of a kind of replica: as its pods are labelled."""
    return role.lower()


def _replicas(spec: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    replicas = _mapping(spec.get("pytorchReplicaSpecs"))
    return {role: _mapping(replicas[role]) for role in replicas}


def _roles(spec: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return (group, pods) of those that have any, in the order of the ranks; absent is one."""
    replicas = _replicas(spec)
    said = [(role, replicas[role].get("replicas")) for role in ROLES if role in replicas]
    counts = [(_group(role), 1 if count is None else count) for role, count in said]
    return tuple((group, count) for group, count in counts if count > 0)


def _stamp(made_of: Mapping[str, Object]) -> str:
    """Return the DeadlineJob whose pods all templates make, behind our gate, "" for none."""
    found = {
        labels.get(names.LABEL_JOB, "")
        if names.GATE in existing.gates_of(template) and labels.get(names.LABEL_GROUP) == group
        else ""
        for group, template in made_of.items()
        for labels in (existing.labels_of(template),)
    }
    return found.pop() if len(found) == 1 else ""


def _shape(spec: Mapping[str, Any]) -> str:
    """Return 16 hex digits over what an admission is decided for, without what we put into it."""
    replicas = _replicas(spec)
    canonical = json.dumps(
        [
            [
                role,
                replicas[role].get("replicas"),
                *existing.likeness_of_template(_mapping(replicas[role].get("template"))),
            ]
            for role in sorted(replicas)
        ]
        + [spec.get("elasticPolicy")],
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _unfit(spec: Mapping[str, Any]) -> str:
    """Say why a PyTorchJob cannot be queued as it is, and what to do about it, "" when it can."""
    replicas = _replicas(spec)
    if spec.get("elasticPolicy") is not None:
        return (
            "spec.elasticPolicy lets the number of workers change while it runs, and a gang is admitted "
            "whole; remove spec.elasticPolicy and set spec.pytorchReplicaSpecs.Worker.replicas"
        )
    odd = sorted(replicas.keys() - set(ROLES))
    if odd:
        return f"spec.pytorchReplicaSpecs.{odd[0]} is unknown; write Master or Worker"
    if not replicas:
        return "spec.pytorchReplicaSpecs is empty; give it a Worker, a Master, or both"
    if "Master" in replicas and dict(_roles(spec)).get(_group("Master")) != 1:
        return "spec.pytorchReplicaSpecs.Master.replicas is not 1; set it to 1, and let the others be workers"
    bare = next((role for role in ROLES if role in replicas and not _has_containers(replicas[role])), "")
    return f"{template_path(_group(bare))} has no containers; add one" if bare else ""


def _has_containers(replica: Mapping[str, Any]) -> bool:
    return bool(_mapping(_mapping(replica.get("template")).get("spec")).get("containers"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
