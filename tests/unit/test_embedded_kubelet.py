"""The kubelets: how pods start, run, end and leave, and what a node that is down does to them."""

import asyncio
from typing import Any

from cases import worlds
from lstqueue.embedded import eventlog
from lstqueue.embedded.world import World
from lstqueue.kube import port


def make(world: World, name: str = "pod", **fields: Any) -> None:
    world.store.create(port.PODS, worlds.NAMESPACE, worlds.pod(name, **fields))


def delete(world: World, name: str = "pod") -> None:
    world.store.delete(port.PODS, worlds.NAMESPACE, name)


def exists(world: World, name: str = "pod") -> bool:
    return world.store.find(port.PODS, worlds.NAMESPACE, name) is not None


def get(world: World, name: str = "pod") -> port.Object:
    return worlds.get_pod(world.store, name)


def node(world: World, name: str = "node-0000") -> port.Object:
    return world.store.get(port.NODES, None, name)


def is_ready(obj: port.Object) -> str:
    return str(worlds.condition(obj, "Ready").get("status", ""))


@worlds.virtual
async def test_a_pod_starts_runs_and_succeeds_at_its_times() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, annotations={"sim/start-after": "30s", "sim/run-for": "1h"})
        await asyncio.sleep(29)
        assert worlds.phase(world.store, "pod") == "Pending"
        await asyncio.sleep(2)
        running = get(world)
        assert running["status"]["phase"] == "Running"
        assert running["status"]["startTime"] == "2026-01-01T00:00:30Z"
        assert running["status"]["podIP"]
        assert is_ready(running) == "True"
        assert running["status"]["containerStatuses"][0]["state"]["running"]
        await asyncio.sleep(3597)
        assert worlds.phase(world.store, "pod") == "Running"
        await asyncio.sleep(5)
        ended = get(world)["status"]
        assert ended["phase"] == "Succeeded"
        state = ended["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        assert is_ready(get(world)) == "False"


@worlds.virtual
async def test_a_pod_fails_with_its_exit_code_or_one() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "coded", annotations={"sim/fail-after": "5s", "sim/exit-code": "137"})
        make(world, "plain", annotations={"sim/fail-after": "5s", "sim/run-for": "5s"})
        make(world, "late", annotations={"sim/fail-after": "9s", "sim/run-for": "5s"})
        await asyncio.sleep(6)
        assert [worlds.phase(world.store, name) for name in ("coded", "plain", "late")] == [
            "Failed",
            "Failed",
            "Succeeded",
        ]
        for name, code in (("coded", 137), ("plain", 1)):
            state = get(world, name)["status"]["containerStatuses"][0]["state"]
            assert state["terminated"]["exitCode"] == code


@worlds.virtual
async def test_a_deleted_pod_leaves_after_its_time_and_never_within_the_deletion() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "slow", annotations={"sim/terminate-after": "10m", "sim/run-for": "2m"})
        make(world, "quick")
        await asyncio.sleep(1)
        delete(world, "quick")
        delete(world, "slow")
        assert exists(world, "quick")
        await asyncio.sleep(1)
        assert not exists(world, "quick")
        await asyncio.sleep(590)
        # It was told to stop, so it does not go on to succeed.
        assert worlds.phase(world.store, "slow") == "Running"
        await asyncio.sleep(15)
        assert not exists(world, "slow")


@worlds.virtual
async def test_annotations_that_cannot_be_read_refuse_the_pod_and_say_why() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, annotations={"sim/run-for": "soon"})
        await asyncio.sleep(1)
        status = get(world)["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "UnreadableAnnotation")
        assert "annotation sim/run-for: 'soon' is not a duration" in status["message"]


@worlds.virtual
async def test_new_nodes_become_ready() -> None:
    async with World(serve=False) as world:
        world.store.create(port.NODES, None, {"metadata": {"name": "bare"}, "status": {}})
        await asyncio.sleep(1)
        assert is_ready(node(world, "bare")) == "True"
        assert worlds.condition(node(world, "bare"), "DiskPressure")["status"] == "False"


@worlds.virtual
async def test_a_node_that_is_down_freezes_its_pods_until_it_is_back() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "running", annotations={"sim/run-for": "100s"})
        make(world, "starting", annotations={"sim/start-after": "60s"})
        make(world, "leaving", annotations={"sim/terminate-after": "40s"})
        await asyncio.sleep(20)
        delete(world, "leaving")
        await asyncio.sleep(10)
        world.fail_node("node-0000")
        await asyncio.sleep(200)
        assert is_ready(node(world)) == "False"
        assert {taint["key"] for taint in node(world)["spec"]["taints"]} == {"node.kubernetes.io/not-ready"}
        assert worlds.phase(world.store, "running") == "Running"
        assert is_ready(get(world, "running")) == "True", "only a node that nobody hears of loses its pods"
        assert worlds.phase(world.store, "starting") == "Pending"
        assert exists(world, "leaving")
        world.heal_node("node-0000")
        await asyncio.sleep(29)
        assert "taints" not in node(world)["spec"]
        assert is_ready(get(world, "running")) == "True"
        assert worlds.phase(world.store, "starting") == "Pending"
        assert exists(world, "leaving")
        await asyncio.sleep(2)
        assert worlds.phase(world.store, "starting") == "Running"
        assert not exists(world, "leaving")
        await asyncio.sleep(40)
        assert worlds.phase(world.store, "running") == "Succeeded"


