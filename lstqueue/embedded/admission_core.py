"""Rules of the small built-in kinds: Namespace, Node, Service, Event, Lease, PriorityClass."""

from __future__ import annotations

from lstqueue.embedded import failures, rules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

PLAIN = rules.Rules()
"""Metadata only."""


# Namespace


def _admit_namespace(new: port.Object, _reader: rules.Reader) -> None:
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]
    new["spec"] = {"finalizers": ["kubernetes"]}
    new["status"] = {"phase": "Active"}


NAMESPACE = rules.Rules(admit=_admit_namespace, name="label")


# Node


def _check_node(new: port.Object, _old: port.Object | None) -> list[Violation]:
    found = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(new.get("spec", {}).get("taints") or ()):
        path = f"spec.taints[{index}]"
        if not taint.get("key"):
            found.append(failures.required(f"{path}.key"))
        if taint.get("effect") not in _EFFECTS:
            found.append(failures.unsupported(f"{path}.effect", taint.get("effect", ""), _EFFECTS))
        identity = (str(taint.get("key")), str(taint.get("effect")))
        if identity in seen:
            found.append(
                Violation(
                    path, f"Duplicate value: {identity}", "taints must be unique by key and effect pair"
                )
            )
        seen.add(identity)
    return found


def _default_node(new: port.Object, _old: port.Object | None) -> None:
    status = new.get("status")
    if isinstance(status, dict) and "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


NODE = rules.Rules(default=_default_node, check=_check_node)


# Service


def _default_service(new: port.Object, _old: port.Object | None) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for item in spec.get("ports") or ():
        item.setdefault("protocol", "TCP")
        item.setdefault("targetPort", item.get("port"))


def _admit_service(new: port.Object, reader: rules.Reader) -> None:
    new["status"] = {"loadBalancer": {}}
    spec = new.get("spec")
    if not isinstance(spec, dict) or spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address(
            {item["spec"].get("clusterIP") for item in reader.list(port.SERVICES)}
        )
    spec["clusterIPs"] = [spec["clusterIP"]]


def _free_address(taken: set[str | None]) -> str:
    for number in range(1, 1 << 16):
        address = f"10.96.{number >> 8}.{number & 255}"
        if address not in taken:
            return address
    raise failures.refusal(500, "InternalError", "failed to allocate a serviceIP: range is full")


def _check_service(new: port.Object, old: port.Object | None) -> list[Violation]:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return [failures.required("spec.ports")]
    found = []
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        found.append(failures.required("spec.ports"))
    for index, item in enumerate(spec.get("ports") or ()):
        number = item.get("port")
        if not isinstance(number, int) or not 0 < number < 65536:
            found.append(
                failures.bad(f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive")
            )
    if old is not None and spec.get("clusterIP") != old["spec"].get("clusterIP"):
        found.append(failures.bad("spec.clusterIP", spec.get("clusterIP"), "field is immutable"))
    return found


SERVICE = rules.Rules(default=_default_service, admit=_admit_service, check=_check_service, name="label")


# Event


def _check_event(new: port.Object, old: port.Object | None) -> list[Violation]:
    about = new.get("involvedObject") or {}
    found = []
    if "involvedObject" not in new:
        found.append(failures.required("involvedObject"))
    namespace = new["metadata"]["namespace"]
    if about.get("namespace", "default" if namespace == "default" else "") not in (namespace, ""):
        detail = "does not match event.namespace"
        found.append(failures.bad("involvedObject.namespace", about.get("namespace"), detail))
    if old is not None and about != old.get("involvedObject"):
        found.append(failures.bad("involvedObject", about.get("name"), "field is immutable"))
    return found


EVENT = rules.Rules(check=_check_event)


# Lease


def _check_lease(new: port.Object, _old: port.Object | None) -> list[Violation]:
    spec = new.get("spec") or {}
    found = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and (not isinstance(seconds, int) or seconds <= 0):
        found.append(failures.bad("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    transitions = spec.get("leaseTransitions")
    if transitions is not None and (not isinstance(transitions, int) or transitions < 0):
        found.append(failures.bad("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


LEASE = rules.Rules(check=_check_lease)


# PriorityClass


def _admit_priority_class(new: port.Object, _reader: rules.Reader) -> None:
    new.setdefault("value", 0)
    new.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _check_priority_class(new: port.Object, old: port.Object | None) -> list[Violation]:
    found = []
    if old is not None:
        new = {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **new}
    name = new["metadata"]["name"]
    if name.startswith("system-") and SYSTEM_CLASSES.get(name) != new["value"]:
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        found.append(failures.forbidden_field("metadata.name", detail))
    if not isinstance(new["value"], int):
        found.append(failures.bad("value", new["value"], "must be an integer"))
    elif new["value"] > _HIGHEST_USER_PRIORITY and name not in SYSTEM_CLASSES:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        found.append(failures.forbidden_field("value", detail))
    policies = ("Never", "PreemptLowerPriority")
    if new["preemptionPolicy"] not in policies:
        found.append(failures.unsupported("preemptionPolicy", new["preemptionPolicy"], policies))
    if old is not None:
        found += [
            failures.forbidden_field(key, "may not be changed in an update.")
            for key in ("value", "preemptionPolicy")
            if new[key] != old[key]
        ]
    return found


PRIORITY_CLASS = rules.Rules(admit=_admit_priority_class, check=_check_priority_class)
