"""Which nodes a pod may run on, room left aside: the rules of kube-scheduler that the fit models.

Plain functions over one node at a time, slow and obvious. `table.NodeTable.mask` answers the same question
for all nodes at once and is tested against these; `engine.invariants` judges plans with these alone, so that
an error in the columns cannot hide itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lstqueue.topology import model

CONDITION_TAINTS = "node.kubernetes.io/"
"""Prefix of the taints that Kubernetes sets for passing conditions (not-ready, memory-pressure, ...)."""

_INT64 = 1 << 63


def is_extended(resource: str) -> bool:
    """Tell extended resources (`nvidia.com/gpu`) from cpu, memory, ephemeral-storage, pods and hugepages."""
    return "/" in resource


def tolerates(toleration: model.Toleration, taint: model.Taint) -> bool:
    """Whether one toleration covers one taint; an operator that is not known covers nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def tolerated(
    taints: Iterable[model.Taint], tolerations: Iterable[model.Toleration], *, lasting: bool = False
) -> bool:
    """Whether every taint that keeps pods out is tolerated.

    Args:
        taints: The node's taints; PreferNoSchedule never matters.
        tolerations: Those of the pod and of its pool together.
        lasting: Leave out taints of passing conditions, to ask what the node could hold in better times.
    """
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if lasting and taint.key.startswith(CONDITION_TAINTS):
            continue
        if not any(tolerates(toleration, taint) for toleration in known):
            return False
    return True


def integer(text: str) -> int | None:
    """Read a label as Kubernetes does for Gt and Lt: an optional sign and ASCII digits, 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None


def value_holds(operator: str, values: tuple[str, ...], value: str | None) -> bool:
    """Whether a label's value (None: the node has no such label) meets an operator; unknown ones never do."""
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator not in ("Gt", "Lt") or value is None or len(values) != 1:
        return False
    left, right = integer(value), integer(values[0])
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def requirement_holds(requirement: model.Requirement, labels: Mapping[str, str], name: str) -> bool:
    """Whether one affinity expression holds on the node `name` with `labels`."""
    if requirement.field:
        known = requirement.key == "metadata.name" and requirement.operator in ("In", "NotIn")
        return known and value_holds(requirement.operator, requirement.values, name)
    return value_holds(requirement.operator, requirement.values, labels.get(requirement.key))


def eligible(
    node: model.Node,
    shape: model.PodShape,
    *,
    selector: tuple[tuple[str, str], ...] = (),
    tolerations: tuple[model.Toleration, ...] = (),
    lasting: bool = False,
) -> bool:
    """Whether a pod of `shape` may run on `node`, room left aside.

    Args:
        node: The node; unready and cordoned ones take nothing.
        shape: The pod.
        selector: Labels the pool asks for besides the pod's own.
        tolerations: Those the pool adds.
        lasting: Ignore what passes by itself (readiness, cordons, taints of conditions).

    Returns:
        True when every rule lets the pod in. A term of the affinity without expressions matches no node.
    """
    if not lasting and (not node.ready or node.unschedulable):
        return False
    if not tolerated(node.taints, shape.tolerations + tolerations, lasting=lasting):
        return False
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in selector + shape.selector):
        return False
    if not shape.affinity:
        return True
    for term in shape.affinity:
        if term and all(requirement_holds(requirement, labels, node.name) for requirement in term):
            return True
    return False
