"""What the raw JSON of a pod says: what it asks for, how far it is, how it is simulated. No writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lstqueue.api import durations, errors, quantities
from lstqueue.embedded import metadata
from lstqueue.kube import port

Amounts = dict[str, int]
"""Resources in canonical units (`api.quantities`), one `pods` per pod included."""

START_AFTER = "sim/start-after"
RUN_FOR = "sim/run-for"
FAIL_AFTER = "sim/fail-after"
EXIT_CODE = "sim/exit-code"
TERMINATE_AFTER = "sim/terminate-after"
CHECKPOINT_EVERY = "sim/checkpoint-every"
CHECKPOINT_ON_TERM = "sim/checkpoint-on-term"
RESTORE_FOR = "sim/restore-for"
DURATIONS = (START_AFTER, RUN_FOR, FAIL_AFTER, TERMINATE_AFTER, CHECKPOINT_EVERY, RESTORE_FOR)


def requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod with this spec is charged on its node, one pod slot included.

    An absent request is its limit: the API server stores it so, a template need not. An amount that cannot be
    read counts as more than any node has.
    """
    amounts = totals(spec, ("limits", "requests"))
    amounts["pods"] = 1
    return amounts


def totals(spec: Mapping[str, Any], parts: Sequence[str]) -> Amounts:
    """Return what a pod's containers ask for together, overhead included; zeros are left out.

    Init containers run one after another before the others, except sidecars (restartPolicy Always), which
    stay; so the total of a resource is the larger of the long-running sum and of each init container with
    the sidecars started before it.

    Args:
        spec: the pod's spec.
        parts: of a container's `resources`; later ones win over earlier ones.
    """
    lasting: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        wanted = of_container(container, parts)
        if container.get("restartPolicy") == "Always":
            _add(lasting, wanted)
            _raise(peak, lasting)
        else:
            _add(wanted, lasting)
            _raise(peak, wanted)
    for container in spec.get("containers") or ():
        _add(lasting, of_container(container, parts))
    _raise(lasting, peak)
    _add(lasting, _parsed(spec.get("overhead") or {}, quantities.LARGEST))
    return {name: amount for name, amount in lasting.items() if amount}


def of_container(container: Mapping[str, Any], parts: Sequence[str]) -> Amounts:
    """Return what one container's `resources` say, by the parts to look at; later ones win."""
    resources = container.get("resources") or {}
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update(resources.get(part) or {})
    return _parsed(merged, quantities.LARGEST)


def _parsed(amounts: Mapping[str, Any], unreadable: int) -> Amounts:
    parsed: Amounts = {}
    for name, value in amounts.items():
        try:
            parsed[name] = quantities.parse(name, value)
        except errors.BadValueError:
            parsed[name] = unreadable
    return parsed


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, 0):
            total[name] = amount


def allocatable(node: port.Object) -> Amounts:
    """Return what a node offers; an amount that cannot be read counts as none."""
    return _parsed(node.get("status", {}).get("allocatable") or {}, 0)


def phase(pod: port.Object) -> str:
    """Return the phase, Pending when none is written yet."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def finished(pod: port.Object) -> bool:
    """Whether the pod has ended and uses nothing any more."""
    return phase(pod) in ("Succeeded", "Failed")


def deleting(obj: port.Object) -> bool:
    """Whether deletion of an object has been asked for."""
    return "deletionTimestamp" in obj["metadata"]


def node_of(pod: port.Object) -> str:
    """Return the node a pod is bound to, empty when it is not."""
    return str(pod["spec"].get("nodeName") or "")


def annotation(obj: port.Object, name: str) -> str | None:
    """Return an annotation or None."""
    found = (obj["metadata"].get("annotations") or {}).get(name)
    return None if found is None else str(found)


def seconds(pod: port.Object, name: str) -> float | None:
    """Return a duration annotation in seconds, None when absent.

    Raises:
        api.errors.BadValueError: it is no duration.
    """
    text = annotation(pod, name)
    return None if text is None else durations.parse(text) / 1000


def is_ready(obj: port.Object) -> bool:
    """Whether condition Ready of a pod or a node is True."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def with_conditions(obj: port.Object, now_ms: int, *changed: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the object's conditions with some set; a transition time moves only when the status does."""
    conditions: list[dict[str, Any]] = list(obj.get("status", {}).get("conditions") or ())
    for new in changed:
        condition: dict[str, Any] = {**new, "lastTransitionTime": metadata.timestamp(now_ms)}
        for position, old in enumerate(conditions):
            if old["type"] == new["type"]:
                if old["status"] == new["status"]:
                    condition["lastTransitionTime"] = old.get("lastTransitionTime")
                conditions[position] = condition
                break
        else:
            conditions.append(condition)
    return conditions


def controller_of(obj: port.Object, kind: str) -> Mapping[str, Any] | None:
    """Return the owner reference of the controlling owner if it is of `kind`."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == kind:
            found: Mapping[str, Any] = owner
            return found
    return None
