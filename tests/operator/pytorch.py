"""Users' own PyTorchJobs in the scenarios: manifests as users write them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import cluster
import existing
from manifests import pod_spec

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]


def body(
    name: str,
    *,
    workers: int | None = 1,
    master: bool = True,
    restart: str = "OnFailure",
    suspend: bool | None = True,
    queue: str | None = cluster.QUEUE,
    gpus: int = 8,
    policy: Object | None = None,
    spec: Object | None = None,
    pod: Object | None = None,
    said: Object | None = None,
    owner: Object | None = None,
    on_master: Object | None = None,
    **simulation: str,
) -> Object:
    """A PyTorchJob; keywords are the `sim/` annotations of its pods, `on_master` others of the master's.

    `workers` is None for a Worker without a number, 0 for none at all.
    """
    simulated = {f"sim/{key.replace('_', '-')}": value for key, value in simulation.items()}
    leading = {f"sim/{key.replace('_', '-')}": value for key, value in (on_master or {}).items()}
    replicas: Object = {}
    if master:
        replicas["Master"] = _replica(restart, gpus, {**simulated, **leading}, pod)
    if workers != 0:
        replicas["Worker"] = _replica(restart, gpus, simulated, pod)
        if workers is not None:
            replicas["Worker"]["replicas"] = workers
    meta: Object = {
        "name": name,
        "labels": {} if queue is None else {names.LABEL_QUEUE: queue},
        "annotations": {f"{names.GROUP}/{key}": value for key, value in (said or {}).items()},
    }
    if owner:
        meta["ownerReferences"] = [owner]
    run: Object = dict(policy or {})
    if suspend is not None:
        run["suspend"] = suspend
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": meta,
        "spec": {"runPolicy": run, "pytorchReplicaSpecs": replicas, **(spec or {})},
    }


def _replica(restart: str, gpus: int, annotations: Object, pod: Object | None) -> Object:
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec(gpus, **(pod or {}))}
    template["spec"]["containers"][0]["name"] = "pytorch"
    return {"restartPolicy": restart, "template": template}


class PyTorch(existing.Existing):
    """Creates users' PyTorchJobs in a cluster and looks at them; `name` is always that of the job."""

    KIND = "PyTorchJob"

    def create(self, name: str, **given: Any) -> str:
        return str(self.made.create(port.PYTORCH_JOBS, body(name, **given))["metadata"]["uid"])

    def refer(self, name: str, job: str, **spec: Any) -> str:
        ref = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job}
        return self.made.submit_spec(name, {"queue": cluster.QUEUE, "jobRef": ref, **spec})

    def job(self, name: str) -> Object:
        return self.made.store.get(port.PYTORCH_JOBS, cluster.NAMESPACE, name)

    def suspended(self, name: str) -> bool:
        return bool(self.job(name)["spec"]["runPolicy"].get("suspend"))

    def suspend(self, name: str, value: bool = True) -> None:
        self.patch(name, {"spec": {"runPolicy": {"suspend": value}}})

    def patch(self, name: str, patch: Object) -> None:
        self.made.patch(port.PYTORCH_JOBS, name, patch)

    def has(self, name: str, kind: str) -> bool:
        """Whether a condition of a job is true."""
        conditions = (self.job(name).get("status") or {}).get("conditions") or ()
        return any(item["type"] == kind and item["status"] == "True" for item in conditions)

    def over(self, name: str) -> str:
        return next((kind for kind in ("Succeeded", "Failed") if self.has(name, kind)), "")

    def events(self, name: str, kind: str = "PyTorchJob") -> dict[str, str]:
        return super().events(name, kind)

    async def until_told(
        self, name: str, reason: str, *, kind: str = "PyTorchJob", within: str = "5m"
    ) -> str:
        return await super().until_told(name, reason, kind=kind, within=within)

    def pod(self, name: str) -> Object:
        """A pod by its name, which is fixed."""
        return self.made.store.get(port.PODS, cluster.NAMESPACE, name)

    def on(self, name: str) -> dict[str, str]:
        """The nodes of the pods of a job that have not ended, by pod."""
        return {raw["metadata"]["name"]: raw["spec"].get("nodeName", "") for raw in self.pods(name)}
