"""Rules of batch/v1 CronJobs. What their Jobs get is defaulted when a Job is made of the template."""

from __future__ import annotations

import zoneinfo
from typing import Any

from lstqueue.embedded import admission_job, failures, patches, pod_defaults, rules, schedules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_POLICIES = ("Allow", "Forbid", "Replace")
_LONGEST_NAME = 52


def _default(new: port.Object, _old: port.Object | None) -> None:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return
    for key, value in (
        ("concurrencyPolicy", "Allow"),
        ("suspend", False),
        ("successfulJobsHistoryLimit", 3),
        ("failedJobsHistoryLimit", 1),
    ):
        if spec.get(key) is None:
            spec[key] = value
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        pod_defaults.default(template["spec"])


def _check(new: port.Object, old: port.Object | None) -> list[Violation]:
    spec = new.get("spec")
    if not isinstance(spec, dict):
        return [failures.required("spec.schedule")]
    found = _check_schedule(spec.get("schedule") or "")
    found += _check_zone(spec.get("timeZone"))
    if spec["concurrencyPolicy"] not in _POLICIES:
        path = "spec.concurrencyPolicy"
        found.append(failures.unsupported(path, spec["concurrencyPolicy"], _POLICIES))
    for key in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(key) is not None and spec[key] < 0:
            found.append(failures.bad(f"spec.{key}", spec[key], "must be greater than or equal to 0"))
    found += _check_template((spec.get("jobTemplate") or {}).get("spec"))
    name = new["metadata"]["name"]
    if old is None and len(name) > _LONGEST_NAME:
        detail = f"must be no more than {_LONGEST_NAME} characters"
        found.append(failures.bad("metadata.name", name, detail))
    return found


def _check_schedule(text: str) -> list[Violation]:
    if not text:
        return [failures.required("spec.schedule")]
    if "TZ" in text:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [failures.bad("spec.schedule", text, detail)]
    try:
        schedules.parse(text)
    except ValueError as error:
        return [failures.bad("spec.schedule", text, str(error))]
    return []


def _check_zone(zone: str | None) -> list[Violation]:
    if zone is None:
        return []
    if not zone:
        return [failures.bad("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [failures.bad("spec.timeZone", zone, detail)]
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return [failures.bad("spec.timeZone", zone, f"unknown time zone {zone}")]
    return []


def _check_template(spec: Any) -> list[Violation]:
    if not isinstance(spec, dict):
        return [failures.required("spec.jobTemplate.spec.template.spec.containers")]
    trial = {"metadata": {"name": "job"}, "spec": patches.copy_json(spec)}
    admission_job.RULES.default(trial, None)
    return [
        Violation(f"spec.jobTemplate.{found.path}", found.problem, found.detail)
        for found in admission_job.check_spec(trial["spec"])
    ]


RULES = rules.Rules(default=_default, check=_check)
