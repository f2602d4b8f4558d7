"""What happens to nodes, and to gangs that are near each other by an Interconnect of racks."""

from __future__ import annotations

from typing import Any

import cluster
from manifests import group, own

from lstqueue.kube import port

RACK = "example.com/rack"
NEAR = {"required": "rack"}


def name(node: int) -> str:
    return f"node-{node:04d}"


def racks(made: cluster.Cluster, nodes: int, size: int) -> None:
    for node in range(nodes):
        relabel(made, node, f"r{node // size}")
    sources = [{"name": "own", "nodeLabels": {"keys": [RACK]}}]
    made.create(port.INTERCONNECTS, own("Interconnect", "fabric", {"sources": sources}))
    made.queue()


def relabel(made: cluster.Cluster, node: int, rack: str | None) -> None:
    made.patch(port.NODES, name(node), {"metadata": {"labels": {RACK: rack}}})


def used(made: cluster.Cluster, job: str) -> set[int]:
    """Numbers of the nodes that a job's pods are on."""
    return {int(node.removeprefix("node-")) for node in made.placement(job).values()}


async def running(made: cluster.Cluster, job: str, replicas: int, **more: Any) -> set[int]:
    made.submit(job, group(replicas=replicas, run_for="2h"), topology=NEAR, **more)
    await made.until_phase(job, "Running")
    return used(made, job)


@cluster.virtual
async def test_a_cordoned_and_a_tainted_node_leave_the_rest_of_their_rack() -> None:
    async with cluster.run(nodes=6) as made:
        racks(made, 6, 3)
        await made.rest("1m")
        made.patch(port.NODES, name(0), {"spec": {"unschedulable": True}})
        taint = {"key": "repair", "effect": "NoSchedule"}
        made.patch(port.NODES, name(3), {"spec": {"taints": [taint]}})
        assert await running(made, "first", 2) in ({1, 2}, {4, 5})
        assert await running(made, "second", 2) in ({1, 2}, {4, 5})
        made.submit("three", group(replicas=3, run_for="10m"), topology=NEAR)
        await made.rest("10m")
        assert made.phase("three") == "Pending"
        made.patch(port.NODES, name(0), {"spec": {"unschedulable": False}})
        await made.until_phase("three", "Succeeded", within="4h")


@cluster.virtual
async def test_who_runs_stays_when_its_node_is_moved_and_later_gangs_go_by_where_it_is_now() -> None:
    async with cluster.run(nodes=6) as made:
        racks(made, 6, 3)
        await made.rest("1m")
        there = await running(made, "first", 2)
        moved = min(there)
        relabel(made, moved, "r9")
        await made.rest("10m")
        assert made.phase("first") == "Running"
        assert used(made, "first") == there
        assert made.status("first").get("restarts", 0) == 0
        other = await running(made, "second", 3)
        assert not other & there
        relabel(made, moved, None)
        await made.rest("1m")
        (status,) = (raw["status"] for raw in made.store.list(port.INTERCONNECTS))
        assert [item["name"] for item in status["leftOut"]] == [name(moved)]


@cluster.virtual
async def test_a_gang_that_lost_a_node_goes_back_into_its_rack_and_a_deleted_node_is_no_place() -> None:
    async with cluster.run(nodes=8, slack=100) as made:
        racks(made, 8, 4)
        await made.rest("1m")
        there = await running(made, "first", 3)
        rack = {node // 4 for node in there}
        lost = max(there)
        made.delete(name(lost), port.NODES)
        await made.until(lambda: made.status("first").get("attempt") == 2, "it is placed anew")
        await made.until_phase("first", "Running")
        again = used(made, "first")
        assert lost not in again
        assert {node // 4 for node in again} == rack


@cluster.virtual
async def test_a_rack_in_which_nodes_fail_together_is_taken_last_and_trusted_again_when_they_return() -> None:
    async with cluster.run(nodes=12, slack=100, reaction="10m") as made:
        racks(made, 12, 6)
        await made.rest("1m")
        for node in (0, 1, 2):
            made.world.fail_node(name(node), how="silent")
        await made.rest("5m")
        suspects = {node.name for node in made.operator.cache.engine_nodes() if node.suspect}
        assert suspects == {name(node) for node in range(6)}
        # Three fill up what is left of the rack, where nobody is suspect.
        assert await running(made, "first", 3) <= set(range(6, 12))
        assert await running(made, "second", 3) <= set(range(6, 12))
        # Taken last is not taken never.
        assert await running(made, "last", 3) == {3, 4, 5}
        for node in (0, 1, 2):
            made.world.heal_node(name(node))
        await made.rest("5m")
        assert not any(node.suspect for node in made.operator.cache.engine_nodes())
        assert await running(made, "back", 3) == {0, 1, 2}


@cluster.virtual
async def test_two_nodes_that_fail_and_one_in_repair_for_long_speak_against_nobody() -> None:
    async with cluster.run(nodes=12, slack=100, reaction="10m") as made:
        racks(made, 12, 6)
        made.world.fail_node(name(0), how="silent")
        await made.rest("2h")
        for node in (1, 2):
            made.world.fail_node(name(node), how="silent")
        await made.rest("10m")
        assert not any(node.suspect for node in made.operator.cache.engine_nodes())


@cluster.virtual
async def test_a_gang_whose_rack_failed_under_it_does_not_go_back_there() -> None:
    async with cluster.run(nodes=12, slack=100, reaction="10m") as made:
        racks(made, 12, 6)
        await made.rest("1m")
        there = await running(made, "first", 3)
        rack = min(there) // 6
        for node in there:
            made.world.fail_node(name(node), how="silent")
        await made.until(lambda: made.status("first").get("attempt") == 2, "it is placed anew")
        await made.until_phase("first", "Running")
        assert {node // 6 for node in used(made, "first")} == {1 - rack}
        for node in there:
            made.world.heal_node(name(node))


@cluster.virtual
async def test_a_leader_without_gpus_goes_back_into_its_rack_with_its_workers() -> None:
    async with cluster.run(nodes=8, slack=100) as made:
        racks(made, 8, 4)
        await made.rest("1m")
        groups = (group("leader", 1, gpus=0, run_for="2h"), group("worker", 2, run_for="2h"))
        made.submit("first", *groups, topology=NEAR)
        await made.until_phase("first", "Running")
        there = used(made, "first")
        lost = max(there)
        made.delete(name(lost), port.NODES)
        await made.until(lambda: made.status("first").get("attempt") == 2, "it is placed anew")
        await made.until_phase("first", "Running")
        assert {node // 4 for node in used(made, "first")} == {node // 4 for node in there}
