"""Nodes that vanish or break under a gang: it ends up queued again, and nothing hangs."""

from __future__ import annotations

import cluster
from manifests import group

from lstqueue.kube import port


@cluster.virtual
async def test_a_node_that_vanishes_under_a_running_gang_has_it_queued_again() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        lost = made.placement("gang")[1]
        made.delete(lost, port.NODES)
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is admitted again")
        await made.until_phase("gang", "Running")
        assert lost not in made.placement("gang").values()
        await made.until_phase("gang", "Succeeded", within="2h")
        assert made.status("gang")["runs"][0]["reason"] == "NodeLost"


@cluster.virtual
async def test_a_node_that_is_made_anew_under_its_name_takes_no_rank_of_the_old_one() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        await made.rest("1m")
        before = made.store.get(port.NODES, None, "node-0001")
        pods = {raw["metadata"]["uid"] for raw in made.store.list(port.PODS)}
        made.delete("node-0001", port.NODES)
        again = {key: value for key, value in before["metadata"].items() if key in ("name", "labels")}
        made.create(port.NODES, {**before, "metadata": again})  # before anybody could look
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is admitted again")
        await made.until_phase("gang", "Succeeded", within="2h")
        first = made.status("gang")["runs"][0]
        assert first["reason"] == "NodeLost"
        assert not pods & {raw["metadata"]["uid"] for raw in made.store.list(port.PODS)}


@cluster.virtual
async def test_a_gang_that_lost_its_only_node_waits_for_another() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, run_for="1h"), deadlineIn="9h", estimatedDuration="1h")
        await made.until_phase("gang", "Running")
        made.delete("node-0000", port.NODES)
        await made.until(lambda: made.code("gang") == "NoMatchingNodes", "it waits for nodes")
        await made.rest("2h")
        made.world.add_nodes(1)
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_node_that_vanishes_while_a_gang_starts_on_it_is_a_failed_start() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("gang", group("worker", 2, start_after="10m", run_for="1h"), backoffLimit=0)
        await made.until_phase("gang", "Admitted")
        await made.rest("1m")
        lost = made.placement("gang")[0]
        made.delete(lost, port.NODES)
        await made.until_phase("gang", "Running")
        assert lost not in made.placement("gang").values()
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_broken_node_that_is_replaced_gives_its_gang_back() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="1h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        broken = made.placement("gang")[0]
        made.world.fail_node(broken)
        await made.until_phase("gang", "Suspending", within="10m")
        await made.rest("10m")
        made.delete(broken, port.NODES)
        await made.until_phase("gang", "Running")
        assert broken not in made.placement("gang").values()
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_a_gang_whose_node_is_away_stops_at_once_and_comes_back_with_it() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, run_for="1h"))
        await made.until_phase("gang", "Running")
        made.world.fail_node("node-0000")
        await made.until_phase("gang", "Pending", within="1m30s")
        made.world.heal_node("node-0000")
        await made.until_phase("gang", "Succeeded", within="2h")
        assert made.status("gang")["disruptions"] == 1


@cluster.virtual
async def test_a_node_that_comes_back_after_its_pods_were_evicted_takes_the_gang_again() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, run_for="1h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        made.world.fail_node("node-0000")
        await made.until_phase("gang", "Suspending", within="10m")
        await made.rest("30m")
        made.world.heal_node("node-0000")
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["disruptions"] == 1
