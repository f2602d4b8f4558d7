"""Inline gangs: the Jobs and the Service made for a DeadlineJob, and the patches that start and stop them.

One Indexed Job per worker group and restart, created unsuspended and gated with a name that only depends on
the gang, so that a retry after a lost reply meets its own work. Nothing here talks to an API.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstqueue.api import errors, names
from lstqueue.jobs import views

Object = dict[str, Any]

PORT = 29500
"""Rendezvous port, torch.distributed's own default."""


@dataclass(frozen=True, slots=True)
class Gang:
    """What the children of a DeadlineJob are made of. `groups` are (name, replicas) in rank order."""

    uid: str
    namespace: str
    name: str
    groups: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Number of pods of the whole gang, the world size."""
        return sum(replicas for _, replicas in self.groups)

    @property
    def service(self) -> str:
        """Name of the headless Service, "" when one pod needs none.

        The prefix lets names that begin with a digit be Services, and keeps off the users' own Services.
        """
        return f"gang-{self.name}" if self.size > 1 else ""

    def offset(self, group: str) -> int:
        """Global rank of the first member of a group."""
        total = 0
        for name, replicas in self.groups:
            if name == group:
                return total
            total += replicas
        raise KeyError(group)

    def child(self, group: str, restart: int) -> str:
        """Name of the Job of a group."""
        return f"{self.name}-{group}-{restart}"


def shape_hash(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return 16 hex digits over names, replicas and templates: what an admission was decided for."""
    canonical = json.dumps(
        [[group["name"], group.get("replicas", 1), group["template"]] for group in groups],
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def without_nulls(template: Mapping[str, Any]) -> Object:
    """Return a template without the fields that are null, at any depth.

    Nobody decodes what users of a DeadlineJob write into one; in a pod the API server drops such fields.
    """
    return {key: _kept(value) for key, value in template.items() if value is not None}


def service(gang: Gang) -> Object:
    """Build the headless Service that gives ranks their names, before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(gang, gang.service, {}),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.LABEL_JOB: gang.uid},
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }


def job(gang: Gang, group: str, restart: int, template: Mapping[str, Any]) -> Object:
    """Build the Job of a group: Indexed, gated, without retries of its own."""
    replicas = dict(gang.groups)[group]
    labels = {names.LABEL_GROUP: group, names.LABEL_RESTART: str(restart)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(gang, gang.child(group, restart), labels),
        "spec": {
            "completionMode": "Indexed",
            "completions": replicas,
            "parallelism": replicas,
            "backoffLimit": 0,
            "suspend": False,
            "template": pod_template(gang, group, restart, template),
        },
    }


def pod_template(gang: Gang, group: str, restart: int, template: Mapping[str, Any]) -> Object:
    """Return the user's template with our labels, gate, class and rendezvous environment added.

    Raises:
        BadValueError: a field that is added to is not of the form that a pod has.
    """
    built = without_nulls(template)
    metadata = built["metadata"] = _mapping(built.get("metadata"), "metadata")
    metadata["labels"] = {
        **_mapping(metadata.get("labels"), "metadata.labels"),
        names.LABEL_JOB: gang.uid,
        names.LABEL_GROUP: group,
        names.LABEL_RESTART: str(restart),
    }
    spec = built["spec"]
    spec["restartPolicy"] = "Never"
    spec["priorityClassName"] = spec.get("priorityClassName") or names.PRIORITY_CLASS
    gates = _mappings(spec.get("schedulingGates"), "spec.schedulingGates")
    gates = [gate for gate in gates if gate.get("name") != names.GATE]
    spec["schedulingGates"] = [*gates, {"name": names.GATE}]
    if gang.service:
        spec["subdomain"] = gang.service
    environment = rendezvous(gang, restart)
    for container in [*_mappings(spec.get("initContainers"), "spec.initContainers"), *spec["containers"]]:
        own = _mappings(container.get("env"), "env of a container")
        taken = [variable.get("name") for variable in own]
        # Ours come first, so that a user's variable may refer to them by $(NAME).
        container["env"] = [item for item in environment if item["name"] not in taken] + own
    return built


def rendezvous(gang: Gang, restart: int) -> list[Object]:
    """Return RANK, WORLD_SIZE and friends, for plain torch.distributed and for torchrun (PET_*)."""
    leader = gang.child(gang.groups[0][0], restart)
    address = f"{leader}-0.{gang.service}" if gang.service else "localhost"
    rank = {"valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_RANK}']"}}}
    fixed = {
        "WORLD_SIZE": str(gang.size),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(PORT),
        "PET_NNODES": str(gang.size),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": str(PORT),
    }
    return [
        {"name": "RANK", **rank},
        {"name": "PET_NODE_RANK", **rank},
        *({"name": name, "value": value} for name, value in fixed.items()),
    ]


def probe_pod(gang: Gang, group: str, template: Mapping[str, Any]) -> Object:
    """Build a pod of a group for a dry run: the server then says what it would make of it."""
    built = pod_template(gang, group, 0, template)
    # Of a template's metadata the Job controller takes no name and no namespace either.
    metadata = {
        key: _mapping(built["metadata"].get(key), f"metadata.{key}") for key in ("labels", "annotations")
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "generateName": names.PROBE},
        "spec": built["spec"],
    }


def ungate(
    pod: views.PodView,
    *,
    node: str,
    rank: int,
    attempt: int,
    charge: str,
    tolerations: Sequence[Mapping[str, Any]] = (),
) -> Object:
    """Build the one merge patch that pins a gated pod to a node and lifts our gate.

    The pin goes into every required term, since terms are alternatives. resourceVersion makes it conditional.
    Raises ValueError for a pod that is not gated.
    """
    if pod.pinning is None:
        raise ValueError(f"pod {pod.namespace}/{pod.name} is not gated")
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = copy.deepcopy(dict(pod.pinning.affinity))
    node_affinity = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    required = node_affinity[field] = node_affinity.get(field) or {}
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or []), pin]} for term in terms
    ]
    spec: Object = {
        "affinity": affinity,
        "schedulingGates": [{"name": gate} for gate in pod.pinning.gates if gate != names.GATE] or None,
    }
    if tolerations:
        spec["tolerations"] = [*pod.pinning.tolerations, *tolerations]
    return {
        "metadata": {
            "resourceVersion": pod.version,
            "labels": {names.LABEL_ATTEMPT: str(attempt)},
            "annotations": {names.ANNOTATION_RANK: str(rank), names.ANNOTATION_CHARGE: charge},
        },
        "spec": spec,
    }


def suspend(child: views.ChildView, *, value: bool) -> Object:
    """Build the conditional patch that suspends or resumes a child Job."""
    return {"metadata": {"resourceVersion": child.version}, "spec": {"suspend": value}}


def owning_job(raw: Mapping[str, Any]) -> str:
    """Return the UID of the DeadlineJob that controls an object, "" for objects that none controls."""
    for reference in raw["metadata"].get("ownerReferences") or []:
        if reference.get("controller") and reference.get("kind") == "DeadlineJob":
            return str(reference.get("uid"))
    return ""


def _kept(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_nulls(value)
    return [_kept(item) for item in value] if isinstance(value, list) else value


def _mapping(value: Any, field: str) -> Object:
    """Return an object of a template, where null is an empty one."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise errors.BadValueError(f"{field} is not an object", "write a mapping of fields, as in a pod")


def _mappings(value: Any, field: str) -> list[Object]:
    """Return a list of objects of a template, where null is an empty one."""
    if value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        return value or []
    raise errors.BadValueError(f"{field} is not a list of objects", "write a list, as in a pod")


def _metadata(gang: Gang, name: str, labels: Mapping[str, str]) -> Object:
    return {
        "name": name,
        "namespace": gang.namespace,
        "labels": {names.LABEL_JOB: gang.uid, **labels},
        "ownerReferences": [
            {
                "apiVersion": names.API_VERSION,
                "kind": "DeadlineJob",
                "name": gang.name,
                "uid": gang.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
