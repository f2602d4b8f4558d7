"""Whoever waits reads who is in the way by name, also where that is nobody of a queue."""

from __future__ import annotations

from typing import Any

import cluster
from manifests import group

from lstqueue.kube import port


def asked(made: cluster.Cluster, name: str) -> dict[str, Any]:
    """What /why answers."""
    found = made.operator.loop.why(cluster.NAMESPACE, name)
    assert found is not None
    return found


def message(made: cluster.Cluster, name: str) -> str:
    return str((made.status(name).get("pending") or {}).get("message", ""))


@cluster.virtual
async def test_a_foreign_pod_is_named_wherever_its_victim_looks() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.foreign_pod("notebook", "node-0000")
        made.submit("waits", group(), deadlineIn="9h", estimatedDuration="1h")
        await made.until(lambda: made.level("waits") == "UNLIKELY", "it is judged")
        where = "foreign pod default/notebook on node-0000"
        assert f"where {where} takes room" in message(made, "waits")
        reason = made.status("waits")["verdict"]["reason"]
        assert f"No start can be foreseen: {where} holds its room" in reason
        pod = {"kind": "Pod", "namespace": "default", "name": "notebook", "how": "holding"}
        assert asked(made, "waits")["blockers"] == [{**pod, "node": "node-0000"}]
        made.store.delete(port.PODS, cluster.NAMESPACE, "notebook", grace_seconds=0)
        await made.until_phase("waits", "Running")


@cluster.virtual
async def test_a_cordoned_node_is_the_reason_of_the_verdict() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.world.cordon("node-0000")
        made.submit("waits", group(), deadlineIn="9h", estimatedDuration="1h")
        await made.until(lambda: made.level("waits") == "UNLIKELY", "it is judged")
        assert made.status("waits")["verdict"]["reason"] == "No start can be foreseen: node-0000 is cordoned."


@cluster.virtual
async def test_a_resource_quota_is_named_with_those_who_use_it() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        quota = {"hard": {"requests.nvidia.com/gpu": "24"}}
        made.create(port.RESOURCE_QUOTAS, {"metadata": {"name": "compute"}, "spec": quota})
        made.submit("first", group("worker", 2, run_for="1h"))
        await made.until_phase("first", "Running")
        made.submit("waits", group("worker", 2))
        await made.until(lambda: made.code("waits") == "ResourceQuotaExceeded", "it is told")
        found = [(one["kind"], one["name"], one["how"]) for one in asked(made, "waits")["blockers"]]
        assert ("ResourceQuota", "compute", "limiting") in found
        assert ("DeadlineJob", "first", "holding") in found
        assert "ResourceQuota compute of namespace default" in message(made, "waits")
