"""The pods of a batch/v1 Job as its controller writes them, and the compressed index ranges of its status."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from lstqueue.embedded.controllers import pods
from lstqueue.kube import port

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_GENERATED_BASE = 58
_INDEX_ENV = "JOB_COMPLETION_INDEX"


def build(
    job: port.Object, index: int | None, serial: int, *, failures: tuple[int, int] | None = None
) -> port.Object:
    """Return a pod for a Job.

    Args:
        job: the Job.
        index: completion index, None for a NonIndexed Job.
        serial: how many pods the Job has had before; makes the name, which depends on nothing else, so that
            runs can be repeated.
        failures: with a back-off limit per index, the index's counted and ignored failures so far.
    """
    meta, template = job["metadata"], job["spec"]["template"]
    base = f"{meta['name']}-" if index is None else _indexed_base(meta["name"], index)
    template_meta = template.get("metadata") or {}
    labels = dict(template_meta.get("labels") or {})
    annotations = dict(template_meta.get("annotations") or {})
    spec = template["spec"]
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        if failures is not None:
            annotations |= _failure_counts(*failures)
        spec = _indexed(spec, f"{meta['name']}-{index}")
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    suffix = _suffix(f"{meta['namespace']}/{base}{serial}")
    return {
        "metadata": {
            "generateName": base,
            "name": base[:_GENERATED_BASE] + suffix,
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _indexed_base(name: str, index: int) -> str:
    # The index stays readable however long the name is.
    suffix = f"-{index}-"
    return name[: _GENERATED_BASE - len(suffix)] + suffix


def _failure_counts(counted: int, ignored: int) -> dict[str, str]:
    counts = {FAILURES: str(counted)}
    if ignored:
        counts[IGNORED_FAILURES] = str(ignored)
    return counts


def failures_of(pod: port.Object) -> tuple[int, int]:
    """Return how many counted and ignored failures a pod's index had before that pod."""
    counted, ignored = ((pods.annotation(pod, name) or "") for name in (FAILURES, IGNORED_FAILURES))
    return _number(counted) or 0, _number(ignored) or 0


def index_of(pod: port.Object) -> int | None:
    """Return a pod's completion index, None when it has none that is a number."""
    return _number(pods.annotation(pod, INDEX) or "")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _indexed(spec: dict[str, Any], hostname: str) -> dict[str, Any]:
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": _INDEX_ENV, "valueFrom": source}
    spec = {"hostname": hostname, **spec}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [_with_variable(container, variable) for container in spec[key]]
    return spec


def _with_variable(container: dict[str, Any], variable: dict[str, Any]) -> dict[str, Any]:
    given = container.get("env") or []
    if any(item.get("name") == _INDEX_ENV for item in given):
        return container
    return {**container, "env": [*given, variable]}


def _suffix(seed: str) -> str:
    digest = hashlib.blake2b(seed.encode(), digest_size=_SUFFIX).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def format_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as a Job's status writes them: "1,3-5,7"; a range has at least three."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(indexes), -1]:
        if run and index == run[-1] + 1:
            run.append(index)
            continue
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(str, run))
        run = [index]
    return ",".join(parts)


def parse_indexes(text: str) -> set[int]:
    """Return the indexes of a Job's `completedIndexes`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
