"""Whether a pod may run on a node, in the words of kube-scheduler. Pure; the free table is the scheduler's.

Covers resources and pod slots, node selector, required node affinity with `matchFields`, taints and cordons.
Pod affinity, spread, volumes and host ports are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lstqueue.embedded.controllers import pods
from lstqueue.kube import port

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTS = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@dataclass(slots=True)
class NodeState:
    """A node and what is used on it; `used` outlives the node object while pods are bound to its name."""

    name: str
    present: bool = False
    allocatable: pods.Amounts = field(default_factory=dict)
    used: pods.Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, Any]] = ()
    unschedulable: bool = False

    def learn(self, node: port.Object) -> None:
        """Take over what a Node object says."""
        self.present = not pods.deleting(node)
        self.allocatable = pods.allocatable(node)
        self.labels = node["metadata"].get("labels") or {}
        self.taints = node.get("spec", {}).get("taints") or ()
        self.unschedulable = bool(node.get("spec", {}).get("unschedulable"))

    def charge(self, requests: pods.Amounts, times: int) -> None:
        """Add (1) or take back (-1) a pod's requests."""
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + times * amount

    def has_room(self, requests: pods.Amounts) -> bool:
        """Whether all that is asked for is free."""
        offered, used = self.allocatable, self.used
        return all(amount <= offered.get(name, 0) - used.get(name, 0) for name, amount in requests.items())

    def shortages(self, requests: pods.Amounts) -> list[str]:
        """Return the resources of which less is free than asked for."""
        return [
            name
            for name, amount in requests.items()
            if amount > self.allocatable.get(name, 0) - self.used.get(name, 0)
        ]


def obstacles(spec: Mapping[str, Any], requests: pods.Amounts, node: NodeState) -> list[str]:
    """Return why a pod cannot be bound to a node, as kube-scheduler words it; empty when it can."""
    tolerations = spec.get("tolerations") or ()
    if node.unschedulable and not tolerates(tolerations, _CORDON):
        return [CORDONED]
    if any(
        not tolerates(tolerations, taint) for taint in node.taints if taint["effect"] != "PreferNoSchedule"
    ):
        return [TAINTS]
    if not may_use(spec, node):
        return [AFFINITY]
    return [
        "Too many pods" if name == "pods" else f"Insufficient {name}" for name in node.shortages(requests)
    ]


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Whether one of the tolerations covers the taint, for however long."""
    return any(covers(toleration, taint) for toleration in tolerations)


def covers(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether a toleration covers a taint. An empty key or effect covers all."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def may_use(spec: Mapping[str, Any], node: NodeState) -> bool:
    """Whether the pod's node selector and required node affinity admit the node."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            return False
    terms = _terms(spec)
    return terms is None or any(_term_matches(term, node) for term in terms)


def only_nodes(spec: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the only nodes a pod can be bound to if each of its affinity terms names them, else None."""
    terms = _terms(spec)
    if not terms:
        return None
    named: set[str] = set()
    for term in terms:
        names = [item["values"] for item in term.get("matchFields") or () if item["operator"] == "In"]
        if not names:
            return None
        named.update(names[0])
    return frozenset(named)


def _terms(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def _term_matches(term: Mapping[str, Any], node: NodeState) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    own_fields = {"metadata.name": node.name}
    return all(_matches(item, node.labels) for item in expressions) and all(
        _matches(item, own_fields) for item in fields
    )


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    operator, values = requirement["operator"], requirement.get("values") or ()
    actual = labels.get(requirement["key"])
    if operator == "Exists":
        return actual is not None
    if operator == "DoesNotExist":
        return actual is None
    if operator == "NotIn":
        return actual not in values
    if actual is None:
        return False
    if operator == "In":
        return actual in values
    return _compares(operator, actual, values)


def _compares(operator: str, actual: str, values: Sequence[str]) -> bool:
    try:
        left, right = int(actual), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
