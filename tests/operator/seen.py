"""What users can see of a cluster: statuses, children, pods and places, read from the stored objects."""

from __future__ import annotations

from typing import Any

from lstqueue.api import names, times
from lstqueue.embedded import world
from lstqueue.jobs import views
from lstqueue.kube import port

Object = dict[str, Any]

NAMESPACE = "default"


class Seen:
    """A read-only view; `name` is always that of a DeadlineJob."""

    def __init__(self, made: world.World) -> None:
        self.world = made
        self.store = made.store

    def job(self, name: str) -> Object:
        return self.store.get(port.DEADLINE_JOBS, NAMESPACE, name)

    def status(self, name: str) -> Object:
        found = self.store.find(port.DEADLINE_JOBS, NAMESPACE, name)
        return dict((found or {}).get("status") or {})

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def code(self, name: str) -> str:
        return str((self.status(name).get("pending") or {}).get("code", ""))

    def level(self, name: str) -> str:
        return str((self.status(name).get("verdict") or {}).get("level", ""))

    def condition(self, name: str, kind: str) -> Object:
        """A condition, {} while there is none."""
        return next((item for item in self.status(name).get("conditions") or () if item["type"] == kind), {})

    def holds(self, name: str, kind: str) -> bool:
        return bool(self.condition(name, kind).get("status") == "True")

    def children(self, name: str) -> list[str]:
        found = [raw["metadata"]["name"] for raw in self.store.list(port.JOBS)]
        return sorted(child for child in found if child.startswith(f"{name}-"))

    def pods(self, name: str = "") -> list[Object]:
        """Pods of a DeadlineJob, or of all of them, by name."""
        found = [
            raw
            for raw in self.store.list(port.PODS)
            if names.LABEL_JOB in (raw["metadata"].get("labels") or {})
        ]
        mine = [raw for raw in found if raw["metadata"]["name"].startswith(f"{name}-")] if name else found
        return sorted(mine, key=lambda raw: str(raw["metadata"]["name"]))

    def placement(self, name: str) -> dict[int, str]:
        """Node of each global rank, as the admission says; {} when there is none."""
        admission = self.status(name).get("admission") or {"groups": []}
        return {
            rank: item["node"]
            for part in admission["groups"]
            for item in part["nodes"]
            for rank in views.indexes(item["ranks"])
        }

    def finished_at(self, name: str) -> int:
        return times.parse(self.status(name)["completionTime"])

    def now(self) -> int:
        return self.world.now()

    def summary(self) -> str:
        """Say in a few lines how things stand, for a test that fails."""
        lines = []
        for raw in self.store.list(port.DEADLINE_JOBS):
            name, status = raw["metadata"]["name"], raw.get("status") or {}
            told = "" if status.get("phase") in ("Succeeded", "Failed", "Rejected") else str(status)
            lines.append(f"{name}: {status.get('phase')} {told}")
        for raw in self.pods():
            spec, status = raw["spec"], raw["status"]
            gates = "gated" if spec.get("schedulingGates") else ""
            leaves = "leaves" if "deletionTimestamp" in raw["metadata"] else ""
            where = spec.get("nodeName", "-")
            if status["phase"] not in ("Succeeded", "Failed"):
                lines.append(f"pod {raw['metadata']['name']}: {status['phase']} on {where} {gates} {leaves}")
        return "\n".join(lines)

    def staying(self) -> list[str]:
        return [
            raw["metadata"]["name"]
            for raw in self.pods()
            if (raw.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
