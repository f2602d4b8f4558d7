"""Capacity is given away only when it is really there, and only where a gang may use it."""

from __future__ import annotations

import cluster
import manifests
from manifests import group, pool

from lstqueue.kube import port

TAINT = {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": "example.com/gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}


@cluster.virtual
async def test_the_next_gang_waits_until_the_last_pod_of_a_failed_one_is_gone() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        lingers = group("worker", 2, fail_after="10m", terminate_after="15m")
        made.submit(
            "fails",
            group("first", run_for="1h", terminate_after="15m"),
            group("second", fail_after="10m"),
            backoffLimit=0,
        )
        await made.until_phase("fails", "Running")
        made.submit("next", lingers)
        await made.until_phase("fails", "Suspending")
        ended = made.now()
        await made.until_phase("next", "Admitted")
        assert made.now() - ended >= 15 * 60_000
        assert made.phase("fails") == "Failed"


@cluster.virtual
async def test_pods_of_a_deleted_job_hold_their_room_and_quota_until_they_are_gone() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=8)
        made.submit("old", group(terminate_after="20m"))
        await made.until_phase("old", "Running")
        made.delete("old")
        deleted = made.now()
        made.submit("new", group(run_for="10m"))
        await made.until_phase("new", "Pending")
        assert made.code("new") == "QuotaExceeded"
        await made.until_phase("new", "Running")
        assert made.now() - deleted >= 20 * 60_000
        await made.until_phase("new", "Succeeded")


@cluster.virtual
async def test_foreign_pods_are_in_the_way_until_they_leave() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.foreign_pod("foreign", "node-0001", gpus=1)
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Pending")
        assert made.code("gang") == "NoRoom"
        await made.rest("3h")
        made.delete("foreign", port.PODS)
        await made.until_phase("gang", "Running", within="1m")
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_foreign_pod_that_has_ended_is_in_nobodys_way() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.foreign_pod("foreign", "node-0000")
        made.submit("gang", group(run_for="10m"))
        await made.until_phase("gang", "Pending")
        made.store.patch(
            port.PODS, cluster.NAMESPACE, "foreign", {"status": {"phase": "Succeeded"}}, subresource="status"
        )
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_cordoned_and_broken_nodes_take_nothing_until_they_are_back() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": True}})
        made.world.fail_node("node-0001")
        await made.rest("1m")
        made.submit("gang", group("worker", 2, run_for="10m"), deadlineIn="9h", estimatedDuration="10m")
        await made.until_phase("gang", "Pending")
        assert made.code("gang") == "NoRoom"
        assert made.level("gang") != "IMPOSSIBLE"
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": None}})
        await made.rest("1h")
        assert made.phase("gang") == "Pending"
        made.world.heal_node("node-0001")
        await made.until_phase("gang", "Running", within="1m")
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_tainted_nodes_are_used_by_those_who_tolerate_them_or_whose_pool_does() -> None:
    async with cluster.run(nodes=3) as made:
        for name in ("node-0000", "node-0001", "node-0002"):
            made.patch(port.NODES, name, {"spec": {"taints": [TAINT]}})
        made.queue("plain")
        made.queue("tolerant", pools=[pool("all", tolerations=[TOLERATION])])
        made.submit("barred", group(run_for="10m"), queue="plain")
        made.submit("own", group(run_for="10m", pod={"tolerations": [TOLERATION]}), queue="plain")
        made.submit("pooled", group("worker", 2, run_for="10m"), queue="tolerant")
        await made.until_all("Succeeded", "own", "pooled")
        assert made.code("barred") == "NoMatchingNodes"
        for pod in made.pods("pooled"):
            assert pod["spec"]["tolerations"].count(TOLERATION) == 1
        for name in ("node-0000", "node-0001", "node-0002"):
            made.patch(port.NODES, name, {"spec": {"taints": None}})
        await made.until_phase("barred", "Succeeded")


@cluster.virtual
async def test_a_templates_own_affinity_is_kept_and_every_term_is_pinned() -> None:
    async with cluster.run(nodes=0) as made:
        made.world.add_nodes(1, labels={"tier": "a"})
        (wanted,) = made.world.add_nodes(1, labels={"tier": "b"})
        made.world.add_nodes(1, labels={"tier": "c"})
        made.queue()
        terms = [
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["b"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["z"]}]},
        ]
        preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        affinity = {
            "nodeAffinity": {
                required: {"nodeSelectorTerms": terms},
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            }
        }
        made.submit("choosy", group(run_for="10m", pod={"affinity": affinity}))
        await made.until_phase("choosy", "Running")
        assert set(made.placement("choosy").values()) == {wanted}
        (pod,) = made.pods("choosy")
        stored = pod["spec"]["affinity"]["nodeAffinity"]
        assert stored["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
        pinned = [term["matchFields"][0]["values"] for term in stored[required]["nodeSelectorTerms"]]
        assert pinned == [[wanted], [wanted]]
        await made.until_phase("choosy", "Succeeded")


@cluster.virtual
async def test_a_device_that_is_lost_under_a_running_pod_is_not_given_away() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("runs", group(gpus=6, run_for="30m"))
        await made.until_phase("runs", "Running")
        shrunk = {"status": {"allocatable": {manifests.GPU: "4"}}}
        made.store.patch(port.NODES, None, "node-0000", shrunk, subresource="status")
        made.submit("small", group(gpus=1, run_for="10m"))
        await made.until_phase("small", "Pending")
        await made.rest("10m")
        assert made.phase("small") == "Pending"
        await made.until_all("Succeeded", "runs", "small")


@cluster.virtual
async def test_pod_slots_and_memory_count_like_any_other_resource() -> None:
    async with cluster.run(nodes=0) as made:
        made.world.add_nodes(1, max_pods=2, memory="10Gi")
        made.queue()
        made.submit("many", group("worker", 3, gpus=1))
        await made.until_phase("many", "Pending")
        assert made.code("many") == "NoMatchingNodes"
        limits = {"limits": {manifests.GPU: 1}, "requests": {"memory": "6Gi"}}
        fat = {"containers": [{"name": "main", "image": "x", "resources": limits}]}
        made.submit("first", group(pod=fat, run_for="10m"))
        await made.rest("2s")
        made.submit("second", group(pod=fat, run_for="10m"))
        await made.until_phase("second", "Pending")
        assert made.phase("first") == "Running"
        await made.until_phase("second", "Succeeded")
