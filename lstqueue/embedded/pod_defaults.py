"""Defaults and validation of a pod spec, for pods themselves and for the templates of Jobs.

Only what a scheduler, a Job controller or a fit can depend on is validated; images, volumes, probes and
security contexts are taken as they are.
"""

from __future__ import annotations

import re
from typing import Any

from lstqueue.api import errors, quantities
from lstqueue.embedded import failures, pod_types
from lstqueue.embedded.failures import Violation

Spec = dict[str, Any]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RESTART = ("Always", "OnFailure", "Never")
_TERM_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def default(spec: Spec) -> None:
    """Fill in what the API server fills in, in place; one that cannot be decoded is refused before that."""
    pod_types.refuse(spec)
    pod_types.drop_nulls(spec)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for key in ("initContainers", "containers"):
        for container in _objects(spec.get(key)):
            _default_container(container, host_network=spec.get("hostNetwork") is True)


def _default_container(container: Spec, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = str(container.get("image", ""))
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest and "@" not in image else "IfNotPresent")
    resources = container.setdefault("resources", {})
    if isinstance(resources, dict) and resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for item in _objects(container.get("ports")):
        item.setdefault("protocol", "TCP")
        if host_network:
            item.setdefault("hostPort", item.get("containerPort"))


def _objects(value: object) -> list[Spec]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def check(spec: object, path: str) -> list[Violation]:
    """Problems of a pod spec; `path` is where it is in its object."""
    if not isinstance(spec, dict):
        return [failures.required(path)]
    found = _check_containers(spec, path)
    if spec.get("restartPolicy") not in _RESTART:
        found.append(failures.unsupported(f"{path}.restartPolicy", spec.get("restartPolicy", ""), _RESTART))
    found += _check_gates(spec, path)
    found += _check_tolerations(spec, path)
    found += _check_affinity(spec, path)
    for key in ("hostname", "subdomain"):
        if spec.get(key) and _LABEL.fullmatch(str(spec[key])) is None:
            found.append(
                failures.bad(f"{path}.{key}", spec[key], "must be a DNS label of at most 63 characters")
            )
    return found


def _check_containers(spec: Spec, path: str) -> list[Violation]:
    found = []
    if not _objects(spec.get("containers")):
        found.append(failures.required(f"{path}.containers"))
    names: set[str] = set()
    for key in ("initContainers", "containers"):
        for index, container in enumerate(_objects(spec.get(key))):
            here = f"{path}.{key}[{index}]"
            name = container.get("name")
            if not name:
                found.append(failures.required(f"{here}.name"))
            elif _LABEL.fullmatch(str(name)) is None:
                found.append(
                    failures.bad(f"{here}.name", name, "must be a DNS label of at most 63 characters")
                )
            elif name in names:
                found.append(Violation(f"{here}.name", f'Duplicate value: "{name}"'))
            names.add(str(name))
            if not container.get("image"):
                found.append(failures.required(f"{here}.image"))
            found += _check_resources(container.get("resources"), f"{here}.resources")
    return found


def _check_resources(resources: object, path: str) -> list[Violation]:
    if not isinstance(resources, dict):
        return []
    found = []
    amounts: dict[tuple[str, str], int] = {}
    for part in ("limits", "requests"):
        for name, amount in (resources.get(part) or {}).items():
            try:
                amounts[part, name] = quantities.parse(name, amount)
            except errors.BadValueError as error:
                found.append(failures.bad(f"{path}.{part}[{name}]", amount, str(error)))
    for (part, name), amount in amounts.items():
        limit = amounts.get(("limits", name))
        extended = "/" in name
        if part == "requests" and limit is None and extended:
            detail = "Limit must be set for non overcommitable resources"
            found.append(failures.required(f"{path}.limits[{name}]", detail))
        elif part == "requests" and limit is not None and (amount > limit or (extended and amount != limit)):
            detail = f"must be {'equal to' if extended else 'less than or equal to'} {name} limit"
            found.append(failures.bad(f"{path}.requests", resources["requests"][name], detail))
    return found


def _check_gates(spec: Spec, path: str) -> list[Violation]:
    found = []
    seen: set[str] = set()
    for index, gate in enumerate(_objects(spec.get("schedulingGates"))):
        name = str(gate.get("name", ""))
        if not name:
            found.append(failures.required(f"{path}.schedulingGates[{index}].name"))
        if name in seen:
            found.append(Violation(f"{path}.schedulingGates[{index}]", f'Duplicate value: "{name}"'))
        seen.add(name)
    if seen and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        found.append(failures.forbidden_field(f"{path}.nodeName", detail))
    return found


def _check_tolerations(spec: Spec, path: str) -> list[Violation]:
    found = []
    for index, item in enumerate(_objects(spec.get("tolerations"))):
        here = f"{path}.tolerations[{index}]"
        operator = item.get("operator") or "Equal"
        if operator not in ("Equal", "Exists"):
            found.append(failures.unsupported(f"{here}.operator", operator, ("Equal", "Exists")))
        if not item.get("key") and operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            found.append(failures.bad(f"{here}.operator", operator, detail))
        if operator == "Exists" and item.get("value"):
            found.append(
                failures.bad(
                    f"{here}.operator", item["value"], "value must be empty when `operator` is 'Exists'"
                )
            )
        if item.get("effect") and item["effect"] not in _EFFECTS:
            found.append(failures.unsupported(f"{here}.effect", item["effect"], _EFFECTS))
    return found


def required_terms(spec: Spec) -> list[Spec] | None:
    """The terms of required node affinity, None when there is none."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else _objects(required.get("nodeSelectorTerms"))


def _check_affinity(spec: Spec, path: str) -> list[Violation]:
    terms = required_terms(spec)
    if terms is None:
        return []
    here = f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if not terms:
        return [failures.required(here, "must have at least one node selector term")]
    found = []
    for index, term in enumerate(terms):
        for number, item in enumerate(_objects(term.get("matchExpressions"))):
            found += _check_expression(item, f"{here}[{index}].matchExpressions[{number}]")
        for number, item in enumerate(_objects(term.get("matchFields"))):
            found += _check_match_field(item, f"{here}[{index}].matchFields[{number}]")
    return found


def _check_expression(item: Spec, path: str) -> list[Violation]:
    operator = item.get("operator")
    values = item.get("values") or []
    if not item.get("key"):
        return [failures.required(f"{path}.key")]
    if operator not in _TERM_OPERATORS:
        return [failures.unsupported(f"{path}.operator", operator, _TERM_OPERATORS)]
    if operator in ("In", "NotIn") and not values:
        return [failures.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [failures.forbidden_field(f"{path}.values", detail)]
    if operator in ("Gt", "Lt") and len(values) != 1:
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [failures.required(f"{path}.values", detail)]
    return []


def _check_match_field(item: Spec, path: str) -> list[Violation]:
    if item.get("key") != "metadata.name":
        return [failures.bad(f"{path}.key", item.get("key"), "not a valid field selector key")]
    if item.get("operator") not in ("In", "NotIn"):
        return [failures.bad(f"{path}.operator", item.get("operator"), "not a valid selector operator")]
    if len(item.get("values") or []) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        return [failures.required(f"{path}.values", detail)]
    return []
