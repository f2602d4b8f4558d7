"""Users' own Jobs in the scenarios: manifests as users write them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import cluster
from manifests import pod_spec

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]

LABEL = names.LABEL_QUEUE


def body(
    name: str,
    *,
    parallelism: int = 2,
    completions: int | None = 2,
    indexed: bool = True,
    suspend: bool = True,
    queue: str | None = cluster.QUEUE,
    gpus: int = 8,
    owner: Object | None = None,
    spec: Object | None = None,
    pod: Object | None = None,
    said: Object | None = None,
    **simulation: str,
) -> Object:
    """A Job; keywords are the `sim/` annotations of its pods, `said` our own annotations by short name."""
    annotations = {f"sim/{key.replace('_', '-')}": value for key, value in simulation.items()}
    meta: Object = {
        "name": name,
        "labels": {} if queue is None else {LABEL: queue},
        "annotations": {f"{names.GROUP}/{key}": value for key, value in (said or {}).items()},
    }
    if owner:
        meta["ownerReferences"] = [owner]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {
            "parallelism": parallelism,
            "completions": completions,
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "suspend": suspend,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", **pod_spec(gpus, **(pod or {}))},
            },
            **(spec or {}),
        },
    }


class Existing:
    """Creates users' Jobs in a cluster and looks at them; `name` is always that of the Job."""

    KIND = "Job"

    def __init__(self, made: cluster.Cluster) -> None:
        self.made = made

    def create(self, name: str, **given: Any) -> str:
        """Create a Job and return its UID."""
        return str(self.made.create(port.JOBS, body(name, **given))["metadata"]["uid"])

    def refer(self, name: str, job: str, **spec: Any) -> str:
        """Create a DeadlineJob that refers to a Job."""
        ref = {"apiVersion": "batch/v1", "kind": "Job", "name": job}
        return self.made.submit_spec(name, {"queue": cluster.QUEUE, "jobRef": ref, **spec})

    def job(self, name: str) -> Object:
        return self.made.store.get(port.JOBS, cluster.NAMESPACE, name)

    def suspended(self, name: str) -> bool:
        return bool(self.job(name)["spec"]["suspend"])

    def over(self, name: str) -> str:
        """The terminal condition of a Job, "" before its end."""
        status = self.job(name).get("status") or {}
        ends = [item["type"] for item in status.get("conditions") or () if item["status"] == "True"]
        return next((kind for kind in ("Complete", "Failed") if kind in ends), "")

    def ledgers(self, name: str) -> list[Object]:
        """The DeadlineJobs that refer to a Job, the oldest first."""
        found = [
            raw
            for raw in self.made.store.list(port.DEADLINE_JOBS)
            if (raw["spec"].get("jobRef") or {}).get("name") == name
            and raw["spec"]["jobRef"]["kind"] == self.KIND
        ]
        return sorted(found, key=lambda raw: int(raw["metadata"]["resourceVersion"]))

    def ledger(self, name: str) -> str:
        """The name of the one DeadlineJob of a Job that is not over, or of the newest, "" for none."""
        found = self.ledgers(name)
        live = [raw for raw in found if (raw.get("status") or {}).get("phase") not in cluster.FINAL]
        return str((live or found or [{"metadata": {"name": ""}}])[-1]["metadata"]["name"])

    def phase(self, name: str) -> str:
        return self.made.phase(self.ledger(name))

    async def until_phase(self, name: str, *phases: str, within: str = "1h") -> None:
        await self.made.until(
            lambda: self.phase(name) in phases, f"{self.KIND} {name} is {' or '.join(phases)}", within=within
        )

    def pods(self, name: str) -> list[Object]:
        """Every pod of a Job that has not ended, ours or not."""
        uid = self.job(name)["metadata"]["uid"]
        return [
            raw
            for raw in self.made.store.list(port.PODS)
            if any(owner["uid"] == uid for owner in raw["metadata"].get("ownerReferences") or ())
            and (raw.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def bound(self, name: str) -> list[str]:
        """The nodes of the pods of a Job that have one, sorted."""
        return sorted(raw["spec"]["nodeName"] for raw in self.pods(name) if raw["spec"].get("nodeName"))

    def events(self, name: str, kind: str = "Job") -> dict[str, str]:
        """What was told on an object: the newest sentence by reason."""
        return {
            raw["reason"]: raw["message"]
            for raw in self.made.store.list(port.EVENTS)
            if raw["involvedObject"]["name"] == name
            and raw["involvedObject"]["kind"] == kind
            and raw["source"]["component"] == "lstqueue"
        }

    async def until_told(self, name: str, reason: str, *, kind: str = "Job", within: str = "5m") -> str:
        """Wait for an Event and return its sentence."""
        await self.made.until(
            lambda: reason in self.events(name, kind), f"{reason} is told on {name}", within=within
        )
        return self.events(name, kind)[reason]

    def patch(self, name: str, patch: Object) -> None:
        self.made.patch(port.JOBS, name, patch)

    def suspend(self, name: str, value: bool = True) -> None:
        self.patch(name, {"spec": {"suspend": value}})

    def say(self, name: str, **said: str | None) -> None:
        """Edit annotations of ours."""
        named = {f"{names.GROUP}/{key.replace('_', '-')}": value for key, value in said.items()}
        self.patch(name, {"metadata": {"annotations": named}})
