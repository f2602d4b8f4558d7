"""What is there before anybody wrote anything: an empty cluster, with lstqueue's own kinds installed."""

from __future__ import annotations

from collections.abc import Iterator

from lstqueue.api import crd, names
from lstqueue.api import kinds as own
from lstqueue.embedded import admission_core, kinds
from lstqueue.kube import port

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def objects() -> Iterator[tuple[port.Resource, str | None, port.Object]]:
    """Yield (resource, namespace, body) of each object to start with."""
    for name in NAMESPACES:
        yield port.NAMESPACES, None, {"metadata": {"name": name}}
    for name, value in admission_core.SYSTEM_CLASSES.items():
        yield port.PRIORITY_CLASSES, None, {"metadata": {"name": name}, "value": value}
    for kind in own.KINDS:
        yield kinds.CRDS, None, _established(crd.manifest(kind))


def _established(manifest: port.Object) -> port.Object:
    conditions = [
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
    ]
    return manifest | {
        "status": {
            "acceptedNames": manifest["spec"]["names"],
            "conditions": conditions,
            "storedVersions": [names.VERSION],
        }
    }
