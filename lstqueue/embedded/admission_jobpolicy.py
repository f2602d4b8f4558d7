"""Rules of the policies within a Job: when its pods' failures count, and when its successes are enough."""

from __future__ import annotations

import re
from typing import Any

from lstqueue.embedded import failures, selectors
from lstqueue.embedded.failures import Violation

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MAX_RULES = 20
_MAX_PATTERNS = 20
_MAX_CODES = 255
_MAX_INDEXES_LENGTH = 64 * 1024
_MAX_MANAGER_LENGTH = 63
_MANAGER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def check(spec: dict[str, Any]) -> list[Violation]:
    """Problems of the policies of a Job's spec, whose counts have been found to be in order."""
    found = _check_per_index(spec)
    found += _check_manager(spec.get("managedBy"))
    if spec.get("podFailurePolicy") is not None:
        found += _check_failure_policy(spec)
    if spec.get("successPolicy") is not None:
        found += _check_success_policy(spec)
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    if spec["podReplacementPolicy"] not in allowed:
        path = "spec.podReplacementPolicy"
        found.append(failures.unsupported(path, spec["podReplacementPolicy"], allowed))
    return found


def _check_per_index(spec: dict[str, Any]) -> list[Violation]:
    indexed = spec["completionMode"] == "Indexed"
    found = [
        failures.bad(f"spec.{key}", spec[key], "requires indexed completion mode")
        for key in ("backoffLimitPerIndex", "maxFailedIndexes")
        if spec.get(key) is not None and not indexed
    ]
    most = spec.get("maxFailedIndexes")
    if most is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(failures.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if most is not None and indexed and most > spec["completions"]:
        detail = "must be less than or equal to completions"
        found.append(failures.bad("spec.maxFailedIndexes", most, detail))
    return found


def _check_manager(manager: str | None) -> list[Violation]:
    if manager is None:
        return []
    if _MANAGER.fullmatch(manager) is None:
        return [
            failures.bad("spec.managedBy", manager, "must be a domain-prefixed path (such as acme.io/foo)")
        ]
    if len(manager) > _MAX_MANAGER_LENGTH:
        return [Violation("spec.managedBy", "Too long", f"may not be more than {_MAX_MANAGER_LENGTH} bytes")]
    return []


# podFailurePolicy


def _check_failure_policy(spec: dict[str, Any]) -> list[Violation]:
    path = "spec.podFailurePolicy.rules"
    rules = spec["podFailurePolicy"].get("rules") or []
    found = []
    if len(rules) > _MAX_RULES:
        found.append(Violation(path, f"Too many: {len(rules)}", f"must have at most {_MAX_RULES} items"))
    template = spec["template"]["spec"]
    containers = {
        item["name"] for key in ("containers", "initContainers") for item in template.get(key) or ()
    }
    for index, rule in enumerate(rules):
        found += _check_rule(spec, rule, f"{path}[{index}]", containers)
    if template["restartPolicy"] == "OnFailure":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(failures.bad("spec.template.spec.restartPolicy", "OnFailure", detail))
    return found


def _check_rule(
    spec: dict[str, Any], rule: dict[str, Any], path: str, containers: set[str]
) -> list[Violation]:
    found = []
    action, codes, conditions = rule.get("action"), rule.get("onExitCodes"), rule.get("onPodConditions")
    if not action:
        found.append(failures.required(f"{path}.action", f"valid values: {list(_ACTIONS)}"))
    elif action not in _ACTIONS:
        found.append(failures.unsupported(f"{path}.action", action, _ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        detail = "requires the backoffLimitPerIndex to be set"
        found.append(failures.bad(f"{path}.action", action, detail))
    if codes is not None:
        found += _check_codes(codes, f"{path}.onExitCodes", containers)
    if conditions:
        found += _check_patterns(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(Violation(path, "Invalid value", detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(Violation(path, "Invalid value", detail))
    return found


def _check_codes(codes: dict[str, Any], path: str, containers: set[str]) -> list[Violation]:
    found = []
    operator, values = codes.get("operator"), codes.get("values") or []
    if operator not in _OPERATORS:
        found.append(failures.unsupported(f"{path}.operator", operator or "", _OPERATORS))
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(failures.bad(f"{path}.containerName", name, detail))
    if not values:
        found.append(failures.bad(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _MAX_CODES:
        detail = f"must have at most {_MAX_CODES} items"
        found.append(Violation(f"{path}.values", f"Too many: {len(values)}", detail))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            detail = "must not be 0 for the In operator"
            found.append(failures.bad(f"{path}.values[{index}]", value, detail))
        if value in values[:index]:
            found.append(Violation(f"{path}.values[{index}]", f"Duplicate value: {value}"))
    if values != sorted(values):
        found.append(failures.bad(f"{path}.values", values, "must be ordered"))
    return found


def _check_patterns(patterns: list[dict[str, Any]], path: str) -> list[Violation]:
    found = []
    if len(patterns) > _MAX_PATTERNS:
        detail = f"must have at most {_MAX_PATTERNS} items"
        found.append(Violation(path, f"Too many: {len(patterns)}", detail))
    for index, pattern in enumerate(patterns):
        kind, status = pattern.get("type") or "", pattern["status"]
        if selectors.LABEL_KEY.fullmatch(kind.lower()) is None:
            detail = "must be a qualified name: [prefix/]name"
            found.append(failures.bad(f"{path}[{index}].type", kind, detail))
        if status not in _STATUSES:
            found.append(failures.unsupported(f"{path}[{index}].status", status, _STATUSES))
    return found


# successPolicy


def _check_success_policy(spec: dict[str, Any]) -> list[Violation]:
    path = "spec.successPolicy"
    if spec["completionMode"] != "Indexed":
        return [failures.bad(path, spec["successPolicy"], "requires indexed completion mode")]
    rules = spec["successPolicy"].get("rules") or []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        return [failures.required(f"{path}.rules", detail)]
    if len(rules) > _MAX_RULES:
        detail = f"must have at most {_MAX_RULES} items"
        return [Violation(f"{path}.rules", f"Too many: {len(rules)}", detail)]
    found = []
    for index, rule in enumerate(rules):
        found += _check_success_rule(rule, f"{path}.rules[{index}]", spec["completions"])
    return found


def _check_success_rule(rule: dict[str, Any], path: str, completions: int) -> list[Violation]:
    count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and text is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        return [failures.required(path, detail)]
    most, whose = completions, "specified completions"
    if text is not None:
        if len(text) > _MAX_INDEXES_LENGTH:
            detail = f"may not be more than {_MAX_INDEXES_LENGTH} bytes"
            return [Violation(f"{path}.succeededIndexes", "Too long", detail)]
        total = _indexes(text, completions)
        if isinstance(total, str):
            detail = f"error parsing succeededIndexes: {total}"
            return [failures.bad(f"{path}.succeededIndexes", text, detail)]
        most, whose = total, "indexes in the specified succeededIndexes field"
    if count is not None and not 0 <= count <= most:
        detail = f"must be less than or equal to {most} (the number of {whose})"
        if count < 0:
            detail = "must be greater than or equal to 0"
        return [failures.bad(f"{path}.succeededCount", count, detail)]
    return []


def _indexes(text: str, completions: int) -> int | str:
    """Return how many indexes a list of ranges names, or what is wrong with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first_text, dash, last_text = part.partition("-")
        ends = [first_text, last_text] if dash else [first_text, first_text]
        if not all(end.isascii() and end.isdigit() for end in ends):
            return f'cannot convert string to integer for index: "{part}"'
        low, high = (int(end) for end in ends)
        if high >= completions:
            return f'too large index: "{part}"'
        if low <= last or (dash and low >= high):
            return f"non-increasing order, previous: {last}, current: {low}"
        total, last = total + high - low + 1, high
    return total
