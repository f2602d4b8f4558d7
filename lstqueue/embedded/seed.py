"""What is there before anybody wrote anything: the namespaces and priority classes of an empty cluster."""

from __future__ import annotations

from collections.abc import Iterator

from lstqueue.kube import port

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def objects() -> Iterator[tuple[port.Resource, str | None, port.Object]]:
    """Yield (resource, namespace, body) of each object to start with."""
    for name in NAMESPACES:
        yield port.NAMESPACES, None, {"metadata": {"name": name}}
    for name, value in PRIORITY_CLASSES.items():
        yield port.PRIORITY_CLASSES, None, {"metadata": {"name": name}, "value": value}
