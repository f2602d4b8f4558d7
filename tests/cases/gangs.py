"""A gang moved through its life by hand, write by write, to show the audit right and wrong ways."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from cases import objects, worlds
from lstqueue.api import times
from lstqueue.embedded import audit, clock
from lstqueue.embedded.store import Store
from lstqueue.jobs import existing
from lstqueue.kube import port

GPU = "nvidia.com/gpu"
INDEX = "batch.kubernetes.io/job-completion-index"
REACTION_S = 60.0


class Scene:
    """A store with an audit and nobody else: no controllers, no operator. Use inside a virtual loop."""

    def __init__(self, *, nodes: int = 2, gpus: int = 8, nominal: int = 64) -> None:
        wall = clock.VirtualClock(asyncio.get_running_loop())
        self.errors: list[Exception] = []
        self.store = Store(now=wall.now)
        self.audit = audit.Audit(self.store, self.errors, reaction_s=REACTION_S)
        self.gangs: dict[str, Gang] = {}
        self.pods = 0
        for number in range(nodes):
            self.node(f"n{number}", gpus=gpus)
        pool = objects.pool("a100", resources=[{"name": GPU, "nominal": nominal}])
        queue = objects.queue("research", pools=[pool], bindTimeout="2m", gangReadyTimeout="30m")
        self.store.create(port.GPU_QUEUES, None, queue)
        self.store.create(port.PRIORITY_CLASSES, None, {"metadata": {"name": "lstqueue"}, "value": 0})

    def node(self, name: str, *, gpus: int = 8) -> None:
        capacity = {"cpu": "64", "memory": "1Ti", "pods": "110", GPU: str(gpus)}
        status = {"allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
        self.store.create(port.NODES, None, {"metadata": {"name": name}, "status": status})

    def resize(self, name: str, gpus: int) -> None:
        patch = {"status": {"allocatable": {GPU: str(gpus)}}}
        self.store.patch(port.NODES, None, name, patch, subresource="status")

    def break_node(self, name: str) -> None:
        patch = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        self.store.patch(port.NODES, None, name, patch, subresource="status")

    def gang(self, name: str = "job", *, replicas: int = 2, gpus: int = 4) -> Gang:
        container = {"name": "main", "image": "trainer:1", "resources": {"limits": {GPU: gpus}}}
        groups = [{"name": "worker", "replicas": replicas, "template": {"spec": {"containers": [container]}}}]
        made = self.store.create(
            port.DEADLINE_JOBS, worlds.NAMESPACE, objects.job(name, queue="research", groups=groups)
        )
        found = self.gangs[name] = Gang(self, name, made["metadata"]["uid"], replicas, gpus)
        return found

    def own(self, name: str, *, pods: int = 2, gpus: int = 4) -> Gang:
        """A user's own Job, suspended, and the DeadlineJob that speaks for it."""
        spec = {
            "parallelism": pods,
            "completions": pods,
            "suspend": True,
            "template": {"spec": {**worlds.pod(name, gpus=gpus)["spec"], "restartPolicy": "Never"}},
        }
        self.store.create(port.JOBS, worlds.NAMESPACE, {"metadata": {"name": name}, "spec": spec})
        ref = {"apiVersion": "batch/v1", "kind": "Job", "name": name}
        body = objects.job(name, queue="research", groups=None, jobRef=ref)
        made = self.store.create(port.DEADLINE_JOBS, worlds.NAMESPACE, body)
        found = self.gangs[name] = Gang(self, name, made["metadata"]["uid"], pods, gpus)
        found.group = existing.GROUP
        return found

    def foreign(self, name: str, node: str, *, gpus: int) -> None:
        """A pod of somebody else, bound."""
        self.store.create(port.PODS, worlds.NAMESPACE, worlds.pod(name, gpus=gpus, nodeName=node))

    def found(self) -> list[str]:
        """Return what the audit found broken, as the names of the invariants."""
        assert self.errors == []
        return [violation.invariant.name for violation in self.audit.violations]

    def words(self) -> str:
        return "\n".join(str(violation) for violation in self.audit.violations)


