"""Objects that the local control plane starts with, and what it asks of objects; no I/O but globbing."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

NODES_PER_RACK = 16
NODES_PER_ZONE = 64

NODE_RESOURCES: Mapping[str, str] = {
    "cpu": "128",
    "memory": "1Ti",
    "ephemeral-storage": "1Ti",
    "pods": "256",
    "nvidia.com/gpu": "8",
}


def node(index: int) -> dict[str, Any]:
    """Return the manifest of a simulated node."""
    name = f"node-{index:04d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
        "topology.kubernetes.io/rack": f"rack-{index // NODES_PER_RACK:03d}",
        "topology.kubernetes.io/zone": f"z{index // NODES_PER_ZONE}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": NODE_RESOURCES, "allocatable": NODE_RESOURCES},
    }


def is_schedulable(node_object: Mapping[str, Any]) -> bool:
    """Say whether a node is ready and free of taints."""
    return has_condition(node_object, "Ready") and not node_object["spec"].get("taints")


def has_condition(item: Mapping[str, Any], kind: str) -> bool:
    """Say whether a condition of this type is true of an object."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def manifests(paths: Iterable[pathlib.Path | str]) -> list[pathlib.Path]:
    """Return the files named, and the ``*.yaml`` of the folders named, which may have none."""
    files: list[pathlib.Path] = []
    for path in map(pathlib.Path, paths):
        files += sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return files
