"""What a Job's own rules say about its pods: failed or not, counted or not, enough or not, how soon again.

Pure functions over raw JSON, in the sense of batch/v1: `podFailurePolicy`, `podReplacementPolicy`,
`successPolicy` and the pauses between failures. Nothing here knows of the store or of time passing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lstqueue.embedded import metadata
from lstqueue.embedded.controllers import jobpods, pods
from lstqueue.kube import port

FAIL_JOB = "FailJob"
FAIL_INDEX = "FailIndex"
IGNORE = "Ignore"

_FIRST_PAUSE_MS = 10_000
_LONGEST_PAUSE_MS = 600_000
_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pod failure policy makes of a failure; without a matching rule it is just counted."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure is counted against the back-off limits."""
        return self.action != IGNORE


_COUNTED = Verdict()


def replaces_failed_only(spec: Mapping[str, Any]) -> bool:
    """Whether a pod is replaced, and counted as failed, only when it has ended; else once it is deleted."""
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def has_failed(spec: Mapping[str, Any], pod: port.Object) -> bool:
    """Whether a pod counts as failed."""
    phase = pods.phase(pod)
    if phase == "Failed":
        return True
    return pods.deleting(pod) and phase != "Succeeded" and not replaces_failed_only(spec)


def judge(spec: Mapping[str, Any], pod: port.Object) -> Verdict:
    """Return the verdict of the first rule of the Job's pod failure policy that matches a failed pod."""
    for position, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        action = rule["action"]
        meta = pod["metadata"]
        where = f"{meta['namespace']}/{meta['name']}"
        if rule.get("onExitCodes"):
            ended = _container_with(rule["onExitCodes"], pod)
            if ended is not None:
                code = ended["state"]["terminated"]["exitCode"]
                return Verdict(
                    action,
                    f"Container {ended['name']} for pod {where} failed with exit code {code} "
                    f"matching {action} rule at index {position}",
                )
        else:
            kind = _condition_in(rule.get("onPodConditions") or (), pod)
            if kind:
                return Verdict(
                    action, f"Pod {where} has condition {kind} matching {action} rule at index {position}"
                )
    return _COUNTED


def _container_with(wanted: Mapping[str, Any], pod: port.Object) -> Mapping[str, Any] | None:
    status = pod.get("status", {})
    for key in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(key) or ():
            ended = container.get("state", {}).get("terminated")
            if ended is None or wanted.get("containerName") not in (None, container["name"]):
                continue
            code = ended.get("exitCode", 0)
            if code and (code in wanted["values"]) is (wanted["operator"] == "In"):
                found: Mapping[str, Any] = container
                return found
    return None


def _condition_in(patterns: Iterable[Mapping[str, Any]], pod: port.Object) -> str:
    wanted = {(item["type"], item.get("status") or "True") for item in patterns}
    for condition in pod.get("status", {}).get("conditions") or ():
        if (condition["type"], condition["status"]) in wanted:
            return str(condition["type"])
    return ""


def enough(spec: Mapping[str, Any], completed: set[int]) -> str:
    """Return in Kubernetes' words which rule of the success policy the completed indexes meet, or nothing."""
    if not completed:
        return ""
    for position, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
        chosen = jobpods.parse_indexes(text) if text is not None else None
        done = len(completed if chosen is None else completed & chosen)
        if (chosen is not None and chosen <= completed) or (count is not None and done >= count):
            return f"Matched rules at index {position}"
    return ""


def pause_ms(failures: int) -> int:
    """Return for how long after the last of so many failures in a row no pod is created."""
    if failures <= 0:
        return 0
    return min(_FIRST_PAUSE_MS << min(failures - 1, _DOUBLINGS), _LONGEST_PAUSE_MS)


def ended_ms(pod: port.Object) -> int:
    """Return when a pod ended, ms since the epoch: by its containers, its readiness, or its deletion."""
    status = pod.get("status", {})
    ends = [
        (item.get("state", {}).get("terminated") or {}).get("finishedAt")
        for item in status.get("containerStatuses") or ()
    ]
    if ends and all(ends):
        return max(metadata.parse_timestamp(str(end)) for end in ends)
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "False":
            return metadata.parse_timestamp(condition["lastTransitionTime"])
    meta = pod["metadata"]
    if pods.deleting(pod):
        grace = meta.get("deletionGracePeriodSeconds") or 0
        return metadata.parse_timestamp(meta["deletionTimestamp"]) - grace * 1000
    return metadata.parse_timestamp(meta["creationTimestamp"])
