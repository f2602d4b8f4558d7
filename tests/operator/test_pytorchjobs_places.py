"""PyTorchJobs on an interconnect: ranks of master and workers follow it as those of any gang do."""

from __future__ import annotations

import itertools

import cluster
from pytorch import PyTorch
from test_interconnect_places import racks


@cluster.virtual
async def test_master_and_workers_share_the_rack_that_they_ask_for() -> None:
    async with cluster.run(nodes=8) as made:
        await racks(made, 8)
        jobs = PyTorch(made)
        jobs.create("small", workers=0, run_for="3h")
        await jobs.until_phase("small", "Running")
        jobs.create("train", workers=3, said={"topology-required": "rack"}, run_for="20m")
        await jobs.until_phase("train", "Running")
        nodes = [made.placement(jobs.ledger("train"))[rank] for rank in range(4)]
        assert len({int(node.removeprefix("node-")) % 2 for node in nodes}) == 1
        ranked = ["train-master-0", *(f"train-worker-{index}" for index in range(3))]
        assert [jobs.on("train")[pod] for pod in ranked] == nodes
        assert made.status(jobs.ledger("train"))["admission"]["domain"].startswith("b0/")
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_workers_go_rack_after_rack_in_the_order_of_their_ranks() -> None:
    async with cluster.run(nodes=6) as made:
        await racks(made, 6)
        jobs = PyTorch(made)
        jobs.create("wide", workers=4, run_for="20m")
        await jobs.until_phase("wide", "Running")
        places = made.placement(jobs.ledger("wide"))
        dealt = [int(places[rank].removeprefix("node-")) % 2 for rank in range(1, 5)]
        assert sum(first != second for first, second in itertools.pairwise(dealt)) == 1
        await jobs.until_phase("wide", "Succeeded")
