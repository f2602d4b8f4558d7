"""A gang is admitted whole: every rank in its place, with the environment it needs, or nothing at all."""

from __future__ import annotations

import cluster
import pytest
from manifests import group, pool

from cases import effort
from lstqueue.api import names
from lstqueue.kube import port


def rank_of(pod: cluster.Object) -> int:
    return int(pod["metadata"]["annotations"][names.ANNOTATION_RANK])


def environment(pod: cluster.Object) -> cluster.Object:
    return {item["name"]: item for item in pod["spec"]["containers"][0]["env"]}


@cluster.virtual
async def test_a_single_pod_runs_to_its_end_without_a_service() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("solo", group(gpus=1, run_for="10m"))
        await made.until_phase("solo", "Succeeded")
        (pod,) = made.pods("solo")
        assert environment(pod)["MASTER_ADDR"]["value"] == "localhost"
        assert environment(pod)["WORLD_SIZE"]["value"] == "1"
        assert made.store.list(port.SERVICES) == []
        assert made.finished_at("solo") < made.now()


@cluster.virtual
async def test_ranks_go_over_all_groups_in_order_and_every_pod_is_where_the_status_says() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        made.submit("wide", group("leader", 1, run_for="10m"), group("worker", 3, run_for="10m"))
        await made.until_phase("wide", "Running")
        places = made.placement("wide")
        assert sorted(places) == [0, 1, 2, 3]
        pods = made.pods("wide")
        assert {rank_of(pod): pod["spec"]["nodeName"] for pod in pods} == places
        assert {rank_of(pod): pod["metadata"]["labels"][names.LABEL_GROUP] for pod in pods} == {
            0: "leader",
            1: "worker",
            2: "worker",
            3: "worker",
        }
        assert {environment(pod)["MASTER_ADDR"]["value"] for pod in pods} == {"wide-leader-0-0.gang-wide"}
        assert {environment(pod)["PET_NNODES"]["value"] for pod in pods} == {"4"}
        service = made.store.get(port.SERVICES, cluster.NAMESPACE, "gang-wide")
        assert service["spec"]["publishNotReadyAddresses"] is True
        assert all(pod["spec"]["subdomain"] == "gang-wide" for pod in pods)
        await made.until_phase("wide", "Succeeded")


@cluster.virtual
async def test_several_pods_share_a_node_and_ranks_fill_node_after_node() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("packed", group("worker", 16, gpus=1, run_for="10m"))
        await made.until_phase("packed", "Running")
        places = made.placement("packed")
        assert len({places[rank] for rank in range(8)}) == 1
        assert len({places[rank] for rank in range(8, 16)}) == 1
        assert made.status("packed")["gang"] == "16×1 nvidia.com/gpu"
        await made.until_phase("packed", "Succeeded")


@cluster.virtual
async def test_a_gang_without_any_gpu_is_queued_like_any_other() -> None:
    async with cluster.run(nodes=1, gpus=0) as made:
        made.queue(pools=[pool("cpus", resource="cpu", gpus=4)])
        cpus = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1500m"}}}]}
        made.submit("first", group("worker", 2, pod=cpus, run_for="10m"))
        made.submit("second", group("worker", 2, pod=cpus, run_for="10m"))
        await made.until_phase("first", "Running")
        await made.until_phase("second", "Pending")
        assert made.code("second") == "QuotaExceeded"
        await made.until_all("Succeeded", "first", "second")


@cluster.virtual
async def test_a_gang_that_does_not_fit_waits_whole_and_starts_when_room_returns() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("first", group("worker", 2, run_for="30m"))
        await made.until_phase("first", "Running")
        made.submit("second", group("leader", run_for="10m"), group("worker", run_for="10m"))
        await made.until_phase("second", "Pending")
        assert made.code("second") == "NoRoom"
        assert made.status("second")["pending"]["message"]
        await made.rest("20m")
        assert made.children("second") == []
        assert made.pods("second") == []
        await made.until_phase("second", "Succeeded")


@cluster.virtual
async def test_a_smaller_gang_may_pass_one_that_does_not_fit() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        made.submit("first", group("worker", 2, run_for="30m"), estimatedDuration="30m")
        await made.until_phase("first", "Running")
        made.submit("large", group("worker", 3, run_for="10m"), estimatedDuration="10m")
        await made.until_phase("large", "Pending")
        made.submit("small", group("worker", 1, run_for="10m"), estimatedDuration="10m")
        await made.until_phase("small", "Running", within="1m")
        await made.until_all("Succeeded", "first", "large", "small", within="2h")
        assert made.finished_at("small") < made.finished_at("large")


@cluster.virtual
async def test_a_gang_larger_than_the_cluster_is_told_so_and_starts_when_nodes_are_added() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("wide", group("worker", 2, run_for="10m"), deadlineIn="1d", estimatedDuration="10m")
        await made.until_phase("wide", "Pending")
        assert made.code("wide") == "NoMatchingNodes"
        assert made.level("wide") == "IMPOSSIBLE"
        await made.rest("2h")
        made.world.add_nodes(1)
        await made.until_phase("wide", "Running", within="1m")
        assert made.level("wide") == "LIKELY"
        await made.until_phase("wide", "Succeeded")


@pytest.mark.parametrize("count", effort.sample((40, 100), quick=1))
def test_many_jobs_at_once_all_run_and_never_more_than_fit(count: int) -> None:
    cluster.alone(lambda: many(count))


async def many(count: int) -> None:
    async with cluster.run(nodes=count // 5) as made:
        made.queue()
        names_of = [f"job-{number:03}" for number in range(count)]
        for number, name in enumerate(names_of):
            size = 1 + number % 3
            made.submit(
                name,
                group("worker", size, gpus=4, run_for=f"{5 + number % 7}m"),
                deadlineIn=f"{2 + number % 5}h",
                estimatedDuration=f"{5 + number % 7}m",
            )
        await made.until_all("Succeeded", *names_of, within="6h")
        await made.rest("1m")
        queue = made.store.get(port.GPU_QUEUES, None, cluster.QUEUE)["status"]
        assert (queue["pending"], queue["admitted"], queue["running"]) == (0, 0, 0)
        assert (queue["met"], queue["missed"]) == (count, 0)
        assert {row["used"] for row in queue["usage"]} == {"0"}
