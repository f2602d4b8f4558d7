"""What nodes report and what follows: conditions, taints, and how long pods tolerate them.

Stands in for the kubelets' heartbeats, the node lifecycle controller and the taint controller. A node is up
unless its annotation `sim/down` says otherwise: "silent" for a node that falls silent, which is noticed after
`NOTICED_AFTER`, "unknown" for one of which that has been noticed (Ready Unknown, taint `unreachable`), any
other value for one that reports trouble (Ready False, taint `not-ready`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstqueue.embedded import metadata
from lstqueue.embedded.controllers import fit, pods
from lstqueue.embedded.store import Store
from lstqueue.kube import port

DOWN = "sim/down"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NOTICED_AFTER = 50.0
"""Seconds without a heartbeat after which a node counts as unreachable."""

SILENT = "silent"
_MUTE = (SILENT, "unknown")

_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def down(node: port.Object) -> bool:
    """Whether the node is simulated as down."""
    return pods.annotation(node, DOWN) is not None


def silent(node: port.Object) -> bool:
    """Whether the node has fallen silent, noticed or not."""
    return pods.annotation(node, DOWN) == SILENT


def mute(node: port.Object) -> bool:
    """Whether no heartbeats come from the node."""
    return pods.annotation(node, DOWN) in _MUTE


def out_of_service(node: port.Object) -> bool:
    """Whether the node is not ready, and somebody has said that it will not come back as it was."""
    taints = node.get("spec", {}).get("taints") or ()
    return not pods.is_ready(node) and any(taint["key"] == OUT_OF_SERVICE for taint in taints)


def report(store: Store, node: port.Object) -> None:
    """Write conditions, address and taints of a node so that they agree with its annotation."""
    _report_status(store, node)
    current = store.find(port.NODES, None, node["metadata"]["name"])
    if current is not None:
        _report_taints(store, current)


def _report_status(store: Store, node: port.Object) -> None:
    ready = _ready_condition(node)
    status = node.get("status", {})
    known = {item["type"]: item for item in status.get("conditions") or ()}
    if all(known.get("Ready", {}).get(key) == value for key, value in ready.items()) and status.get(
        "addresses"
    ):
        return
    changed = [
        {"type": kind, "status": "False", "reason": reason, "message": message}
        for kind, reason, message in _PRESSURES
        if kind not in known
    ]
    name = node["metadata"]["name"]
    addresses = status.get("addresses") or [
        {"type": "Hostname", "address": name},
        {"type": "InternalIP", "address": "127.0.0.1"},
    ]
    conditions = pods.with_conditions(node, store.now_ms(), *changed, ready)
    patch = {"status": {"conditions": conditions, "addresses": addresses}}
    store.patch(port.NODES, None, name, patch, subresource="status")


def _ready_condition(node: port.Object) -> Mapping[str, str]:
    value = pods.annotation(node, DOWN)
    if value is None:
        reason, message = "KubeletReady", "kubelet is posting ready status"
        return {"type": "Ready", "status": "True", "reason": reason, "message": message}
    if value in _MUTE:
        reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
        return {"type": "Ready", "status": "Unknown", "reason": reason, "message": message}
    return {"type": "Ready", "status": "False", "reason": "SimDown", "message": DOWN}


def _report_taints(store: Store, node: port.Object) -> None:
    value = pods.annotation(node, DOWN)
    wanted = "" if value is None else UNREACHABLE if value in _MUTE else NOT_READY
    taints: list[dict[str, Any]] = node.get("spec", {}).get("taints") or []
    kept = [taint for taint in taints if taint["key"] not in (NOT_READY, UNREACHABLE)]
    if wanted and not any(taint["key"] == wanted for taint in taints):
        added = metadata.timestamp(store.now_ms())
        kept += [
            {"key": wanted, "effect": effect, "timeAdded": added} for effect in ("NoSchedule", "NoExecute")
        ]
    elif wanted:
        return
    if kept != taints:
        store.patch(port.NODES, None, node["metadata"]["name"], {"spec": {"taints": kept or None}})


def stays(pod: port.Object, node: port.Object) -> float | None:
    """Return for how many seconds a pod tolerates the NoExecute taints of its node; None is for ever."""
    shortest: float | None = None
    for taint in node.get("spec", {}).get("taints") or ():
        if taint["effect"] != "NoExecute":
            continue
        covering = [item for item in pod["spec"].get("tolerations") or () if fit.covers(item, taint)]
        if not covering:
            return 0.0
        limits = [item["tolerationSeconds"] for item in covering if item.get("tolerationSeconds") is not None]
        if limits and (shortest is None or min(limits) < shortest):
            shortest = float(max(0, min(limits)))
    return shortest
