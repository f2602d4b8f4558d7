"""Rules of pods: priority from its class, gates that are only lifted, affinity that only tightens."""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import failures, limits, metadata, pod_defaults, rules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_UNREACHABLE_SECONDS = 300
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative),"
    "`spec.tolerations` (only additions to existing tolerations)"
)


def _default(new: port.Object, _old: port.Object | None) -> None:
    if isinstance(new.get("spec"), dict):
        new["spec"].setdefault("enableServiceLinks", True)
        pod_defaults.default(new["spec"])


def _admit(new: port.Object, reader: rules.Reader) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return
    limits.fill_in(new, reader)
    _resolve_priority(new["metadata"]["name"], spec, reader)
    _tolerate_node_trouble(spec)
    limits.add_overhead(new, reader)
    spec.setdefault("serviceAccountName", "default")
    status: port.Object = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": metadata.timestamp(reader.now_ms()),
            }
        ]
    new["status"] = status


def _resolve_priority(pod: str, spec: dict[str, Any], reader: rules.Reader) -> None:
    name = spec.get("priorityClassName")
    if name:
        found = reader.find(port.PRIORITY_CLASSES, None, name)
        if found is None:
            raise failures.forbidden(port.PODS, pod, f"no PriorityClass with name {name} was found")
    else:
        found = _default_class(reader)
    value = found["value"] if found else 0
    policy = found["preemptionPolicy"] if found else "PreemptLowerPriority"
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    if spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name"
        )
        raise failures.forbidden(port.PODS, pod, why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod "
            f"spec; priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise failures.forbidden(port.PODS, pod, why)
    spec["priority"] = value
    spec["preemptionPolicy"] = policy


def _default_class(reader: rules.Reader) -> port.Object | None:
    defaults = [item for item in reader.list(port.PRIORITY_CLASSES) if item.get("globalDefault")]
    return min(defaults, key=lambda item: item["value"], default=None)


def _tolerate_node_trouble(spec: dict[str, Any]) -> None:
    given = spec.get("tolerations") or []
    for key in _NODE_TROUBLE:
        known = any(
            item.get("key") in (key, None, "") and item.get("effect") in ("NoExecute", None, "")
            for item in given
        )
        if not known:
            given.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _UNREACHABLE_SECONDS,
                }
            )
    spec["tolerations"] = given


def _qos_class(spec: dict[str, Any]) -> str:
    amounts = [item.get("resources") or {} for item in spec.get("containers") or ()]
    named = [{**(item.get("limits") or {}), **(item.get("requests") or {})} for item in amounts]
    if not any(name in ("cpu", "memory") for item in named for name in item):
        return "BestEffort"
    for item in amounts:
        limits, requests = item.get("limits") or {}, item.get("requests") or {}
        if any(name not in limits or limits[name] != requests.get(name) for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _check(new: port.Object, old: port.Object | None) -> list[Violation]:
    found = pod_defaults.check(new.get("spec"), "spec")
    if old is not None and not found:
        found += _check_change(new["spec"], old["spec"])
    return found


def _check_change(new: dict[str, Any], old: dict[str, Any]) -> list[Violation]:
    gated = bool(old.get("schedulingGates"))
    found = _check_gates(new, old)
    found += _check_tolerations(new, old)
    masked = dict(new)
    for key in ("schedulingGates", "tolerations", "activeDeadlineSeconds"):
        _copy(masked, old, key)
    if new.get("terminationGracePeriodSeconds") == 1 and old.get("terminationGracePeriodSeconds", 0) < 0:
        _copy(masked, old, "terminationGracePeriodSeconds")
    for key in ("containers", "initContainers"):
        _mask_images(masked, old, key)
    if gated:
        found += _check_node_selector(new, old)
        found += _check_node_affinity(new, old)
        _copy(masked, old, "nodeSelector")
        _mask_node_affinity(masked, old)
    if masked != old:
        changed = ", ".join(
            sorted(key for key in masked.keys() | old.keys() if masked.get(key) != old.get(key))
        )
        detail = f"pod updates may not change fields other than {_UPDATABLE}; found changes of {changed}"
        found.append(failures.forbidden_field("spec", detail))
    return found


def _copy(target: dict[str, Any], source: dict[str, Any], key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _mask_images(masked: dict[str, Any], old: dict[str, Any], key: str) -> None:
    new_items, old_items = masked.get(key) or [], old.get(key) or []
    if len(new_items) == len(old_items):
        pairs = zip(new_items, old_items, strict=True)
        masked[key] = [{**item, "image": was.get("image")} for item, was in pairs]
        if not masked[key] and key not in old:
            del masked[key]


def _mask_node_affinity(masked: dict[str, Any], old: dict[str, Any]) -> None:
    affinity = dict(masked.get("affinity") or {})
    _copy(affinity, old.get("affinity") or {}, "nodeAffinity")
    if affinity or old.get("affinity") is not None:
        masked["affinity"] = affinity
    else:
        masked.pop("affinity", None)


def _check_gates(new: dict[str, Any], old: dict[str, Any]) -> list[Violation]:
    before = {gate["name"] for gate in old.get("schedulingGates") or ()}
    return [
        failures.forbidden_field(
            f"spec.schedulingGates[{index}]",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate["name"] not in before
    ]


def _check_tolerations(new: dict[str, Any], old: dict[str, Any]) -> list[Violation]:
    def shape(item: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in item.items() if key != "tolerationSeconds"}

    after = [shape(item) for item in new.get("tolerations") or ()]
    if all(shape(item) in after for item in old.get("tolerations") or ()):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [failures.forbidden_field("spec.tolerations", detail)]


def _check_node_selector(new: dict[str, Any], old: dict[str, Any]) -> list[Violation]:
    after = new.get("nodeSelector") or {}
    if all(after.get(key) == value for key, value in (old.get("nodeSelector") or {}).items()):
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [failures.bad("spec.nodeSelector", after, detail)]


def _check_node_affinity(new: dict[str, Any], old: dict[str, Any]) -> list[Violation]:
    before = pod_defaults.required_terms(old)
    if not before:
        return []
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    after = pod_defaults.required_terms(new)
    if after is None or len(after) != len(before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [failures.bad(path, len(after or ()), detail)]
    for index, (term, was) in enumerate(zip(after, before, strict=True)):
        if not _only_adds(term, was):
            detail = "only additions are allowed (no mutations or deletions)"
            return [failures.bad(f"{path}[{index}]", term, detail)]
    return []


def _only_adds(term: dict[str, Any], was: dict[str, Any]) -> bool:
    # A term without requirements matches no node; requirements would turn it into one that does.
    if not was.get("matchExpressions") and not was.get("matchFields"):
        return not term.get("matchExpressions") and not term.get("matchFields")
    for key in ("matchExpressions", "matchFields"):
        before = was.get(key) or []
        if (term.get(key) or [])[: len(before)] != before:
            return False
    return True


def _grace(old: port.Object, asked: int | None) -> int:
    period = asked if asked is not None else old["spec"].get("terminationGracePeriodSeconds", 0)
    if not old["spec"].get("nodeName") or old.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else int(period)


RULES = rules.Rules(default=_default, admit=_admit, check=_check, grace=_grace)
