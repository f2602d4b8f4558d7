"""What a gang asks of the interconnect, as its user sees it: where its ranks are, what its status says."""

from __future__ import annotations

import cluster
import existing
from manifests import group, own

from lstqueue.kube import port

RACK, BLOCK = "example.com/rack", "example.com/block"
LEVELS = [{"name": "rack", "bandwidth": "400Gb/s"}]


async def racks(made: cluster.Cluster, nodes: int, *, queue: bool = True) -> None:
    """Two racks to which nodes are dealt in turn, known to every pass, and a queue if there is none."""
    for node in range(nodes):
        labels = {RACK: f"r{node % 2}", BLOCK: "b0"}
        made.patch(port.NODES, f"node-{node:04d}", {"metadata": {"labels": labels}})
    source = {"name": "own", "nodeLabels": {"keys": [BLOCK, RACK]}}
    spec = {"sources": [source], "levels": LEVELS, "nodeBandwidth": "50GB/s"}
    made.create(port.INTERCONNECTS, own("Interconnect", "fabric", spec))

    def summary() -> str:
        status = made.store.get(port.INTERCONNECTS, None, "fabric").get("status") or {}
        return str(status.get("summary"))

    await made.until(lambda: summary() == "block 1, rack 2", "the interconnect is read")
    if queue:
        made.queue()


@cluster.virtual
async def test_ranks_follow_the_interconnect_and_the_status_says_how_good_the_place_is() -> None:
    async with cluster.run(nodes=6) as made:
        await racks(made, 6)
        share = {"communicationShare": "30%"}
        made.submit("wide", group("worker", 5, run_for="20m"), topology=share)
        await made.until_phase("wide", "Running")
        assert [made.placement("wide")[rank] for rank in range(5)] == [
            f"node-{node:04d}" for node in (0, 2, 4, 1, 3)
        ]
        said = made.status("wide")["admission"]
        assert said["topology"].startswith("block b0, 4 hops, ring 50 GB/s of 50")
        assert said["domain"] == "b0"
        assert said["slowdownPermille"] > 1000
        await made.until_phase("wide", "Succeeded")
        assert made.status("wide")["runs"][0]["domain"] == "b0"


@cluster.virtual
async def test_a_gang_that_lost_a_node_goes_back_to_its_rack() -> None:
    async with cluster.run(nodes=8) as made:
        await racks(made, 8)
        made.submit("gang", group("worker", 3, run_for="2h"), topology={"required": "rack"})
        await made.until_phase("gang", "Running")
        home, lost = made.status("gang")["admission"]["domain"], made.placement("gang")[0]
        made.delete(lost, port.NODES)
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is admitted again")
        await made.until_phase("gang", "Running")
        assert made.status("gang")["admission"]["domain"] == home
        assert made.status("gang")["runs"][0]["domain"] == home
        assert lost not in made.placement("gang").values()


@cluster.virtual
async def test_a_job_that_no_rack_could_hold_is_told_so_with_numbers() -> None:
    async with cluster.run(nodes=4) as made:
        await racks(made, 4)
        made.submit(
            "wide",
            group("worker", 3),
            topology={"required": "rack"},
            deadlineIn="1d",
            estimatedDuration="1h",
        )
        await made.until(lambda: made.code("wide") == "NoMatchingNodes", "it is told")
        said = made.status("wide")
        assert said["verdict"]["level"] == "IMPOSSIBLE"
        assert "in one rack, and at most 2 of them fit in one (2 in r0 of b0" in said["pending"]["message"]


@cluster.virtual
async def test_a_job_waits_while_nothing_is_known_of_an_interconnect() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        asked = {"topology": {"required": "rack"}, "onInfeasible": "Reject", "deadlineIn": "1d"}
        made.submit("early", group("worker", 2, run_for="10m"), estimatedDuration="10m", **asked)
        await made.until(lambda: made.code("early") == "HeldBack", "it is told")
        assert "nothing is known of one" in made.status("early")["pending"]["message"]
        await racks(made, 4, queue=False)
        await made.until_phase("early", "Succeeded")


@cluster.virtual
async def test_a_users_own_job_asks_by_annotations() -> None:
    async with cluster.run(nodes=4) as made:
        await racks(made, 4)
        jobs = existing.Existing(made)
        jobs.create("train", said={"topology-required": "rack"})
        await jobs.until_phase("train", "Running")
        nodes = {int(name[-4:]) % 2 for name in jobs.bound("train")}
        assert len(nodes) == 1