class Gang:
    """A DeadlineJob of a scene with one group of equal workers."""

    def __init__(self, scene: Scene, name: str, uid: str, replicas: int, gpus: int) -> None:
        self.scene, self.name, self.uid = scene, name, uid
        self.replicas, self.gpus = replicas, gpus
        self.group = "worker"
        self.attempt = 0
        self.restarts = 0
        self.pods: dict[int, str] = {}

    def status(self, phase: str, **fields: Any) -> None:
        """Write a status; what is not given stays as it is, None removes."""
        body = {"status": {"phase": phase, "attempt": self.attempt, "restarts": self.restarts, **fields}}
        self.scene.store.patch(port.DEADLINE_JOBS, worlds.NAMESPACE, self.name, body, subresource="status")

    def admit(self, placement: Mapping[str, str], *, attempt: int | None = None, pool: str = "a100") -> None:
        """Commit an admission of (node → ranks)."""
        self.attempt = self.attempt + 1 if attempt is None else attempt
        nodes = [{"node": node, "ranks": ranks} for node, ranks in placement.items()]
        admission = {
            "at": times.format(self.scene.store.now_ms()),
            "queue": "research",
            "shapeHash": "0",
            "groups": [{"name": self.group, "pool": pool, "nodes": nodes}],
        }
        self.status("Admitted", admission=admission, suspension=None)

    def suspend(self, reason: str, **fields: Any) -> None:
        since = times.format(self.scene.store.now_ms())
        self.status("Suspending", suspension={"reason": reason, "since": since}, **fields)

    def create(self, *ranks: int) -> None:
        """Create gated pods of the present restart."""
        for rank in ranks:
            self.scene.pods += 1
            name = f"{self.name}-worker-{self.restarts}-{rank}-{self.scene.pods:05d}"
            body = worlds.pod(name, gpus=self.gpus, schedulingGates=[{"name": "lstqueue.dev/placement"}])
            labels = {"job": self.uid, "group": self.group, "restart": str(self.restarts)}
            body["metadata"]["labels"] = {f"lstqueue.dev/{key}": value for key, value in labels.items()}
            body["metadata"]["annotations"] = {INDEX: str(rank)}
            self.scene.store.create(port.PODS, worlds.NAMESPACE, body)
            self.pods[rank] = name

    def ungate(self, *ranks: int, stamp: int | None = None, attempt: int | None = None) -> None:
        for rank in ranks:
            label = str(self.attempt if attempt is None else attempt)
            meta = {
                "labels": {"lstqueue.dev/attempt": label},
                "annotations": {"lstqueue.dev/rank": str(rank if stamp is None else stamp)},
            }
            patch = {"metadata": meta, "spec": {"schedulingGates": None}}
            self.scene.store.patch(port.PODS, worlds.NAMESPACE, self.pods[rank], patch)

    def bind(self, placement: Mapping[int, str]) -> None:
        for rank, node in placement.items():
            self.scene.store.bind(worlds.NAMESPACE, self.pods[rank], node)

    def end(self, phase: str, *ranks: int) -> None:
        for rank in ranks:
            patch = {"status": {"phase": phase}}
            self.scene.store.patch(port.PODS, worlds.NAMESPACE, self.pods[rank], patch, subresource="status")

    def delete(self, *ranks: int) -> None:
        """Ask pods to leave."""
        for rank in ranks:
            self.scene.store.delete(port.PODS, worlds.NAMESPACE, self.pods[rank])

    def remove(self, *ranks: int) -> None:
        """Let pods be gone."""
        for rank in ranks:
            self.scene.store.delete(port.PODS, worlds.NAMESPACE, self.pods.pop(rank), grace_seconds=0)

    def run(self, placement: Mapping[str, str]) -> None:
        """Go the right way from Pending to Running."""
        if not self.attempt:
            self.status("Pending")
        self.admit(placement)
        self.start()

    def start(self) -> None:
        """Go the right way from Admitted to Running."""
        current = self.scene.store.get(port.DEADLINE_JOBS, worlds.NAMESPACE, self.name)["status"]
        self.create(*range(self.replicas))
        self.ungate(*range(self.replicas))
        for item in current["admission"]["groups"][0]["nodes"]:
            first, _, last = item["ranks"].partition("-")
            self.bind({rank: item["node"] for rank in range(int(first), int(last or first) + 1)})
        self.status("Running")
