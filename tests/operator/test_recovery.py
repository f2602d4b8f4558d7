"""Gangs that lose a node or stay incomplete: stopped, whole again elsewhere, and no failure is counted."""

from __future__ import annotations

import dataclasses

import cluster
import pytest
from manifests import group, pool

from lstqueue.embedded import eventlog
from lstqueue.kube import port

TRAINER = {"checkpoint": {"interval": "10m"}, "estimatedDuration": "2h"}


async def running(made: cluster.Cluster, **spec: object) -> str:
    """Run a gang of two nodes; return the node of rank 0."""
    made.submit("gang", group("worker", 2, run_for="2h"), backoffLimit=0, **spec)
    await made.until_phase("gang", "Running")
    await made.rest("35m")
    return made.placement("gang")[0]


def break_node(made: cluster.Cluster, node: str, how: str) -> None:
    if how == "tainted":
        made.world.taint(node, "maintenance")
    elif how == "deleted":
        made.delete(node, port.NODES)
    else:
        made.world.fail_node(node, how=how)


@pytest.mark.parametrize("how", ["crashed", "silent", "deleted", "tainted"])
def test_a_gang_that_loses_a_node_is_whole_again_elsewhere_within_minutes(how: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=3, reaction="3m") as made:
            made.queue()
            node = await running(made, **TRAINER)
            break_node(made, node, how)
            await made.until(lambda: made.status("gang")["attempt"] == 2, "it is admitted again", within="3m")
            await made.until_phase("gang", "Running", within="1m")
            status = made.status("gang")
            assert node not in made.placement("gang").values()
            assert status["runs"][0]["reason"] == "NodeLost"
            assert status["saved"] == "30m"
            assert (status["restarts"], status["disruptions"]) == (1, 1)
            await made.until_phase("gang", "Succeeded", within="3h")
            if how in ("crashed", "silent"):
                made.world.heal_node(node)

    scenario()


@cluster.virtual
async def test_a_cordon_alone_stops_nobody() -> None:
    async with cluster.run(nodes=3) as made:
        made.queue()
        node = await running(made)
        made.world.cordon(node)
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_a_taint_that_its_pods_tolerate_stops_nobody() -> None:
    async with cluster.run(nodes=2) as made:
        tolerations = [{"key": "maintenance", "operator": "Exists"}]
        made.queue(pools=[pool("all", tolerations=tolerations)])
        node = await running(made)
        made.world.taint(node, "maintenance")
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_a_node_of_a_member_that_is_through_may_go() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        made.submit("gang", group("a", run_for="10m"), group("b", run_for="2h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        node = made.placement("gang")[0]
        await made.rest("20m")
        made.delete(node, port.NODES)
        await made.until_phase("gang", "Succeeded", within="3h")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_pods_that_cannot_leave_a_dead_node_block_that_node_only() -> None:
    async with cluster.run(nodes=3, reaction="3m") as made:
        made.queue(pools=[pool("all", gpus=16)])
        node = await running(made)
        made.world.fail_node(node, how="silent")
        await made.until_phase("gang", "Running", within="3m")
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it runs elsewhere", within="3m")
        stuck = [raw for raw in made.pods("gang") if raw["spec"].get("nodeName") == node]
        assert [raw["status"]["phase"] for raw in stuck] == ["Running"]
        await made.until_phase("gang", "Succeeded", within="3h")
        made.submit("next", group("worker", 3, run_for="1m"))
        await made.rest("1h")
        assert made.phase("next") == "Pending"
        made.world.heal_node(node)
        made.patch(port.GPU_QUEUES, cluster.QUEUE, {"spec": {"pools": [pool("all", gpus=24)]}})
        await made.until_phase("next", "Succeeded", within="1h")


@cluster.virtual
async def test_a_node_that_comes_and_goes_does_not_take_the_gang_down_each_time() -> None:
    async with cluster.run(nodes=1, reaction="10m", slack=60) as made:
        made.queue()
        made.submit("gang", group("worker", 2, gpus=4, run_for="2h"), backoffLimit=0)
        await made.until_phase("gang", "Running")
        for _ in range(20):
            made.world.fail_node("node-0000")
            await made.rest("20s")
            made.world.heal_node("node-0000")
            await made.rest("10s")
        assert made.status("gang")["attempt"] <= 3
        await made.until_phase("gang", "Succeeded", within="4h")


def unready(made: cluster.Cluster, name: str, *, ready: bool = False) -> None:
    """Have a pod's readiness probe fail, or succeed again."""
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    made.store.patch(port.PODS, cluster.NAMESPACE, name, {"status": status}, subresource="status")


@cluster.virtual
async def test_a_gang_that_stays_incomplete_is_queued_again_and_one_that_recovers_runs_on() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        node = await running(made)
        pod = made.pods("gang")[0]["metadata"]["name"]
        unready(made, pod)
        await made.rest("9m")
        unready(made, pod, ready=True)
        await made.rest("15m")
        assert made.status("gang")["attempt"] == 1
        unready(made, pod)
        began = made.now()
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is queued again", within="20m")
        assert (made.now() - began) / 60_000 == pytest.approx(10, abs=1)
        assert made.status("gang")["runs"][0]["reason"] == "NotReady"
        assert made.status("gang").get("restarts", 0) == 0
        assert node not in made.placement("gang").values()
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_the_time_to_recover_can_be_set() -> None:
    settings = dataclasses.replace(cluster.SETTINGS, recovery_timeout_ms=60_000)
    async with cluster.run(nodes=2, settings=settings) as made:
        made.queue()
        await running(made)
        unready(made, made.pods("gang")[0]["metadata"]["name"])
        await made.until(lambda: made.status("gang")["attempt"] == 2, "it is queued again", within="8m")
        await made.until_phase("gang", "Succeeded", within="3h")


@cluster.virtual
async def test_after_three_failed_starts_a_job_has_nobody_suspended() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(bindTimeout="1m")
        made.submit("holder", group(run_for="20h"), estimatedDuration="20h")
        await made.until_phase("holder", "Running")
        taken = 0

        def intrude(event: eventlog.Event) -> None:
            nonlocal taken
            status = event.object.get("status") or {}
            named = event.object["metadata"]["name"] == "broken"
            if event.resource == port.DEADLINE_JOBS and named and status.get("attempt", 0) > taken:
                taken = status["attempt"]

        made.store.subscribe(intrude)
        broken = group("worker", pod={"schedulerName": "nobody"})
        made.submit("broken", broken, deadlineIn="12h", estimatedDuration="8h")
        await made.until(
            lambda: (made.status("broken").get("backoff") or {}).get("count") == 3, "three starts failed"
        )
        made.submit("filler", group(run_for="20h"), importance=5, preemptible=False)
        await made.until_phase("filler", "Running")
        await made.rest("9h")
        assert made.status("holder")["attempt"] == 1
        assert taken == 3