@worlds.virtual
async def test_pods_of_a_dead_node_are_evicted_after_300_s_and_stay_terminating() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "plain")
        make(world, "stoic", tolerations=[{"operator": "Exists"}])
        await asyncio.sleep(1)
        world.fail_node("node-0000", how="unknown")
        await asyncio.sleep(299)
        assert is_ready(node(world)) == "Unknown"
        assert "deletionTimestamp" not in get(world, "plain")["metadata"]
        await asyncio.sleep(2)
        assert "deletionTimestamp" in get(world, "plain")["metadata"]
        disrupted = worlds.condition(get(world, "plain"), "DisruptionTarget")
        assert disrupted["reason"] == "DeletionByTaintManager"
        await asyncio.sleep(86_400)
        assert exists(world, "plain")
        assert "deletionTimestamp" not in get(world, "stoic")["metadata"]
        world.heal_node("node-0000")
        await asyncio.sleep(1)
        assert not exists(world, "plain")


@worlds.virtual
async def test_a_node_that_comes_back_in_time_evicts_nobody() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world)
        await asyncio.sleep(1)
        for _ in range(3):
            world.fail_node("node-0000")
            await asyncio.sleep(200)
            world.heal_node("node-0000")
            await asyncio.sleep(200)
        assert "deletionTimestamp" not in get(world)["metadata"]


@worlds.virtual
async def test_a_no_execute_taint_evicts_at_once_or_after_the_tolerated_seconds() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        taint = {"key": "repair", "effect": "NoExecute"}
        make(world, "plain")
        make(world, "patient", tolerations=[{"operator": "Exists", "key": "repair", "tolerationSeconds": 60}])
        await asyncio.sleep(1)
        world.store.patch(port.NODES, None, "node-0000", {"spec": {"taints": [taint]}})
        await asyncio.sleep(1)
        assert not exists(world, "plain")
        await asyncio.sleep(55)
        assert exists(world, "patient")
        await asyncio.sleep(10)
        assert not exists(world, "patient")


@worlds.virtual
async def test_a_kubelet_refuses_a_pod_that_does_not_fit_and_keeps_the_others() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=4)
        make(world, "first", gpus=3)
        await asyncio.sleep(1)
        make(world, "forced", gpus=2, nodeName="node-0000")
        await asyncio.sleep(1)
        assert worlds.phase(world.store, "first") == "Running"
        refused = get(world, "forced")["status"]
        assert (refused["phase"], refused["reason"]) == ("Failed", "OutOfnvidia.com/gpu")
        assert "requested: 2, used: 3, capacity: 4" in refused["message"]
        make(world, "fits", gpus=1, nodeName="node-0000")
        await asyncio.sleep(1)
        assert worlds.phase(world.store, "fits") == "Running"


@worlds.virtual
async def test_pods_of_a_removed_node_fail_and_go() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world)
        await asyncio.sleep(1)
        last: list[port.Object] = []

        def remember(event: eventlog.Event) -> None:
            if event.resource == port.PODS and event.type == eventlog.DELETED:
                last.append(event.object)

        world.store.subscribe(remember)
        world.store.delete(port.NODES, None, "node-0000")
        await asyncio.sleep(50)
        assert exists(world)
        await asyncio.sleep(15)
        assert not exists(world)
        assert last[0]["status"]["phase"] == "Failed"
        assert worlds.condition(last[0], "DisruptionTarget")["reason"] == "DeletionByPodGC"


@worlds.virtual
async def test_a_pod_that_was_ended_by_hand_stays_ended() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, annotations={"sim/run-for": "60s"})
        await asyncio.sleep(1)
        failed = {"status": {"phase": "Failed"}}
        world.store.patch(port.PODS, worlds.NAMESPACE, "pod", failed, subresource="status")
        await asyncio.sleep(120)
        assert worlds.phase(world.store, "pod") == "Failed"
