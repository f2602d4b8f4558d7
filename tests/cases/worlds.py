"""An embedded cluster in virtual time for tests, and short forms of the objects they put into it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from lstqueue.embedded import clock
from lstqueue.embedded.store import Store
from lstqueue.kube import port

P = ParamSpec("P")

NAMESPACE = "default"
MONTH = 30 * 86_400.0


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in a virtual loop of its own, for at most a month."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        clock.run(test(*args, **kwargs), horizon=MONTH)

    return run


def pod_spec(*, gpus: int = 1, **fields: Any) -> port.Object:
    """Return a pod spec with one container."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    return {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "trainer:1", "resources": resources}],
        **fields,
    }


def pod(name: str, *, annotations: dict[str, str] | None = None, gpus: int = 1, **spec: Any) -> port.Object:
    """Return a pod."""
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": pod_spec(gpus=gpus, **spec),
    }


def job(
    name: str,
    count: int,
    *,
    annotations: dict[str, str] | None = None,
    gpus: int = 1,
    pod_fields: dict[str, Any] | None = None,
    **spec: Any,
) -> port.Object:
    """Return an Indexed Job without retries."""
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": pod_spec(gpus=gpus, **(pod_fields or {})),
    }
    fixed = {"completionMode": "Indexed", "completions": count, "parallelism": count, "backoffLimit": 0}
    return {"metadata": {"name": name}, "spec": {**fixed, "template": template, **spec}}


def pinned(*nodes: str) -> dict[str, Any]:
    """Return an affinity that names nodes, one term each."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def get_pod(store: Store, name: str) -> port.Object:
    return store.get(port.PODS, NAMESPACE, name)


def all_pods(store: Store) -> list[port.Object]:
    return list(store.list(port.PODS))


def node_name(store: Store, name: str) -> str:
    """Return where a pod is bound, "" while it is not."""
    return str(get_pod(store, name)["spec"].get("nodeName", ""))


def phase(store: Store, name: str) -> str:
    return str(get_pod(store, name)["status"]["phase"])


def phases(store: Store) -> list[str]:
    return sorted(item["status"]["phase"] for item in store.list(port.PODS))


def condition(obj: port.Object, kind: str) -> dict[str, Any]:
    """Return a condition, {} when it is not there."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next((item for item in conditions if item["type"] == kind), {})


def job_is(store: Store, name: str, kind: str) -> bool:
    """Whether a condition of a Job is True."""
    return condition(store.get(port.JOBS, NAMESPACE, name), kind).get("status") == "True"
