"""Rules of batch/v1 Jobs: the generated selector and labels, and what never changes after creation."""

from __future__ import annotations

from typing import Any

from lstqueue.embedded import admission_jobpolicy, failures, pod_defaults, rules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY = {CONTROLLER_UID: "controller-uid", JOB_NAME: "job-name"}
_MODES = ("NonIndexed", "Indexed")
_MAX_INDEXED_PARALLELISM = 100_000
_LABEL_LENGTH = 63
_SUSPENDED_TEMPLATE_SPEC = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def _default(new: port.Object, _old: port.Object | None) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    for key, value in (
        ("parallelism", 1),
        ("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6),
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("manualSelector", False),
        ("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"),
    ):
        if spec.get(key) is None:
            spec[key] = value
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        pod_defaults.default(template["spec"])


def _admit(new: port.Object, _reader: rules.Reader) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("template"), dict):
        return
    meta = spec["template"].setdefault("metadata", {})
    if not spec["manualSelector"]:
        labels = meta.setdefault("labels", {})
        values = {CONTROLLER_UID: new["metadata"]["uid"], JOB_NAME: new["metadata"]["name"]}
        for key, value in values.items():
            labels[key] = value
            labels[_LEGACY[key]] = value
        spec.setdefault("selector", {"matchLabels": {CONTROLLER_UID: new["metadata"]["uid"]}})
    if not new["metadata"].get("labels"):
        new["metadata"]["labels"] = dict(meta.get("labels") or {})
    new["status"] = {}


def _check(new: port.Object, old: port.Object | None) -> list[Violation]:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return [failures.required("spec")]
    found = check_spec(spec) + _check_name(new["metadata"]["name"], spec)
    found += _check_selector(new)
    if old is not None and not found:
        found += _check_change(new, old)
    return found


def check_spec(spec: dict[str, Any]) -> list[Violation]:
    """Problems of a defaulted spec by itself, as a Job or a CronJob's template has it."""
    found = _check_counts(spec)
    found += _check_indexed(spec)
    template = spec["template"] if isinstance(spec.get("template"), dict) else {}
    found += pod_defaults.check(template.get("spec"), "spec.template.spec")
    if not found and template["spec"]["restartPolicy"] == "Always":
        found.append(
            failures.required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
        )
    if not found:
        found += admission_jobpolicy.check(spec)
    return found


def _check_counts(spec: dict[str, Any]) -> list[Violation]:
    found = []
    for key in (
        "parallelism",
        "completions",
        "backoffLimit",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ):
        value = spec.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            found.append(failures.bad(f"spec.{key}", value, "must be greater than or equal to 0"))
    if not isinstance(spec["suspend"], bool):
        found.append(failures.bad("spec.suspend", spec["suspend"], "must be a boolean"))
    return found


def _check_indexed(spec: dict[str, Any]) -> list[Violation]:
    mode = spec["completionMode"]
    if mode not in _MODES:
        return [failures.unsupported("spec.completionMode", mode, _MODES)]
    if mode == "NonIndexed":
        return []
    completions = spec.get("completions")
    if completions is None:
        return [failures.required("spec.completions", "when completion mode is Indexed")]
    if isinstance(spec["parallelism"], int) and spec["parallelism"] > _MAX_INDEXED_PARALLELISM:
        detail = f"must be less than or equal to {_MAX_INDEXED_PARALLELISM} when completion mode is Indexed"
        return [failures.bad("spec.parallelism", spec["parallelism"], detail)]
    return []


def _check_name(name: str, spec: dict[str, Any]) -> list[Violation]:
    completions = spec.get("completions")
    if spec["completionMode"] != "Indexed" or not isinstance(completions, int) or completions <= 0:
        return []
    longest = f"{name}-{completions - 1}"
    if len(longest) <= _LABEL_LENGTH and "." not in longest:
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [failures.bad("metadata.name", longest, detail)]


def _check_selector(new: port.Object) -> list[Violation]:
    spec = new["spec"]
    if not spec.get("selector"):
        return [failures.required("spec.selector")]
    wanted = {"matchLabels": {CONTROLLER_UID: new["metadata"]["uid"]}}
    if not spec["manualSelector"] and spec["selector"] != wanted:
        return [failures.bad("spec.selector", spec["selector"], "`selector` not auto-generated")]
    return []


def _check_change(new: port.Object, old: port.Object) -> list[Violation]:
    spec, was = new["spec"], old["spec"]
    found = [
        failures.bad(f"spec.{key}", spec.get(key), "field is immutable")
        for key in (
            "selector",
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        )
        if spec.get(key) != was.get(key)
    ]
    if spec.get("completions") != was.get("completions"):
        found += _check_completions(spec)
    template = spec["template"]
    at_rest = _at_rest(old)
    if at_rest:
        template = _masked(template, was["template"])
    if template != was["template"]:
        path = "spec.template.spec" if at_rest else "spec.template"
        found.append(failures.bad(path, "...", "field is immutable"))
    return found


def _check_completions(spec: dict[str, Any]) -> list[Violation]:
    if spec["completionMode"] != "Indexed":
        return [failures.bad("spec.completions", spec.get("completions"), "field is immutable")]
    if spec.get("completions") == spec["parallelism"]:
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [failures.bad("spec.completions", spec.get("completions"), detail)]


def _at_rest(old: port.Object) -> bool:
    """Whether parts of the template may change: suspended, and nothing of it runs."""
    status = old.get("status") or {}
    if not old["spec"]["suspend"] or status.get("active"):
        return False
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    return "startTime" not in status or conditions.get("Suspended") == "True"


def _masked(template: dict[str, Any], was: dict[str, Any]) -> dict[str, Any]:
    """The template with the old values of what may change: where pods go, their resources and metadata."""
    spec = dict(template["spec"])
    for key in ("containers", "initContainers"):
        _mask_resources(spec, was["spec"], key)
    for key in _SUSPENDED_TEMPLATE_SPEC:
        if key != "affinity":
            _copy(spec, was["spec"], key)
    affinity = dict(spec.get("affinity") or {})
    _copy(affinity, was["spec"].get("affinity") or {}, "nodeAffinity")
    if affinity or was["spec"].get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    meta = dict(template.get("metadata") or {})
    for key in ("labels", "annotations"):
        _copy(meta, was.get("metadata") or {}, key)
    return {**template, "spec": spec, "metadata": meta}


def _mask_resources(spec: dict[str, Any], was: dict[str, Any], key: str) -> None:
    containers, before = spec.get(key) or [], was.get(key) or []
    if [item["name"] for item in containers] != [item["name"] for item in before]:
        return
    masked = [dict(item) for item in containers]
    for item, old in zip(masked, before, strict=True):
        _copy(item, old, "resources")
    if masked:
        spec[key] = masked


def _copy(target: dict[str, Any], source: dict[str, Any], key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


RULES = rules.Rules(default=_default, admit=_admit, check=_check)
