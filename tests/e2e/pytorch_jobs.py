"""PyTorchJobs as users write them, on a real control plane with the training operator."""

from __future__ import annotations

from typing import Any

import plain_jobs
from scenes import Scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]


def body(
    name: str,
    workers: int,
    *,
    queue: str | None = None,
    restart: str = "OnFailure",
    suspend: bool = True,
    gpus: int = 8,
    run_for: str = "",
    said: Object | None = None,
    policy: Object | None = None,
    **annotations: str,
) -> Object:
    """A PyTorchJob of a master and workers; other keywords are the `sim/` annotations of its pods."""
    simulated = {f"sim/{key.replace('_', '-')}": value for key, value in annotations.items()}
    if run_for:
        simulated["sim/run-for"] = run_for
    template = plain_jobs.template(gpus=gpus, annotations=simulated)
    del template["spec"]["restartPolicy"]
    template["spec"]["containers"][0]["name"] = "pytorch"
    replica: Object = {"restartPolicy": restart, "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "labels": {} if queue is None else {names.LABEL_QUEUE: queue},
            "annotations": {f"{names.GROUP}/{key}": value for key, value in (said or {}).items()},
        },
        "spec": {
            "runPolicy": {**(policy or {}), "suspend": suspend},
            "pytorchReplicaSpecs": {"Master": replica, "Worker": {**replica, "replicas": workers}},
        },
    }


class Jobs:
    """What a test does with PyTorchJobs in a namespace."""

    def __init__(self, here: plain_jobs.Namespace) -> None:
        self.here = here

    async def create(self, name: str, workers: int, **given: Any) -> Object:
        return await self.here.create(port.PYTORCH_JOBS, body(name, workers, **given))

    async def submit(self, name: str, workers: int, **given: Any) -> Object:
        """Create a labelled one."""
        return await self.create(name, workers, queue=self.here.name, **given)

    async def suspend(self, name: str, value: bool) -> None:
        await self.here.patch(name, {"spec": {"runPolicy": {"suspend": value}}}, port.PYTORCH_JOBS)

    async def pods(self, name: str) -> dict[str, Object]:
        """The pods of a job by name, ended ones too."""
        labels = f"training.kubeflow.org/job-name={name}"
        page = await self.here.api.list_page(port.PODS, namespace=self.here.name, labels=labels)
        return {raw["metadata"]["name"]: raw for raw in page.items}

    async def until_running(self, name: str, count: int) -> dict[str, Object]:
        async def look() -> dict[str, Object]:
            found = await self.pods(name)
            running = [raw for raw in found.values() if raw["status"].get("phase") == "Running"]
            return found if len(running) == count == len(found) else {}

        found: dict[str, Object] = await self.here.until(look, f"{count} pods of {name} run")
        return found

    async def until_gone(self, name: str) -> None:
        async def look() -> bool:
            return not await self.pods(name)

        await self.here.until(look, f"{name} has no pods")

    async def conditions(self, name: str) -> set[str]:
        """The conditions of a job that are true."""
        raw = await self.here.get(name, port.PYTORCH_JOBS)
        found = (raw.get("status") or {}).get("conditions") or ()
        return {item["type"] for item in found if item["status"] == "True"}

    async def until(self, name: str, kind: str) -> None:
        async def look() -> bool:
            return kind in await self.conditions(name)

        await self.here.until(look, f"{name} is {kind}")

    async def end(self, pod: str, phase: str = "Failed") -> None:
        """Have a pod end by itself."""
        await self.here.end(await self.here.get(pod, port.PODS), phase)

    async def lose(self, pod: str) -> None:
        """Delete a pod, as somebody else does."""
        await self.here.api.delete(port.PODS, self.here.name, pod)


def on(told: Scene, name: str) -> dict[str, str]:
    """The nodes of the pods of a job that have not ended, by pod, as was seen."""
    return {raw["metadata"]["name"]: raw["spec"].get("nodeName", "") for raw in told.members(name)}
